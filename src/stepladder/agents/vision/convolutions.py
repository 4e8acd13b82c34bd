"""The network that reads one picture or grid of tiles: convolutions, then one layer.

Built by `encoders` as `grids` describes it; after Mnih et al. 2015. Bytes stay bytes until here.
"""

import math
from typing import Any

import torch
from torch import nn

from stepladder.agents.networks.layers import Linear, orthogonal
from stepladder.agents.vision.grids import ConvLayer, Grid

MAX_OVERLAP = 4.0
"""How often a place may lie in the windows of the first convolution, if these are made at once."""


class Convolution(nn.Module):
    """A convolution with orthogonal initial weights.

    Args:
        layer: Its sizes.
        generator: Source of the initial weights.
    """

    def __init__(self, layer: ConvLayer, generator: torch.Generator):
        super().__init__()
        num_in, num_out, kernel, self._stride = layer
        weight = orthogonal(num_in * kernel[0] * kernel[1], num_out, math.sqrt(2.0), generator)
        self.weight = nn.Parameter(weight.reshape(num_out, num_in, *kernel))
        self.bias = nn.Parameter(torch.zeros(num_out))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the output, of shape ``(rows, channels, height, width)``."""
        return nn.functional.conv2d(inputs, self.weight, self.bias, self._stride)

    def of_kinds(self, kinds: torch.Tensor, num_kinds: int) -> torch.Tensor:
        """Return the output for kinds that are one-hot, as a product of matrices.

        On a GPU this takes half the time (gradients of convolutions with few planes are slow
        there), on a CPU a third more.

        Args:
            kinds: Integers of shape ``(rows, height, width, planes)``.
            num_kinds: How many there are.
        """
        num_out, _, *span = self.weight.shape
        num_planes = kinds.shape[-1]
        windows = kinds.unfold(1, span[0], self._stride).unfold(2, span[1], self._stride)
        height, width = windows.shape[1:3]
        spots = windows.permute(0, 1, 2, 4, 5, 3).reshape(-1, span[0] * span[1] * num_planes)
        spots = spots + num_kinds * torch.arange(spots.shape[1], device=kinds.device)
        ones = torch.zeros((len(spots), spots.shape[1] * num_kinds), device=kinds.device)
        ones.scatter_(1, spots, 1.0)
        weight = self.weight.view(num_out, num_planes, num_kinds, *span).permute(0, 3, 4, 1, 2)
        output = nn.functional.linear(ones, weight.reshape(num_out, -1), self.bias)
        return output.view(-1, height, width, num_out).permute(0, 3, 1, 2)


class GridNetwork(nn.Module):
    """From the bytes of a picture or of tiles to features.

    Args:
        grid: Its sizes.
        frame_stack: Frames that are seen at once.
        generator: Source of the initial weights.
    """

    offsets: torch.Tensor

    def __init__(self, grid: Grid, frame_stack: int, generator: torch.Generator):
        super().__init__()
        self._grid = grid
        self._planes = frame_stack * grid.channels
        self._has_windows = _has_windows(grid)
        self._frame_shape = (frame_stack, *grid.shape)
        if grid.embedding:
            # A table for each channel of a frame.
            size = (grid.channels * grid.num_values, grid.embedding)
            self.table = nn.Parameter(torch.randn(size, generator=generator))
            tables = torch.arange(self._planes) % grid.channels
            self.register_buffer("offsets", grid.num_values * tables, persistent=False)
        self.convolutions = nn.ModuleList(Convolution(layer, generator) for layer in grid.layers)
        self.last = Linear(grid.flat, grid.features, math.sqrt(2.0), generator)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """Return features of shape ``(rows, features)``.

        Args:
            codes: Bytes of shape ``(rows, frame_stack * size)``, the oldest frame first.
        """
        frames = codes.reshape(-1, *self._frame_shape)
        first: Any
        first, *others = self.convolutions
        if self._has_windows and frames.is_cuda:
            kinds = self._channels_last(frames).long()
            hidden = first.of_kinds(kinds, self._grid.num_values).relu()
        else:
            hidden = first(self._planes_of(frames)).relu()
        for convolution in others:
            hidden = convolution(hidden).relu()
        return self.last(hidden.flatten(1)).relu()

    def _planes_of(self, frames: torch.Tensor) -> torch.Tensor:
        """Return brightness, one-hot or embedded kinds, with one axis for all planes."""
        grid = self._grid
        if grid.is_scaled:
            scaled = self._channels_second(frames).float()
            return scaled * (1.0 / (grid.num_values - 1))
        # The channels last: what each place becomes lies together then.
        places = self._channels_last(frames).long()
        if grid.embedding:
            spots = (places + self.offsets).flatten()
            values = self.table.index_select(0, spots)
        else:
            ones = torch.zeros((places.numel(), grid.num_values), device=places.device)
            values = ones.scatter_(1, places.flatten()[:, None], 1.0)
        return values.view(*places.shape[:3], -1).permute(0, 3, 1, 2)

    def _channels_second(self, frames: torch.Tensor) -> torch.Tensor:
        """Return frames of shape ``(rows, frames, …)`` as ``(rows, planes, height, width)``."""
        grid = self._grid
        if not grid.is_first:
            frames = frames.permute(0, 1, 4, 2, 3)
        return frames.reshape(-1, self._planes, grid.height, grid.width)

    def _channels_last(self, frames: torch.Tensor) -> torch.Tensor:
        """Return frames as ``(rows, height, width, planes)``."""
        return self._channels_second(frames).permute(0, 2, 3, 1)


def _has_windows(grid: Grid) -> bool:
    """Return whether the first convolution is over one-hot kinds whose windows overlap little."""
    if grid.is_scaled or grid.embedding:
        return False
    _, _, kernel, stride = grid.layers[0]
    sides = zip((grid.height, grid.width), kernel, strict=True)
    num_windows = math.prod((side - span) // stride + 1 for side, span in sides)
    return num_windows * math.prod(kernel) <= MAX_OVERLAP * grid.height * grid.width
