"""Gradients of losses with respect to what a network says, each a formula.

Beside `arithmetic`, which has the losses themselves; called by `dddqn`, `sac` and `actor_critic`.
Between a small network and its loss lie thirty operations on a few numbers, through which autograd
takes longer than through the network.
"""

import torch


@torch.no_grad()
def dueling_gradient(slopes: torch.Tensor, actions: torch.Tensor, num_actions: int) -> torch.Tensor:
    """Return the gradient with respect to a state's value and its actions' advantages.

    Args:
        slopes: Of the loss with respect to the value of the action that was taken.
        actions: That were taken, of shape ``(rows, 1)``.
        num_actions: How many there are.

    Returns:
        Of shape ``(rows, 1 + num_actions)``: the value of an action is the state's value plus its
        own advantage, less the mean of all advantages.
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
        ratios: Of probabilities, new by old.
        advantages: Of the actions.
        clip: How far ratios count.
    """
    gains = ratios * advantages
    counts = gains <= ratios.clamp(1.0 - clip, 1.0 + clip) * advantages
    return gains.mul_(counts).div_(-len(gains))


@torch.no_grad()
def choice_gradient(
    log_probs: torch.Tensor, actions: torch.Tensor, slopes: torch.Tensor, entropy_slope: float
) -> torch.Tensor:
    """Return the gradient with respect to the logits of choices.

    Args:
        log_probs: Of all actions, of shape ``(rows, num_actions)``.
        actions: That were taken, of shape ``(rows,)``.
        slopes: Of the loss with respect to the log-probabilities of those.
        entropy_slope: Of the loss with respect to the entropy of each row.
    """
    probs = log_probs.exp()
    entropies = -(probs * log_probs).sum(-1, keepdim=True)
    # Of an entropy H with respect to logit j: -p_j (log p_j + H).
    gradient = (log_probs + entropies).mul_(-entropy_slope).sub_(slopes[:, None]).mul_(probs)
    return gradient.scatter_add_(1, actions[:, None], slopes[:, None])


@torch.no_grad()
def normal_gradient(
    actions: torch.Tensor, mean: torch.Tensor, log_std: torch.Tensor, slopes: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of `normal_log_probs` with respect to the mean and the log of spread.

    Args:
        actions: That were taken, of shape ``(rows, columns)``.
        mean: Of their distribution, likewise.
        log_std: Logarithm of its spread, of shape ``(columns,)``.
        slopes: Of the loss with respect to the log-probabilities, of shape ``(rows,)``.
    """
    narrow = (-log_std).exp()
    scaled = (actions - mean).mul_(narrow)
    by_slope = scaled * slopes[:, None]
    return by_slope * narrow, scaled.mul_(by_slope).sum(0).sub_(slopes.sum())


@torch.no_grad()
def squashed_gradient(
    by_action: torch.Tensor,
    actions: torch.Tensor,
    log_std: torch.Tensor,
    noise: torch.Tensor,
    entropy_weight: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients with respect to mean and log of spread, through `squashed_sample`.

    Args:
        by_action: Gradient of the loss with respect to the actions.
        actions: In (-1, 1).
        log_std: Logarithm of the spread before squashing.
        noise: From which the actions were made.
        entropy_weight: Slope of the loss with respect to the logarithm of each row's density.
    """
    # The density of a squashed number grows as -log(1 - tanh^2), whose slope is 2 tanh.
    by_raw = by_action * (1.0 - actions.square()) + 2.0 * entropy_weight * actions
    return by_raw, by_raw * noise * log_std.exp() - entropy_weight
