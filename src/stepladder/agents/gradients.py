"""Gradients by formula: what autograd would compute, in fewer operations.

Called by `ppo` (through `actor_critic`), `dddqn` and `networks`; `arithmetic` has the losses
themselves. With small networks and batches the graph that autograd builds and walks through takes
longer than the arithmetic. Measured end to end on one built-in game, as env steps per CPU second
against autograd with the same optimiser: 1.34 to 1.61 times for PPO with minibatches of 64, 1.28 to
1.47 times for DDDQN with batches of 32, 0.94 to 1.12 times for PPO with minibatches of 1,024
(`benchmarks/agents_gradients.py`; docs/benchmarks.md has the table).

Below 1.3 times a formula is not worth its lines: SAC uses autograd (0.92 to 1.08 times), and so
does a recurrent PPO inside its network. The tests compare each formula with autograd.
"""

import torch


def through_relu(gradient: torch.Tensor, returned: torch.Tensor) -> torch.Tensor:
    """Return the gradient before a ReLU, given the gradient after it and what it returned."""
    # The sign is 0 or 1. Comparing and selecting takes five times as long on a CPU.
    return gradient * returned.sign()


def through_tanh(gradient: torch.Tensor, returned: torch.Tensor) -> torch.Tensor:
    """Return the gradient before a tanh, given the gradient after it and what it returned."""
    return torch.addcmul(gradient, gradient, returned * returned, value=-1.0)


@torch.no_grad()
def dueling_gradient(slopes: torch.Tensor, actions: torch.Tensor, num_actions: int) -> torch.Tensor:
    """Return the gradient of a loss with respect to a state value and its actions' advantages.

    Args:
        slopes: Of the loss with respect to the value of the chosen action, of shape ``(rows,)``.
        actions: The chosen actions, of shape ``(rows, 1)``.
        num_actions: How many there are.

    Returns:
        Of shape ``(rows, 1 + num_actions)``. The value of an action is the state value plus the
        action's advantage minus the mean of all advantages.
    """
    shares = torch.full((len(slopes), 1 + num_actions), -1.0 / num_actions, device=slopes.device)
    shares[:, 0] = 1.0
    shares.scatter_add_(1, actions + 1, torch.ones_like(actions, dtype=shares.dtype))
    return shares.mul_(slopes[:, None])


@torch.no_grad()
def clipped_policy_slopes(
    ratios: torch.Tensor, advantages: torch.Tensor, clip: float
) -> torch.Tensor:
    """Return the gradient of `clipped_policy_loss` with respect to log-probabilities.

    Args:
        ratios: New probabilities divided by old ones.
        advantages: Of the actions.
        clip: How far a ratio may leave 1.
    """
    gains = ratios * advantages
    counts = gains <= ratios.clamp(1.0 - clip, 1.0 + clip) * advantages
    return gains.mul_(counts).div_(-len(gains))


@torch.no_grad()
def choice_gradient(
    log_probs: torch.Tensor, actions: torch.Tensor, slopes: torch.Tensor, entropy_slope: float
) -> torch.Tensor:
    """Return the gradient of a loss with respect to the logits of discrete actions.

    Args:
        log_probs: Of all actions, of shape ``(rows, num_actions)``.
        actions: The chosen ones, of shape ``(rows,)``.
        slopes: Of the loss with respect to the log-probabilities of the chosen ones.
        entropy_slope: Of the loss with respect to the entropy of each row.
    """
    probs = log_probs.exp()
    entropies = -(probs * log_probs).sum(-1, keepdim=True)
    # Gradient of an entropy H with respect to logit j: -p_j (log p_j + H).
    gradient = (log_probs + entropies).mul_(-entropy_slope).sub_(slopes[:, None]).mul_(probs)
    return gradient.scatter_add_(1, actions[:, None], slopes[:, None])


@torch.no_grad()
def normal_gradient(
    actions: torch.Tensor, mean: torch.Tensor, log_std: torch.Tensor, slopes: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of a loss with respect to mean and `log_std` of `normal_log_probs`.

    Args:
        actions: The chosen ones, of shape ``(rows, columns)``.
        mean: Of their distribution, of the same shape.
        log_std: Logarithm of its spread, of shape ``(columns,)``.
        slopes: Of the loss with respect to the log-probabilities, of shape ``(rows,)``.
    """
    narrow = (-log_std).exp()
    scaled = (actions - mean).mul_(narrow)
    by_slope = scaled * slopes[:, None]
    return by_slope * narrow, scaled.mul_(by_slope).sum(0).sub_(slopes.sum())
