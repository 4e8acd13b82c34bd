"""Who makes room: ranks by histogram, and the list of slots to replace."""

import numpy as np

from stepladder.curricula.eviction import (
    BIN,
    I_HISTOGRAM,
    I_NUM_EVICTIONS,
    MAX_EVICTIONS,
    NUM_BINS,
    NUM_INTS,
    empty_noted,
    file_by_score,
    note,
    noted_slots,
    unfile,
)


def empty(num_slots: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((num_slots, 2)), np.zeros(NUM_INTS, dtype=np.int64)


def test_a_slot_is_noted_if_fewer_than_the_share_score_less():
    extras, ints = empty(5)
    for slot, score in enumerate((0.1, 0.2, 0.3, 0.4)):
        file_by_score(slot, score, extras, ints, 0.3)
    # The fourth: 1.2 of four rank low, and three score less.
    assert noted_slots(ints, I_NUM_EVICTIONS) == []
    # With one below it, 1.5 of five: noted. With two: not.
    file_by_score(4, 0.15, extras, ints, 0.3)
    assert noted_slots(ints, I_NUM_EVICTIONS) == [4]
    file_by_score(4, 0.25, extras, ints, 0.3)
    assert noted_slots(ints, I_NUM_EVICTIONS) == [4]


def test_a_slot_has_one_place_in_the_histogram():
    extras, ints = empty(2)
    for score in (0.0, 0.5, 1.0, 1.0):
        file_by_score(1, score, extras, ints, 0.0)
    histogram = ints[I_HISTOGRAM : I_HISTOGRAM + NUM_BINS]
    assert (histogram.sum(), histogram[NUM_BINS - 1]) == (1, 1)
    assert extras[:, BIN].tolist() == [0.0, NUM_BINS]
    unfile(1, extras, ints)
    unfile(1, extras, ints)
    assert histogram.sum() == 0
    assert extras[1, BIN] == 0.0


def test_the_list_keeps_the_order_until_it_is_emptied_and_never_overflows():
    ints, handled = np.full(NUM_INTS + 1, -7, dtype=np.int64), np.array([3])
    ints[I_NUM_EVICTIONS] = 0
    for slot in (5, 2, 5):
        note(ints, I_NUM_EVICTIONS, slot)
    assert noted_slots(ints, I_NUM_EVICTIONS) == [5, 2, 5]
    empty_noted(ints, I_NUM_EVICTIONS, handled)
    assert noted_slots(ints, I_NUM_EVICTIONS) == []
    assert handled[0] == 0
    for slot in range(MAX_EVICTIONS + 10):
        note(ints, I_NUM_EVICTIONS, slot)
    assert noted_slots(ints, I_NUM_EVICTIONS) == list(range(MAX_EVICTIONS))
    assert ints[NUM_INTS] == -7
