"""Torch's fused Adam (Kingma and Ba 2015) over all weights of a network as one tensor.

Used by all agents. The weights move into one flat tensor; the network's parameters become views of
it. So a step, clipping included, is a few operations instead of a few per layer, and a gradient
that is not finite is detected by its length.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim.adam import adam

from stepladder.agents.saved_values import TensorSpec, check_state

CUDA_PARTS = 32
"""Parts of the weights that a GPU steps side by side; of one tensor it steps 65,536 at a time, on
as many of its processors as that makes."""


class Adam:
    """Follows gradients until one is not finite.

    Args:
        parameters: The weights to train, already on their device.
        learning_rate: Step size.
        eps: Keeps steps finite where gradients vanish.
        max_grad_norm: Longer gradients are scaled down to this length; None scales none.
        num_parts: In how many parts the weights take a step; by default 1, on a GPU `CUDA_PARTS`.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        learning_rate: float,
        *,
        eps: float = 1e-8,
        max_grad_norm: float | None = None,
        num_parts: int | None = None,
    ):
        self._eps, self._max_grad_norm = eps, max_grad_norm
        self._parameters = [one for one in parameters if one.requires_grad]
        self._by_column = [lies_by_column(parameter) for parameter in self._parameters]
        self.weights = flatten_parameters(self._parameters)
        """All weights in one row; writing to it changes the network."""
        self._gradient = torch.zeros_like(self.weights)
        is_cuda = self.weights.device.type == "cuda"
        if num_parts is None:
            num_parts = CUDA_PARTS if is_cuda else 1
        # Every part counts its own steps; they are all the same.
        self._num_steps = torch.zeros(num_parts, device=self.weights.device)
        self._state = {
            "means": torch.zeros_like(self.weights),
            "squares": torch.zeros_like(self.weights),
            "num_steps": self._num_steps[0],
        }
        tensors = self.weights, self._gradient, self._state["means"], self._state["squares"]
        weights, gradients, means, squares = (list(one.tensor_split(num_parts)) for one in tensors)
        self._parts = weights, gradients, means, squares
        self._rate: float | torch.Tensor = learning_rate
        if is_cuda:
            # A recorded update (`repetition`) reads it again every time.
            self._rate = torch.tensor(learning_rate, device=self.weights.device)
        self._learning_rate = learning_rate
        # 1 after a gradient that was not finite. On the device: reading it waits for that.
        self._stopped = torch.zeros((), device=self.weights.device)

    @property
    def learning_rate(self) -> float:
        """Step size."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._learning_rate = rate
        if isinstance(self._rate, torch.Tensor):
            self._rate.fill_(rate)
        else:
            self._rate = rate

    @property
    def num_steps(self) -> int:
        """Steps so far. Waits for the device."""
        return int(self._state["num_steps"].item())

    @property
    def has_stopped(self) -> bool:
        """Whether a gradient was not finite; weights are frozen since. Waits for the device."""
        return bool(self._stopped.item())

    def minimise(self, loss: torch.Tensor) -> None:
        """Do one step along the gradient of a loss.

        From the first gradient on whose length is not finite, nothing changes any more: weights and
        moments stay as the last good update left them.
        """
        parts = torch.autograd.grad(loss, self._parameters)
        with torch.no_grad():
            torch.cat(
                [
                    (one.t() if by_column else one).reshape(-1)
                    for one, by_column in zip(parts, self._by_column, strict=True)
                ],
                out=self._gradient,
            )
            length = torch.linalg.vector_norm(self._gradient)
            # Nothing times a number that is not finite is no number, which counts as 1.
            self._stopped.add_(length, alpha=0.0).nan_to_num_(nan=1.0)
            if self._max_grad_norm is not None:
                # As torch.nn.utils.clip_grad_norm_ does.
                self._gradient.mul_((self._max_grad_norm / (length + 1e-6)).clamp_max_(1.0))
            weights, gradients, means, squares = self._parts
            adam(
                weights,
                gradients,
                means,
                squares,
                [],
                list(self._num_steps.unbind()),
                fused=True,
                # Nothing is changed where this is 1. A branch would wait for the device.
                found_inf=self._stopped,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self._rate,
                weight_decay=0.0,
                eps=self._eps,
                maximize=False,
            )

    def state_dict(self) -> dict[str, Any]:
        """Return moments and step count; the tensors are the optimiser's own."""
        return dict(self._state)

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise unless `load_state_dict` can load a state."""
        lows = {"means": -math.inf, "squares": 0.0, "num_steps": 0.0}
        specs = [TensorSpec.like(name, own, low=lows[name]) for name, own in self._state.items()]
        check_state(state, specs)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; an optimiser that has stopped runs again."""
        self.check_state(state)
        for name, tensor in self._state.items():
            tensor.copy_(state[name])
        self._num_steps.fill_(state["num_steps"])
        self._stopped.zero_()


def lies_by_column(matrix: torch.Tensor) -> bool:
    """Return whether a matrix lies column by column in memory, and not row by row."""
    return matrix.ndim == 2 and not matrix.is_contiguous() and matrix.t().is_contiguous()


def flatten_parameters(parameters: Sequence[nn.Parameter]) -> torch.Tensor:
    """Move parameters into one flat tensor, which they become views of; return it.

    Each keeps its order in memory.
    """
    views = [
        parameter.detach().t() if lies_by_column(parameter) else parameter.detach()
        for parameter in parameters
    ]
    flat = torch.cat([view.reshape(-1) for view in views])
    parts = flat.split([view.numel() for view in views])
    for parameter, view, part in zip(parameters, views, parts, strict=True):
        placed = part.view_as(view)
        parameter.data = placed.t() if lies_by_column(parameter) else placed
    return flat
