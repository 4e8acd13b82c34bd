"""Every task alike: the baseline that must always be shown.

Gets records from `sync` and learns nothing from them. Its plan never changes, except when a task
is quarantined or replaced.

Use it to find out what a cleverer curriculum is worth. Do not use it when most tasks are out of
reach at the start: nearly all episodes are then spent on tasks that teach nothing.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stepladder.compiled import compiled, direct, inlined
from stepladder.curricula.base import Curriculum
from stepladder.curricula.compiled_rule import CompiledRule
from stepladder.curricula.config import CurriculumConfig, Tasks, settle
from stepladder.curricula.eviction import ALL_DONE
from stepladder.curricula.explanation import Explanation
from stepladder.plans.kernels import H_ROWS, Words
from stepladder.plans.plan import aligned_words
from stepladder.plans.record import RecordArray, first_bad_record
from stepladder.saving.saved_array import Part, SavedArray


@dataclass(frozen=True, kw_only=True)
class UniformConfig(CurriculumConfig):
    """Every task alike: the baseline.

    There is nothing to set. Tasks of a weighted union keep the union's shares.
    """

    kind: ClassVar[str] = "uniform"

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Uniform":
        """Build the curriculum that this config describes."""
        return Uniform(tasks, self, seed=seed)


@compiled
def count_plays(block: Words, records: RecordArray, plays: Words, counters: Words) -> int:
    """Count episodes per slot; return -1, or the index of a bad record with nothing counted.

    Args:
        block: The plan, for the generations.
        records: What to count.
        plays: Episodes per slot. Changed in place.
        counters: Episodes observed, steps, orphans. Changed in place.
    """
    bad = first_bad_record(records, len(plays), False)
    if bad >= 0:
        return bad
    for index in range(len(records)):
        slot = records[index].slot
        counters[0] += 1
        counters[1] += records[index].length
        if records[index].generation == block[block[H_ROWS] + 2 * slot + 1]:
            plays[slot] += 1
        else:
            counters[2] += 1
    return -1


@inlined
def observe_one(
    state: Any, slot: int, generation: int, success: float, episode_return: float
) -> None:
    """Count one episode of one step, inside a compiled loop."""
    block, plays, counters = state
    counters[0] += 1
    counters[1] += 1
    if generation == block[block[H_ROWS] + 2 * slot + 1]:
        plays[slot] += 1


@inlined
def settle_round(state: Any) -> int:
    """Do nothing: no task makes room for another."""
    return ALL_DONE


class Uniform(Curriculum):
    """Draws every task with the same probability."""

    Config = UniformConfig
    rule = CompiledRule(observe_one, settle_round, changes_plan=False)
    needs_success = False

    def __init__(
        self,
        tasks: Tasks,
        config: UniformConfig | None = None,
        *,
        seed: int = 0,
        capacity: int | None = None,
        **settings: Any,
    ):
        config = settle(UniformConfig, config, settings)
        super().__init__(tasks, config, seed=seed, capacity=capacity)
        self.plays = np.zeros(self.pool.num_slots, dtype=np.int64)
        """Episodes observed per slot since its task came in."""
        self._count = direct(
            count_plays, aligned_words(1), self._scratch, self.plays, self.counters
        )

    def _publish(self) -> None:
        self._fill_weights(self.pool.base_weights)

    def _update(self, records: RecordArray, num_done: int) -> int:
        if num_done:
            return -1
        return self._count((self._plan or self.plan).block, records, self.plays, self.counters)

    def kernel_state(self) -> tuple[Any, ...]:
        """Return what `count_plays` takes beside the records: block, plays, counters."""
        return self.plan.block, self.plays, self.counters

    def _slot_replaced(self, slot: int) -> None:
        self.plays[slot] = 0
        super()._slot_replaced(slot)

    def _explain(self) -> Explanation:
        return self._overview()

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        return "every task is drawn alike", {"episodes": float(self.plays[slot])}

    def _saved_arrays(self) -> list[SavedArray]:
        return [SavedArray("plays", self.plays, (Part.count("plays"),))]
