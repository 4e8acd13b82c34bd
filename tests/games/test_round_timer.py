"""Rounds are played with helpers or without, whichever has proved quicker."""

import numpy as np
import pytest

from stepladder.compiled import compiled, fetch_add, swap_if
from stepladder.games.threads import WINDOW, WINDOWS_BETWEEN_TRIALS, RoundTimer


def play(timer: RoundTimer, num_windows: int, together_s: float, alone_s: float) -> list[bool]:
    """Play some windows whose rounds take so long; return which were played alone."""
    ways: list[bool] = []
    for _ in range(num_windows):
        ways.append(timer.is_alone)
        for number in range(WINDOW):
            has_ended = timer.count(alone_s if timer.is_alone else together_s)
            assert has_ended == (number == WINDOW - 1)
    return ways


def test_helpers_that_help_are_kept_and_the_other_way_is_tried_now_and_then():
    ways = play(RoundTimer(), 3 * WINDOWS_BETWEEN_TRIALS + 1, together_s=1.0, alone_s=1.5)
    trials = [number for number, is_alone in enumerate(ways) if is_alone]
    assert trials == [WINDOWS_BETWEEN_TRIALS * number for number in (1, 2, 3)]


def test_helpers_that_hold_rounds_up_are_left_alone_but_tried_again():
    timer = RoundTimer()
    play(timer, WINDOWS_BETWEEN_TRIALS + 1, together_s=2.0, alone_s=1.0)
    ways = play(timer, 2 * WINDOWS_BETWEEN_TRIALS, together_s=2.0, alone_s=1.0)
    assert ways.count(False) == 2


def test_helpers_are_called_back_when_the_cores_are_free_again():
    timer = RoundTimer()
    play(timer, 2 * WINDOWS_BETWEEN_TRIALS + 5, together_s=3.0, alone_s=1.0)
    assert timer.is_alone
    # What is known of the past fades with every trial.
    play(timer, 12 * WINDOWS_BETWEEN_TRIALS, together_s=0.5, alone_s=1.0)
    ways = play(timer, WINDOWS_BETWEEN_TRIALS, together_s=0.5, alone_s=1.0)
    assert ways.count(True) == 1


def test_a_small_difference_changes_nothing():
    ways = play(RoundTimer(), 4 * WINDOWS_BETWEEN_TRIALS, together_s=1.0, alone_s=0.97)
    assert ways.count(True) == 3


@compiled
def add(words: np.ndarray, value: int) -> int:
    return fetch_add(words, 1, value)


@compiled
def swap(words: np.ndarray, expected: int, value: int) -> bool:
    return swap_if(words, 1, expected, value)


def test_adding_in_one_step_returns_what_was_there():
    words = np.array([7, 5, 7])
    assert add(words, 3) == 5
    assert add(words, -1) == 8
    assert words.tolist() == [7, 7, 7]


@pytest.mark.parametrize(("expected", "is_swapped", "left"), [(5, True, 9), (4, False, 5)])
def test_a_swap_happens_only_where_the_expected_value_is(expected, is_swapped, left):
    words = np.array([0, 5, 0])
    assert swap(words, expected, 9) is is_swapped
    assert words.tolist() == [0, left, 0]
