"""What shows no change: trials, their lengths, and what is left of a task's worth."""

import numpy as np

from stepladder.compiled import compiled
from stepladder.curricula.pooled.stuck import FIRST_TRIAL, MAX_STUCK, Trial, watch, worth


@compiled
def watch_all(trials, values):
    for value in values:
        watch(trials[0], value)
    return worth(trials[0])


def watched(values) -> tuple[float, np.void]:
    trials = Trial.zeros()
    return watch_all(trials, np.asarray(values, dtype=float)), trials[0]


def test_two_equal_trials_by_hand():
    half = [1.0, 0.0] * (FIRST_TRIAL // 2)
    left, trial = watched(half)
    assert (left, trial["num_trials"], trial["level"]) == (1.0, 1, 0.5)
    # The second has the same rate: half of the worth is left, and the next is twice as long.
    left, trial = watched(half * 2)
    assert (left, trial["num_stuck"], trial["num_doublings"]) == (0.5, 1, 1)
    left, trial = watched(half * 3)
    assert (left, trial["plays"]) == (0.5, FIRST_TRIAL)
    left, trial = watched(half * 4)
    assert (left, trial["num_doublings"]) == (0.25, 2)


def test_a_change_gives_all_worth_back():
    half = [1.0, 0.0] * (FIRST_TRIAL // 2)
    # The trial after two equal ones is twice as long.
    left, trial = watched([*half, *half, *[1.0] * (2 * FIRST_TRIAL)])
    assert (left, trial["num_stuck"], trial["num_doublings"]) == (1.0, 0, 1)


def test_what_never_or_always_succeeds_is_not_stuck():
    for value in (0.0, 1.0):
        assert watched([value] * 10_000)[0] == 1.0


def test_a_coin_fades_and_a_slow_learner_finds_the_length_of_its_trials():
    rng = np.random.default_rng(0)
    coin, trial = watched(rng.random(100_000) < 0.5)
    assert coin < 0.05
    assert trial["num_stuck"] <= MAX_STUCK
    # From 0.2 to 0.8 in a hundred thousand plays: no trial of 32 plays shows it.
    slow, trial = watched(rng.random(100_000) < np.linspace(0.2, 0.8, 100_000))
    assert slow >= 0.5
    assert trial["num_doublings"] >= 4
