"""The networks of the agents: layers, heads, and initial weights.

Built by `dddqn`, `sac` and `ppo` on the features that `observations` encodes. Initial weights are
drawn from a generator that is passed in; torch's global one is not used.

All networks work with autograd. Those of `dddqn` and `ppo` also have gradients by hand: `trace`
returns the output of each layer, `write_gradients` computes the gradients from these and writes
them into the parameters' ``grad``. `gradients` says what this gains.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import nn

from stepladder.agents.arithmetic import (
    LOG_STD_MAX,
    LOG_STD_MIN,
    dueling_values,
    squashed_sample,
)
from stepladder.agents.gradients import through_relu, through_tanh
from stepladder.agents.observations import Encoder, Layout, Seen

Trace = list[torch.Tensor]
"""The input of a network and the outputs of its layers, first to last."""


class Activation(NamedTuple):
    """An activation and its gradient, which needs only what the activation returned."""

    module: type[nn.Module]

    apply: Callable[[torch.Tensor], torch.Tensor]
    """Works in place."""

    through: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    """Gradient before the activation, given the gradient after it and its output."""


ACTIVATIONS = {
    "relu": Activation(nn.ReLU, torch.relu_, through_relu),
    "tanh": Activation(nn.Tanh, torch.tanh_, through_tanh),
}
"""By their names in configs."""


class Linear(nn.Module):
    """A linear layer with orthogonal initial weights (Saxe et al. 2014).

    Args:
        num_in: Input columns.
        num_out: Output columns.
        gain: Initial length of the weights' rows.
        generator: Source of the initial weights.
    """

    def __init__(self, num_in: int, num_out: int, gain: float, generator: torch.Generator):
        super().__init__()
        self.weight = nn.Parameter(orthogonal(num_in, num_out, gain, generator))
        self.bias = nn.Parameter(torch.zeros(num_out))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return ``inputs @ weight.T + bias``."""
        return nn.functional.linear(inputs, self.weight, self.bias)

    def write_gradients(self, inputs: torch.Tensor, gradient: torch.Tensor) -> None:
        """Write the gradients of weight and bias, given the gradient of the output."""
        torch.mm(gradient.t(), inputs, out=self.weight.grad)
        torch.sum(gradient, 0, out=self.bias.grad)

    def input_gradient(self, gradient: torch.Tensor) -> torch.Tensor:
        """Return the gradient of the input, given the gradient of the output."""
        return gradient @ self.weight


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
    """

    def __init__(
        self,
        num_in: int,
        widths: Sequence[int],
        activation: str,
        generator: torch.Generator,
    ):
        sizes, used = pairwise([num_in, *widths]), ACTIVATIONS[activation]
        layers = [Linear(*pair, math.sqrt(2.0), generator) for pair in sizes]
        super().__init__(*(part for one in layers for part in (one, used.module())))
        self._layers, self._activation = layers, used

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return the output of the last layer."""
        return self.trace(input)[-1]

    def trace(self, inputs: torch.Tensor) -> Trace:
        """Return the inputs and the output of each layer."""
        trace = [inputs]
        # Functions, not modules: calling a module takes as long as computing a small one.
        for layer in self._layers:
            outputs = nn.functional.linear(trace[-1], layer.weight, layer.bias)
            trace.append(self._activation.apply(outputs))
        return trace

    def write_gradients(self, trace: Trace, gradient: torch.Tensor) -> None:
        """Write the gradients of all weights, given the gradient of the output."""
        for index in reversed(range(len(self._layers))):
            layer = self._layers[index]
            gradient = self._activation.through(gradient, trace[index + 1])
            layer.write_gradients(trace[index], gradient)
            if index:
                gradient = layer.input_gradient(gradient)


class HeadedNetwork(nn.Module):
    """An encoder, hidden layers, and one last layer for all outputs.

    Args:
        layout: How observations are laid out.
        num_outputs: Columns of the last layer.
        widths: Columns of the hidden layers.
        is_normalised: Whether numbers are scaled to mean 0 and standard deviation 1.
        generator: Source of the initial weights.
    """

    def __init__(
        self,
        layout: Layout,
        num_outputs: int,
        widths: Sequence[int],
        is_normalised: bool,
        generator: torch.Generator,
    ):
        super().__init__()
        self.encoder = Encoder(layout, is_normalised)
        self.trunk = Trunk(self.encoder.num_features, widths, "relu", generator)
        self.heads = Linear(widths[-1], num_outputs, 0.1, generator)

    def outputs(self, features: torch.Tensor) -> torch.Tensor:
        """Return the output of the last layer."""
        return self.heads(self.trunk(features))

    def trace(self, features: torch.Tensor) -> Trace:
        """Return the features and the output of each layer, the last included."""
        trace = self.trunk.trace(features)
        return [*trace, self.heads(trace[-1])]

    def write_gradients(self, trace: Trace, gradient: torch.Tensor) -> None:
        """Write the gradients of all weights, given the gradient of the output."""
        self.heads.write_gradients(trace[-2], gradient)
        self.trunk.write_gradients(trace[:-1], self.heads.input_gradient(gradient))


class DuelingNetwork(HeadedNetwork):
    """Action values from a state value and the actions' advantages (Wang et al. 2016).

    The first output is the state value, the others are the advantages.
    """

    def forward(self, seen: Seen) -> torch.Tensor:
        """Return action values of shape ``(rows, num_actions)``."""
        heads = self.outputs(self.encoder(seen))
        return dueling_values(heads[..., :1], heads[..., 1:])

    def advantages(self, seen: Seen) -> torch.Tensor:
        """Return the actions' advantages; the best action has the largest one."""
        return self.outputs(self.encoder(seen))[..., 1:]


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
