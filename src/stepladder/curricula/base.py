"""The contract of every curriculum: draw, observe, explain, snapshot, restore.

A curriculum turns records into the weights of its plan, in the one process that owns it. `sync`
carries the plan to the envs and the records back; whoever needs a task asks a client, not a copy
of this object. A copy cannot even be used: in another process every method that draws or
observes raises `WrongProcessError`.

A method is a subclass with a config. It says how its slots are grouped (`_groupings`), which
numbers readers need beside the weights (`_dial_names`), how the plan looks at the start
(`_publish`) and what a batch of records changes (`_update`). The rest is here.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from stepladder.curricula import kernels
from stepladder.curricula.explanation import Explanation, TaskExplanation
from stepladder.curricula.kernels import Floats, Words
from stepladder.curricula.legend import Legend
from stepladder.curricula.plan import Grouping, Plan
from stepladder.curricula.record import (
    DRAW_DTYPE,
    HOST_ENV,
    RECORD_DTYPE,
    Draw,
    DrawArray,
    Record,
    RecordArray,
    record_array,
    refuse,
)
from stepladder.curricula.settings import require_share
from stepladder.curricula.snapshot import Snapshot, difference, matching
from stepladder.errors import BuildError, ConfigError, RecordError, SnapshotError, WrongProcessError
from stepladder.tasks import ListSource, Pool, Source, Task

Tasks = Pool | Source | Sequence[Task]
"""What a curriculum can be built over."""

_forks = [0]
os.register_at_fork(after_in_child=lambda: _forks.__setitem__(0, _forks[0] + 1))


@dataclass(frozen=True, kw_only=True)
class CurriculumConfig:
    """Settings that every method has."""

    exploration: float = 0.0
    """Share of draws spread evenly over all tasks, whatever the method thinks, in [0, 1]."""

    def __post_init__(self) -> None:
        require_share("exploration", self.exploration)

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Curriculum":
        """Build the curriculum that this config describes."""
        raise ConfigError(f"{type(self).__name__} describes no curriculum; use one of its kinds.")

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON, with the name of their class."""
        return {"config": type(self).__name__, **_plain(asdict(self))}


@dataclass(frozen=True)
class Quarantined:
    """A task that an env could not build."""

    slot: int
    generation: int
    task: str
    label: str
    reason: str
    replaced: bool
    """Whether the source had another task to put into the slot."""


class Curriculum(ABC):
    """Turns records into a plan. Create it once, in the host process."""

    needs_success: bool = True
    """Whether records must say how successful an episode was."""

    config: CurriculumConfig
    summary: ClassVar[str] = ""

    def __init__(
        self,
        tasks: Tasks,
        config: CurriculumConfig,
        *,
        seed: int = 0,
        capacity: int | None = None,
    ):
        if isinstance(seed, bool) or not 0 <= seed < 2**63:
            raise ConfigError(f"seed must be an integer from 0 to 2**63 - 1; got {seed!r}.")
        self.config = config
        self.seed = int(seed)
        self.pool = _as_pool(tasks, capacity, self.seed)
        self.counters: Words = np.zeros(3, dtype=np.int64)
        """Episodes observed, env steps in them, orphans; counted by the kernels."""
        self.quarantined: list[Quarantined] = []
        self._num_drawn = 0
        self._plan: Plan | None = None
        self._root: Curriculum = self
        self._table = 0
        self._first_dial = 0
        self._forks = _forks[0]
        self._scratch = np.zeros(1, dtype=RECORD_DTYPE)

    # What a method provides.

    def _groupings(self) -> list[Grouping]:
        """Say how each weight table splits the slots; most methods have one group."""
        return [Grouping.single(self.pool.num_slots)]

    def _dial_names(self) -> list[str]:
        """Name the numbers that readers need beside the weights."""
        return []

    @abstractmethod
    def _publish(self) -> None:
        """Write the whole plan from the present state; called inside a write."""

    @abstractmethod
    def _update(self, records: RecordArray) -> int:
        """Learn from valid records; return -1, or the index of a bad one with nothing changed."""

    @abstractmethod
    def _explain(self) -> Explanation:
        """Answer `explain()`."""

    @abstractmethod
    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        """Say in a clause why a slot has its weight, and what was measured for it."""

    @abstractmethod
    def _save(self) -> Snapshot:
        """Return the method's own state."""

    @abstractmethod
    def _load(self, snapshot: Snapshot) -> None:
        """Take over the method's own state; may leave things half done when it raises."""

    def _slot_replaced(self, slot: int) -> None:
        """Forget what was measured for a slot and set its weight; called inside a write."""
        self._set_weight(slot, float(self.pool.base_weights[slot]))

    def _replacement_label(self, slot: int) -> str | None:
        """Return the label that a replacement for this slot must have, if any."""
        return None

    def legend(self) -> Legend:
        """Return what a client must know to read the plan; small, and it never changes."""
        return Legend(needs_success=self.needs_success)

    # What every curriculum does.

    @property
    def plan(self) -> Plan:
        """The plan; built when first asked for."""
        if self._plan is None:
            plan = Plan(self.pool.num_slots, self._groupings(), len(self._dial_names()), self.seed)
            self.pool.rebind(plan.task_ids, plan.generations)
            with plan.writing() as block:
                self._attach(plan, list(plan.tables), 0, self)
                block[kernels.H_TABLE] = self._active_table()
        assert self._plan is not None
        return self._plan

    def _attach(self, plan: Plan, tables: list[int], first_dial: int, root: "Curriculum") -> None:
        """Take one table and some dials of a plan as one's own; called inside a write."""
        self._plan = plan
        self._root = root
        self._table = tables.pop(0)
        self._first_dial = first_dial
        plan.set_exploration(self._table, self.config.exploration)
        self._publish()

    def _active_table(self) -> int:
        """Return the weight table that is in force."""
        return self._table

    @property
    def num_observed(self) -> int:
        """Records observed so far."""
        return int(self.counters[0])

    @property
    def num_steps(self) -> int:
        """Env steps in all records observed so far."""
        return int(self.counters[1])

    @property
    def num_orphaned(self) -> int:
        """Results of tasks that were replaced before they arrived; credited to nobody."""
        return int(self.counters[2])

    @property
    def is_foreign(self) -> bool:
        """Whether this object is a copy that a fork left in another process."""
        return self._forks != _forks[0]

    def _own(self) -> Plan:
        if self._forks != _forks[0]:
            raise WrongProcessError(_FOREIGN)
        return self._plan or self.plan

    def draw(self, k: int = 1) -> list[Draw]:
        """Draw `k` tasks for the host's own use, with replacement; always returns `k` items.

        Envs draw through their clients. Changes one counter in place: draws never repeat.
        """
        return [Draw(*row) for row in self.draw_batch(k).tolist()]

    def draw_batch(self, k: int) -> DrawArray:
        """Draw `k` tasks as a structured array of dtype `DRAW_DTYPE`; faster than `draw`."""
        if k < 0:
            raise ConfigError(f"k must be 0 or more; got {k}. Ask for as many draws as you need.")
        plan = self._own()
        draws = np.zeros(k, dtype=DRAW_DTYPE)
        slot = kernels.draw_many(plan.block, HOST_ENV, self._num_drawn, _NO_DIALS, draws)
        if slot < 0:
            raise BuildError(nothing_active(len(self.quarantined)))
        self._num_drawn += k
        return draws

    def task(self, draw: Draw) -> Task:
        """Return the task that a draw stands for."""
        return self.pool.source.get(draw.task_id)

    def observe(self, records: Record | Iterable[Record] | RecordArray) -> None:
        """Learn from finished episodes, in the order given; changes the plan in place.

        Raises:
            RecordError: A record is impossible. Then none of the batch was observed.
        """
        if self._forks != _forks[0]:
            raise WrongProcessError(_FOREIGN)
        batch = self._as_batch(records)
        bad = self._update(batch)
        if bad >= 0:
            raise refuse(batch, bad, self.pool.num_slots)

    def _as_batch(self, records: Record | Iterable[Record] | RecordArray) -> RecordArray:
        if isinstance(records, np.ndarray):
            if records.dtype != RECORD_DTYPE:
                raise RecordError(
                    f"records have dtype {records.dtype}; expected RECORD_DTYPE. "
                    "Make them with `record_array`."
                )
            return records
        try:
            if isinstance(records, Record):
                self._scratch[0] = records
                return self._scratch
            return record_array(records)
        except (TypeError, ValueError) as error:
            raise RecordError(
                f"a record holds something that is no number ({error}). "
                "Make records with `Record.of(draw, success=…)`."
            ) from error

    def probs(self) -> Floats:
        """Return the probability of every slot at the next draw; takes a pass over all slots."""
        return self._own().probs()

    def explain(self, slot: int | None = None) -> Explanation | TaskExplanation:
        """Say what the curriculum is doing and why, or why one task is (not) being drawn."""
        self._own()
        if slot is None:
            return self._explain()
        if not 0 <= slot < self.pool.num_slots:
            raise RecordError(
                f"slot {slot} does not exist; expected 0 to {self.pool.num_slots - 1}."
            )
        task = self.pool.task(slot)
        reason, numbers = self._reason(slot)
        if self.is_quarantined(slot):
            reason = "it is quarantined: an env could not build it"
        return TaskExplanation(
            slot=slot,
            generation=int(self.pool.generations[slot]),
            name=task.name,
            label=task.label,
            prob=kernels.prob_of(self.plan.block, slot),
            reason=reason,
            numbers=numbers,
        )

    def _overview(self) -> Explanation:
        return Explanation(**self._overview_fields())

    def _overview_fields(self) -> dict[str, Any]:
        return {
            "curriculum": type(self).__name__,
            "num_tasks": self.pool.num_slots,
            "num_quarantined": self.num_quarantined,
            "episodes": self.num_observed,
            "plan_version": self.plan.version,
        }

    def is_quarantined(self, slot: int) -> bool:
        """Whether a slot is out of play because no env could build its task."""
        plan = self.plan
        return int(plan.block[int(plan.block[kernels.H_POSITIONS]) + slot]) < 0

    @property
    def num_quarantined(self) -> int:
        """Slots out of play at this moment."""
        return self.pool.num_slots - int(self.plan.block[kernels.H_NUM_ACTIVE])

    def quarantine(self, slot: int, generation: int, reason: str) -> bool:
        """Take a task that cannot be built out of play, or replace it if the source has more.

        Returns:
            Whether anything changed: False for a task that is already gone.
        """
        plan = self._own()
        if generation != int(self.pool.generations[slot]) or self.is_quarantined(slot):
            return False
        task = self.pool.task(slot)
        replaced = self.pool.can_replace
        self.quarantined.append(
            Quarantined(slot, generation, task.name, task.label, reason, replaced)
        )
        if replaced:
            self.replace(slot)
        else:
            with plan.writing() as block:
                for table in plan.tables:
                    kernels.clear_slot(block, table, slot)
                kernels.swap_out(block, slot)
        return True

    def replace(self, slot: int, task_id: int | None = None) -> int:
        """Put another task into a slot; return the slot's new generation."""
        plan = self._own()
        label = self._replacement_label(slot)
        if task_id is not None and label is not None and self.pool.source.label(task_id) != label:
            raise ConfigError(
                f"task {task_id} has label {self.pool.source.label(task_id)!r}; slot {slot} "
                f"belongs to {label!r} and keeps it. Choose a task with that label."
            )
        with plan.writing():
            generation = self.pool.replace(slot, task_id, label=label)
            self._slot_replaced(slot)
        return generation

    def _set_weight(self, slot: int, weight: float, layer: int = 0) -> None:
        """Write one weight of this method's table; called inside a write."""
        assert self._plan is not None
        allowed = 0.0 if self.is_quarantined(slot) else weight
        kernels.set_leaf(self._plan.block, self._table, slot, allowed, layer)

    def _fill_weights(self, weights: Floats, layer: int = 0) -> None:
        """Write all weights of this method's table; called inside a write."""
        assert self._plan is not None
        positions = int(self._plan.block[kernels.H_POSITIONS])
        active = self._plan.block[positions : positions + self.pool.num_slots] >= 0
        allowed = np.where(active, weights, 0.0)
        kernels.fill_leaves(self._plan.block, self._table, allowed, layer)

    # Saving and resuming.

    def snapshot(self) -> Snapshot:
        """Return everything needed to continue exactly here."""
        plan = self._own()
        pool_state, pool_arrays = self.pool.snapshot()
        state: dict[str, Any] = {
            "curriculum": type(self).__name__,
            "config": self.config.to_json(),
            "seed": self.seed,
            "num_drawn": self._num_drawn,
            "version": plan.version,
            "tick": plan.tick,
            "quarantined": [asdict(entry) for entry in self.quarantined],
        }
        arrays = {"active": plan.active.copy(), "dials": plan.dials.copy()}
        for number, table in enumerate(plan.tables):
            arrays[f"table{number}/leaves"] = plan.leaves(table)
            arrays[f"table{number}/shares"] = plan.shares(table).copy()
        return Snapshot.of_parts(
            state,
            pool=Snapshot(pool_state, dict(pool_arrays)),
            plan=Snapshot({}, arrays),
            method=self._save_all(),
        )

    def _save_all(self) -> Snapshot:
        own = self._save()
        return Snapshot(own.state, {**own.arrays, "counters": self.counters.copy()})

    def _load_all(self, snapshot: Snapshot) -> None:
        self.counters[:] = matching(snapshot.arrays, "counters", self.counters)
        self._load(snapshot)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue exactly where `snapshot` was made; changes everything in place.

        Raises:
            SnapshotError: The snapshot is damaged, or was made with other tasks or settings. Then
                nothing has changed.
        """
        self._own()
        for name, present in (
            ("curriculum", type(self).__name__),
            ("config", self.config.to_json()),
            ("seed", self.seed),
        ):
            found = difference(snapshot.state.get(name), present, name)
            if found:
                raise SnapshotError(
                    f"the snapshot does not fit this curriculum: {found}. "
                    "Build the curriculum with the settings it was saved with."
                )
        before = self.snapshot()
        try:
            self._take_over(snapshot)
        except (SnapshotError, KeyError, TypeError, ValueError) as error:
            self._take_over(before)
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(
                f"the snapshot is damaged ({type(error).__name__}: {error}). Use an older one."
            ) from error

    def _take_over(self, snapshot: Snapshot) -> None:
        plan = self.plan
        pool, saved = snapshot.part("pool"), snapshot.part("plan")
        self.pool.restore(pool.state, pool.arrays)
        active = saved.arrays["active"]
        if len(np.unique(active)) != len(active) or not np.all(
            (active >= 0) & (active < plan.num_slots)
        ):
            raise SnapshotError("the list of active slots is damaged. Use an older snapshot.")
        kernels.begin_write(plan.block)
        try:
            self._load_all(snapshot.part("method"))
            for slot in range(plan.num_slots) if self.num_quarantined else ():
                kernels.swap_in(plan.block, slot)
            for slot in np.setdiff1d(np.arange(plan.num_slots), active):
                kernels.swap_out(plan.block, slot)
            plan.active[:] = active
            start = int(plan.block[kernels.H_POSITIONS])
            plan.block[start + active] = np.arange(len(active))
            plan.dials[:] = matching(saved.arrays, "dials", plan.dials)
            for number, table in enumerate(plan.tables):
                leaves = matching(saved.arrays, f"table{number}/leaves", plan.leaves(table))
                for layer, weights in enumerate(leaves):
                    kernels.fill_leaves(plan.block, table, weights, layer)
                plan.shares(table)[:] = matching(
                    saved.arrays, f"table{number}/shares", plan.shares(table)
                )
            plan.block[kernels.H_TABLE] = self._active_table()
            plan.block[kernels.H_TICK] = int(snapshot.state["tick"])
            self._num_drawn = int(snapshot.state["num_drawn"])
            self.quarantined = [Quarantined(**entry) for entry in snapshot.state["quarantined"]]
        finally:
            kernels.end_write(plan.block)
        plan.block[kernels.H_SEQUENCE] = 2 * int(snapshot.state["version"])

    def __reduce__(self) -> Any:
        # What travels to a worker is a marker, never a copy that could fall out of date.
        return ForeignCurriculum, (type(self).__name__,)

    def __deepcopy__(self, memo: Any) -> "Curriculum":
        raise WrongProcessError(
            "a curriculum cannot be copied. Build a second one and `restore` a snapshot into it."
        )


class ForeignCurriculum:
    """What arrives when a curriculum is sent to another process: a marker that refuses to work."""

    is_foreign = True

    def __init__(self, kind: str):
        self.kind = kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise WrongProcessError(_FOREIGN)


_NO_DIALS = np.zeros(0)

_FOREIGN = (
    "this is a copy of a curriculum in a process that does not own it; what it decided here would "
    "reach nobody. Pass enable_local_tracking=False to CurriculumEnv and wrap the vector env, or "
    "give the env a client. To continue a curriculum elsewhere, restore its snapshot there."
)


def nothing_active(num_quarantined: int) -> str:
    """Say that there is nothing left to draw."""
    return (
        f"no task is left to draw: envs could not build any of them ({num_quarantined} reports). "
        "See `curriculum.quarantined` for the reasons."
    )


def _as_pool(tasks: Tasks, capacity: int | None, seed: int) -> Pool:
    if isinstance(tasks, Pool):
        if capacity is not None:
            raise ConfigError(
                f"capacity {capacity} was given beside a Pool, which has one "
                f"({tasks.num_slots}). Leave it out."
            )
        return tasks
    source = tasks if isinstance(tasks, Source) else ListSource(tasks)
    return Pool(source, capacity, seed)


def _plain(value: Any) -> Any:
    """Turn tuples into lists so that settings compare equal to what JSON gives back."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}  # type: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]  # type: ignore[reportUnknownVariableType]
    return value
