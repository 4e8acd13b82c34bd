"""Random choices for generators, the same on every machine and with every version of NumPy.

Passed through all generators; nothing else in them is random. NumPy promises stable bits but not
stable integers or shuffles, and a level must be the same wherever its seed is used.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import Any, TypeVar

from stepladder.tasks.scramble import mix64, stream_key

Item = TypeVar("Item")

IntegerBounds = tuple[int, int]
"""Smallest and largest integer, both included."""

_MASK64 = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


class Chance:
    """A stream of random choices that depends on its keys alone."""

    def __init__(self, seed: int, *streams: int) -> None:
        """Start a stream.

        Args:
            seed: From 0 to 2**64 - 1.
            streams: Numbers that tell this stream from others of the same seed.
        """
        self._state = mix64(seed & _MASK64)
        for stream in streams:
            self._state = stream_key(self._state, stream)

    def _bits(self) -> int:
        self._state = (self._state + _GOLDEN) & _MASK64
        return mix64(self._state)

    def whole(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included."""
        # The high half of the product: as even as 64 bits allow, and free of division.
        return low + ((self._bits() * (high - low + 1)) >> 64)

    def within(self, bounds: IntegerBounds) -> int:
        """Return an integer within bounds, both included."""
        return self.whole(*bounds)

    def happens(self, percent: int) -> bool:
        """Return True in so many of a hundred cases."""
        return self.whole(1, 100) <= percent

    def pick(self, items: Sequence[Item]) -> Item:
        """Return one of the items; there must be one."""
        return items[self.whole(0, len(items) - 1)]

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Bring items into random order, in place."""
        for i in range(len(items) - 1, 0, -1):
            j = self.whole(0, i)
            items[i], items[j] = items[j], items[i]
