"""Scores of episodes for level replay, worked out by hand."""

import numpy as np
import pytest

from stepladder.errors import RecordError
from stepladder.stats.level_scores import (
    generalized_advantages,
    max_monte_carlo,
    mean_abs_advantage,
    positive_value_loss,
)

REWARDS, VALUES = [0.0, 0.0, 1.0], [0.4, 0.8, 0.5]
# With discount 0.5 the one-step errors are 0 + 0.5·0.8 - 0.4 = 0, 0 + 0.5·0.5 - 0.8 = -0.55 and
# 1 + 0.5·last - 0.5, which is 0.5 at an end and 0.6 before a state worth 0.2.


def test_advantages_of_three_steps_by_hand():
    # Each is its own error plus 0.5·0.8 = 0.4 times the next one's: 0.5; -0.55 + 0.2 = -0.35;
    # 0 - 0.14 = -0.14.
    advantages = generalized_advantages(REWARDS, VALUES, gamma=0.5, gae_lambda=0.8)
    assert advantages.tolist() == pytest.approx([-0.14, -0.35, 0.5])


def test_an_episode_that_was_cut_off_counts_what_was_still_to_come():
    # 0.6; -0.55 + 0.24 = -0.31; -0.124.
    advantages = generalized_advantages(REWARDS, VALUES, 0.2, gamma=0.5, gae_lambda=0.8)
    assert advantages.tolist() == pytest.approx([-0.124, -0.31, 0.6])


def test_without_a_look_ahead_advantages_are_one_step_errors():
    advantages = generalized_advantages(REWARDS, VALUES, gamma=0.5, gae_lambda=0.0)
    assert advantages.tolist() == pytest.approx([0.0, -0.55, 0.5])


def test_with_the_whole_look_ahead_advantages_are_returns_less_values():
    # Returns 0.25, 0.5, 1.
    advantages = generalized_advantages(REWARDS, VALUES, gamma=0.5, gae_lambda=1.0)
    assert advantages.tolist() == pytest.approx([-0.15, -0.3, 0.5])


def test_the_three_scores_of_one_episode_by_hand():
    advantages = [-0.14, -0.35, 0.5]
    assert mean_abs_advantage(advantages) == pytest.approx(0.99 / 3)
    assert positive_value_loss(advantages) == pytest.approx(0.5 / 3)
    # (0.5 + 0.1 + 0.4) / 3.
    assert max_monte_carlo(VALUES, best_return=0.9) == pytest.approx(1.0 / 3)


def test_an_agent_that_expects_too_much_scores_below_zero():
    assert max_monte_carlo([1.0, 2.0], best_return=0.5) == pytest.approx(-1.0)
    assert positive_value_loss([-1.0, -2.0]) == 0.0


def test_what_is_not_one_episode_is_refused():
    with pytest.raises(RecordError, match=r"rewards have shape \[2, 2\]"):
        generalized_advantages(np.zeros((2, 2)), [0.0])
    with pytest.raises(RecordError, match="there are 2 rewards and 3 values"):
        generalized_advantages([0.0, 0.0], [0.0, 0.0, 0.0])
    with pytest.raises(RecordError, match=r"advantages have shape \[0\]"):
        mean_abs_advantage([])
    with pytest.raises(RecordError, match=r"advantages have shape \[0\]"):
        positive_value_loss([])
    with pytest.raises(RecordError, match=r"values have shape \[\]"):
        max_monte_carlo(1.0, best_return=1.0)
    with pytest.raises(RecordError, match="values must be numbers"):
        max_monte_carlo(["high"], best_return=1.0)
