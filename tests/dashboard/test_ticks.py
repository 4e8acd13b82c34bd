"""Marks of an axis and numbers on it."""

import itertools
import math

import numpy as np
import pytest

from stepladder.dashboard.ticks import (
    format_tick,
    format_ticks,
    format_value,
    log_range,
    log_ticks,
    nice_ticks,
    value_range,
)


@pytest.mark.parametrize(
    ("low", "high", "count", "expected"),
    [
        (0, 1, 5, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0, 1, 6, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0, 90_000, 6, [0, 20_000, 40_000, 60_000, 80_000]),
        (-0.35, 0.25, 6, [-0.3, -0.2, -0.1, 0, 0.1, 0.2]),
        (3, 47, 5, [10, 20, 30, 40]),
        (0, 7e-6, 4, [0, 2e-6, 4e-6, 6e-6]),
    ],
)
def test_ticks_are_round_numbers_inside_the_axis(
    low: float, high: float, count: int, expected: list[float]
) -> None:
    assert nice_ticks(low, high, count) == expected


def test_there_are_never_many_more_ticks_than_asked_for() -> None:
    for high in np.geomspace(1e-12, 1e12, 301):
        for count in (3, 5, 6):
            ticks = nice_ticks(0.0, float(high), count)
            assert 2 <= len(ticks) <= count + 1
            assert 0 <= ticks[0] < ticks[-1] <= high * (1 + 1e-9)


def test_an_axis_without_extent_has_one_tick() -> None:
    assert nice_ticks(4.0, 4.0) == [4.0]


def test_ticks_of_a_log_axis_are_ones_twos_and_fives_over_few_decades() -> None:
    assert log_ticks(0.8, 12) == [1, 2, 5, 10]
    assert log_ticks(1, 1e5) == [1, 10, 100, 1000, 10_000, 100_000]


def test_a_log_axis_over_many_decades_leaves_some_out() -> None:
    ticks = log_ticks(1e-12, 1e12)
    assert 3 <= len(ticks) <= 8
    ratios = {round(math.log10(b / a)) for a, b in itertools.pairwise(ticks)}
    assert ratios == {4}


def test_a_log_axis_within_one_decade_still_has_ticks() -> None:
    assert log_ticks(1.1, 1.35) == [1.1, 1.2, 1.3]


def test_ticks_of_one_axis_share_unit_and_decimals() -> None:
    assert format_ticks([0, 0.5, 1]) == ["0.0", "0.5", "1.0"]
    assert format_ticks([0, 20_000, 40_000]) == ["0", "20k", "40k"]
    assert format_ticks([0, 500_000, 1_000_000]) == ["0.0", "0.5M", "1.0M"]
    assert format_ticks([0, 500, 1000]) == ["0", "500", "1000"]
    assert format_ticks([-0.1, 0, 0.1]) == ["\u22120.1", "0.0", "0.1"]
    assert format_ticks([0, 2e-5, 4e-5]) == ["0", "2e\u22125", "4e\u22125"]
    assert format_ticks([1_000_000.1, 1_000_000.2]) == ["1.0000001M", "1.0000002M"]
    assert format_ticks([0.0]) == ["0"]


def test_single_numbers_are_short() -> None:
    assert format_tick(10_000) == "10k"
    assert format_tick(0.001) == "0.001"
    assert format_tick(1e-7) == "1e\u22127"
    assert format_tick(3e20) == "3e20"


def test_numbers_in_tables() -> None:
    assert format_value(1_234_567) == "1,234,567"
    assert format_value(0.123456) == "0.1235"
    assert format_value(-2.5) == "\u22122.5"
    assert format_value(12_345.6) == "12,346"
    assert format_value(math.nan) == format_value(None) == format_value(math.inf) == "\u2013"


def test_an_axis_starts_at_zero_where_values_come_near_it() -> None:
    assert value_range([np.array([0.1, 1.0])]) == pytest.approx((0.0, 1.036))
    assert value_range([np.array([0.5, 1.0])]) == pytest.approx((0.48, 1.02))
    assert value_range([np.array([-1.0, -0.1])]) == pytest.approx((-1.036, 0.0))
    assert value_range([np.array([-1.0]), np.array([1.0])]) == pytest.approx((-1.08, 1.08))


def test_a_constant_has_an_axis_around_it() -> None:
    assert value_range([np.array([5.0, 5.0])]) == (0.0, 10.0)
    assert value_range([np.array([-5.0])]) == (-10.0, 0.0)
    assert value_range([np.zeros(3)]) == (0.0, 1.0)


def test_gaps_do_not_count_and_nothing_has_no_axis() -> None:
    assert value_range([np.array([np.nan, 1.0, 2.0, np.inf])]) == pytest.approx((0.96, 2.04))
    assert value_range([np.array([np.nan])]) is None
    assert value_range([]) is None


def test_a_log_axis_covers_the_positive_values_alone() -> None:
    low, high = log_range([np.array([-1.0, 0.0, 1.0, 100.0])]) or (0, 0)
    assert low == pytest.approx(100**-0.04)
    assert high == pytest.approx(100**1.04)
    assert log_range([np.array([0.0, -3.0, np.nan])]) is None
    assert log_range([np.array([4.0])]) == (2.0, 8.0)
