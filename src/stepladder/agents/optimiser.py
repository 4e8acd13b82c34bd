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


class Adam:
    """Follows gradients until one is not finite.

    Args:
        parameters: The weights to train, already on their device.
        learning_rate: Step size.
        eps: Keeps steps finite where gradients vanish.
        max_grad_norm: Longer gradients are scaled down to this length; None scales none.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        learning_rate: float,
        *,
        eps: float = 1e-8,
        max_grad_norm: float | None = None,
    ):
        self.learning_rate = learning_rate
        """Step size; a recorded update (`repetition`) keeps the one it was recorded with."""
        self._eps, self._max_grad_norm = eps, max_grad_norm
        self._parameters = [one for one in parameters if one.requires_grad]
        self._by_column = [lies_by_column(parameter) for parameter in self._parameters]
        self.weights = flatten_parameters(self._parameters)
        """All weights in one row; writing to it changes the network."""
        self._gradient = torch.zeros_like(self.weights)
        self._state = {
            "means": torch.zeros_like(self.weights),
            "squares": torch.zeros_like(self.weights),
            "num_steps": torch.zeros((), device=self.weights.device),
        }
        # 1 after a gradient that was not finite. On the device: reading it waits for that.
        self._stopped = torch.zeros((), device=self.weights.device)

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
                    (part.t() if by_column else part).reshape(-1)
                    for part, by_column in zip(parts, self._by_column, strict=True)
                ],
                out=self._gradient,
            )
            length = torch.linalg.vector_norm(self._gradient)
            self._stopped.masked_fill_(~length.isfinite(), 1.0)
            if self._max_grad_norm is not None:
                # As torch.nn.utils.clip_grad_norm_ does.
                self._gradient.mul_((self._max_grad_norm / (length + 1e-6)).clamp_max_(1.0))
            adam(
                [self.weights],
                [self._gradient],
                [self._state["means"]],
                [self._state["squares"]],
                [],
                [self._state["num_steps"]],
                fused=True,
                # Nothing is changed where this is 1. A branch would wait for the device.
                found_inf=self._stopped,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self.learning_rate,
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
