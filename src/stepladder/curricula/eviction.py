"""Which tasks make room: those that rank low among the well-known ones, found at a flat cost.

Used by the kernels of methods whose pool has more tasks behind it. A histogram of scores gives a
task's rank without sorting. Slots to replace are noted in a short list that Python works off after
the batch (`evicting`), because only Python can ask a source for another task.
"""

from typing import Annotated

import numpy as np

from stepladder.compiled import compiled
from stepladder.errors import SnapshotError
from stepladder.plans.status import DONE, TO_REPLACE
from stepladder.records import Fields, Limits, Records, Shape, Words

NUM_BINS, MAX_NOTED = 256, 64


class Noted(Fields):
    """Slots to replace; one may be there more than once."""

    count: Annotated[int, Limits(0, MAX_NOTED)]
    slots: Annotated[Words, Shape(MAX_NOTED)]


class Ranks(Fields):
    """Counts of well-known tasks by score."""

    histogram: Annotated[Words, Shape(NUM_BINS)]


class Filed(Fields):
    """What is rarely needed of a slot."""

    bin: Annotated[int, Limits(0, NUM_BINS)]
    """Its bin in the histogram, from 1; 0 is none."""
    weight: float
    """What the source gives its task."""


@compiled
def note(noted: Noted, slot: int) -> None:
    """Put a slot on the list, unless the list is full."""
    if noted.count < MAX_NOTED:
        noted.slots[noted.count] = slot
        noted.count += 1


@compiled
def status_of(noted: Noted) -> int:
    """Return what an update answers."""
    return TO_REPLACE if noted.count > 0 else DONE


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
    slot: int, score: float, filed: Records[Filed], ranks: Ranks, noted: Noted, share: float
) -> None:
    """Move a well-known task to its bin; note it for replacement if its rank is low.

    Args:
        slot: Where the task is.
        score: In [0, 1].
        filed: Changed in place.
        ranks: Changed in place.
        noted: Changed in place.
        share: How many of the well-known tasks rank low.
    """
    new_bin = min(int(score * NUM_BINS), NUM_BINS - 1)
    if filed[slot].bin > 0:
        ranks.histogram[filed[slot].bin - 1] -= 1
    ranks.histogram[new_bin] += 1
    filed[slot].bin = new_bin + 1
    if noted.count < MAX_NOTED and _rank_is_low(new_bin, ranks, share):
        note(noted, slot)


@compiled
def unfile(slot: int, filed: Records[Filed], ranks: Records[Ranks]) -> None:
    """Take a slot out of the histogram: its task is gone."""
    if filed[slot].bin > 0:
        ranks[0].histogram[filed[slot].bin - 1] -= 1
    filed[slot].bin = 0


def check_filed(filed: Records[Filed], ranks: Records[Ranks], place: str) -> None:
    """Raise `SnapshotError` unless the histogram counts the bins of the slots."""
    bins, histogram = filed["bin"], ranks["histogram"][0]
    counted = np.bincount(bins[bins > 0] - 1, minlength=NUM_BINS)
    wrong = np.flatnonzero(counted != histogram)
    if len(wrong):
        raise SnapshotError(
            f"the histogram of {place}: bin {wrong[0]} is {histogram[wrong[0]]}, but "
            f"{counted[wrong[0]]} slots are in that bin. Use an older one."
        )
