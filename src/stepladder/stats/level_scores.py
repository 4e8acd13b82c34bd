"""What an episode scores for level replay, from the value estimates of the agent that played it.

For trainers: they have rewards and values, which a curriculum never sees, and hand the scores to
`LevelReplay.report_scores`. `mean_abs_advantage` is the score of Jiang, Grefenstette and
Rocktäschel 2021; `positive_value_loss` and `max_monte_carlo` are those of Jiang et al. 2021. All
take one episode. `envs.score_reporter` computes the first two for whole rollouts, in which episodes
begin and end anywhere; one that spans several rollouts is scored once, over all of its steps.
"""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Floats
from stepladder.errors import RecordError


def generalized_advantages(
    rewards: npt.ArrayLike,
    values: npt.ArrayLike,
    last_value: float = 0.0,
    *,
    gamma: float = 0.99,
    gae_lambda: float = 0.95,
) -> Floats:
    """Return the generalised advantage estimate of every step of one episode.

    Args:
        rewards: Reward of each step, shape ``(num_steps,)``.
        values: The agent's value of the observation before each step, same shape.
        last_value: Value of the observation after the last step; 0 if the episode terminated.
        gamma: Discount.
        gae_lambda: Weight of later errors; 0 gives the one-step errors alone.

    Example:
        >>> generalized_advantages([0.0, 1.0], [0.5, 0.5], gamma=1.0, gae_lambda=0.5).tolist()
        [0.25, 0.5]
    """
    reward_list, value_list = _steps(rewards, "rewards"), _steps(values, "values")
    if len(reward_list) != len(value_list):
        raise RecordError(
            f"there are {len(reward_list)} rewards and {len(value_list)} values. "
            "Give one value for each reward."
        )
    errors = reward_list + gamma * np.append(value_list[1:], last_value) - value_list
    advantages = np.empty_like(errors)
    running = 0.0
    for step in range(len(errors) - 1, -1, -1):
        running = errors[step] + gamma * gae_lambda * running
        advantages[step] = running
    return advantages


def mean_abs_advantage(advantages: npt.ArrayLike) -> float:
    """Return the mean absolute advantage of an episode: how wrong the values were, either way.

    Example:
        >>> mean_abs_advantage([0.5, -1.0, 0.0])
        0.5
    """
    return float(np.mean(np.abs(_steps(advantages, "advantages"))))


def positive_value_loss(advantages: npt.ArrayLike) -> float:
    """Return the mean of an episode's advantages with negative ones counted as 0.

    Where the episode went better than expected, there is something to learn; where it went worse,
    the expectation was wrong.

    Example:
        >>> positive_value_loss([0.5, -1.0, 0.25])
        0.25
    """
    return float(np.mean(np.maximum(_steps(advantages, "advantages"), 0.0)))


def max_monte_carlo(values: npt.ArrayLike, best_return: float) -> float:
    """Return how far an episode's values lie, on average, below the best return of its task.

    Below 0 if the agent expects more than was ever reached; `report_scores` takes that for 0.

    Args:
        values: The agent's value of each observation of the episode, shape ``(num_steps,)``.
        best_return: Highest return of the task so far; `LevelReplay.best_returns` has it.

    Example:
        >>> max_monte_carlo([0.25, 0.75], best_return=1.0)
        0.5
    """
    return float(np.mean(best_return - _steps(values, "values")))


STEP_SCORES: Mapping[str, Callable[[npt.ArrayLike], float]] = {
    "value_loss": mean_abs_advantage,
    "positive_value_loss": positive_value_loss,
}
"""Scores that follow from an episode's advantages alone, by the names that configs use."""


def _steps(numbers: npt.ArrayLike, name: str) -> Floats:
    try:
        array = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RecordError(f"{name} must be numbers ({error}). Give one for each step.") from error
    if array.ndim != 1 or not len(array):
        raise RecordError(
            f"{name} have shape {list(array.shape)}; expected one number for each step of one "
            "episode that has any. Score episodes one by one."
        )
    return array
