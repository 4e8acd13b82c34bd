"""Spread counters over a range, the same way on every machine and numpy version.

Used by `pool`, to decide which task comes next, and by `union`, to choose a child. Both need a
number that depends only on (seed, counter), so that a snapshot has to keep nothing but a counter.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Bits = TypeVar("Bits", int, NDArray[np.uint64])

NUM_ROUNDS = 6
"""Rounds of the Feistel network; four are enough in theory for an ideal round function."""

_MASK64 = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix64(bits: Bits) -> Bits:
    """Scramble 64 bits: the finaliser of splitmix64, a bijection.

    Args:
        bits: An int in [0, 2**64), or an array of uint64 of any shape.
    """
    # Typed as Any, because numpy's stubs take an array of uint64 and an int for a signed array.
    mixed: Any = bits
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK64
    return mixed ^ (mixed >> 31)


def stream_key(seed: int, stream: int) -> int:
    """Return the 64-bit key of one of many independent streams of a seed."""
    return mix64((mix64(seed & _MASK64) + (stream + 1) * _GOLDEN) & _MASK64)


class Permutation:
    """A seeded shuffle of ``range(num_items)`` that takes no memory.

    A Feistel network shuffles the smallest power of four that holds all items; a position that
    lands outside the range is sent round again until it falls inside, which keeps it a shuffle.
    """

    def __init__(self, num_items: int, seed: int) -> None:
        """Prepare the shuffle.

        Args:
            num_items: Size of the range, from 1 to 2**63.
            seed: Any non-negative int below 2**63; each gives another order.
        """
        self.num_items = num_items
        self._half = max(1, ((num_items - 1).bit_length() + 1) // 2)
        self._keys = [stream_key(seed, round_index) for round_index in range(NUM_ROUNDS)]

    def item(self, position: int) -> int:
        """Return the item at a position of the shuffled order, both in ``range(num_items)``."""
        item = self._shuffle(position)
        while item >= self.num_items:
            item = self._shuffle(item)
        return item

    def items(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the items at positions `start` to `stop` - 1 as one array."""
        items = self._shuffle(np.arange(start, stop, dtype=np.uint64))
        outside = np.flatnonzero(items >= self.num_items)
        while outside.size:
            items[outside] = self._shuffle(items[outside])
            outside = outside[items[outside] >= self.num_items]
        return items.astype(np.int64)

    def _shuffle(self, bits: Bits) -> Bits:
        mask = (1 << self._half) - 1
        left: Any = bits >> self._half
        right: Any = bits & mask
        for key in self._keys:
            left, right = right, left ^ (mix64(right ^ key) & mask)
        return (left << self._half) | right
