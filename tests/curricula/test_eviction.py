"""Which tasks make room: ranks by histogram, and the list of slots to replace."""

import numpy as np

from stepladder.compiled import compiled
from stepladder.curricula.batch_rule import MAX_NOTED, Noted
from stepladder.curricula.batch_rule import note as note_slot
from stepladder.curricula.compiled_method import empty_noted
from stepladder.curricula.ranking import NUM_BINS, Filed, Ranks, file_by_score, unfile
from stepladder.records import Fields, Records


class Lists(Fields):
    ranks: Ranks
    noted: Noted
    behind: int


@compiled
def file_one(slot: int, score: float, filed: Records[Filed], lists: Records[Lists], share: float):
    file_by_score(slot, score, filed, lists[0], share)


@compiled
def note(lists: Records[Lists], slot: int):
    note_slot(lists[0].noted, slot)


def noted(lists: Records[Lists]) -> list[int]:
    own = lists["noted"]
    return own["slots"][0, : own["count"][0]].tolist()


def test_a_slot_is_noted_if_fewer_than_the_share_score_less():
    filed, lists = Filed.zeros(5), Lists.zeros()
    for slot, score in enumerate((0.1, 0.2, 0.3, 0.4)):
        file_one(slot, score, filed, lists, 0.3)
    # The fourth: 1.2 of four rank low, and three score less.
    assert noted(lists) == []
    # With one below it, 1.5 of five: noted. With two: not.
    file_one(4, 0.15, filed, lists, 0.3)
    assert noted(lists) == [4]
    file_one(4, 0.25, filed, lists, 0.3)
    assert noted(lists) == [4]


def test_a_slot_has_one_place_in_the_histogram():
    filed, lists = Filed.zeros(2), Lists.zeros()
    for score in (0.0, 0.5, 1.0, 1.0):
        file_one(1, score, filed, lists, 0.0)
    histogram = lists["ranks"]["histogram"][0]
    assert (histogram.sum(), histogram[NUM_BINS - 1]) == (1, 1)
    assert filed["bin"].tolist() == [0, NUM_BINS]
    unfile(1, filed, lists["ranks"])
    unfile(1, filed, lists["ranks"])
    assert histogram.sum() == 0
    assert filed["bin"][1] == 0


def test_the_list_keeps_the_order_until_it_is_emptied_and_never_overflows():
    lists, handled = Lists.zeros(), np.array([3])
    lists["behind"] = -7
    for slot in (5, 2, 5):
        note(lists, slot)
    assert noted(lists) == [5, 2, 5]
    empty_noted(lists["noted"], handled)
    assert noted(lists) == []
    assert handled[0] == 0
    for slot in range(MAX_NOTED + 10):
        note(lists, slot)
    assert noted(lists) == list(range(MAX_NOTED))
    assert lists["behind"][0] == -7
