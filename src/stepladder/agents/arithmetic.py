"""The formulas of the agents as pure functions of tensors.

Called by `dddqn`, `sac` and `ppo`. The tests compare them with numbers worked out by hand.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0
"""Bounds of the logarithm of a policy's spread."""

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def dueling_values(value: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
    """Return action values from a state value and the actions' advantages.

    The mean advantage is subtracted, which makes the two parts unique (Wang et al. 2016).
    """
    return value + advantages - advantages.mean(-1, keepdim=True)


def double_q_targets(
    rewards: torch.Tensor,
    discounts: torch.Tensor,
    next_online: torch.Tensor,
    next_target: torch.Tensor,
) -> torch.Tensor:
    """Return targets for action values (van Hasselt et al. 2016).

    Args:
        rewards: Summed over the steps of a transition.
        discounts: Of the value after it; 0 where the episode terminated.
        next_online: Action values or advantages of the next state, from the network in training;
            they select the action.
        next_target: Action values of the next state, from the target network; they evaluate it.
    """
    best = next_online.argmax(-1, keepdim=True)
    return rewards + discounts * next_target.gather(-1, best).squeeze(-1)


def squashed_sample(
    mean: torch.Tensor, log_std: torch.Tensor, noise: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return actions in (-1, 1) and the logarithm of their density.

    Args:
        mean: Of a normal distribution, before squashing.
        log_std: Logarithm of its spread, within bounds.
        noise: Draws of a standard normal distribution.
    """
    raw = mean + log_std.exp() * noise
    # log(1 - tanh(x)^2), in a form that stays exact at large x.
    squash = 2.0 * (math.log(2.0) - raw - F.softplus(-2.0 * raw))
    log_probs = (-0.5 * noise.square() - log_std - HALF_LOG_TWO_PI - squash).sum(-1)
    return raw.tanh(), log_probs


def soft_targets(
    rewards: torch.Tensor,
    discounts: torch.Tensor,
    next_values: torch.Tensor,
    next_log_probs: torch.Tensor,
    temperature: torch.Tensor,
) -> torch.Tensor:
    """Return targets for the critics: the lower of two values, plus weighted entropy.

    Args:
        rewards: Summed over the steps of a transition.
        discounts: Of the value after it; 0 where the episode terminated.
        next_values: Of both target critics, of shape ``(2, batch)``.
        next_log_probs: Of the action chosen in the next state.
        temperature: Weight of entropy.
    """
    return rewards + discounts * (next_values.amin(0) - temperature * next_log_probs)


def log_softmax(logits: torch.Tensor) -> torch.Tensor:
    """Return the logarithm of the softmax over the last axis."""
    if logits.device.type != "cpu" or logits.ndim < 2:
        return logits.log_softmax(-1)
    # Over few columns torch takes a fifth of the time if they lie apart.
    return logits.movedim(-1, 0).contiguous().log_softmax(0).movedim(0, -1)


def normal_log_probs(
    actions: torch.Tensor, mean: torch.Tensor, log_std: torch.Tensor
) -> torch.Tensor:
    """Return the log density of independent normal numbers, summed per row."""
    scaled = (actions - mean) * (-log_std).exp()
    return -0.5 * scaled.square().sum(-1) - (log_std + HALF_LOG_TWO_PI).sum(-1)


def normal_entropy(log_std: torch.Tensor) -> torch.Tensor:
    """Return the summed entropy of independent normal numbers."""
    return (log_std + 0.5 + HALF_LOG_TWO_PI).sum(-1)


@torch.no_grad()
def advantages_of(
    rewards: torch.Tensor,
    values: torch.Tensor,
    terminated: torch.Tensor,
    ended: torch.Tensor,
    gamma: float,
    gae_lambda: float,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return generalised advantages of a rollout (Schulman et al. 2016).

    Args:
        rewards: Of shape ``(steps, envs)``.
        values: Of the observations of each step and, in the last row, of those after the last
            step; of shape ``(steps + 1, envs)``. With next-step autoreset the row after the end of
            an episode holds its last observation, whose value a truncated episode needs.
        terminated: Whether the episode terminated: the value after it is 0.
        ended: Whether it terminated or was truncated: advantages do not reach past it.
        gamma: Discount.
        gae_lambda: How far advantages look ahead, in [0, 1].
        out: Is filled and returned, if it is given.
    """
    deltas = rewards + gamma * values[1:] * (~terminated) - values[:-1]
    carry = (gamma * gae_lambda) * (~ended).float()
    if out is None:
        out = torch.empty_like(deltas)
    out.copy_(deltas)
    if out.device.type != "cpu":
        for step in range(len(out) - 2, -1, -1):
            out[step].addcmul_(carry[step], out[step + 1])
        return out
    # With few numbers per step, a NumPy call takes a tenth of the time of a torch call.
    # An overflow makes the loss infinite, which stops the training with an error.
    there, carried = out.numpy(), carry.numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(len(there) - 2, -1, -1):
            there[step] += carried[step] * there[step + 1]
    return out


def weighted_mean(numbers: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
    """Return the mean of numbers by weights of 0 and 1; all count without any weights.

    Where none counts it is 0. Nothing waits for the device.
    """
    if weights is None:
        return numbers.mean()
    return (numbers * weights).sum() / weights.sum().clamp_min(1.0)


def clipped_policy_loss(
    log_probs: torch.Tensor,
    old_log_probs: torch.Tensor,
    advantages: torch.Tensor,
    clip: float,
    weights: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return PPO's loss (Schulman et al. 2017), and the probability ratios."""
    ratios = (log_probs - old_log_probs).exp()
    clipped = ratios.clamp(1.0 - clip, 1.0 + clip)
    losses = torch.minimum(ratios * advantages, clipped * advantages)
    return -weighted_mean(losses, weights), ratios


def squared_error(
    values: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the mean squared error."""
    if weights is None:
        return F.mse_loss(values, targets)
    return weighted_mean((values - targets).square(), weights)


def standardised(numbers: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
    """Scale numbers to mean 0 and standard deviation 1; a single one, or equal ones, to 0.

    Those of weight 0 do not count; what becomes of them does not matter.
    """
    if weights is None:
        if len(numbers) < 2:
            return torch.zeros_like(numbers)
        return (numbers - numbers.mean()) / (numbers.std() + 1e-8)
    count = weights.sum()
    around = (numbers - weighted_mean(numbers, weights)) * weights
    spread = (around.square().sum() / (count - 1.0).clamp_min(1.0)).sqrt()
    return around / (spread + 1e-8)
