"""All that an agent needs to continue exactly: plain JSON, and tensors by name.

Made and restored by `base`; `training.checkpoints` writes and reads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

WEIGHTS_PREFIX = "weights/"
"""Prefix of the tensors of a state that are needed to act."""

LOSSES_PREFIX = "losses/"
"""Prefix of figures that `take_losses` has not returned yet."""


@dataclass
class AgentState:
    """Everything that an agent needs to continue exactly."""

    numbers: dict[str, Any]
    """Plain JSON."""

    tensors: dict[str, torch.Tensor] = field(default_factory=dict[str, torch.Tensor])
    """By name; those that are needed to act begin with "weights/"."""


def named_below(prefix: str, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors whose names begin with a prefix, by the rest of their names."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
