"""A network of the user's own that turns observations into features.

One of the `encoders`. It is found by its name, which the description of an agent keeps, made with
the observation space and the arguments of the config, and tried once. It is always in eval mode:
dropout would draw from torch's global generator, and statistics of batches would differ between
acting and learning.
"""

from typing import Any

import torch
from gymnasium.spaces import Dict, Space
from torch import nn

from stepladder.agents.network_config import NetworkConfig
from stepladder.agents.observations import Encoder, Layout, ObservationPart, Seen
from stepladder.errors import ConfigError
from stepladder.named import find_function

NETWORK_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a network raises when it or its arguments are wrong; other exceptions pass."""

NUM_TRIED = 2
"""Rows of the trial."""


class OwnEncoder(Encoder):
    """A user's network, given observations as the env has them.

    Args:
        layout: Of the observations.
        config: Names the network.
        generator: Source of the seed of its initial weights.

    Raises:
        ConfigError: It cannot be found, made or used.
    """

    learns = True
    is_own = True

    def __init__(self, layout: Layout, config: NetworkConfig, generator: torch.Generator):
        super().__init__(layout, config.normalise_observations)
        assert config.encoder is not None
        self._layout, self._name = layout, config.encoder
        self.network = _made(config, layout.space, generator)
        self.num_features = self._tried()

    def train(self, mode: bool = True) -> "OwnEncoder":
        """Set the mode of all but the network, which stays in eval mode."""
        super().train(mode)
        if "network" in self._modules:
            self.network.eval()
        return self

    def join(self, prepared: Seen) -> torch.Tensor:
        """Return features of what `prepare` returned."""
        lead = prepared.numbers.shape[:-1]
        rows = Seen(*(part.flatten(0, -2) for part in prepared))
        features = self.network(self._as_seen(rows))
        wanted = (len(rows.numbers), self.num_features)
        if features.shape != wanted:
            raise ConfigError(
                f"encoder {self._name!r} returned features of shape {list(features.shape)} for "
                f"{wanted[0]} rows; in its trial they were {wanted[1]} per row. Return "
                "as many for any number of rows."
            )
        return features.unflatten(0, lead)

    def _as_seen(self, rows: Seen) -> Any:
        """Return observations in the form that the env gives them, as tensors."""
        layout = self._layout
        parts = {
            part.key: _unpacked(part, packed, layout.frame_stack)
            for placed, packed in ((layout.numbers, rows.numbers), (layout.codes, rows.codes))
            for part in placed
        }
        return parts if isinstance(layout.space, Dict) else parts[""]

    def _tried(self) -> int:
        """Return how many features there are per row, after a trial."""
        layout, name = self._layout, self._name
        rows = Seen(
            torch.zeros(NUM_TRIED, layout.num_numbers),
            torch.zeros(NUM_TRIED, layout.num_codes, dtype=torch.uint8),
        )
        parameters = {
            key: parameter for key, parameter in self.network.named_parameters()
            if parameter.requires_grad
        }  # fmt: skip
        try:
            features = self.network(self._as_seen(rows))
        except NETWORK_ERRORS as error:
            raise ConfigError(
                f"encoder {name!r} failed with {NUM_TRIED} rows of observations: "
                f"{_in_one_line(error)} Fix its forward."
            ) from error
        is_tensor = isinstance(features, torch.Tensor)
        is_rows = is_tensor and features.ndim == 2 and len(features) == NUM_TRIED
        if not is_rows or features.dtype != torch.float32 or not features.shape[1]:
            found = f"something of type {type(features).__name__}"
            if is_tensor:
                found = f"{str(features.dtype)[6:]} of shape {list(features.shape)}"
            raise ConfigError(
                f"encoder {name!r} must return float32 of shape (rows, features), here "
                f"({NUM_TRIED}, …); got {found}. Fix its forward."
            )
        unused = [
            key for key, gradient in zip(parameters, _gradients(features, parameters), strict=True)
            if gradient is None
        ]  # fmt: skip
        if unused:
            raise ConfigError(
                f"encoder {name!r} has the weights {unused[0]!r}, which its features do not depend "
                "on, so they cannot be trained. Remove them, or set requires_grad to False."
            )
        return features.shape[1]


def _made(config: NetworkConfig, space: Space[Any], generator: torch.Generator) -> nn.Module:
    """Return the network that a config names, with weights that depend on the generator alone."""
    found = find_function(str(config.encoder), "a torch.nn.Module that encodes observations")
    seed = int(torch.randint(2**62, (), generator=generator))
    # Layers of torch draw their weights from its global generator, which must stay as it is.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        try:
            network = found(space, **config.encoder_kwargs)
        except NETWORK_ERRORS as error:
            raise ConfigError(
                f"encoder {config.encoder!r} cannot be made with the observation space and "
                f"encoder_kwargs {config.encoder_kwargs}: {_in_one_line(error)} Correct "
                "encoder_kwargs, or its __init__."
            ) from error
    if not isinstance(network, nn.Module):
        raise ConfigError(
            f"encoder {config.encoder!r} must make a torch.nn.Module; it made something of type "
            f"{type(network).__name__}. Derive it from torch.nn.Module."
        )
    for name, parameter in network.named_parameters():
        if parameter.dtype != torch.float32 or parameter.device.type != "cpu":
            raise ConfigError(
                f"encoder {config.encoder!r} must have weights of float32 on the CPU, from which "
                f"they are moved; {name!r} is {parameter.dtype} on {parameter.device}."
            )
    return network.eval()


def _gradients(features: torch.Tensor, parameters: dict[str, nn.Parameter]) -> Any:
    if not parameters or not features.requires_grad:
        return [None] * len(parameters)
    return torch.autograd.grad(features.sum(), list(parameters.values()), allow_unused=True)


def _unpacked(part: ObservationPart, packed: torch.Tensor, frame_stack: int) -> torch.Tensor:
    """Return one part of observations: numbers as floats, bytes as bytes, other codes as integers.

    Its shape is that of the env, after rows and, if there are several, frames.
    """
    frames = packed.unflatten(-1, (frame_stack, -1))[..., part.columns]
    lead = frames.shape[:2] if frame_stack > 1 else frames.shape[:1]
    values = frames.reshape(*lead, *part.shape)
    is_bytes = not part.kinds or (part.grid is not None and not part.is_shifted)
    if is_bytes:
        return values
    start = torch.as_tensor(part.start, device=values.device)
    return values.long() + start


def _in_one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text.rstrip('.')}."
