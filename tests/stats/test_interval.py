"""Intervals of rates and means: by hand, by definition, and against scipy."""

import math

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from stepladder.errors import ConfigError
from stepladder.stats.interval import mean_interval, student_quantile, wilson_lower


def test_nothing_seen_is_nothing_known():
    assert wilson_lower(1.0, 0.0, 1.645) == 0.0


def test_without_width_the_bound_is_the_rate():
    assert wilson_lower(0.37, 20.0, 0.0) == 0.37


@pytest.mark.parametrize(
    ("rate", "count", "z", "bound"),
    [
        # z = 2, n = 4, p = 1: (1 + 4/8 - 2·√(0 + 4/64)) / (1 + 4/4) = (1.5 - 0.5) / 2.
        (1.0, 4.0, 2.0, 0.5),
        # z = 2, n = 16, p = 0.5: (0.5 + 0.125 - 2·√(0.015625 + 0.00390625)) / 1.25.
        (0.5, 16.0, 2.0, (0.625 - 2 * math.sqrt(0.01953125)) / 1.25),
        # The textbook's 95 % interval for 8 of 10 begins at 0.4902.
        (0.8, 10.0, 1.959964, 0.4902),
        (0.0, 10.0, 1.645, 0.0),
    ],
)
def test_hand_computed_bounds(rate: float, count: float, z: float, bound: float):
    assert wilson_lower(rate, count, z) == pytest.approx(bound, abs=5e-5)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(successes=st.integers(0, 200), failures=st.integers(0, 200), z=st.floats(0.1, 4.0))
def test_the_bound_is_where_the_rate_lies_z_deviations_above(
    successes: int, failures: int, z: float
):
    count = successes + failures
    if count == 0:
        return
    rate = successes / count
    bound = wilson_lower(rate, float(count), z)
    assert 0.0 <= bound <= rate
    # By definition: rate - bound = z standard deviations of a rate whose truth is the bound.
    assert rate - bound == pytest.approx(z * math.sqrt(bound * (1 - bound) / count), abs=1e-9)


def test_a_true_rate_lies_below_its_bound_as_rarely_as_promised():
    # One-sided 95 %: with a true rate of 0.7 over 50 trials at most about 5 % of bounds exceed it.
    rates = np.random.default_rng(5).binomial(50, 0.7, size=20_000) / 50.0
    exceeding = np.mean([wilson_lower(rate, 50.0, 1.645) > 0.7 for rate in rates])
    assert 0.02 < exceeding < 0.07


# Student's interval of a mean.


def test_students_quantile_at_95_percent():
    for degrees in range(1, 201):
        # Exact with one and two degrees, then an expansion whose error falls with the degrees.
        error = 1e-12 if degrees <= 2 else 0.0013 if degrees < 5 else 0.0002
        expected = scipy.stats.t.ppf(0.975, degrees)
        assert student_quantile(0.975, degrees) == pytest.approx(expected, rel=error), degrees


@pytest.mark.parametrize("share", [0.6, 0.75, 0.9, 0.95, 0.99, 0.995])
def test_students_quantile_at_other_shares(share: float):
    for degrees in (1, 2, 3, 4, 5, 10, 31, 127):
        expected = scipy.stats.t.ppf(share, degrees)
        assert student_quantile(share, degrees) == pytest.approx(expected, rel=0.008)


def test_the_interval_of_a_mean_by_hand():
    # 1, 2, 3: mean 2, variance 1, standard error 1/√3; t with two degrees is 4.302653.
    half = 4.302653 / math.sqrt(3)
    assert mean_interval([1.0, 2.0, 3.0]) == pytest.approx((2.0, 2.0 - half, 2.0 + half), abs=1e-6)


@settings(derandomize=True, max_examples=50, deadline=None)
@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40),
    level=st.sampled_from([0.5, 0.9, 0.95, 0.99]),
)
def test_the_interval_of_a_mean_is_scipys(values: list[float], level: float):
    mean, low, high = mean_interval(values, level)
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    assert mean == pytest.approx(np.mean(values), abs=1e-6)
    half = scipy.stats.t.ppf(0.5 + level / 2, len(values) - 1) * spread
    assert high - mean == pytest.approx(half, rel=0.009, abs=1e-6)
    assert mean - low == pytest.approx(half, rel=0.009, abs=1e-6)


def test_the_interval_holds_the_true_mean_as_often_as_promised():
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(4000):
        _, low, high = mean_interval(rng.normal(3.0, 2.0, size=6).tolist())
        hits += low <= 3.0 <= high
    # Four standard deviations of a share of 0.95 over 4,000.
    assert hits / 4000 == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 4000))


def test_a_single_value_has_an_interval_without_width():
    assert mean_interval([4.0]) == (4.0, 4.0, 4.0)


def test_equal_values_have_an_interval_without_width():
    assert mean_interval([0.1] * 10) == pytest.approx((0.1, 0.1, 0.1))


def test_a_mean_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="at least one value; got none"):
        mean_interval([])


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.5, math.nan])
def test_an_impossible_level_is_refused(level: float):
    with pytest.raises(ConfigError, match="level must lie between 0 and 1"):
        mean_interval([1.0, 2.0], level)
