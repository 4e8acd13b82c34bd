"""Tasks that make room for others: which ones, and how they are replaced.

Between `base` and the methods that have a pool with more tasks behind it. Kernels note the slots
of such tasks in a short list; only Python can ask a source for another task, and does it after
the batch. The list is kept until the last of its slots was handled, so that an interrupt loses
none and handles none twice. A histogram of scores finds low ranks at a flat cost, without sorting.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, cast

import numpy as np

from stepladder.compiled import compiled, direct
from stepladder.curricula.base import Curriculum
from stepladder.curricula.explanation import EvictingExplanation
from stepladder.curricula.observation import MAX_NOTED, Noted, Totals, note
from stepladder.curricula.turnover import Eviction, Turnover
from stepladder.errors import SnapshotError
from stepladder.plans.plan import aligned_words
from stepladder.plans.record import RecordArray
from stepladder.plans.status import TO_REPLACE
from stepladder.records import Fields, Limits, Records, Shape, Words
from stepladder.saving.saved_fields import read_count

NUM_BINS = 256


class Ranks(Fields):
    """Counts of well-known tasks by score."""

    histogram: Annotated[Words, Shape(NUM_BINS)]


class Filed(Fields):
    """What is rarely needed of a slot."""

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


@compiled
def empty_noted(noted: Records[Noted], handled: Words) -> None:
    """Empty the list, all of which was handled; one call that no interrupt divides."""
    noted[0].count = 0
    handled[0] = 0


class Evicting(Curriculum):
    """A curriculum that replaces tasks."""

    num_evicted: int = 0
    """Tasks that made room for others so far."""

    def _set_up(self) -> None:
        super()._set_up()
        self._handled: Words = np.zeros(1, dtype=np.int64)
        """How many of the noted slots were handled."""

    def _evict(self, slot: int, num_handled: int) -> bool:
        """Put another task into a slot if the source has one, and count it; say whether it had.

        `num_handled` is stored in `_handled` together with it.
        """
        root = cast("Turnover", self._root)
        return root.evict(slot, Eviction(self, self.num_evicted + 1, num_handled))

    def note_eviction(self, eviction: Eviction) -> None:
        """Count a task that made room; called when the replacement is complete."""
        self.num_evicted = eviction.num_evicted
        self._handled[0] = eviction.num_handled

    def _overview_fields(self) -> dict[str, Any]:
        return {**super()._overview_fields(), "num_evicted": self.num_evicted}

    def _overview(self) -> EvictingExplanation:
        return EvictingExplanation(**self._overview_fields())

    def _save_state(self) -> dict[str, Any]:
        return {"num_evicted": self.num_evicted}

    def _load_state(self, state: Mapping[str, Any], place: str) -> None:
        self.num_evicted = read_count(state.get("num_evicted"), f"num_evicted of {place}")


class CompiledMethod(Evicting):
    """A curriculum whose rule for one result is compiled.

    A subclass sets `_observe_kernel` and gives a state and constants to `_keep_kernel_state`.
    """

    _observe_kernel: ClassVar[Callable[..., int]]
    """Called with block, table, state, constants and records; see `observation.observe_batch`."""

    _constants: Any

    def _keep_kernel_state(self, state: Any, constants: Any) -> None:
        """Keep what the kernels read: a state, whose ``method`` has `Noted`, and constants."""
        self._keep_state(state)
        self._constants = constants
        self._fresh = state.tasks[:1].copy()
        """What is known of a task that has just come in."""
        self._noted: Records[Noted] = state.method["noted"]
        # Called for every batch: looking at the types of all arguments takes longer than the work.
        self._observe_batch = direct(
            type(self)._observe_kernel, aligned_words(1), 0, state, constants, self._scratch
        )

    def kernel_state(self) -> tuple[Any, ...]:
        """Return what the method's kernels take before the records."""
        return (self._plan or self.plan).block, self._table, self._state, self._constants

    def _update(self, records: RecordArray, num_done: int) -> int:
        status = TO_REPLACE
        if len(records) and not num_done:
            plan = self._plan or self.plan
            status = self._observe_batch(
                *(plan.block, self._table, self._state, self._constants, records)
            )
        if status == TO_REPLACE:
            self._replace_noted()
        return status

    def _replace_noted(self) -> None:
        """Replace the tasks that the last records showed to be due."""
        noted = self._noted["slots"][0, : self._noted["count"][0]].tolist()
        for position in range(self._handled.item(0), len(noted)):
            slot = noted[position]
            is_due = slot not in noted[:position] and self._is_due(slot)
            if not (is_due and not self.is_quarantined(slot) and self._evict(slot, position + 1)):
                self._handled[0] = position + 1
        empty_noted(self._noted, self._handled)

    def _eviction_share(self, percentile: float) -> float:
        """Return the share of well-known tasks that are replaced: none without more tasks."""
        return float(percentile) if self.pool.can_replace else 0.0

    def _slot_replaced(self, slot: int) -> None:
        self._state.tasks[slot : slot + 1] = self._fresh

    def _is_due(self, slot: int) -> bool:
        """Whether a noted slot is still to be replaced after the rest of its batch."""
        return True

    def _saved_limits(self) -> dict[str, tuple[Any, Any]]:
        return {"method.noted.slots": (0, self.pool.num_slots - 1)}


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
