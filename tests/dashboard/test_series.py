"""Smoothing, thinning and slicing of logged series."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from stepladder.dashboard.series import cut, drawable, smoothed, thin

NAN = np.nan


def test_a_short_series_is_not_thinned() -> None:
    steps, values = np.arange(800), np.random.default_rng(0).random(800)
    kept_steps, kept = thin(steps, values)
    assert_array_equal(kept_steps, steps)
    assert_array_equal(kept, values)


def test_thinning_keeps_extremes_and_ends() -> None:
    values = np.sin(np.arange(100_000) / 900)
    values[31_415] = 7.0
    values[27_182] = -9.0
    steps, kept = thin(np.arange(100_000) * 3, values)
    assert kept.size <= 800
    assert kept.max() == 7.0
    assert kept.min() == -9.0
    assert steps[np.argmax(kept)] == 3 * 31_415
    assert (steps[0], steps[-1]) == (0, 3 * 99_999)
    assert np.all(np.diff(steps) > 0)


def test_thinning_keeps_lowest_and_highest_of_every_bucket() -> None:
    # Ten points into two buckets of five: 0 (first), then 4 and 1, 8 and 5, and 9 (last).
    values = np.array([3.0, 1, 2, 3, 4, 5, 6, 7, 8, 6])
    steps, kept = thin(np.arange(10), values, limit=6)
    assert_array_equal(steps, [0, 1, 4, 5, 8, 9])
    assert_array_equal(kept, [3, 1, 4, 5, 8, 6])


def test_thinning_keeps_gaps() -> None:
    values = np.arange(10_000, dtype=float)
    values[4_000:6_000] = NAN
    steps, kept = thin(np.arange(10_000), values, limit=100)
    assert kept.size <= 100
    inside = (steps >= 4_000) & (steps < 6_000)
    assert np.isnan(kept[inside]).all()
    assert inside.sum() >= 1
    assert np.isfinite(kept[~inside]).all()


def test_a_single_lost_point_still_breaks_the_thinned_line() -> None:
    values = np.zeros(5_000)
    values[1_234] = NAN
    _, kept = thin(np.arange(5_000), values)
    assert np.isnan(kept).sum() == 1


def test_a_series_of_gaps_can_be_thinned() -> None:
    _, kept = thin(np.arange(5_000), np.full(5_000, NAN))
    assert np.isnan(kept).all()


def test_smoothing_is_a_centred_mean_with_short_ends() -> None:
    assert_array_equal(smoothed(np.array([0.0, 3, 6, 0]), 3), [1.5, 3, 3, 3])
    # An even window reaches one point further to the right.
    assert_array_equal(smoothed(np.array([0.0, 4, 8]), 2), [2, 6, 8])


def test_smoothing_leaves_gaps_and_passes_over_them() -> None:
    result = smoothed(np.array([1.0, NAN, 3.0]), 3)
    assert_array_equal(result, [1.0, NAN, 3.0])


def test_a_window_of_one_changes_nothing() -> None:
    values = np.array([1.0, NAN, 5.0])
    assert smoothed(values, 1) is values
    assert smoothed(np.zeros(0), 9).size == 0


def test_values_without_a_place_on_an_axis_become_gaps() -> None:
    given = np.array([1.0, np.inf, -np.inf, NAN, 1e301, -1e301])
    assert_array_equal(drawable(given), [1.0, NAN, NAN, NAN, NAN, NAN])
    assert given[1] == np.inf


def test_few_steps_become_one_slice_each() -> None:
    for count in (1, 2, 3, 7, 50, 119, 120):
        steps = np.arange(count) * 400 + 400
        slices = cut([(steps, steps.astype(float))], 120)
        assert slices.counts.tolist() == [[1] * count]
        assert_array_equal(slices.held()[0], steps)


def test_slices_are_equally_long() -> None:
    # Steps 0..8 in 4 slices of 2: 0 | 2, 3 | 5 | 6, 8.
    slices = cut([(np.array([0, 2, 3, 5, 6, 8]), np.array([1.0, 2, 4, 5, 6, 8]))], 4)
    assert_array_equal(slices.held(), [[1, 3, 5, 7]])
    assert_array_equal(slices.centres, [1, 3, 5, 7])
    assert (slices.first, slices.last) == (0, 8)


def test_a_value_holds_where_nothing_was_logged_but_a_gap_is_a_gap() -> None:
    other = (np.arange(5), np.zeros(5))
    series = (np.array([1, 3]), np.array([7.0, NAN]))
    assert_array_equal(cut([other, series], 5).held()[1], [NAN, 7, 7, NAN, NAN])


def test_shares_add_up_and_an_absent_label_has_none() -> None:
    first = (np.array([0, 1, 2]), np.array([1.0, 3.0, 0.0]))
    second = (np.array([0, 2]), np.array([3.0, 0.0]))
    shares = cut([first, second], 3).shares()
    assert_array_equal(shares, [[0.25, 1.0, NAN], [0.75, 0.0, NAN]])


def test_shares_of_a_slice_weigh_all_its_points() -> None:
    # Both points fall into one slice: 1 + 1 against 0 + 2 (the second label was absent once).
    first = (np.array([0, 1, 10]), np.array([1.0, 1.0, 1.0]))
    second = (np.array([1, 10]), np.array([2.0, 3.0]))
    assert cut([first, second], 2).shares() == pytest.approx(np.array([[0.5, 0.25], [0.5, 0.75]]))


def test_shares_hold_over_slices_without_any_point() -> None:
    series = [(np.array([0, 1, 8]), np.array([1.0, 1.0, 1.0]))] * 2
    assert_array_equal(cut(series, 3).shares(), np.full((2, 3), 0.5))
