"""The error of a training that diverges: what is not finite, since when, and what helps.

Made by `base` when a loss, a gradient or a weight is not finite; `training` adds the last good
checkpoint.
"""

from dataclasses import dataclass

from stepladder.errors import DivergenceError

LARGE_REWARD = 1e4
"""Rewards beyond this are the likely cause."""

LARGE_OBSERVATION = 1e4
"""Observations beyond this are, where rewards are not."""


@dataclass(frozen=True)
class Extent:
    """How large the numbers are that an agent learns from."""

    reward: float
    """Largest absolute value of a reward in memory, scaled as it is learnt from."""

    observation: float
    """Largest absolute value of an observed number."""


def divergence(update: int, what: str, extent: Extent, learning_rate: float) -> DivergenceError:
    """Return the error that says what is not finite, and what to change.

    Args:
        update: Number of the update that could not be done, from 1.
        what: What is not finite, such as "the loss 'value' is inf".
        extent: How large the numbers in the agent's memory are.
        learning_rate: As it is set.
    """
    if not extent.reward <= LARGE_REWARD:
        fix = "Lower reward_scale until rewards are about 1."
    elif not extent.observation <= LARGE_OBSERVATION:
        fix = "Set normalise_observations of the agent, or scale the observations."
    else:
        fix = f"Lower learning_rate of the agent (now {learning_rate:g})."
    error = DivergenceError(
        f"update {update}: {what}, so the training cannot go on. Rewards in memory are up to "
        f"{extent.reward:.3g} after scaling, observations up to {extent.observation:.3g}. {fix}"
    )
    error.update = update
    return error
