"""Settings of the convolutions that read pictures and grids of tiles.

Part of `network_config`; `grids` reads the first half of them, `convolutions` the second.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from stepladder.configs.checks import PositiveInteger, not_empty
from stepladder.configs.codec import Config


@dataclass(frozen=True, kw_only=True)
class VisionConfig(Config):
    """How pictures and grids of tiles become features."""

    pictures: Literal["auto", "scaled", "embedded", "flat"] = "auto"
    """How a Box of bytes with two or three dimensions is read. scaled: as brightness in [0, 1];
    embedded: each value stands for a kind of thing; both through convolutions. flat: as separate
    numbers. auto: scaled, and if both sides are shorter than 16, embedded."""

    tiles: Literal["flat", "convolved"] = "flat"
    """How a Box of at most 64 integers with two or three dimensions is read. flat: one-hot, each
    place by itself; convolved: one-hot or embedded, through convolutions."""

    axis: Literal["auto", "first", "last"] = "auto"
    """Where the channels of three dimensions are. auto: at the end that is shorter than the other
    two."""

    embedding: PositiveInteger = 8
    """Numbers that each value of an embedded picture becomes, and each tile of more than 16
    kinds."""

    channels: Annotated[tuple[PositiveInteger, ...], not_empty] = (32, 64, 64)
    """Channels of the convolutions."""

    kernels: tuple[PositiveInteger, ...] = ()
    """Width of each convolution, as many as channels. By default 8, 4 and 3 for large, middle and
    small inputs of a layer."""

    strides: tuple[PositiveInteger, ...] = ()
    """Step of each convolution, as many as channels. By default 4, 2 and 1, likewise."""

    features: PositiveInteger = 256
    """Width of the layer after the convolutions."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield lists that have not an entry per convolution."""
        for name in ("kernels", "strides"):
            given = getattr(self, name)
            if given and len(given) != len(self.channels):
                yield (
                    name,
                    f"must have an entry per convolution ({len(self.channels)}, as channels); got "
                    f"{len(given)}. Correct its length, or leave it out.",
                )
