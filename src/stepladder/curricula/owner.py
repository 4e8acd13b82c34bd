"""The one process that may write a plan: pool, plan, quarantine, saving and resuming.

The lower half of `base.Curriculum`: everything about owning a plan that does not depend on how
weights are found. `sync` asks it to move the plan into shared memory and back.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, ClassVar, NamedTuple
from weakref import WeakSet

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.curricula.batch_rule import Totals
from stepladder.curricula.config import CurriculumConfig, Tasks, as_pool
from stepladder.curricula.foreign import ForeignCurriculum, owners
from stepladder.curricula.quarantined import Quarantined
from stepladder.curricula.targeting import Targeted, check_target
from stepladder.errors import (
    ChannelError,
    ConfigError,
    RecordError,
    SnapshotError,
    WrongProcessError,
)
from stepladder.plans import kernels
from stepladder.plans.plan import Grouping, Plan
from stepladder.records import Fields, Records, saved_arrays, zeros
from stepladder.saving.saved_array import Part, SavedArray, copy_arrays, restore_arrays
from stepladder.saving.saved_fields import read_count, read_list
from stepladder.saving.snapshot import Snapshot, difference, require_snapshot
from stepladder.tasks import Pool
from stepladder.tasks.plain import checked_integer
from stepladder.tasks.pool_state import check_source
from stepladder.tasks.task import MAX_SEED

_bound_pools: WeakSet[Pool] = WeakSet()
"""Pools that a plan has been built over."""


class PlainMethod(Fields):
    """What a method keeps that learns nothing else."""

    totals: Totals


class PlainState(NamedTuple):
    """The state of such a method."""

    method: Records[PlainMethod]


class PlanOwner(ABC, Targeted):
    """Owns a pool of tasks and the plan over it."""

    config: CurriculumConfig
    is_foreign = False
    """Always False: what a fork leaves of a curriculum is a `ForeignCurriculum`."""
    groups_by_label: ClassVar[bool] = False
    """Whether the groups follow the labels of the tasks. Then a task is replaced by one with the
    same label, and a snapshot in which a slot has another label is refused."""

    def __init__(self, tasks: Tasks, config: CurriculumConfig, seed: int, capacity: int | None):
        self.config = config
        self.seed = checked_integer(seed, "The seed of a curriculum", 0, MAX_SEED, ConfigError)
        self.pool = as_pool(config.editable(tasks), capacity, self.seed)
        if config.target is not None:
            check_target(config.target, self.pool, self.task_name)
        self._keep_state(zeros(PlainState))
        if self.groups_by_label:
            self._labels = self.pool.label_indices.copy()
        self.quarantined: list[Quarantined] = []
        """Every task that could not be built, in the order of the reports."""
        self.next_episode = 0
        """First episode index that no env has drawn with; where the next channel begins."""
        self._num_drawn = 0
        self._plan: Plan | None = None
        self._root: PlanOwner = self
        self._channel: object | None = None
        self._table = 0
        self._first_dial = 0
        owners.add(self)

    # What a method provides.

    def _groupings(self) -> list[Grouping]:
        """Say how each weight table splits the slots; most methods have one group."""
        return [Grouping.single(self.pool.num_slots)]

    def _tables(self) -> list[Grouping]:
        """Return the groupings, with what all methods have."""
        has_target = self.config.target is not None
        return [replace(grouping, has_target=has_target) for grouping in self._groupings()]

    def _dials(self) -> list[Part]:
        """Describe the numbers that readers need in addition to the weights."""
        return []

    def dial_parts(self) -> tuple[Part, ...]:
        """Describe the dials: the last axis of any array that holds them."""
        return tuple(
            replace(dial, where=np.s_[..., index]) for index, dial in enumerate(self._dials())
        )

    @abstractmethod
    def _publish(self) -> None:
        """Write the whole plan from the present state; called inside a write."""

    def _keep_state(self, state: Any) -> None:
        """Keep a state: what the method learns, as a named tuple of arrays of records.

        Saving, checking and restoring follow from its annotations. The first array is called
        ``method`` and holds one record, which has `Totals` among its fields. For
        `batch_rule.observe_batch` there must be an array ``tasks`` with one record per slot.
        """
        self._state = state
        self.totals: Records[Totals] = state.method["totals"]
        """What was observed so far; counted by the kernels."""
        self._num_observed: Words = self.totals["num_observed"]

    def _saved_limits(self) -> dict[str, tuple[Any, Any]]:
        """Return the smallest and largest values of saved fields that depend on this object."""
        return {}

    def _save_state(self) -> dict[str, Any]:
        """Return what the method keeps outside its arrays, as plain JSON."""
        return {}

    def _load_state(self, state: Mapping[str, Any], place: str) -> None:
        """Take over what `_save_state` returned; may leave things half done when it raises."""

    def _check_loaded(self, place: str) -> None:
        """Raise `SnapshotError` if arrays disagree with each other, each being possible."""

    def _slot_replaced(self, slot: int) -> None:
        """Forget what was measured for a slot and set its weight; called inside a write."""
        self._set_weight(slot, float(self.pool.base_weights[slot]))

    def _slot_lost(self, slot: int, reason: str) -> None:
        """Raise `BuildError` if the method cannot do without a slot that was just taken out."""

    def _expect_envs(self, num_envs: int) -> None:
        """Take the number of envs, before the first one reports and whenever it changes."""

    def _can_replace(self) -> bool:
        """Whether a slot can get another task at all."""
        return self.pool.can_replace

    def _replacement_label(self, slot: int) -> str | None:
        """Return the label that a replacement for this slot must have, if any."""
        return self.label_of(slot) if self.groups_by_label else None

    def _active_table(self) -> int:
        """Return the weight table that is in force."""
        return self._table

    # The plan.

    @property
    def plan(self) -> Plan:
        """The plan; built when first asked for."""
        if self._plan is None:
            plan = Plan(self.pool.num_slots, self._tables(), len(self._dials()), self.seed)
            if self.pool in _bound_pools:
                raise ConfigError(
                    "this Pool already belongs to another curriculum; two would replace each "
                    "other's tasks unnoticed. Make one Pool for each."
                )
            _bound_pools.add(self.pool)
            self.pool.rebind(plan.task_ids, plan.generations)
            with plan.writing():
                self._attach(plan, list(plan.tables), 0, self)
                plan.header["table_at"] = self._active_table()
            return plan
        return self._plan

    def _attach(self, plan: Plan, tables: list[int], first_dial: int, root: "PlanOwner") -> None:
        """Use one table and some dials of a plan; called inside a write."""
        self._plan = plan
        self._root = root
        self._table = tables.pop(0)
        self._first_dial = first_dial
        plan.set_exploration(self._table, self.config.exploration)
        plan.set_max_share(self._table, self.config.largest_share(self.pool.num_slots))
        self._publish_target()
        self._publish()

    def disown(self) -> None:
        """Refuse to work from now on: called in the child of a fork, which has only a copy.

        Nothing of the copy stays readable either: what it says would soon be out of date.
        """
        fields = vars(self)
        fields.clear()
        fields["kind"] = type(self).__name__
        self.__class__ = ForeignCurriculum  # pyright: ignore[reportAttributeAccessIssue]

    def claim(self, channel: object) -> None:
        """Let a channel carry this curriculum; there can be only one at a time."""
        if self._channel is not None:
            raise ChannelError(
                "this curriculum is already carried by a channel; two would each see half of the "
                "results. Close the other vector wrapper or host first. For several envs, wrap "
                "each in CurriculumEnv(env) and all in CurriculumVectorEnv(envs, curriculum)."
            )
        self._channel = channel
        self._expect_envs(getattr(channel, "num_envs", 0))

    def expect_envs(self, num_envs: int) -> None:
        """Take the number of envs, where it changes; called by a channel that has claimed this."""
        self._expect_envs(num_envs)

    def release(self, channel: object) -> None:
        """Undo `claim`."""
        if self._channel is channel:
            self._channel = None

    def move_plan(self, block: Words) -> None:
        """Keep the plan in other memory from now on; called by the channel."""
        plan = self.plan
        plan.move_to(block)
        self.pool.rebind(plan.task_ids, plan.generations)

    def _set_weight(self, slot: int, weight: float, layer: int = 0) -> None:
        """Write one weight of this method's table; called inside a write."""
        assert self._plan is not None
        allowed = 0.0 if self.is_quarantined(slot) else weight
        kernels.set_leaf(self._plan.block, self._table, slot, allowed, layer)

    def _fill_weights(self, weights: Floats, layer: int = 0) -> None:
        """Write all weights of this method's table; called inside a write."""
        assert self._plan is not None
        kernels.fill_leaves(self._plan.block, self._table, self._allowed(weights), layer)

    def _allowed(self, weights: Floats) -> Floats:
        """Return weights of all slots, without those that are out of play."""
        return np.where(self.plan.positions >= 0, weights, 0.0)

    # Tasks that come and go.

    def task_name(self, slot: int) -> str:
        """Return the name of a slot's task, which is known even if the task cannot be made."""
        return self.pool.source.name(int(self.pool.task_ids[slot]))

    def label_of(self, slot: int) -> str:
        """Return the label of a slot's task."""
        return self.pool.label_names[int(self.pool.label_indices[slot])]

    def is_quarantined(self, slot: int) -> bool:
        """Whether a slot is out of play because no env could build its task."""
        return not kernels.is_active((self._plan or self.plan).block, slot)

    @property
    def num_quarantined(self) -> int:
        """Slots out of play at this moment."""
        return self.pool.num_slots - int(self.plan.header["num_active"])

    def _check_slot(self, slot: int) -> None:
        if not 0 <= slot < self.pool.num_slots:
            raise RecordError(
                f"slot {slot} does not exist; expected 0 to {self.pool.num_slots - 1}."
            )

    # Saving and resuming.

    def finish(self) -> None:
        """Complete what an interrupt has left unfinished."""

    def snapshot(self) -> Snapshot:
        """Return everything needed to continue exactly here."""
        self.finish()
        plan = self.plan
        pool_state, pool_arrays = self.pool.snapshot()
        state: dict[str, Any] = {
            "curriculum": type(self).__name__,
            "config": self.config.to_json(),
            "seed": self.seed,
            "num_drawn": self._num_drawn,
            "next_episode": self.next_episode,
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
        return Snapshot(self._save_state(), copy_arrays(self._saved_arrays()))

    def _load_all(self, snapshot: Snapshot) -> None:
        restore_arrays(self._saved_arrays(), snapshot.arrays, snapshot.place)
        self._load_state(snapshot.state, snapshot.place)
        if self.groups_by_label and not np.array_equal(self.pool.label_indices, self._labels):
            slot = int(np.flatnonzero(self.pool.label_indices != self._labels)[0])
            raise SnapshotError(
                f"slot {slot} of the snapshot has another label than here, and labels decide how "
                "this curriculum groups its tasks. Build it over a pool with the same seed."
            )
        self._check_loaded(snapshot.place)

    def _saved_arrays(self) -> list[SavedArray]:
        return saved_arrays(self._state, **self._saved_limits())

    def restore(self, snapshot: Snapshot) -> None:
        """Continue exactly where `snapshot` was made; changes everything in place.

        Raises:
            SnapshotError: The snapshot is damaged, or was made with other tasks or settings. Then
                nothing has changed.
        """
        require_snapshot(snapshot)
        if "channel" in snapshot.state:
            raise SnapshotError(
                "this snapshot was made by a vector wrapper, an env or a host, envs included. "
                "Restore it there: wrapper.restore(snapshot)."
            )
        self.check_fits(snapshot)
        before = self.snapshot()
        try:
            self._take_over(snapshot)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self._take_over(before)
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(
                f"{snapshot.place} is damaged ({type(error).__name__}: {error}). Use an older one."
            ) from error
        self._restored()

    def check_fits(self, snapshot: Snapshot) -> None:
        """Raise unless a snapshot was made with the same settings and tasks.

        Raises:
            SnapshotError: It was not; the message names the difference.
        """
        kind, config = type(self).__name__, self.config.to_json()
        present: dict[str, Any] = {"curriculum": kind, "config": config, "seed": self.seed}
        differences = (difference(snapshot.state.get(one), present[one], one) for one in present)
        if found := next(filter(None, differences), None):
            raise SnapshotError(
                f"{snapshot.place} does not fit this curriculum: {found}. Build the curriculum "
                "with the settings it was saved with."
            )
        pool = snapshot.part("pool")
        if {"fingerprint", "source"} <= pool.state.keys():
            check_source(pool.state, self.pool.source, pool.place)

    def _restored(self) -> None:
        """Say that any slot may have changed."""

    def _take_over(self, snapshot: Snapshot) -> None:
        plan, pool = self.plan, snapshot.part("pool")
        version, tick, num_drawn, next_episode = (
            read_count(snapshot.state.get(name), f"{name} of {snapshot.place}")
            for name in ("version", "tick", "num_drawn", "next_episode")
        )
        kernels.begin_write(plan.block)
        try:
            self.pool.restore(pool.state, pool.arrays, pool.place)
            self._load_all(snapshot.part("method"))
            saved_plan = snapshot.part("plan")
            plan.load(saved_plan.arrays, self.dial_parts(), saved_plan.place)
            self._publish_target()
            plan.header["table_at"] = self._active_table()
            plan.header["tick"] = tick
            self._num_drawn, self.next_episode = num_drawn, next_episode
            self.quarantined = read_list(
                Quarantined, snapshot.state.get("quarantined"), f"quarantined of {snapshot.place}"
            )
        finally:
            kernels.end_write(plan.block)
        plan.header["sequence"] = 2 * version

    def __reduce__(self) -> Any:
        # What travels to a worker is a marker, never a copy that could fall out of date.
        return ForeignCurriculum, (type(self).__name__,)

    def __deepcopy__(self, memo: Any) -> Any:
        raise WrongProcessError(
            "a curriculum cannot be copied. Build a second one and `restore` a snapshot into it."
        )
