"""Running means and spreads: of observed numbers, and of discounted returns.

`observations` divides numbers by theirs, the agents divide rewards by that of the returns (as
Stable-Baselines3's VecNormalize and Gymnasium's NormalizeReward do). What has been met so far lies
in buffers of the policy, so that it is saved with its weights.
"""

from collections.abc import Mapping

import torch
from torch import nn

CLIP = 10.0
"""Normalised numbers are clipped to this."""

LARGEST_SEEN = 3.5e38
"""Above the largest number of 32 bits, the type of observations."""

LARGEST_COUNT = 2.0**53
"""Above any number of rows."""

SMALLEST_SPREAD = 1e-4
"""Lower limit of the spread that numbers are divided by."""

SavedBounds = Mapping[str, tuple[float | torch.Tensor, float | torch.Tensor]]
"""Lowest and highest values in a saved state, by the name of a tensor."""


def new_moments(width: int) -> tuple[torch.Tensor, SavedBounds]:
    """Return room for the moments of so many columns, and the bounds of moments and spread.

    Count, mean and sum of squared deviations, in double: they run for millions of rows.
    """
    moments = torch.zeros(2 * width + 1, dtype=torch.float64)
    lowest = torch.zeros_like(moments)
    lowest[1 : 1 + width] = -LARGEST_SEEN
    highest = torch.full_like(moments, LARGEST_SEEN**2 * LARGEST_COUNT)
    highest[0], highest[1 : 1 + width] = LARGEST_COUNT, LARGEST_SEEN
    spread = (SMALLEST_SPREAD, LARGEST_SEEN)
    return moments, {"spread": spread, "moments": (lowest, highest)}


def add_rows(moments: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Include rows in moments, in place, after Chan et al. 1983; return mean and spread."""
    width = rows.shape[1]
    rows = rows.double()
    count, mean, squares = moments[0], moments[1 : 1 + width], moments[1 + width :]
    num_new, mean_new = len(rows), rows.mean(0)
    total = count + num_new
    shift = mean_new - mean
    squares += ((rows - mean_new) ** 2).sum(0) + shift**2 * (count * num_new / total)
    mean += shift * (num_new / total)
    count.copy_(total)
    return mean, (squares / total).sqrt().clamp_min(SMALLEST_SPREAD)


class ReturnNormaliser(nn.Module):
    """The spread of the discounted returns that were met so far; part of a policy."""

    spread: torch.Tensor
    moments: torch.Tensor
    saved_bounds: SavedBounds

    def __init__(self):
        super().__init__()
        moments, self.saved_bounds = new_moments(1)
        self.register_buffer("moments", moments)
        self.register_buffer("spread", torch.ones(1))

    @torch.no_grad()
    def add(self, returns: torch.Tensor) -> None:
        """Include the returns of some rows."""
        if len(returns):
            self.spread.copy_(add_rows(self.moments, returns[:, None])[1])

    def scaled(self, rewards: torch.Tensor) -> torch.Tensor:
        """Return rewards divided by the spread, and clipped."""
        return (rewards / self.spread).clamp(-CLIP, CLIP)
