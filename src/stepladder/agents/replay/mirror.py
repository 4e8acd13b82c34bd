"""A mirror symmetry of an env, for agents that learn from mirrored transitions too.

Made by `training` for envs that have one, applied by `memory` to half of its samples. Actions are
mirrored with the observations: signs for continuous ones, another index for discrete ones.
"""

from collections.abc import Sequence

import torch

from stepladder.agents.observations import Seen


class Mirror:
    """A symmetry of an env.

    Args:
        number_signs: 1 or -1 for every observed number.
        action_signs: 1 or -1 for every number of a continuous action; None for discrete ones.
        action_swaps: The mirrored action of each discrete one.
        device: Where transitions are.
    """

    def __init__(
        self,
        number_signs: Sequence[float],
        *,
        action_signs: Sequence[float] | None = None,
        action_swaps: Sequence[int] | None = None,
        device: torch.device | str = "cpu",
    ):
        self._number_signs = torch.tensor(number_signs, dtype=torch.float32, device=device)
        self._action_signs = self._action_swaps = None
        if action_signs is not None:
            self._action_signs = torch.tensor(action_signs, dtype=torch.float32, device=device)
        if action_swaps is not None:
            self._action_swaps = torch.tensor(action_swaps, dtype=torch.float32, device=device)

    def seen(self, seen: Seen, flips: torch.Tensor) -> Seen:
        """Return observations, mirrored in some rows; `flips` has shape ``(rows, 1)``."""
        return seen._replace(
            numbers=torch.where(flips, seen.numbers * self._number_signs, seen.numbers)
        )

    def actions(self, actions: torch.Tensor, flips: torch.Tensor) -> torch.Tensor:
        """Return actions, mirrored in the same rows."""
        if self._action_swaps is not None:
            swapped = self._action_swaps[actions.long()]
        else:
            swapped = actions if self._action_signs is None else actions * self._action_signs
        return torch.where(flips, swapped, actions)
