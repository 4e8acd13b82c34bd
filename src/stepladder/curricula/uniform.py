"""Every task alike: the baseline that must always be shown.

Gets records from `sync` and learns nothing from them. Its plan never changes, except when a task
is quarantined or replaced.

Use it to find out what a cleverer curriculum is worth. Do not use it when most tasks are out of
reach at the start: nearly all episodes are then spent on tasks that teach nothing.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from stepladder.arrays import Words
from stepladder.compiled import bare, direct, inlined
from stepladder.curricula.base import Curriculum
from stepladder.curricula.batch_rule import CompiledRule, count_record
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.owner import PlainMethod
from stepladder.curricula.reporting.explanation import Explanation
from stepladder.plans.plan import aligned_words
from stepladder.plans.record import RecordFields, first_bad_record
from stepladder.plans.status import DONE
from stepladder.records import Count, Fields, Records, zeros


@dataclass(frozen=True, kw_only=True)
class UniformConfig(CurriculumConfig):
    """Every task alike: the baseline.

    There is nothing to set. Tasks of a weighted union keep the union's shares.
    """

    kind: ClassVar[str] = "uniform"
    limits_shares: ClassVar[bool] = False


class TaskPlays(Fields):
    """What is known of a slot's task."""

    num_plays: Count


class State(NamedTuple):
    """Everything that the method learns."""

    method: Records[PlainMethod]
    tasks: Records[TaskPlays]


@inlined
def observe_one(
    block: Words,
    table: int,
    state: State,
    constants: Any,
    slot: int,
    success: float,
    episode_return: float,
) -> None:
    """Count one episode."""
    state.tasks[slot].num_plays += 1


@inlined
def settle_nothing(block: Words, table: int, state: State, constants: Any) -> int:
    """Do nothing: no task makes room for another."""
    return DONE


@bare
def observe(block: Words, table: int, state: State, records: Records[RecordFields]) -> int:
    """Count episodes per slot; return `DONE`, or the index of a bad record with nothing counted."""
    bad = first_bad_record(records, len(state.tasks), False)
    if bad >= 0:
        return bad
    totals = state.method[0].totals
    for index in range(len(records)):
        record = records[index]
        slot, success = record.slot, record.success
        if count_record(block, table, totals, slot, record.generation, record.length, success):
            state.tasks[slot].num_plays += 1
    return DONE


class PlayCounter(Curriculum):
    """A curriculum that learns nothing from results, and counts them."""

    needs_success = False

    def _set_up(self) -> None:
        super()._set_up()
        self._keep_state(zeros(State, tasks=self.pool.num_slots))
        self._observe_kernel = direct(observe, aligned_words(1), 0, self._state, self._scratch)

    @property
    def plays(self) -> Words:
        """Episodes observed per slot since its task came in."""
        return self._state.tasks["num_plays"]

    def _publish(self) -> None:
        self._fill_weights(self.pool.base_weights)

    def _update(self, records: Records[RecordFields], num_done: int) -> int:
        if num_done:
            return DONE
        plan = self._plan or self.plan
        return self._observe_kernel(plan.block, self._table, self._state, records)

    def _slot_replaced(self, slot: int) -> None:
        self.plays[slot] = 0
        super()._slot_replaced(slot)

    def _explain(self) -> Explanation:
        return self._overview()


class Uniform(PlayCounter):
    """Draws every task with the same probability."""

    Config = UniformConfig
    rule = CompiledRule(observe_one, settle_nothing, changes_plan=False)

    def kernel_state(self) -> tuple[Any, ...]:
        """Return what the kernels of `rule` take first."""
        return self.plan.block, self._table, self._state, ()

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        limit = " as far as it counts for the target" if self.config.target else ""
        return f"every task is drawn equally often{limit}", {"episodes": float(self.plays[slot])}
