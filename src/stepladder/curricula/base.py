"""The contract of every curriculum: draw, observe, explain, snapshot, restore.

A curriculum turns records into the weights of its plan, in the one process that owns it. `sync`
carries the plan to the envs and the records back; whoever needs a task asks a client, not a copy
of this object. A copy cannot even be used: in another process every method that draws or
observes raises `WrongProcessError`.

A method is a subclass with a config. It says how its slots are grouped (`_groupings`), which
numbers readers need beside the weights (`_dials`), how the plan looks at the start
(`_publish`), what a batch of records changes (`_update`), and why (`_explain`, `_reason`).

An interrupt (Ctrl-C) can come between any two lines. What it leaves unfinished is completed by
whatever is called next: a batch is observed, and told to every listener, as a whole and once.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from stepladder.compiled import direct
from stepladder.curricula.compiled_rule import CompiledRule
from stepladder.curricula.config import CurriculumConfig, Tasks
from stepladder.curricula.explanation import Change, Explanation, TaskExplanation
from stepladder.curricula.intake import NO_RECORDS
from stepladder.curricula.turnover import Turnover
from stepladder.errors import BuildError, ConfigError, RecordError
from stepladder.plans import kernels
from stepladder.plans.legend import Legend
from stepladder.plans.plan import aligned_words
from stepladder.plans.record import (
    DRAW_DTYPE,
    RECORD_DTYPE,
    Draw,
    DrawArray,
    Record,
    RecordArray,
    as_draw,
    pack_records,
    record_array,
)
from stepladder.records import Floats
from stepladder.saving.snapshot import Snapshot
from stepladder.tasks import Task

NO_NUMBER = (OverflowError, TypeError, ValueError)
"""What NumPy and numba raise for something that is no number, or too large for one."""


class Curriculum(Turnover):
    """Turns records into a plan. Create it once, in the host process."""

    needs_success: bool = True
    """Whether records must say how successful an episode was."""

    num_evicted: int = 0
    """Tasks that made room for others so far."""

    rule: ClassVar[CompiledRule | None] = None
    """Kernels for the compiled simulator, if the method has any. Not inherited: a subclass may
    change what they do, and says so with a rule of its own."""

    initial_state: ClassVar[str] = ""
    """What `states` says of a task that has just come in."""

    def __init__(
        self,
        tasks: Tasks,
        config: CurriculumConfig,
        *,
        seed: int = 0,
        capacity: int | None = None,
    ):
        super().__init__(tasks, config, seed, capacity)
        self._draw_for_host = direct(kernels.draw_for_host, aligned_words(1), 0)
        # Room for one record, and for one batch: kept, for making it takes longer than filling it.
        self._scratch: RecordArray = np.zeros(1, dtype=RECORD_DTYPE)
        self._batch: RecordArray = np.zeros(0, dtype=RECORD_DTYPE)
        self._numbers: Floats = np.zeros((4, 0))

    # What a method provides, beside the hooks of `PlanOwner`.

    @abstractmethod
    def _explain(self) -> Explanation:
        """Answer `explain()`."""

    @abstractmethod
    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        """Say in a clause why a slot has its weight, and what was measured for it."""

    def legend(self) -> Legend:
        """Return what a client must know to read the plan; small, and it never changes."""
        return Legend(needs_success=self.needs_success)

    # What logs and metrics ask for; a method overrides what it knows more about.

    def inner_curricula(self) -> Mapping[str, "Curriculum"]:
        """Return the curricula inside this one, by name; most methods have none."""
        return {}

    def in_force(self) -> "Curriculum":
        """Return the method that makes the weights now: this one, or one inside it."""
        return self

    def all_methods(self, path: str = "") -> Iterator[tuple[str, "Curriculum"]]:
        """Yield this curriculum and all inside it, each with the names that lead there.

        The path of the outermost is empty; that of ``b`` inside ``a`` is ``a/b``.
        """
        yield path, self
        for name, inner in self.inner_curricula().items():
            yield from inner.all_methods(f"{path}/{name}" if path else name)

    def changes(self) -> Sequence[Change]:
        """Return the decisions so far, oldest first; empty if the method keeps no history."""
        return ()

    def states(self) -> list[str]:
        """Return where every slot stands, in a word each; empty if the method has no states."""
        return []

    def state_metrics(self) -> dict[str, float]:
        """Return further metrics of the method, logged as ``env_curriculum_stats/NAME``."""
        return {}

    # Drawing.

    def draw(self, k: int = 1) -> list[Draw]:
        """Draw `k` tasks for the host's own use, with replacement; always returns `k` items.

        Envs draw through their clients. Changes one counter in place: draws never repeat.
        """
        return [Draw(*row) for row in self.draw_batch(k).tolist()]

    def draw_batch(self, k: int) -> DrawArray:
        """Draw `k` tasks as a structured array of dtype `DRAW_DTYPE`; faster than `draw`."""
        if k < 0:
            raise ConfigError(f"k must be 0 or more; got {k}. Ask for as many draws as you need.")
        if self._due is not None:
            self.finish()
        plan = self.plan
        draws = np.empty(k, dtype=DRAW_DTYPE)
        if not kernels.draw_many_for_host(plan.block, self._num_drawn, draws):
            raise BuildError(nothing_active())
        self._num_drawn += k
        return draws

    def draw_one(self) -> Draw:
        """Draw one task for the host's own use; the fastest way to draw a single one."""
        if self._due is not None:
            self.finish()
        number = self._num_drawn
        draw = as_draw(Draw, self._draw_for_host((self._plan or self.plan).block, number))
        if draw[0] < 0:
            raise BuildError(nothing_active())
        self._num_drawn = number + 1
        return draw

    def task(self, draw: Draw) -> Task:
        """Return the task that a draw just made stands for, with the settings of its episode."""
        task, legend = self.pool.source.get(draw.task_id), self.legend()
        if not legend.has_settings:
            return task
        dials, plan_seed = self.plan.dials, self.seed
        return task.with_params(
            legend.settings(dials, plan_seed, draw.env_index, draw.episode_index)
        )

    def probs(self) -> Floats:
        """Return the probability of every slot at the next draw; takes a pass over all slots."""
        return self.plan.probs()

    def scores(self) -> Floats:
        """Return the method's own opinion of every slot, as it was before it became a weight.

        A method without one of its own returns its probabilities. Takes a pass over all slots.
        """
        return self.probs()

    # Observing.

    def observe(self, records: Record | Iterable[Record] | RecordArray) -> None:
        """Learn from finished episodes, in the order given; changes the plan in place.

        After an interrupt (Ctrl-C) in this call, either all of the batch is observed and told to
        every listener, or nothing of it: `finish` completes what was begun, and `num_observed`
        says which it was. Do not change the array before.

        Raises:
            RecordError: A record is impossible. Then none of the batch was observed.
        """
        if self._due is not None:
            self.finish()
        self._observe(self._as_batch(records))

    def report(
        self,
        draw: Draw,
        success: float,
        episode_return: float = 0.0,
        length: int = 1,
        truncated: bool = False,
    ) -> None:
        """Observe one episode; the same as observing its record, and faster.

        Raises:
            RecordError: A number is impossible. Then nothing was observed.
        """
        if self._due is not None:
            self.finish()
        try:
            self._scratch[0] = (
                draw.slot,
                draw.generation,
                draw.plan_version,
                draw.tick,
                draw.env_index,
                draw.episode_index,
                episode_return,
                length,
                success,
                truncated,
            )
        except NO_NUMBER:
            # The general way says what is wrong with it.
            self.observe(
                Record.of(
                    draw,
                    success=success,
                    episode_return=episode_return,
                    length=length,
                    truncated=truncated,
                )
            )
        else:
            self._observe(self._scratch)

    def report_batch(
        self,
        draws: DrawArray,
        successes: npt.ArrayLike,
        episode_returns: npt.ArrayLike = 0.0,
        lengths: npt.ArrayLike = 1,
        truncated: npt.ArrayLike = False,
    ) -> None:
        """Observe the episodes of a batch of draws, in their order.

        Args:
            draws: What `draw_batch` returned.
            successes: In [0, 1], one per draw or one for all; likewise the rest.
            episode_returns: Returns.
            lengths: Env steps.
            truncated: Whether the episodes were cut off.

        Raises:
            RecordError: A number is impossible, or there are not as many as draws. Then nothing
                was observed.
        """
        self.finish()
        if getattr(draws, "dtype", None) != DRAW_DTYPE or draws.ndim != 1:
            raise RecordError(
                f"draws must be what `draw_batch` returned; got a {type(draws).__name__}. "
                "Report single draws with `report`."
            )
        if len(self._batch) != len(draws):
            self._batch = np.zeros(len(draws), dtype=RECORD_DTYPE)
            self._numbers = np.zeros((4, len(draws)))
        numbers, records = self._numbers, self._batch
        try:
            numbers[0], numbers[1], numbers[2] = successes, episode_returns, lengths
            numbers[3] = truncated
        except NO_NUMBER as error:
            raise RecordError(
                f"the results do not fit {len(draws)} draws ({error}). "
                "Give one number per draw, or one for all."
            ) from error
        pack_records(draws, numbers, records)
        self._observe(records)

    def _as_batch(self, records: Record | Iterable[Record] | RecordArray) -> RecordArray:
        if isinstance(records, np.ndarray):
            batch = cast(RecordArray, records)
            if batch.dtype != RECORD_DTYPE or batch.ndim != 1:
                raise RecordError(
                    f"records have dtype {batch.dtype} and {batch.ndim} dimensions; expected "
                    "RECORD_DTYPE and one. Make them with `record_array`."
                )
            # As kernels are compiled for: nobody else's memory, every other record, say.
            return batch if batch.flags.carray else batch.copy()
        try:
            if isinstance(records, Record):
                self._scratch[0] = records
                return self._scratch
            return record_array(records)
        except NO_NUMBER as error:
            raise RecordError(
                f"a record holds something that is no number ({error}). "
                "Make records with `Record.of(draw, success=…)`."
            ) from error

    def restore(self, snapshot: Snapshot) -> None:
        """Continue exactly where `snapshot` was made; changes everything in place.

        Raises:
            SnapshotError: The snapshot is damaged, or was made with other tasks or settings. Then
                nothing has changed.
        """
        super().restore(snapshot)
        self._tell_replaced(None, [])

    @property
    def num_observed(self) -> int:
        """Records observed so far."""
        return self._num_observed.item(0)

    @property
    def num_steps(self) -> int:
        """Env steps in all records observed so far."""
        return int(self.totals["num_steps"][0])

    @property
    def num_orphaned(self) -> int:
        """Results of tasks that were replaced before they arrived; credited to nobody."""
        return int(self.totals["num_orphaned"][0])

    # For engines that run a curriculum inside a compiled loop.

    @classmethod
    def compiled_rule(cls) -> CompiledRule | None:
        """Return the kernels that a compiled loop may call for this class, if it has any."""
        return vars(cls).get("rule")

    def kernel_state(self) -> tuple[Any, ...]:
        """Return what the method's kernels take before the records: block, table, state, constants.

        Raises:
            ConfigError: The method has no such kernels.
        """
        raise ConfigError(
            f"{type(self).__name__} has no compiled form. Run it through Python: engine='direct'."
        )

    def replace_noted(self) -> None:
        """Replace the tasks that a kernel has noted; most methods note none."""
        self.finish()
        # What follows from records that the kernel has observed already.
        self._observe(NO_RECORDS)

    # Explaining.

    def explain(self, slot: int | None = None) -> Explanation | TaskExplanation:
        """Say what the curriculum is doing and why, or why one task is (not) being drawn."""
        plan = self.plan
        if slot is None:
            return self._explain()
        self._check_slot(slot)
        # Not the task itself: a source may be unable to make it, which is worth explaining too.
        task_id, label_index = int(self.pool.task_ids[slot]), int(self.pool.label_indices[slot])
        reason, numbers = self._reason(slot)
        if self.is_quarantined(slot):
            reason = "it is quarantined, because an env could not build it"
        return TaskExplanation(
            slot=slot,
            generation=int(self.pool.generations[slot]),
            name=self.pool.source.name(task_id),
            label=self.pool.label_names[label_index],
            prob=kernels.prob_of(plan.block, slot),
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


def nothing_active() -> str:
    """Say that there is nothing left to draw."""
    return (
        "no task is left to draw: envs could not build any of them. See `curriculum.quarantined` "
        "for the reasons, and mend the tasks or the env."
    )
