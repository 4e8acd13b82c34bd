"""Divide one block of shared memory into the arrays of a vector env.

The layout is decided once, when the spaces are known (`MemoryLayout`). Each process then makes its
own arrays over the same block (`VectorArrays`). Rows of a batch are adjacent, so a whole batch is
one slice. `coordinator` creates the block, `group` writes its rows, `rows` reads them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Array, Flags, Floats, Words
from stepladder.envs.types import Action, DType, Observation, RowInfo
from stepladder.envs.workers.memory.lanes import LANE_DTYPE, Lanes
from stepladder.envs.workers.memory.messages import INFO_MESSAGE, Message
from stepladder.envs.workers.memory.spaces import Leaf
from stepladder.plans.plan import aligned_words

LINE_BYTES = 64
"""Arrays begin a cache line of their own."""

LEAST_MESSAGE_BYTES = 1 << 20
MESSAGE_BYTES_PER_ROW = 1 << 14
"""Room for infos. The system provides memory only when it is first written to."""


@dataclass(frozen=True)
class MemoryLayout:
    """The number of rows, workers and batches, and the parts of observations and actions."""

    num_envs: int = 0
    num_workers: int = 0
    num_batches: int = 0
    observations: tuple[Leaf, ...] = ()
    actions: tuple[Leaf, ...] = ()

    @property
    def message_bytes(self) -> int:
        """Room for the infos of one worker's rows in one batch."""
        return max(LEAST_MESSAGE_BYTES, MESSAGE_BYTES_PER_ROW * self.num_envs)

    def parts(self) -> list[tuple[DType, tuple[int, ...]]]:
        """Return type and shape of every array, in the order in which they lie."""
        rows, lanes = (self.num_envs,), (self.num_workers, self.num_batches)
        # Observations a second time, where there are workers: their copies (`VectorArrays.kept`).
        kept = self.observations if self.num_workers else ()
        return [
            (LANE_DTYPE, lanes),
            (np.dtype(np.uint8), (*lanes, self.message_bytes)),
            (np.dtype(np.float64), rows),
            *[(np.dtype(np.bool_), rows)] * 3,
            *[
                (leaf.dtype, (*rows, *leaf.shape))
                for leaf in (*self.observations, *self.actions, *kept)
                if leaf.dtype is not None
            ],
        ]

    @property
    def num_words(self) -> int:
        """Size of the whole block."""
        return sum(_padded_words(dtype, shape) for dtype, shape in self.parts())


def _padded_words(dtype: DType, shape: Sequence[int]) -> int:
    num_bytes = int(dtype.itemsize * np.prod(shape, dtype=np.int64))
    return (num_bytes + LINE_BYTES - 1) // LINE_BYTES * (LINE_BYTES // 8)


class VectorArrays:
    """All arrays of a vector env, as seen by one process.

    Args:
        layout: What there is.
        block: Words that other processes see too; without them, memory of this process alone.
    """

    def __init__(self, layout: MemoryLayout, block: Words | None = None):
        self._lay(layout, block)

    def _lay(self, layout: MemoryLayout, block: Words | None = None) -> None:
        if block is None:
            block = aligned_words(layout.num_words)
        arrays = iter(_arrays(layout, block))
        self.layout = layout
        self.lanes: Lanes = next(arrays)
        self.messages: npt.NDArray[np.uint8] = next(arrays)
        """Room for messages, per worker and batch."""
        self.rewards: Floats = next(arrays)
        self.terminated: Flags = next(arrays)
        self.truncated: Flags = next(arrays)
        self.reset_mask: Flags = next(arrays)
        self.observations = _columns(layout.observations, arrays, layout.num_envs)
        self.actions = _columns(layout.actions, arrays, layout.num_envs)
        self._kept: list[Array] = list(arrays)

    def release(self) -> None:
        """Drop all arrays. Views of them that others hold stay valid, and keep the block."""
        self._lay(MemoryLayout())

    def kept(self, rows: slice) -> list[tuple[Array, Array]]:
        """Return rows of each array of observations, and where its worker keeps a copy of them.

        The copy is made after every order. A worker that dies while it writes a row leaves parts of
        two observations there; the copy then holds the last complete one.
        """
        if not self._kept:
            return []
        columns = [column for column in self.observations if not isinstance(column, list)]
        return [
            (column[rows], kept[rows]) for column, kept in zip(columns, self._kept, strict=True)
        ]

    def take_in(self, messages: Sequence[Message]) -> list[RowInfo]:
        """Put leaves of observations that are not arrays into their columns; return the infos."""
        infos: list[RowInfo] = []
        for kind, row, value in messages:
            if kind == INFO_MESSAGE:
                infos.append((row, value))
                continue
            for column, leaf in zip(self.loose_observations(), value, strict=True):
                column[row] = leaf
        return infos

    def loose_observations(self) -> list[list[Any]]:
        """Return the columns of observations that are not arrays."""
        return [column for column in self.observations if isinstance(column, list)]

    def loose_actions(self, rows: range) -> list[list[Any]] | None:
        """Return the parts of some rows' actions that are not arrays; None if there are none."""
        loose = [column for column in self.actions if isinstance(column, list)]
        return [column[rows.start : rows.stop] for column in loose] if loose else None


@dataclass(frozen=True)
class SharedBuffers:
    """The memory of a vector env as it is now, without a copy; changes with every step."""

    observations: Observation
    rewards: Floats
    terminated: Flags
    truncated: Flags
    actions: Action


def _arrays(layout: MemoryLayout, block: Words) -> list[Array]:
    arrays: list[Array] = []
    start = 0
    for dtype, shape in layout.parts():
        size = _padded_words(dtype, shape)
        count = int(np.prod(shape, dtype=np.int64))
        arrays.append(block[start : start + size].view(dtype)[:count].reshape(shape))
        start += size
    return arrays


def _columns(leaves: Sequence[Leaf], arrays: Iterator[Array], num_rows: int) -> list[Any]:
    """Return one array per leaf; for a leaf without a fixed size, a list of this process alone."""
    return [next(arrays) if leaf.is_array else [None] * num_rows for leaf in leaves]
