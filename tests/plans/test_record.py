"""Draws and records: fields, packing, and which records are impossible."""

import math

import numpy as np
import pytest

from stepladder.curricula import Draw, Record, record_array
from stepladder.errors import RecordError
from stepladder.plans.record import (
    DRAW_DTYPE,
    RECORD_DTYPE,
    TERMINATED,
    TRUNCATED,
    UNBUILDABLE,
    first_bad_record,
    is_bad,
    pack_records,
    refuse,
)

DRAW = Draw(
    slot=3, generation=1, task_id=77, plan_version=12, seed=5, tick=4, env_index=2, episode_index=9
)


def test_a_record_repeats_where_its_draw_came_from():
    record = Record.of(DRAW, success=True, episode_return=2, length=30, truncated=True)
    assert record == Record(3, 1, 12, 4, 2, 9, 2.0, 30, 1.0, TRUNCATED)
    assert record.truncated
    assert isinstance(record.success, float)
    assert isinstance(record.episode_return, float)


def test_a_record_needs_no_more_than_its_success():
    record = Record.of(DRAW, success=0.25)
    assert (record.episode_return, record.length, record.outcome) == (0.0, 1, TERMINATED)
    assert not record.truncated


@pytest.mark.parametrize("wrong", [None, "often", [1.0], 1j])
def test_a_success_that_is_no_number_is_refused_by_name(wrong: object):
    with pytest.raises(RecordError) as refusal:
        Record.of(DRAW, success=wrong)  # type: ignore[arg-type]
    assert repr(wrong) in str(refusal.value)
    with pytest.raises(RecordError):
        Record.of(DRAW, success=1.0, episode_return=wrong)  # type: ignore[arg-type]


def test_tuples_and_arrays_have_the_same_fields_in_the_same_order():
    assert Draw._fields == DRAW_DTYPE.names
    assert Record._fields == RECORD_DTYPE.names
    assert (DRAW_DTYPE.itemsize, RECORD_DTYPE.itemsize) == (64, 80)


def test_packing_and_unpacking_gives_the_same_records():
    records = [
        Record.of(DRAW, success=0.5, episode_return=-1.5, length=7),
        Record.of(DRAW, success=math.nan, truncated=True),
    ]
    packed = record_array(iter(records))
    assert packed.dtype == RECORD_DTYPE
    unpacked = [Record(*row) for row in packed.tolist()]
    assert unpacked[0] == records[0]
    assert repr(unpacked[1]) == repr(records[1])
    assert record_array([]).shape == (0,)


def test_results_are_packed_beside_their_draws():
    draws = np.zeros(2, dtype=DRAW_DTYPE)
    draws[1] = tuple(DRAW)
    records = np.zeros(2, dtype=RECORD_DTYPE)
    pack_records(draws, np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [0.0, 1.0]]), records)
    assert Record(*records[1].item()) == Record.of(
        DRAW, success=1.0, episode_return=3.0, length=5, truncated=True
    )
    assert Record(*records[0].item())[6:] == (2.0, 4, 0.0, TERMINATED)


GOOD = Record.of(DRAW, success=1.0)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"slot": -1}, "slot -1 does not exist; expected 0 to 9"),
        ({"slot": 10}, "slot 10 does not exist; expected 0 to 9"),
        ({"length": -2}, "length -2 is negative"),
        ({"episode_return": math.inf}, "return inf is not finite"),
        ({"episode_return": math.nan}, "return nan is not finite"),
        ({"success": math.nan}, "success is NaN; this curriculum needs a number"),
        ({"success": 1.01}, "success 1.01 lies outside [0, 1]"),
        ({"success": -0.01}, "success -0.01 lies outside [0, 1]"),
        ({"success": math.inf}, "success inf lies outside [0, 1]"),
        ({"outcome": UNBUILDABLE}, "outcome 2 is neither TERMINATED (0) nor TRUNCATED (1)"),
        ({"outcome": -1}, "outcome -1 is neither"),
        ({"outcome": 7, "success": math.nan}, "outcome 7 is neither"),
    ],
)
def test_the_first_bad_record_is_found_and_named(changes: dict[str, float], problem: str):
    batch = record_array([GOOD, GOOD._replace(**changes), GOOD._replace(slot=-99)])
    assert first_bad_record(batch, 10, True) == 1
    message = str(refuse(batch, 1, 10))
    assert problem in message
    assert message.startswith("record 1 of 3: ")


@pytest.mark.parametrize("edge", [{"slot": 0}, {"slot": 9}, {"length": 0}, {"success": 0.0}])
def test_the_edges_of_what_is_allowed_are_allowed(edge: dict[str, float]):
    assert first_bad_record(record_array([GOOD._replace(**edge)]), 10, True) == -1


def test_an_unknown_success_is_bad_only_where_it_is_needed():
    unknown = record_array([GOOD._replace(success=math.nan)])
    assert first_bad_record(unknown, 10, True) == 0
    assert first_bad_record(unknown, 10, False) == -1
    assert is_bad(3, 10, math.nan, 0.0, 1, True)
    assert not is_bad(3, 10, math.nan, 0.0, 1, False)
