"""Which parts of an observation are pictures or grids of tiles, and how convolutions read them.

Asked by `observations` for every Box; says the shape, where the channels are, what the values
stand for, and the layers of the network that `convolutions` builds. Nothing here needs torch.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from stepladder.agents.vision.config import VisionConfig

MAX_KINDS = 64
"""A Box of integers with at most so many values holds codes; with more, numbers or brightness."""

MAX_BYTES = 256
"""Values that fit into a byte."""

MAX_CHANNELS = 16
"""An axis with more entries is not taken for channels without a warning."""

FEW_CHANNELS = 4
"""Usual numbers of channels: grey, two, RGB, RGB with a mask."""

NARROW = 5
"""Rows or columns, of two dimensions, below which there is nothing for convolutions to read."""

SMALL = 16
"""Bytes on a smaller grid are kinds of things, such as MiniGrid's, not brightness."""

LARGE = 128
"""Pictures with a longer side are large for the encoder."""

MAX_ONE_HOT = 16
"""Tiles of at most so many kinds are one-hot; others are embedded."""


class ConvLayer(NamedTuple):
    """One convolution."""

    num_in: int
    num_out: int
    kernel: tuple[int, int]
    stride: int


@dataclass(frozen=True)
class Grid:
    """A part of an observation that convolutions read."""

    key: str
    shape: tuple[int, ...]
    """As the env has it."""

    is_first: bool
    """Whether its channels come first, or it has none."""

    channels: int
    height: int
    width: int
    num_values: int
    """How many values each place can have."""

    is_scaled: bool
    """Whether values are brightness; otherwise they are kinds of things."""

    layers: tuple[ConvLayer, ...]
    flat: int
    """Numbers after the last convolution."""

    features: int
    """Numbers after the layer that follows."""

    embedding: int
    """Numbers per value where kinds are embedded; 0 where they are one-hot or not kinds."""

    @property
    def size(self) -> int:
        """Bytes of one frame."""
        return self.channels * self.height * self.width

    @property
    def num_weights(self) -> int:
        """Weights of the largest layer."""
        sizes = [layer.num_in * layer.num_out * layer.kernel[0] * layer.kernel[1]
                 for layer in self.layers]  # fmt: skip
        return max(*sizes, self.flat * self.features, self.num_values * self.embedding)


def grid_of(
    space: Box, key: str, vision: VisionConfig, frame_stack: int
) -> tuple[Grid | None, list[str]]:
    """Return how convolutions read a Box, None if they do not, and what may be wrong with that.

    Args:
        space: Of one frame.
        key: Its name in a dict of observations.
        vision: The settings.
        frame_stack: Frames that are seen at once.
    """
    num_values = num_values_of(space)
    if len(space.shape) not in (2, 3) or 0 in space.shape:
        return None, []
    if len(space.shape) == 2 and min(space.shape) < NARROW:
        # A list of things rather than a picture.
        return None, []
    if num_values is None or num_values > MAX_BYTES:
        return None, list(_about_numbers(space, key))
    is_first, doubts = _is_first(space.shape, key, vision)
    three: Any = space.shape if len(space.shape) == 3 else (1, *space.shape)
    channels, height, width = three if is_first else (three[2], *three[:2])
    is_scaled, is_flat = _reading(max(height, width), num_values, vision)
    if is_flat:
        return None, []
    if is_scaled and max(height, width) > LARGE:
        doubts.append(
            f"{_named(key)} are pictures of {height} x {width}, which makes acting and learning "
            "slow. Scale them to about 84 x 84 (gymnasium.wrappers.ResizeObservation)."
        )
    embedding = 0 if is_scaled or num_values <= MAX_ONE_HOT else vision.embedding
    per_place = 1 if is_scaled else embedding or num_values
    layers, flat = _layers(channels * per_place * frame_stack, height, width, vision)
    grid = Grid(
        key=key, shape=space.shape, is_first=is_first, channels=channels, height=height,
        width=width, num_values=num_values, is_scaled=is_scaled, layers=layers, flat=flat,
        features=vision.features, embedding=embedding,
    )  # fmt: skip
    return grid, doubts


def num_values_of(space: Box) -> int | None:
    """Return how many values a Box of integers has from the lowest to the highest; else None."""
    dtype = np.dtype(space.dtype)
    if dtype != np.bool_ and not np.issubdtype(dtype, np.integer):
        return None
    return int(space.high.max()) - int(space.low.min()) + 1 if space.low.size else None


def _reading(side: int, num_values: int, vision: VisionConfig) -> tuple[bool, bool]:
    """Return whether values are brightness, and whether convolutions leave them alone."""
    if num_values <= MAX_KINDS:
        return False, vision.tiles == "flat"
    if vision.pictures != "auto":
        return vision.pictures == "scaled", vision.pictures == "flat"
    return side >= SMALL, False


def _is_first(shape: tuple[int, ...], key: str, vision: VisionConfig) -> tuple[bool, list[str]]:
    """Return whether channels come first, and what may be wrong with that."""
    if len(shape) == 2:
        return True, []
    if vision.axis != "auto":
        return vision.axis == "first", []
    first, middle, last = shape
    can_be_first = first < min(middle, last) and first <= MAX_CHANNELS
    can_be_last = last < min(first, middle) and last <= MAX_CHANNELS
    is_first = first < last
    is_clear = (can_be_first and last > FEW_CHANNELS) or (can_be_last and first > FEW_CHANNELS)
    if is_clear:
        return is_first, []
    where = "first" if is_first else "last"
    return is_first, [
        f"{_named(key)} have the shape {list(shape)}, from which it is not clear where the "
        f"channels are; they are taken to be {where}. Set vision.axis of the agent to first or "
        "last."
    ]


def _about_numbers(space: Box, key: str) -> list[str]:
    """Return a warning where numbers look like a picture."""
    shape = space.shape
    sides = sorted(shape)[-2:]
    is_like_one = min(sides) >= SMALL and (len(shape) == 2 or min(shape) <= FEW_CHANNELS)
    if not is_like_one:
        return []
    return [
        f"{_named(key)} have the shape {list(shape)} and the type {np.dtype(space.dtype).name}, "
        f"and are read as {int(np.prod(shape)):,} separate numbers. If they are pictures, let the "
        "env return bytes (uint8, 0 to 255)."
    ]


def _named(key: str) -> str:
    return f"observations under {key!r}" if key else "observations"


def _layers(
    num_in: int, height: int, width: int, vision: VisionConfig
) -> tuple[tuple[ConvLayer, ...], int]:
    """Return the convolutions, and how many numbers come out of the last one."""
    layers: list[ConvLayer] = []
    for index, num_out in enumerate(vision.channels):
        kernel, stride = _usual(min(height, width))
        kernel = vision.kernels[index] if vision.kernels else kernel
        stride = vision.strides[index] if vision.strides else stride
        # No wider than what is left.
        window = min(kernel, height), min(kernel, width)
        layers.append(ConvLayer(num_in, num_out, window, stride))
        height, width = (
            (side - span) // stride + 1 for side, span in zip((height, width), window, strict=True)
        )
        num_in = num_out
    return tuple(layers), num_in * height * width


def _usual(side: int) -> tuple[int, int]:
    """Return kernel and stride for a side; at 84 those of Mnih et al. 2015."""
    if side >= 40:
        return 8, 4
    return (4, 2) if side >= 10 else (3, 1)
