"""The networks of the agents: layers, heads, and initial weights.

Built by `dddqn`, `sac` and `ppo` on the features that `observations` encodes. Initial weights are
drawn from a generator that is passed in; torch's global one is not used.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import nn

from stepladder.agents.arithmetic import (
    LOG_STD_MAX,
    LOG_STD_MIN,
    dueling_values,
    squashed_sample,
)
from stepladder.agents.networks.coded import Coded, by_column, coded_linear
from stepladder.agents.observations import Encoder, Seen

ACTIVATIONS: dict[str, tuple[type[nn.Module], Callable[[torch.Tensor], torch.Tensor]]] = {
    "relu": (nn.ReLU, torch.relu_),
    "tanh": (nn.Tanh, torch.tanh_),
}
"""By their names in configs: the module, and the function, which works in place."""


class Linear(nn.Module):
    """A linear layer with orthogonal initial weights (Saxe et al. 2014).

    Args:
        num_in: Input columns.
        num_out: Output columns.
        gain: Initial length of the weights' rows.
        generator: Source of the initial weights.
        reads_codes: Whether the weights lie in memory as `coded` reads them.
    """

    def __init__(
        self,
        num_in: int,
        num_out: int,
        gain: float,
        generator: torch.Generator,
        *,
        reads_codes: bool = False,
    ):
        super().__init__()
        weight = orthogonal(num_in, num_out, gain, generator)
        self.weight = nn.Parameter(by_column(weight) if reads_codes else weight)
        self.bias = nn.Parameter(torch.zeros(num_out))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return ``inputs @ weight.T + bias``."""
        return nn.functional.linear(inputs, self.weight, self.bias)


def orthogonal(num_in: int, num_out: int, gain: float, generator: torch.Generator) -> torch.Tensor:
    """Return weights of shape ``(num_out, num_in)`` whose shorter side is orthogonal."""
    shape = (max(num_in, num_out), min(num_in, num_out))
    basis, upper = torch.linalg.qr(torch.randn(shape, generator=generator))
    basis = basis * upper.diagonal().sign()
    return gain * (basis if num_out >= num_in else basis.T).contiguous()


class Trunk(nn.Sequential):
    """Hidden layers with an activation after each.

    Args:
        num_in: Input columns.
        widths: Output columns of each layer.
        activation: A key of `ACTIVATIONS`.
        generator: Source of the initial weights.
        reads_codes: Whether the first layer may get codes as they are.
    """

    def __init__(
        self,
        num_in: int,
        widths: Sequence[int],
        activation: str,
        generator: torch.Generator,
        *,
        reads_codes: bool = False,
    ):
        module, self._activation = ACTIVATIONS[activation]
        layers = [
            Linear(*pair, math.sqrt(2.0), generator, reads_codes=reads_codes and not index)
            for index, pair in enumerate(pairwise([num_in, *widths]))
        ]
        super().__init__(*(part for layer in layers for part in (layer, module())))
        self._layers = layers

    def forward(self, input: torch.Tensor | Coded) -> torch.Tensor:
        """Return the output of the last layer."""
        # Functions, not modules: calling a module takes as long as computing a small one.
        first, *others = self._layers
        if isinstance(input, Coded):
            hidden = coded_linear(input, first.weight, first.bias)
        else:
            hidden = nn.functional.linear(input, first.weight, first.bias)
        hidden = self._activation(hidden)
        for layer in others:
            hidden = self._activation(nn.functional.linear(hidden, layer.weight, layer.bias))
        return hidden


class HeadedNetwork(nn.Module):
    """An encoder, hidden layers, and one last layer for all outputs.

    Args:
        encoder: Turns observations into features.
        num_outputs: Columns of the last layer.
        widths: Columns of the hidden layers.
        generator: Source of the initial weights.
    """

    def __init__(
        self,
        encoder: Encoder,
        num_outputs: int,
        widths: Sequence[int],
        generator: torch.Generator,
    ):
        super().__init__()
        self.encoder = encoder
        self.trunk = Trunk(
            self.encoder.num_features, widths, "relu", generator, reads_codes=encoder.gives_codes
        )
        self.heads = Linear(widths[-1], num_outputs, 0.1, generator)

    def outputs(self, features: torch.Tensor | Coded) -> torch.Tensor:
        """Return the output of the last layer."""
        return self.heads(self.trunk(features))


class DuelingNetwork(HeadedNetwork):
    """Action values from a state value and the actions' advantages (Wang et al. 2016).

    The first output is the state value, the others are the advantages.
    """

    def forward(self, seen: Seen) -> torch.Tensor:
        """Return action values of shape ``(rows, num_actions)``."""
        heads = self.outputs(self.encoder.inputs(self.encoder.prepare(seen)))
        return dueling_values(heads[..., :1], heads[..., 1:])

    def advantages(self, seen: Seen) -> torch.Tensor:
        """Return the actions' advantages; the best action has the largest one."""
        return self.outputs(self.encoder.inputs(self.encoder.prepare(seen)))[..., 1:]


class GaussianActor(HeadedNetwork):
    """Mean and spread of a squashed normal distribution over actions.

    The first half of the outputs are means, the second half logarithms of spreads.
    """

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the mean and the logarithm of the spread, each of shape ``(rows, num_dims)``."""
        mean, log_std = self.outputs(features).chunk(2, dim=-1)
        return mean, log_std.clamp(LOG_STD_MIN, LOG_STD_MAX)

    def sample(
        self, features: torch.Tensor, noise: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return actions in (-1, 1) and their log densities; see `squashed_sample`."""
        mean, log_std = self(features)
        return squashed_sample(mean, log_std, noise)


class TwinCritic(nn.Module):
    """Two critics of state and action, computed with batched products.

    Args:
        num_in: Columns of state and action together.
        widths: Columns of the hidden layers.
        generator: Source of the initial weights.
    """

    def __init__(self, num_in: int, widths: Sequence[int], generator: torch.Generator):
        super().__init__()
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for before, after in pairwise([num_in, *widths, 1]):
            gain = 1.0 if after == 1 else math.sqrt(2.0)
            pair = [orthogonal(before, after, gain, generator).T for _ in range(2)]
            self.weights.append(nn.Parameter(torch.stack(pair)))
            self.biases.append(nn.Parameter(torch.zeros(2, 1, after)))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return values of shape ``(2, rows)``."""
        hidden, last = inputs.expand(2, *inputs.shape), len(self.weights) - 1
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = torch.baddbmm(bias, hidden, weight)
            if index < last:
                hidden = hidden.relu_()
        return hidden.squeeze(-1)
