"""Wilson's lower bound, against numbers worked out by hand and against its definition."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepladder.stats.interval import wilson_lower


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
