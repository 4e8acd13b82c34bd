"""The networks of the agents: layers, heads, and how weights begin.

Built by `dddqn`, `sac` and `ppo` from what `observations` lays out. Weights begin from a generator
that is handed in; torch's own is not touched.

Gradients can be computed by hand (`keep`, then `back`, which writes into the parameters' ``grad``):
a graph for autograd takes twice as long to build and follow as a small network, and adds a tenth to
a large one. Autograd gives the same where it is needed.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import torch
from torch import nn

from stepladder.agents.arithmetic import LOG_STD_MAX, LOG_STD_MIN, dueling_values
from stepladder.agents.observations import Encoder, Layout, Seen

Kept = list[torch.Tensor]
"""What goes into every layer of a network, first to last, and what comes out in the end."""

IN_PLACE: dict[type[nn.Module], Callable[[torch.Tensor], torch.Tensor]] = {
    nn.ReLU: torch.relu_,
    nn.Tanh: torch.tanh_,
}
"""Activations that need no memory of their own; their gradients are made of what they return."""


def through_relu(gradient: torch.Tensor, returned: torch.Tensor) -> torch.Tensor:
    """Return the gradient before a ReLU, given the gradient after it and what it returned."""
    return gradient * returned.sign()


def through_tanh(gradient: torch.Tensor, returned: torch.Tensor) -> torch.Tensor:
    """Return the gradient before a tanh, given the gradient after it and what it returned."""
    return torch.addcmul(gradient, gradient, returned * returned, value=-1.0)


THROUGH: dict[type[nn.Module], Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    nn.ReLU: through_relu,
    nn.Tanh: through_tanh,
}
"""Gradients before activations, of those after them and of what they returned."""


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

    def back(self, inputs: torch.Tensor, gradient: torch.Tensor) -> None:
        """Write the gradients of weight and bias, given that of what came out."""
        torch.mm(gradient.t(), inputs, out=self.weight.grad)
        torch.sum(gradient, 0, out=self.bias.grad)

    def to_inputs(self, gradient: torch.Tensor) -> torch.Tensor:
        """Return the gradient of what went in."""
        return gradient @ self.weight


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
        self._through = THROUGH[activation]

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return what comes out of the last layer."""
        # Not part by part: to call a module takes as long as to compute a small one.
        for layer in self._layers:
            input = self._activate(nn.functional.linear(input, layer.weight, layer.bias))
        return input

    def keep(self, inputs: torch.Tensor) -> Kept:
        """Return the inputs, and what comes out of every layer."""
        kept = [inputs]
        for layer in self._layers:
            kept.append(self._activate(nn.functional.linear(kept[-1], layer.weight, layer.bias)))
        return kept

    def back(self, kept: Kept, gradient: torch.Tensor) -> None:
        """Write the gradients of all weights, given that of what came out."""
        for index in range(len(self._layers) - 1, -1, -1):
            layer, gradient = self._layers[index], self._through(gradient, kept[index + 1])
            layer.back(kept[index], gradient)
            if index:
                gradient = layer.to_inputs(gradient)


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


class Headed(nn.Module):
    """Hidden layers on what is seen, and a last one for all that is to be said about it.

    Args:
        layout: Of what is seen.
        num_outputs: Columns of the last layer.
        widths: Of the hidden ones.
        is_normalised: Whether numbers are brought to mean 0 and spread 1.
        generator: What weights are drawn from.
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
        self.trunk = trunk(self.encoder.num_features, widths, nn.ReLU, generator)
        self.heads = Linear(widths[-1], num_outputs, 0.1, generator)

    def said(self, features: torch.Tensor) -> torch.Tensor:
        """Return what the last layer says about features."""
        return self.heads(self.trunk(features))

    def keep(self, features: torch.Tensor) -> Kept:
        """Return the same as the last of all that `back` needs."""
        kept = self.trunk.keep(features)
        return [*kept, self.heads(kept[-1])]

    def back(self, kept: Kept, gradient: torch.Tensor) -> None:
        """Write the gradients of all weights, given that of what was said."""
        self.heads.back(kept[-2], gradient)
        self.trunk.back(kept[:-1], self.heads.to_inputs(gradient))


class DuelingNetwork(Headed):
    """Action values out of a state's value and its actions' advantages (Wang et al. 2016)."""

    def __init__(
        self,
        layout: Layout,
        num_actions: int,
        widths: Sequence[int],
        is_normalised: bool,
        generator: torch.Generator,
    ):
        # One layer for both heads: the first column is the value.
        super().__init__(layout, 1 + num_actions, widths, is_normalised, generator)

    def forward(self, seen: Seen) -> torch.Tensor:
        """Return action values of shape ``(rows, num_actions)``."""
        heads = self.said(self.encoder(seen))
        return dueling_values(heads[..., :1], heads[..., 1:])

    def advantages(self, seen: Seen) -> torch.Tensor:
        """Return the actions' advantages: the largest is that of the best action."""
        return self.said(self.encoder(seen))[..., 1:]


class GaussianActor(Headed):
    """Mean and spread of an action, of what is seen; to be squashed."""

    def __init__(
        self,
        layout: Layout,
        num_dims: int,
        widths: Sequence[int],
        is_normalised: bool,
        generator: torch.Generator,
    ):
        super().__init__(layout, 2 * num_dims, widths, is_normalised, generator)

    def forward(self, seen: Seen) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mean and logarithm of the spread, each of shape ``(rows, num_dims)``."""
        return spread_of(self.said(self.encoder(seen)))


def spread_of(heads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and logarithm of the spread, the latter within bounds."""
    mean, log_std = heads.chunk(2, dim=-1)
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
        return self.keep(inputs)[-1]

    def keep(self, inputs: torch.Tensor) -> Kept:
        """Return the same as the last of all that `back` and `to_inputs` need."""
        kept, last = [inputs.expand(2, *inputs.shape)], len(self.weights) - 1
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = torch.baddbmm(bias, kept[-1], weight)
            kept.append(hidden.relu_() if index < last else hidden.squeeze(-1))
        return kept

    def back(self, kept: Kept, gradient: torch.Tensor) -> None:
        """Write the gradients of all weights, given that of the values."""
        for index, slopes in self._backwards(kept, gradient):
            torch.bmm(kept[index].mT, slopes, out=self.weights[index].grad)
            torch.sum(slopes, 1, keepdim=True, out=self.biases[index].grad)

    def to_inputs(self, kept: Kept, gradient: torch.Tensor) -> torch.Tensor:
        """Return the gradient of what went in, of shape ``(rows, num_in)``."""
        *_, (_, slopes) = self._backwards(kept, gradient)
        return torch.bmm(slopes, self.weights[0].mT).sum(0)

    def _backwards(self, kept: Kept, gradient: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield every layer, last to first, and the gradient of what it computed."""
        gradient = gradient.unsqueeze(-1)
        for index in range(len(self.weights) - 1, -1, -1):
            yield index, gradient
            if index:
                before = torch.bmm(gradient, self.weights[index].mT)
                gradient = through_relu(before, kept[index])
