"""Who makes room: tasks that rank low among the well-known ones, found at a cost that is flat.

Used by the kernels of the methods that have a pool with more tasks behind it. A histogram of
scores tells a task's rank without sorting; slots to replace are noted in a short list that Python
works off after the batch, because only Python can ask a source for another task.
"""
# pyright: reportReturnType=false, reportArgumentType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

import numpy as np

from stepladder.compiled import compiled
from stepladder.errors import SnapshotError
from stepladder.plans.kernels import Floats, Words
from stepladder.saving.saved_array import Part, SavedArray

# Whole numbers of a method: the counters, a histogram of scores, slots to replace.
NUM_BINS, MAX_EVICTIONS = 256, 64
I_HISTOGRAM = 3
I_NUM_EVICTIONS = I_HISTOGRAM + NUM_BINS
I_EVICTIONS = I_NUM_EVICTIONS + 1
NUM_INTS = I_EVICTIONS + MAX_EVICTIONS

# Columns of what is rarely needed per slot: the bin in the histogram (0 is none), the base weight.
BIN, WEIGHT = 0, 1

ALL_DONE, SOME_TO_REPLACE = -1, -2
"""What a kernel returns after a batch."""


@compiled
def note(ints: Words, at: int, slot: int) -> None:
    """Put a slot on the list that begins at `at` with its length, unless the list is full."""
    if ints[at] < MAX_EVICTIONS:
        ints[at + 1 + ints[at]] = slot
        ints[at] += 1


@compiled
def _rank_is_low(bin_index: int, ints: Words, share: float) -> bool:
    """Whether fewer than `share` of the well-known tasks score less than this bin."""
    below, total = 0, 0
    for index in range(NUM_BINS):
        total += ints[I_HISTOGRAM + index]
        if index < bin_index:
            below += ints[I_HISTOGRAM + index]
    return total * share >= 1.0 and below < share * total


@compiled
def file_by_score(slot: int, score: float, extras: Floats, ints: Words, share: float) -> None:
    """Move a well-known task to its bin; note it for replacement if its rank is low.

    Args:
        slot: Where the task is.
        score: In [0, 1].
        extras: Bin and base weight per slot. Changed in place.
        ints: Counters, histogram and list. Changed in place.
        share: How many of the well-known tasks rank low.
    """
    new_bin = min(int(score * NUM_BINS), NUM_BINS - 1)
    if extras[slot, BIN] > 0.0:
        ints[I_HISTOGRAM + int(extras[slot, BIN]) - 1] -= 1
    ints[I_HISTOGRAM + new_bin] += 1
    extras[slot, BIN] = new_bin + 1
    if ints[I_NUM_EVICTIONS] < MAX_EVICTIONS and _rank_is_low(new_bin, ints, share):
        note(ints, I_NUM_EVICTIONS, slot)


@compiled
def unfile(slot: int, extras: Floats, ints: Words) -> None:
    """Take a slot out of the histogram: its task is gone."""
    if extras[slot, BIN] > 0.0:
        ints[I_HISTOGRAM + int(extras[slot, BIN]) - 1] -= 1
    extras[slot, BIN] = 0.0


def noted_slots(ints: Words, at: int) -> list[int]:
    """Return the slots on the list that begins at `at`; one may be there more than once."""
    return ints[at + 1 : at + 1 + int(ints[at])].tolist()


@compiled
def empty_noted(ints: Words, at: int, handled: Words) -> None:
    """Empty the list that begins at `at`, all of which was handled."""
    ints[at] = 0
    handled[0] = 0


# Saving and resuming.


def noted_parts(at: int, num_slots: int) -> tuple[Part, ...]:
    """Describe the list that begins at `at`."""
    return (
        Part.count("length of the list of slots to replace", np.s_[at], MAX_EVICTIONS),
        Part.count("slot to replace", np.s_[at + 1 : at + 1 + MAX_EVICTIONS], num_slots - 1),
    )


def filed_arrays(extras: Floats, ints: Words, base_weights: Floats) -> list[SavedArray]:
    """Describe what `file_by_score` keeps: bins and weights per slot, histogram and list."""
    histogram = np.s_[I_HISTOGRAM : I_HISTOGRAM + NUM_BINS]
    return [
        SavedArray(
            "extras",
            extras,
            (
                Part.count("bin", np.s_[:, BIN], NUM_BINS),
                Part("base weight", np.s_[:, WEIGHT], base_weights, base_weights),
            ),
        ),
        SavedArray(
            "ints",
            ints,
            (
                Part.count("counters", np.s_[:I_HISTOGRAM]),
                Part.count("histogram", histogram, len(extras)),
                *noted_parts(I_NUM_EVICTIONS, len(extras)),
            ),
        ),
    ]


def check_filed(extras: Floats, ints: Words, place: str) -> None:
    """Raise `SnapshotError` unless the histogram counts the bins of the slots."""
    bins = extras[extras[:, BIN] > 0.0, BIN].astype(np.int64) - 1
    counted = np.bincount(bins, minlength=NUM_BINS)
    wrong = np.flatnonzero(counted != ints[I_HISTOGRAM : I_HISTOGRAM + NUM_BINS])
    if len(wrong):
        raise SnapshotError(
            f"array 'ints' of {place}: histogram[{wrong[0]}] is {ints[I_HISTOGRAM + wrong[0]]}, "
            f"but {counted[wrong[0]]} slots are in that bin. Use an older one."
        )
