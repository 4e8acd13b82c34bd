"""Actions that are choices: one of several, or several at once.

`ppo` draws the choices of an action independently; `dddqn` has a value for each combination.
`Discrete` is one choice, `MultiDiscrete` several, `MultiBinary` several of two.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Discrete, MultiBinary, MultiDiscrete, Space

from stepladder.errors import ConfigError

MAX_COMBINATIONS = 4_096
"""Combinations of choices that each can have a value of its own."""

ABSENT_LOGIT = -1e9
"""Logit of an option that does not exist: its probability is 0, and its entropy too."""


class Choices:
    """The choices that one action consists of.

    Args:
        space: Of the actions.
    """

    def __init__(self, space: Discrete | MultiDiscrete | MultiBinary):
        start: Any = 0
        if isinstance(space, Discrete):
            sizes, start = np.array([space.n]), space.start
        elif isinstance(space, MultiDiscrete):
            sizes, start = space.nvec.reshape(-1), space.start
        else:
            sizes = np.full(int(np.prod(space.shape)), 2)
        self.sizes: tuple[int, ...] = tuple(int(size) for size in sizes)
        """Options of each choice."""
        self.is_single = isinstance(space, Discrete)
        self._start, self._shape, self._dtype = start, tuple(space.shape or ()), space.dtype
        self._widest = max(self.sizes)

    @property
    def num_options(self) -> int:
        """Options of all choices together."""
        return sum(self.sizes)

    @property
    def num_combinations(self) -> int:
        """Different actions."""
        return math.prod(self.sizes)

    @property
    def highest(self) -> torch.Tensor:
        """The largest index of an option, for each choice."""
        return torch.tensor(self.sizes, dtype=torch.float64) - 1.0

    # Independent choices, drawn from the outputs of a network.

    def logits(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs by choice and option, of shape ``(rows, choices, widest)``."""
        if len(set(self.sizes)) == 1:
            return outputs.unflatten(-1, (len(self.sizes), self._widest))
        parts = [
            torch.nn.functional.pad(part, (0, self._widest - part.shape[-1]), value=ABSENT_LOGIT)
            for part in outputs.split(self.sizes, dim=-1)
        ]
        return torch.stack(parts, dim=-2)

    # From indices to what the env takes, and back.

    def to_env(self, indices: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return actions, given the index of the option of each choice."""
        if self.is_single:
            return indices + self._start
        shaped = indices.reshape(len(indices), *self._shape)
        return (shaped + self._start).astype(self._dtype)

    def taken(self, indices: torch.Tensor) -> torch.Tensor:
        """Do what `to_env` does, in torch."""
        if self.is_single:
            return indices + self._start
        return indices.reshape(-1, *self._shape) + torch.as_tensor(self._start)

    def taken_combinations(self, numbers: torch.Tensor) -> torch.Tensor:
        """Do what `from_combinations` does, in torch."""
        if self.is_single:
            return numbers + self._start
        return self.taken(torch.stack(torch.unravel_index(numbers, self.sizes), dim=1))

    def from_combinations(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return actions, given the number of a combination in each row."""
        if self.is_single:
            return numbers + self._start
        return self.to_env(np.stack(np.unravel_index(numbers, self.sizes), axis=1))

    def to_combinations(self, actions: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the number of the combination in each row, given actions."""
        indices = np.asarray(actions) - self._start
        if self.is_single:
            return indices
        columns = indices.reshape(len(indices), -1).astype(np.int64).T
        return np.asarray(np.ravel_multi_index(tuple(columns), self.sizes), dtype=np.int64)


def choices_of(space: Space[Any]) -> Choices | None:
    """Return the choices of a space of actions; None if its actions are no choices."""
    if isinstance(space, Discrete | MultiDiscrete | MultiBinary):
        return Choices(space)
    return None


def combinations_of(space: Space[Any], agent: str) -> Choices:
    """Return the choices of a space whose combinations are few enough to have a value each.

    Raises:
        ConfigError: They are too many, or its actions are no choices.
    """
    choices = choices_of(space)
    if choices is None:
        raise ConfigError(
            f"{agent} needs actions that are choices (Discrete, MultiDiscrete, MultiBinary); got "
            f"{space}. Use SAC or PPO, or an env with discrete actions."
        )
    if choices.num_combinations > MAX_COMBINATIONS:
        raise ConfigError(
            f"{agent} has a value for each combination of choices, at most {MAX_COMBINATIONS:,}; "
            f"{space} has {choices.num_combinations:,}. Use PPO."
        )
    return choices
