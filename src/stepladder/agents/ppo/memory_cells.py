"""How a policy remembers: what one step adds to a row of numbers, and many steps at once.

Used by `actor_critic`, after the hidden layers. Both cells give the same for a step as for the
steps of a rollout together.
"""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import nn

from stepladder.agents.networks.layers import Linear

SLOWEST = 4.0
"""Bias of the slowest gate of a `MinimalCell` at first: it keeps 98 % of a number per step."""

Steps = tuple[torch.Tensor, torch.Tensor]
"""What the policy goes on with, and the memories after each step."""


class MemoryCell(nn.Module, ABC):
    """The contract of a cell.

    Args:
        width: Columns of the hidden layer before it, and of the memory.
        generator: Source of the initial weights.
    """

    def __init__(self, width: int, generator: torch.Generator):
        super().__init__()
        self.width = width
        self._make(generator)

    @abstractmethod
    def _make(self, generator: torch.Generator) -> None:
        """Make the weights."""

    @abstractmethod
    def step(self, hidden: torch.Tensor, memory: torch.Tensor) -> Steps:
        """Return what one step gives, for rows of the hidden layer and of the memory."""

    @abstractmethod
    def unroll(self, hidden: torch.Tensor, memory: torch.Tensor, goes_on: torch.Tensor) -> Steps:
        """Return what consecutive steps give.

        Args:
            hidden: Of shape ``(steps, envs, width)``.
            memory: Before the first step.
            goes_on: 0 where an episode begins, else 1; of shape ``(steps, envs, 1)``.
        """


class GatedCell(MemoryCell):
    """A gated recurrent unit (Cho et al. 2014)."""

    def _make(self, generator: torch.Generator) -> None:
        self.gates = Linear(2 * self.width, 2 * self.width, 1.0, generator)
        self.candidate = Linear(2 * self.width, self.width, 1.0, generator)

    def step(self, hidden: torch.Tensor, memory: torch.Tensor) -> Steps:
        """Return what one step gives."""
        memory = self._next(*self._from_seen(hidden), memory)
        return memory, memory

    def unroll(self, hidden: torch.Tensor, memory: torch.Tensor, goes_on: torch.Tensor) -> Steps:
        """Return what consecutive steps give, one after the other."""
        memories: list[torch.Tensor] = []
        for gates, candidate, kept in zip(*self._from_seen(hidden), goes_on, strict=True):
            memory = self._next(gates, candidate, memory * kept)
            memories.append(memory)
        past = torch.stack(memories)
        return past, past

    def _from_seen(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what is seen contributes to gates and candidates, of many steps at once."""
        width, linear = self.width, nn.functional.linear
        return (
            linear(hidden, self.gates.weight[:, :width], self.gates.bias),
            linear(hidden, self.candidate.weight[:, :width], self.candidate.bias),
        )

    def _next(
        self, gates: torch.Tensor, candidate: torch.Tensor, memory: torch.Tensor
    ) -> torch.Tensor:
        width = self.width
        past = torch.addmm(gates, memory, self.gates.weight[:, width:].t())
        keep, take = past.sigmoid().chunk(2, dim=-1)
        new = torch.addmm(candidate, take * memory, self.candidate.weight[:, width:].t()).tanh()
        return torch.lerp(new, memory, keep)


class MinimalCell(MemoryCell):
    """A unit whose gates see only the present (minGRU, Feng et al. 2024).

    What a step keeps and what it adds do not depend on the memory, so those of a whole rollout are
    computed together; what is left is one addition per step. The hidden layer is added to the
    memory, so that the present need not pass through the gates.
    """

    def _make(self, generator: torch.Generator) -> None:
        self.gates = Linear(self.width, 2 * self.width, 1.0, generator)
        with torch.no_grad():
            # Some numbers change at once, others over many steps.
            self.gates.bias[: self.width] = torch.linspace(0.0, SLOWEST, self.width)

    def step(self, hidden: torch.Tensor, memory: torch.Tensor) -> Steps:
        """Return what one step gives."""
        keep, new = self._from_seen(hidden)
        memory = torch.lerp(new, memory, keep)
        return hidden + memory, memory

    def unroll(self, hidden: torch.Tensor, memory: torch.Tensor, goes_on: torch.Tensor) -> Steps:
        """Return what consecutive steps give."""
        keep, new = self._from_seen(hidden)
        past: Any = _LinearSteps.apply(keep * goes_on, new - keep * new, memory)
        return hidden + past, past

    def _from_seen(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        keep, new = self.gates(hidden).chunk(2, dim=-1)
        return keep.sigmoid(), new.tanh()


class _LinearSteps(torch.autograd.Function):
    """``memory[t] = factors[t] * memory[t - 1] + added[t]``, with one small operation per step."""

    @staticmethod
    def forward(
        ctx: Any, factors: torch.Tensor, added: torch.Tensor, first: torch.Tensor
    ) -> torch.Tensor:
        memories, memory = torch.empty_like(added), first
        for step in range(len(added)):
            memory = torch.addcmul(added[step], factors[step], memory, out=memories[step])
        ctx.save_for_backward(factors, memories, first)
        return memories

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        factors, memories, first = ctx.saved_tensors
        given = gradients[0].clone()
        for step in range(len(given) - 2, -1, -1):
            given[step].addcmul_(factors[step + 1], given[step + 1])
        to_factors = torch.empty_like(given)
        torch.mul(given[0], first, out=to_factors[0])
        torch.mul(given[1:], memories[:-1], out=to_factors[1:])
        to_first = given[0] * factors[0] if ctx.needs_input_grad[2] else None
        return to_factors, given, to_first


CELLS: dict[str, type[MemoryCell]] = {"gru": GatedCell, "mingru": MinimalCell}
"""By their names in configs."""
