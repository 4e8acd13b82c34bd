"""Curricula that replace the tasks with the lowest scores.

Between `compiled_method` and two methods, `Learnability` and `LearningProgress`. A histogram of
scores finds low ranks at a flat cost, without sorting.
"""

from typing import Annotated, Any

import numpy as np

from stepladder.arrays import Words
from stepladder.compiled import compiled
from stepladder.curricula.batch_rule import MAX_NOTED, Noted, Totals, note
from stepladder.curricula.compiled_method import CompiledMethod
from stepladder.errors import SnapshotError
from stepladder.records import Fields, Limits, Records, Shape

NUM_BINS = 256


class Ranks(Fields):
    """Counts of well-known tasks by score."""

    histogram: Annotated[Words, Shape(NUM_BINS)]


class Filed(Fields):
    """What a slot has beside its method's numbers."""

    bin: Annotated[int, Limits(0, NUM_BINS)]
    """Its bin in the histogram, from 1; 0 is none."""
    weight: float
    """What the source gives its task."""


class RankedTotals(Fields):
    """What a `RankedMethod` keeps about the whole pool; the field ``method`` of its state."""

    totals: Totals
    ranks: Ranks
    noted: Noted


@compiled
def _rank_is_low(bin_index: int, ranks: Ranks, share: float) -> bool:
    """Whether fewer than `share` of the well-known tasks score less than this bin."""
    below, total = 0, 0
    for index in range(NUM_BINS):
        total += ranks.histogram[index]
        if index < bin_index:
            below += ranks.histogram[index]
    return total * share >= 1.0 and below < share * total


@compiled
def file_by_score(
    slot: int, score: float, filed: Records[Filed], method: RankedTotals, share: float
) -> None:
    """Move a well-known task to the bin of its score; note it for replacement if its rank is low.

    `score` lies in [0, 1]; `share` says how many of the well-known tasks rank low.
    """
    new_bin = min(int(score * NUM_BINS), NUM_BINS - 1)
    if filed[slot].bin > 0:
        method.ranks.histogram[filed[slot].bin - 1] -= 1
    method.ranks.histogram[new_bin] += 1
    filed[slot].bin = new_bin + 1
    if method.noted.count < MAX_NOTED and _rank_is_low(new_bin, method.ranks, share):
        note(method.noted, slot)


@compiled
def unfile(slot: int, filed: Records[Filed], ranks: Records[Ranks]) -> None:
    """Take a slot out of the histogram: its task was replaced."""
    if filed[slot].bin > 0:
        ranks[0].histogram[filed[slot].bin - 1] -= 1
    filed[slot].bin = 0


class RankedMethod(CompiledMethod):
    """A compiled method that replaces tasks by the rank of their scores.

    ``method`` of its state is a `RankedTotals`, and ``filed`` has a `Filed` per slot.
    """

    def _keep_kernel_state(self, state: Any, constants: Any) -> None:
        state.filed["weight"] = self.pool.base_weights
        super()._keep_kernel_state(state, constants)

    def plays(self) -> Words:
        """Return how often each slot's task was played."""
        return self._state.tasks["num_plays"].copy()

    def _slot_replaced(self, slot: int) -> None:
        filed = self._state.filed
        unfile(slot, filed, self._state.method["ranks"])
        filed["weight"][slot] = self.pool.base_weights[slot]
        super()._slot_replaced(slot)

    def _saved_limits(self) -> dict[str, tuple[Any, Any]]:
        weights = self.pool.base_weights
        return {
            **super()._saved_limits(),
            "filed.weight": (weights, weights),
            "method.ranks.histogram": (0, self.pool.num_slots),
        }

    def _check_loaded(self, place: str) -> None:
        """Raise `SnapshotError` unless the histogram counts the bins of the slots."""
        bins, histogram = self._state.filed["bin"], self._state.method["ranks"]["histogram"][0]
        counted = np.bincount(bins[bins > 0] - 1, minlength=NUM_BINS)
        wrong = np.flatnonzero(counted != histogram)
        if len(wrong):
            raise SnapshotError(
                f"the histogram of {place}: bin {wrong[0]} is {histogram[wrong[0]]}, but "
                f"{counted[wrong[0]]} slots are in that bin. Use an older one."
            )
