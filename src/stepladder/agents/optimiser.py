"""Adam over all weights of a network at once (Kingma and Ba 2015).

Used by all agents. The weights move into one flat tensor, of which the network's parameters are
views from then on, and their gradients likewise, so that clipping is one call and the step another.
What `torch.optim` does around them takes longer than small networks take to learn.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from stepladder.agents.saved_values import TensorSpec, check_state

BETAS = (0.9, 0.999)
TINY = 1e-6
"""Added to the length of a gradient, so that it can be divided by."""


class Adam:
    """Follows gradients.

    Args:
        parameters: What learns, where it is to stay: on its device.
        learning_rate: Size of a step; may be changed on the way.
        eps: Keeps steps finite where gradients vanish.
        max_grad_norm: Gradients are scaled down to this length; None leaves them as they are.
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
        self._eps, self._max_grad_norm = eps, max_grad_norm
        self._parameters = list(parameters)
        self.weights = flattened(self._parameters)
        """All that learns, in one row."""
        self._gradient = torch.zeros_like(self.weights)
        for parameter, part in zip(
            self._parameters, shaped(self._gradient, self._parameters), strict=True
        ):
            parameter.grad = part
        self._means = torch.zeros_like(self.weights)
        self._squares = torch.zeros_like(self.weights)
        # On the device, so that a recorded update counts.
        self._num_steps = torch.zeros((), device=self.weights.device)
        self._is_here = self.weights.device.type == "cpu"
        self._has_stopped = torch.zeros_like(self._num_steps)
        self._longest = torch.zeros_like(self._num_steps)

    @property
    def num_steps(self) -> int:
        """Steps so far. Waits for the device."""
        return int(self._num_steps.item())

    @property
    def has_stopped(self) -> bool:
        """Whether a gradient was not finite; since then, weights stay. Waits for the device."""
        return self._has_stopped.item() != 0.0

    def follow(self, outputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]) -> None:
        """Let autograd find the gradient, and do one step.

        Args:
            outputs: What the network has returned, or a loss.
            gradients: Of the loss with respect to each of them.
        """
        found = torch.autograd.grad(outputs, self._parameters, gradients)
        torch.cat([part.reshape(-1) for part in found], out=self._gradient)
        self.step()

    @torch.no_grad()
    def step(self) -> None:
        """Do one step along the gradient that was written into every parameter's ``grad``.

        From the first gradient on that is not finite, or too long for its square to be, nothing
        changes any more: weights and moments stay as the last good update has left them.
        """
        length = torch.linalg.vector_norm(self._gradient)
        if self._is_here:
            if not math.isfinite(length.item()):
                self._has_stopped.fill_(1.0)
            if self.has_stopped:
                return
        else:
            self._watch(length)
        scale = None
        if self._max_grad_norm is not None:
            scale = ((length + TINY) / self._max_grad_norm).clamp_min_(1.0)
        self._num_steps += 1.0
        torch._fused_adam_(  # pyright: ignore[reportPrivateImportUsage]
            [self.weights], [self._gradient], [self._means], [self._squares], [],
            [self._num_steps], lr=self.learning_rate, beta1=BETAS[0], beta2=BETAS[1],
            weight_decay=0.0, eps=self._eps, amsgrad=False, maximize=False, grad_scale=scale,
            found_inf=None if self._is_here else self._has_stopped,
        )  # fmt: skip
        if not self._is_here:
            self._num_steps -= self._has_stopped

    def _watch(self, length: torch.Tensor) -> None:
        """Take note of a gradient's length without waiting for the device."""
        torch.maximum(self._longest, length, out=self._longest)
        # 0 if all were finite; NaN otherwise, which is not equal to itself.
        trace = self._longest * 0.0
        torch.ne(trace, trace, out=self._has_stopped)

    def state_dict(self) -> dict[str, Any]:
        """Return what it knows of earlier gradients; the tensors are its own."""
        return {"means": self._means, "squares": self._squares, "num_steps": self._num_steps}

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise unless it can go on from there."""
        lows = {"means": -math.inf, "squares": 0.0, "num_steps": 0.0}
        check_state(
            state,
            [
                TensorSpec.like(name, tensor, low=lows[name])
                for name, tensor in self.state_dict().items()
            ],
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.check_state(state)
        for name, tensor in self.state_dict().items():
            tensor.copy_(state[name])
        self._has_stopped.zero_()
        self._longest.zero_()


def flattened(parameters: Sequence[nn.Parameter]) -> torch.Tensor:
    """Move parameters into one flat tensor, of which they are views from then on; return it."""
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
    for parameter, part in zip(parameters, shaped(flat, parameters), strict=True):
        parameter.data = part
    return flat


def shaped(flat: torch.Tensor, parameters: Sequence[nn.Parameter]) -> list[torch.Tensor]:
    """Return views of a flat tensor, one after the other, with the shapes of parameters."""
    parts = flat.split([parameter.numel() for parameter in parameters])
    return [part.view_as(one) for part, one in zip(parts, parameters, strict=True)]
