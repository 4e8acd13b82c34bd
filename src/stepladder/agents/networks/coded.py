"""A layer that reads codes as they are, instead of one-hot: the first one, on the CPU.

Between `observations`, which hands over the codes, and `networks`. It gives what a linear layer
gives for numbers and one-hot codes, and the same gradients; `table_rows` adds up. On a GPU the
product with one-hot codes takes less time.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from stepladder.agents.networks.table_rows import add_rows, add_to_rows


class Coded(NamedTuple):
    """Features before the one-hot encoding; any number of leading axes."""

    numbers: torch.Tensor
    """Floats."""

    codes: torch.Tensor
    """Bytes."""

    offsets: npt.NDArray[np.int64]
    """Column of code 0 among the one-hot ones, for each code column."""


class _CodedLinear(torch.autograd.Function):
    """``linear(cat([numbers, one_hot(codes)]), weight, bias)`` with rows on one axis.

    The weights lie column by column (`by_column`), so that each is a row of a table.
    """

    @staticmethod
    def forward(
        ctx: Any,
        weight: torch.Tensor,
        bias: torch.Tensor,
        numbers: torch.Tensor,
        codes: torch.Tensor,
        offsets: npt.NDArray[np.int64],
    ) -> torch.Tensor:
        num_plain, table = numbers.shape[1], weight.t().contiguous()
        outputs = torch.addmm(bias, numbers, table[:num_plain])
        add_rows(codes.numpy(), offsets, table[num_plain:].numpy(), outputs.numpy())
        ctx.save_for_backward(numbers, codes)
        ctx.offsets, ctx.shape = offsets, table.shape
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        numbers, codes = ctx.saved_tensors
        num_plain, given = numbers.shape[1], gradients[0].contiguous()
        table = torch.zeros(ctx.shape)
        torch.mm(numbers.t(), given, out=table[:num_plain])
        add_to_rows(codes.numpy(), ctx.offsets, given.numpy(), table[num_plain:].numpy())
        return table.t(), given.sum(0), None, None, None


def by_column(weight: torch.Tensor) -> torch.Tensor:
    """Return the same weights, column by column in memory: as `coded_linear` reads them."""
    return weight.t().contiguous().t()


def coded_linear(coded: Coded, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return what a linear layer gives for numbers and one-hot codes.

    Args:
        coded: On the CPU; no gradient reaches it.
        weight: Of shape ``(width, columns)``: first those of numbers, then the one-hot ones.
        bias: Of shape ``(width,)``.
    """
    numbers, codes, offsets = coded
    lead = codes.shape[:-1]
    if codes.ndim != 2:
        numbers, codes = numbers.flatten(0, -2), codes.flatten(0, -2)
    outputs: Any = _CodedLinear.apply(weight, bias, numbers, codes.contiguous(), offsets)
    return outputs if len(lead) == 1 else outputs.unflatten(0, lead)
