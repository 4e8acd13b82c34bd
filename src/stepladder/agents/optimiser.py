"""Torch's fused Adam (Kingma and Ba 2015) over all weights of a network as one tensor.

Used by all agents. The weights move into one flat tensor; the network's parameters become views of
it, and their gradients views of its gradient. So a step, clipping included, is a few operations
instead of a few per layer, and a gradient that is not finite is detected by its length.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

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
        self._max_grad_norm = max_grad_norm
        self._parameters = list(parameters)
        self.weights = nn.Parameter(flatten_parameters(self._parameters))
        """All weights in one row; writing to it changes the network."""
        self._gradient = self.weights.grad = torch.zeros_like(self.weights)
        for parameter, part in zip(
            self._parameters, split_like(self._gradient, self._parameters), strict=True
        ):
            parameter.grad = part
        self._is_cpu = self.weights.device.type == "cpu"
        self._adam = torch.optim.Adam(
            [self.weights], lr=learning_rate, eps=eps, fused=True, capturable=not self._is_cpu
        )
        # Torch allocates the moments in the first step. With a gradient of 0 it changes nothing.
        self._adam.step()
        moments = self._adam.state[self.weights]
        self._state: dict[str, torch.Tensor] = {
            "means": moments["exp_avg"],
            "squares": moments["exp_avg_sq"],
            "num_steps": moments["step"].zero_(),
        }
        self._has_stopped = torch.zeros((), dtype=torch.bool, device=self.weights.device)

    @property
    def learning_rate(self) -> float:
        """Step size; a recorded update (`repetition`) keeps the one it was recorded with."""
        return self._adam.param_groups[0]["lr"]

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._adam.param_groups[0]["lr"] = rate

    @property
    def num_steps(self) -> int:
        """Steps so far. Waits for the device."""
        return int(self._state["num_steps"].item())

    @property
    def has_stopped(self) -> bool:
        """Whether a gradient was not finite; weights are frozen since. Waits for the device."""
        return bool(self._has_stopped.item())

    def minimise(self, loss: torch.Tensor) -> None:
        """Do one step along the gradient of a loss."""
        self.follow([loss], [torch.ones_like(loss)])

    def follow(self, outputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]) -> None:
        """Do one step, given the gradients of a loss with respect to outputs of the network."""
        found = torch.autograd.grad(outputs, self._parameters, gradients)
        torch.cat([part.reshape(-1) for part in found], out=self._gradient)
        self.step()

    @torch.no_grad()
    def step(self) -> None:
        """Do one step along the gradient in every parameter's ``grad``.

        From the first gradient on whose length is not finite, nothing changes any more: weights and
        moments stay as the last good update left them.
        """
        length = torch.linalg.vector_norm(self._gradient)
        if self._is_cpu:
            if not math.isfinite(length.item()):
                self._has_stopped.fill_(True)
            if not self.has_stopped:
                self._step(length)
            return
        # A recorded update cannot branch, and a branch would wait for the device: step, then undo.
        self._has_stopped.logical_or_(length.isfinite().logical_not_())
        changed = (self.weights, *self._state.values())
        before = [tensor.clone() for tensor in changed]
        self._step(length)
        for tensor, old in zip(changed, before, strict=True):
            torch.where(self._has_stopped, old, tensor, out=tensor)

    def _step(self, length: torch.Tensor) -> None:
        if self._max_grad_norm is not None:
            # As torch.nn.utils.clip_grad_norm_ does.
            self._gradient.mul_((self._max_grad_norm / (length + 1e-6)).clamp_max_(1.0))
        self._adam.step()

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
        self._has_stopped.zero_()


def flatten_parameters(parameters: Sequence[nn.Parameter]) -> torch.Tensor:
    """Move parameters into one flat tensor, which they become views of; return it."""
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
    for parameter, part in zip(parameters, split_like(flat, parameters), strict=True):
        parameter.data = part
    return flat


def split_like(flat: torch.Tensor, parameters: Sequence[nn.Parameter]) -> list[torch.Tensor]:
    """Return consecutive views of a flat tensor that have the shapes of parameters."""
    parts = flat.split([parameter.numel() for parameter in parameters])
    return [part.view_as(one) for part, one in zip(parts, parameters, strict=True)]
