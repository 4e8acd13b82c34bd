"""The network that chooses actions: the one part of an agent that a player needs.

Every agent has a policy; `player` lets it play with saved weights, on any device, for any number
of rows.
"""

from abc import abstractmethod
from typing import Any

import numpy.typing as npt
import torch
from torch import nn

from stepladder.agents.networks.normalising import ReturnNormaliser
from stepladder.agents.observations import Seen
from stepladder.errors import ConfigError


class Policy(nn.Module):
    """A network that chooses actions.

    Those of the built-in agents are made with the layout of the observations, the action space, the
    settings, and the generator of the initial weights.
    """

    def __init__(self):
        super().__init__()
        self.rewards: ReturnNormaliser | None = None
        """What rewards are divided by in learning; it is saved with the weights."""

    def first_memory(self, num_rows: int) -> torch.Tensor:
        """Return the memory of rows that begin an episode; by default nothing is remembered."""
        return torch.zeros(num_rows, 0, device=next(self.parameters()).device)

    @abstractmethod
    def act(
        self, seen: Seen, memory: torch.Tensor, generator: torch.Generator, deterministic: bool
    ) -> tuple[npt.NDArray[Any], torch.Tensor]:
        """Choose an action in every row, as the env takes it.

        Args:
            seen: What each row sees.
            memory: Of each row, shape ``(rows, ...)``.
            generator: Source of random numbers.
            deterministic: Whether to take the best action rather than draw one.

        Returns:
            The actions, and the memory after this step.
        """

    def best_actions(self, seen: Seen, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the best action of every row as the env takes it, and the memory after this step.

        In torch alone, so that it can be exported; `act` with `deterministic` does the same.

        Raises:
            ConfigError: This kind of policy cannot be exported.
        """
        raise ConfigError(
            f"{type(self).__name__} cannot be exported: it has no best_actions. Add this method to "
            "the class, or use predict."
        )
