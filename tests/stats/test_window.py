"""The window of last results: order of time, mean and trend, also after wrapping around."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepladder.stats.window import mean, push, trend


def fill_window(size: int, results: list[float]) -> tuple[np.ndarray, int, int]:
    window, fill, head = np.zeros(size), 0, 0
    for result in results:
        fill, head = push(window, fill, head, result)
    return window, fill, head


def test_an_empty_window_has_mean_and_trend_zero():
    window, fill, head = fill_window(4, [])
    assert (fill, head) == (0, 0)
    assert mean(window, fill) == 0.0
    assert trend(window, fill, head, 2) == 0.0


def test_results_are_kept_until_the_window_is_full_and_then_the_oldest_goes():
    window, fill, head = fill_window(3, [1.0, 0.0])
    assert (window.tolist(), fill, head) == ([1.0, 0.0, 0.0], 2, 2)
    window, fill, head = fill_window(3, [1.0, 0.0, 0.5, 0.25])
    assert (window.tolist(), fill, head) == ([0.25, 0.0, 0.5], 3, 1)


def test_the_mean_is_over_what_is_held():
    # (1 + 0 + 1) / 3; then the first is dropped: (0 + 1 + 1 + 1) / 4.
    assert mean(*fill_window(4, [1, 0, 1])[:2]) == pytest.approx(2 / 3)
    assert mean(*fill_window(4, [1, 0, 1, 1, 1])[:2]) == 0.75


def test_the_trend_is_the_newer_half_minus_the_older():
    # Older half 0, 1: 0.5. Newer half 1, 1: 1.0.
    assert trend(*fill_window(8, [0, 1, 1, 1]), 2) == 0.5


def test_with_an_odd_number_the_newer_half_is_the_larger_one():
    # floor(5 / 2) = 2 old ones: (1 + 1) / 2; three new ones: (0 + 0 + 1) / 3.
    assert trend(*fill_window(8, [1, 1, 0, 0, 1]), 2) == pytest.approx(1 / 3 - 1.0)


def test_a_trend_needs_enough_results():
    window, fill, head = fill_window(50, [0.0] * 10 + [1.0] * 9)
    assert trend(window, fill, head, 20) == 0.0
    fill, head = push(window, fill, head, 1.0)
    assert trend(window, fill, head, 20) == 1.0
    assert trend(*fill_window(4, [1.0]), 1) == 0.0


def test_the_trend_is_read_in_order_of_time_after_wrapping_around():
    # The ancestor read its ring in storage order: 25 failures, then 25 wins that overwrote the
    # first half of the ring, gave -1.0.
    results = [1.0] * 25 + [0.0] * 25 + [1.0] * 25
    assert trend(*fill_window(50, results), 20) == 1.0
    assert trend(*fill_window(50, results + [0.0] * 25), 20) == -1.0


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    size=st.integers(1, 9),
    results=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=40),
    least=st.integers(0, 6),
)
def test_a_window_does_what_a_deque_does(size: int, results: list[float], least: int):
    window, fill, head = fill_window(size, results)
    kept = list(deque(results, maxlen=size))
    assert mean(window, fill) == pytest.approx(np.mean(kept) if kept else 0.0)
    half = len(kept) // 2
    rising = np.mean(kept[half:]) - np.mean(kept[:half]) if len(kept) >= max(2, least) else 0.0
    assert trend(window, fill, head, least) == pytest.approx(rising)
