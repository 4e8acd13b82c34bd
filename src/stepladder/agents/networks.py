"""The networks of the agents: layers, heads, and how weights begin.

Built by `dddqn`, `sac` and `ppo` from what `observations` lays out. Weights begin from a generator
that is handed in; torch's own is not touched.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import nn

from stepladder.agents.arithmetic import LOG_STD_MAX, LOG_STD_MIN, dueling_values
from stepladder.agents.observations import Encoder, Layout, Seen

IN_PLACE: dict[type[nn.Module], Callable[[torch.Tensor], torch.Tensor]] = {
    nn.ReLU: torch.relu_,
    nn.Tanh: torch.tanh_,
}
"""Activations that need no memory of their own; their gradients are made of what they return."""


class Linear(nn.Module):
    """A linear layer that begins orthogonal (Saxe et al. 2014).

    Args:
        num_in: Columns in.
        num_out: Columns out.
        gain: Length of its rows at first.
        generator: What weights are drawn from.
    """

    def __init__(self, num_in: int, num_out: int, gain: float, generator: torch.Generator):
        super().__init__()
        self.weight = nn.Parameter(orthogonal(num_in, num_out, gain, generator))
        self.bias = nn.Parameter(torch.zeros(num_out))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return ``inputs @ weight + bias``."""
        return nn.functional.linear(inputs, self.weight, self.bias)


def orthogonal(num_in: int, num_out: int, gain: float, generator: torch.Generator) -> torch.Tensor:
    """Return weights of shape ``(num_out, num_in)`` whose shorter side is orthogonal."""
    shape = (max(num_in, num_out), min(num_in, num_out))
    basis, upper = torch.linalg.qr(torch.randn(shape, generator=generator))
    basis = basis * upper.diagonal().sign()
    return gain * (basis if num_out >= num_in else basis.T).contiguous()


class Trunk(nn.Sequential):
    """Hidden layers with an activation after each."""

    def __init__(self, layers: Sequence["Linear"], activation: type[nn.Module]):
        super().__init__(*(part for layer in layers for part in (layer, activation())))
        self._layers, self._activate = list(layers), IN_PLACE[activation]

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return what comes out of the last layer."""
        # Not part by part: to call a module takes as long as to compute a small one.
        for layer in self._layers:
            inputs = self._activate(nn.functional.linear(inputs, layer.weight, layer.bias))
        return inputs


def trunk(
    num_in: int,
    widths: Sequence[int],
    activation: type[nn.Module],
    generator: torch.Generator,
) -> Trunk:
    """Return hidden layers with an activation after each."""
    sizes = [num_in, *widths]
    layers = [Linear(*pair, math.sqrt(2.0), generator) for pair in pairwise(sizes)]
    return Trunk(layers, activation)


class DuelingNetwork(nn.Module):
    """Action values out of a state's value and its actions' advantages (Wang et al. 2016)."""

    def __init__(
        self,
        layout: Layout,
        num_actions: int,
        widths: Sequence[int],
        is_normalised: bool,
        generator: torch.Generator,
    ):
        super().__init__()
        self.encoder = Encoder(layout, is_normalised)
        self.trunk = trunk(self.encoder.num_features, widths, nn.ReLU, generator)
        # One layer for both heads: the first column is the value.
        self.heads = Linear(widths[-1], 1 + num_actions, 0.1, generator)

    def forward(self, seen: Seen) -> torch.Tensor:
        """Return action values of shape ``(rows, num_actions)``."""
        heads = self.both(seen)
        return dueling_values(heads[..., :1], heads[..., 1:])

    def both(self, seen: Seen) -> torch.Tensor:
        """Return the state's value and after it the actions' advantages."""
        return self.heads(self.trunk(self.encoder(seen)))

    def best(self, seen: Seen) -> torch.Tensor:
        """Return the best action of every row: that of the largest advantage."""
        return self.both(seen)[..., 1:].argmax(-1)


class GaussianActor(nn.Module):
    """Mean and spread of an action, of what is seen; to be squashed."""

    def __init__(
        self,
        layout: Layout,
        num_dims: int,
        widths: Sequence[int],
        is_normalised: bool,
        generator: torch.Generator,
    ):
        super().__init__()
        self.encoder = Encoder(layout, is_normalised)
        self.trunk = trunk(self.encoder.num_features, widths, nn.ReLU, generator)
        self.heads = Linear(widths[-1], 2 * num_dims, 0.1, generator)

    def forward(self, seen: Seen) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mean and logarithm of the spread, each of shape ``(rows, num_dims)``."""
        return self.of_features(self.encoder(seen))

    def of_features(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Do the same with what the encoder has made of it."""
        mean, log_std = self.heads(self.trunk(features)).chunk(2, dim=-1)
        return mean, log_std.clamp(LOG_STD_MIN, LOG_STD_MAX)


class TwinCritic(nn.Module):
    """Two critics of state and action, computed as one: a batched product is two in one call."""

    def __init__(self, num_in: int, widths: Sequence[int], generator: torch.Generator):
        super().__init__()
        sizes = [num_in, *widths, 1]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for before, after in pairwise(sizes):
            gain = 1.0 if after == 1 else math.sqrt(2.0)
            pair = [orthogonal(before, after, gain, generator).T for _ in range(2)]
            self.weights.append(nn.Parameter(torch.stack(pair)))
            self.biases.append(nn.Parameter(torch.zeros(2, 1, after)))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return values of shape ``(2, rows)``."""
        return twin_values(inputs, list(self.weights), list(self.biases))

    def frozen(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the same, through which gradients flow to the inputs only."""
        weights = [weight.detach() for weight in self.weights]
        return twin_values(inputs, weights, [bias.detach() for bias in self.biases])


def twin_values(
    inputs: torch.Tensor, weights: Sequence[torch.Tensor], biases: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Return the values of both critics, of shape ``(2, rows)``."""
    hidden = inputs.expand(2, *inputs.shape)
    last = len(weights) - 1
    for index, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        hidden = torch.baddbmm(bias, hidden, weight)
        if index < last:
            hidden = hidden.relu_()
    return hidden.squeeze(-1)
