"""Devices and memory that a config asks for, checked before memory is taken.

Called where memories and networks are made: a system may hand out more than it has, and end the
process much later.
"""

import math
import os
from itertools import pairwise
from typing import Any

import torch
from gymnasium.spaces import Space

from stepladder.agents.choices import choices_of
from stepladder.agents.config import AgentConfig
from stepladder.agents.observations import Layout
from stepladder.errors import ConfigError

NUM_COPIES = 10
"""Times that the weights of a network lie in memory: several networks, gradients, moments."""

FLOAT_BYTES = 4


def checked_device(device: str | torch.device) -> torch.device:
    """Return a device that exists; "auto" is CUDA where there is one."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ConfigError(
            f"device must be 'cpu', 'cuda', 'cuda:1' or 'auto'; got {device!r}."
        ) from error
    if chosen.type not in ("cpu", "cuda"):
        raise ConfigError(f"device must be 'cpu', 'cuda', 'cuda:1' or 'auto'; got {device!r}.")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device is {str(device)!r}, and torch sees {torch.cuda.device_count()} CUDA devices. "
            "Use 'cpu' or 'auto'."
        )
    return chosen


def require_room(num_bytes: int, what: str, fix: str, device: torch.device | None = None) -> None:
    """Raise if something is larger than all the memory that there is.

    Raises:
        ConfigError: It is.
    """
    there = _memory_of(device)
    if num_bytes > there:
        raise ConfigError(
            f"{what} would take {_in_words(num_bytes)}, and there are {_in_words(there)}. {fix}"
        )


def require_room_for_networks(
    config: AgentConfig, layout: Layout, action_space: Space[Any], device: torch.device
) -> None:
    """Raise if the networks of an agent are larger than the memory.

    Raises:
        ConfigError: They are.
    """
    choices = choices_of(action_space)
    num_outputs = math.prod(action_space.shape or (1,)) if choices is None else choices.num_options
    widths = config.layer_widths(layout.num_features, num_outputs)
    num_weights = sum(one * two for one, two in pairwise(widths))
    require_room(
        config.largest_encoder_layer(layout) * FLOAT_BYTES * NUM_COPIES,
        "convolutions over the observations",
        "Lower channels or features of vision.",
        device,
    )
    require_room(
        num_weights * FLOAT_BYTES * NUM_COPIES,
        f"networks with the layers {list(widths)}",
        "Lower hidden_sizes.",
        device,
    )


def _memory_of(device: torch.device | None) -> int:
    if device is not None and device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        # Not known here; no machine has more.
        return 2**44


def _in_words(num_bytes: int) -> str:
    size = num_bytes / 2**30 if num_bytes < 2**1000 else math.inf
    return f"{size:,.3g} GiB"
