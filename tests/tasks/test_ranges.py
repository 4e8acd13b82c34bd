"""Ranges: values worked out by hand from raw bits, and every refusal."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepladder.errors import TaskError
from stepladder.tasks import Choice, FloatRange, IntRange
from stepladder.tasks.ranges import as_range

HALF = 2**63
QUARTER = 2**62
LARGEST = 2**64 - 1


def feed(*raws):
    """Give these raw numbers one after the other."""
    return iter(raws).__next__


@pytest.mark.parametrize(
    ("range_", "raw", "expected"),
    [
        (FloatRange(2, 4), 0, 2.0),
        (FloatRange(2, 4), HALF, 3.0),
        (FloatRange(-1, 1), QUARTER, -0.5),
        (FloatRange(1, 100, log=True), HALF, 10.0),  # halfway between 10**0 and 10**2
        (IntRange(1, 4), 0, 1),
        (IntRange(1, 4), QUARTER, 2),
        (IntRange(1, 4), LARGEST, 4),
        (IntRange(-(2**63), 2**63 - 1), LARGEST, 2**63 - 1),
        (Choice(["a", "b", "c", "d"]), HALF, "c"),
        (Choice(["a", "b"], weights=[1, 3]), QUARTER - 2**11, "a"),
        (Choice(["a", "b"], weights=[1, 3]), QUARTER, "b"),
        (Choice(["a", "b", "c"], weights=[0, 1, 0]), 0, "b"),
        (Choice(["a", "b", "c"], weights=[0, 1, 0]), LARGEST, "b"),
        (Choice(["a", "b"], weights=[5e-324, 0]), LARGEST, "a"),
    ],
)
def test_raw_bits_give_the_value_worked_out_by_hand(range_, raw, expected):
    value = range_.sample(feed(raw))
    assert type(value) is type(expected)
    assert value == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_a_range_inside_a_choice_is_drawn_from_with_the_next_raw_number():
    choice = Choice([0, IntRange(10, 13)])
    assert choice.sample(feed(0)) == 0
    assert choice.sample(feed(HALF, QUARTER)) == 11


@given(st.integers(0, LARGEST), st.floats(1e-300, 1e300), st.floats(1e-300, 1e300), st.booleans())
@settings(derandomize=True, max_examples=100)
def test_floats_never_leave_their_bounds(raw, one, other, log):
    if one != other:
        low, high = min(one, other), max(one, other)
        assert low <= FloatRange(low, high, log).sample(feed(raw)) <= high


@given(st.integers(0, LARGEST), st.lists(st.floats(0, 1e300), min_size=1, max_size=6))
@settings(derandomize=True, max_examples=100)
def test_a_value_without_weight_is_never_drawn(raw, weights):
    if sum(weights) > 0:
        assert weights[Choice(range(len(weights)), weights).sample(feed(raw))] > 0


def test_bounds_that_fill_all_floats_do_not_overflow():
    assert math.isfinite(FloatRange(-1.7e308, 1.7e308).sample(feed(HALF)))


def test_numpy_numbers_are_taken_as_plain_ones():
    assert FloatRange(np.float32(0.5), np.int64(1)) == FloatRange(0.5, 1.0)
    assert IntRange(np.int8(1), np.int64(3)) == IntRange(1, 3)
    assert Choice([np.int64(1), (1, 2)]).values == (1, [1, 2])


def test_values_are_listed_where_they_are_few():
    assert FloatRange(0, 1).listed_values() is None
    assert IntRange(1, 3).listed_values() == [1, 2, 3]
    assert len(IntRange(1, 1000).listed_values() or []) == 1000
    assert IntRange(1, 1001).listed_values() is None
    assert Choice(["a", IntRange(1, 2)]).listed_values() == ["a", 1, 2]
    assert Choice(["a", FloatRange(1, 2)]).listed_values() is None
    assert Choice(list(range(1001))).listed_values() is None


def test_a_list_stands_for_a_choice_and_a_constant_for_itself():
    assert as_range([1, IntRange(2, 3)], "x") == Choice([1, IntRange(2, 3)])
    assert as_range(IntRange(2, 3), "x") == IntRange(2, 3)
    for constant in (5, "text", None, {"a": 1}):
        assert as_range(constant, "x").sample(feed(HALF)) == constant


def test_a_list_inside_a_list_is_a_plain_value():
    assert as_range([[0, 1], [2, 3]], "x").sample(feed(HALF)) == [2, 3]


def test_descriptions_tell_a_range_from_a_value_that_looks_like_one():
    real = Choice([IntRange(1, 2)])
    posing = Choice([IntRange(1, 2).describe()])
    assert real.describe() != posing.describe()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FloatRange(1, 1), "FloatRange needs low below high; got low=1.0 and high=1.0"),
        (lambda: FloatRange(2, 1), "low below high"),
        (lambda: FloatRange(math.nan, 1), "FloatRange.low is nan"),
        (lambda: FloatRange(0, math.inf), "FloatRange.high is inf"),
        (lambda: FloatRange("0", 1), "FloatRange.low must be a number; got '0'"),  # pyright: ignore
        (lambda: FloatRange(False, 1), "FloatRange.low must be a number; got False"),
        (lambda: FloatRange(0, 1, log=True), "needs low above 0; got 0.0"),
        (lambda: IntRange(3, 3), "IntRange needs low below high; got low=3 and high=3"),
        (lambda: IntRange(0.5, 3), "IntRange.low must be an integer"),  # pyright: ignore
        (lambda: IntRange(0, 2**63), "IntRange.high must lie between"),
        (lambda: Choice([]), "Choice.values is empty"),
        (lambda: Choice("abc"), "Choice.values must be a list; got 'abc'"),
        (lambda: Choice(3), "Choice.values must be a list; got 3"),  # pyright: ignore
        (lambda: Choice([1, math.nan]), "Choice.values.1 is nan"),
        (lambda: Choice([[IntRange(1, 2)]]), r"Choice\.values\.0\[0\] has type IntRange"),
        (lambda: Choice([1, 2], [1]), r"must hold 2 numbers, one per value; got \[1\]"),
        (lambda: Choice([1, 2], [1, -1]), "Choice.weights.1 must be a number of at least 0"),
        (lambda: Choice([1, 2], [0, 0]), "positive, finite sum"),
        (lambda: Choice([1, 2], [1, math.nan]), r"Choice\.weights\[1\] is nan"),
        (lambda: as_range([], "puck.speed"), r"ranges\['puck.speed'\]: Choice.values is empty"),
        (lambda: as_range(math.nan, "puck.speed"), r"ranges\['puck.speed'\]: .* is nan"),
        (lambda: as_range({1}, "puck.speed"), r"ranges\['puck.speed'\]: .* type set"),
    ],
)
def test_malformed_ranges_are_refused(make, message):
    with pytest.raises(TaskError, match=message):
        make()
