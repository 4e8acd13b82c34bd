"""Gini, entropy and spread: by hand, and against other ways to compute them."""

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from stepladder.errors import RecordError
from stepladder.stats import coefficient_of_variation, entropy_normalized, gini, max_min_ratio

ALL = (gini, entropy_normalized, coefficient_of_variation, max_min_ratio)


@pytest.fixture(scope="module", autouse=True)
def loaded_before_any_example_is_timed():
    import scipy.stats  # noqa: F401


counts = st.lists(st.integers(0, 1000), min_size=2, max_size=30).filter(any)


def test_gini_by_hand():
    # Ascending 1, 2, 3, 4: 2·(1 + 4 + 9 + 16) / (4·10) - 5/4 = 60/40 - 50/40.
    assert gini([3, 1, 4, 2]) == pytest.approx(0.25)
    # 0, 0, 6: 2·18 / (3·6) - 4/3 = 2/3, the most that three can show.
    assert gini([0, 6, 0]) == pytest.approx(2 / 3)
    assert gini([5, 5, 5]) == 0.0


def test_gini_of_nothing_is_zero():
    assert gini([]) == gini([0.0, 0.0]) == gini([7.0]) == 0.0


@given(counts)
def test_gini_is_half_the_mean_difference_over_the_mean(values):
    array = np.array(values, dtype=float)
    apart = np.abs(array[:, None] - array[None, :]).mean()
    assert gini(values) == pytest.approx(apart / (2 * array.mean()), abs=1e-9)
    assert 0.0 <= gini(values) <= (len(values) - 1) / len(values) + 1e-12


def test_gini_does_not_depend_on_the_unit():
    # Neither an overflow of the sum nor an underflow of a weight.
    assert gini([1e308, 1e308, 0.0]) == pytest.approx(1 / 3)
    assert gini([5e-324, 0.0]) == pytest.approx(0.5)


def test_entropy_by_hand():
    # p = 1/2, 1/4, 1/4, 0: 1.5·ln 2 / ln 4.
    assert entropy_normalized([2, 1, 1, 0]) == pytest.approx(0.75)
    assert entropy_normalized([0.25] * 4) == pytest.approx(1.0)
    assert entropy_normalized([9, 0]) == 0.0


def test_entropy_is_one_where_nothing_can_be_uneven():
    assert entropy_normalized([]) == entropy_normalized([3.0]) == entropy_normalized([0, 0]) == 1.0


@given(counts)
def test_entropy_is_that_of_scipy(values):
    expected = float(scipy.stats.entropy(values)) / math.log(len(values))
    assert entropy_normalized(values) == pytest.approx(expected, abs=1e-9)
    assert 0.0 <= entropy_normalized(values) <= 1.0


def test_variation_by_hand():
    # 2, 4, 4, 4, 5, 5, 7, 9: mean 5, deviation 2.
    assert coefficient_of_variation([2, 4, 4, 4, 5, 5, 7, 9]) == pytest.approx(0.4)
    assert coefficient_of_variation([]) == coefficient_of_variation([0, 0]) == 0.0


@given(counts)
def test_variation_is_that_of_scipy(values):
    expected = float(scipy.stats.variation(values))
    assert coefficient_of_variation(values) == pytest.approx(expected, abs=1e-9)


def test_ratio_by_hand():
    assert max_min_ratio([4, 2, 8]) == 4.0
    assert max_min_ratio([0, 3]) == math.inf
    assert max_min_ratio([]) == max_min_ratio([0, 0]) == 1.0


@pytest.mark.parametrize("measure", ALL)
@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_impossible_values_are_refused_by_name(measure, bad):
    with pytest.raises(RecordError, match=rf"number 1 is {bad}"):
        measure([1.0, bad])


@pytest.mark.parametrize("measure", ALL)
def test_order_and_shape_do_not_matter(measure):
    values = [1.0, 5.0, 2.0, 4.0]
    assert measure(np.array(values).reshape(2, 2)) == pytest.approx(measure(sorted(values)))
