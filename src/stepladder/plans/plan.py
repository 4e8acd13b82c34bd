"""The plan: every slot's weight, in one block of memory that all envs draw from.

Written by the curriculum that owns it, read by clients through `sync`, which may place the block
in shared memory. One writer, any number of readers, no lock: a sequence number is odd while the
plan is being written, and a reader that saw it change draws again. It counts the plan's version.

The block is an array of 64-bit words: a header, named dials (stage, mixing ratio, phase: they
travel with the weights or not at all), per slot the task and its generation, the list of active
slots, and one or more weight tables of which one is in force. A table splits the slots into
groups; a group's share is one number, so a new mixing ratio costs the same with ten tasks and
with a million. Inside a group a sum tree holds the slots' weights, so that a draw and a change
cost a walk from root to leaf.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.errors import SnapshotError
from stepladder.plans import kernels
from stepladder.plans.kernels import Floats, Words
from stepladder.saving.saved_array import MAX_FLOAT, Part, SavedArray


@dataclass(frozen=True)
class Grouping:
    """How one weight table splits the slots: `group_of_slot` has shape ``(num_slots,)``."""

    group_of_slot: Words
    num_groups: int
    layered: bool = False
    """Whether every group holds all slots, with weights of its own, instead of some of them."""

    @classmethod
    def single(cls, num_slots: int) -> "Grouping":
        """All slots in one group."""
        return cls(np.zeros(num_slots, dtype=np.int64), 1)

    @classmethod
    def layers(cls, num_slots: int, num_layers: int) -> "Grouping":
        """All slots in each of several groups."""
        return cls(np.zeros(num_slots, dtype=np.int64), num_layers, layered=True)


class Plan:
    """Views over one block; the curriculum that made it is the only writer."""

    def __init__(self, num_slots: int, groupings: Sequence[Grouping], num_dials: int, seed: int):
        self.num_slots = num_slots
        self.num_dials = num_dials
        layout = _Layout()
        header = layout.take(kernels.HEADER_WORDS)
        dials = layout.take(num_dials)
        rows, active = layout.take(2 * num_slots), layout.take(num_slots)
        positions = layout.take(num_slots)
        tables = [_lay_out_table(layout, grouping) for grouping in groupings]
        self.block: Words = aligned_words(layout.num_words)
        self.tables = [table.start for table in tables]
        block = self.block
        block[header + kernels.H_LAYOUT], block[header + kernels.H_SEED] = kernels.LAYOUT, seed
        block[kernels.H_NUM_SLOTS], block[kernels.H_NUM_ACTIVE] = num_slots, num_slots
        block[kernels.H_NUM_DIALS], block[kernels.H_DIALS] = num_dials, dials
        block[kernels.H_ROWS], block[kernels.H_ACTIVE], block[kernels.H_POSITIONS] = (
            rows,
            active,
            positions,
        )
        block[active : active + num_slots] = np.arange(num_slots)
        block[positions : positions + num_slots] = np.arange(num_slots)
        for table in tables:
            table.write(block)
        block[kernels.H_TABLE] = self.tables[0]

    @property
    def version(self) -> int:
        """Number of times the plan has changed."""
        return int(self.block[kernels.H_SEQUENCE]) >> 1

    @property
    def tick(self) -> int:
        """Number of collections in which the host found records."""
        return int(self.block[kernels.H_TICK])

    @property
    def rows(self) -> Words:
        """Task id and generation of every slot, interleaved, in the block."""
        start = int(self.block[kernels.H_ROWS])
        return self.block[start : start + 2 * self.num_slots]

    @property
    def task_ids(self) -> Words:
        """Task id per slot, in the block."""
        return self.rows[0::2]

    @property
    def generations(self) -> Words:
        """Generation per slot, in the block."""
        return self.rows[1::2]

    @property
    def dials(self) -> Floats:
        """The dials, in the block. Write only inside `writing`."""
        start = int(self.block[kernels.H_DIALS])
        return self.block[start : start + self.num_dials].view(np.float64)

    @property
    def active(self) -> Words:
        """Slots that may be drawn, in no particular order; a view."""
        start = int(self.block[kernels.H_ACTIVE])
        return self.block[start : start + int(self.block[kernels.H_NUM_ACTIVE])]

    def shares(self, table: int) -> Floats:
        """Shares of a table's groups, in the block. Write only inside `writing`."""
        start = int(self.block[table + kernels.T_SHARES])
        return self.block[start : start + int(self.block[table + kernels.T_NUM_GROUPS])].view(
            np.float64
        )

    def set_exploration(self, table: int, exploration: float) -> None:
        """Set the share of draws that ignore the weights. Call inside `writing`."""
        self.block.view(np.float64)[table + kernels.T_EXPLORATION] = exploration

    def leaves(self, table: int) -> Floats:
        """Return a copy of all slots' weights; shape ``(layers, num_slots)``."""
        num_layers = max(1, int(self.block[table + kernels.T_LAYERS]))
        weights = np.empty((num_layers, self.num_slots))
        kernels.copy_leaves(self.block, table, weights)
        return weights

    def probs(self) -> Floats:
        """Return the probability of every slot; sums to one."""
        probs = np.empty(self.num_slots)
        kernels.fill_probs(self.block, probs)
        return probs

    @contextmanager
    def writing(self) -> Generator[Words]:
        """Keep readers out for the length of a ``with`` block; raises the version by one."""
        try:
            # Inside, or Ctrl-C right after it would keep all readers out for good.
            kernels.begin_write(self.block)
            yield self.block
        finally:
            if self.block[kernels.H_SEQUENCE] & 1:
                kernels.end_write(self.block)

    def load(
        self,
        arrays: Mapping[str, npt.NDArray[Any]],
        dial_parts: tuple[Part, ...] = (),
        place: str = "the snapshot",
    ) -> None:
        """Take over weights, shares, dials and active slots as saved. Call inside a write.

        Args:
            arrays: What was saved.
            dial_parts: What the dials must be.
            place: Where it was saved, for messages.

        Raises:
            SnapshotError: An array is missing or holds impossible values. Nothing has changed.
        """
        active = SavedArray(
            "active",
            self.active,
            (Part.count("slot", high=self.num_slots - 1),),
            max_length=self.num_slots,
        ).read(arrays, place)
        if len(np.unique(active)) < len(active):
            raise SnapshotError(
                f"array 'active' of {place}: a slot appears twice; expected each once. Use an "
                "older one."
            )
        is_inactive = ~np.isin(np.arange(self.num_slots), active)
        read = [
            self._read_table(number, is_inactive, arrays, place)
            for number in range(len(self.tables))
        ]
        dials = SavedArray("dials", self.dials, dial_parts).read(arrays, place)
        start, positions = int(self.block[kernels.H_ACTIVE]), int(self.block[kernels.H_POSITIONS])
        self.block[kernels.H_NUM_ACTIVE] = len(active)
        self.block[start : start + len(active)] = active
        self.block[positions : positions + self.num_slots] = -1
        self.block[positions + active] = np.arange(len(active))
        self.dials[:] = dials
        for table, (leaves, shares) in zip(self.tables, read, strict=True):
            for layer, weights in enumerate(leaves):
                kernels.fill_leaves(self.block, table, weights, layer)
            self.shares(table)[:] = shares

    def _read_table(
        self,
        number: int,
        is_inactive: npt.NDArray[np.bool_],
        arrays: Mapping[str, npt.NDArray[Any]],
        place: str,
    ) -> tuple[Floats, Floats]:
        """Return the saved weights and shares of one table; their sums are finite too."""
        leaves, shares = self.leaves(self.tables[number]), self.shares(self.tables[number])
        most = MAX_FLOAT / 4.0
        leaf_parts = (
            Part("weight", low=0.0, high=most / self.num_slots),
            Part("weight of an inactive slot", np.s_[:, is_inactive], 0.0, 0.0),
        )
        share_parts = (Part("share", low=0.0, high=most / len(shares)),)
        return (
            SavedArray(f"table{number}/leaves", leaves, leaf_parts).read(arrays, place),
            SavedArray(f"table{number}/shares", shares, share_parts).read(arrays, place),
        )

    def move_to(self, block: Words) -> None:
        """Copy the plan into other memory and write there from now on."""
        block[: len(self.block)] = self.block
        self.block = block[: len(self.block)]


def aligned_words(num_words: int) -> Words:
    """Return zeroed words whose first one begins a cache line."""
    raw = np.zeros(num_words + 8, dtype=np.int64)
    skip = (-raw.ctypes.data // 8) % 8
    return raw[skip : skip + num_words]


class _Layout:
    """Hands out ranges of words, each starting a cache line."""

    def __init__(self) -> None:
        self.num_words = 0

    def take(self, num_words: int) -> int:
        start = self.num_words + -self.num_words % 8
        self.num_words = start + num_words
        return start


@dataclass
class _TableLayout:
    """Where one weight table's parts lie, and what they hold at the start."""

    start: int
    shares: int
    trees: int
    capacities: int
    places: int
    slots: int
    slot_starts: int
    tree_starts: list[int]
    tree_capacities: list[int]
    grouping: Grouping
    order: Words
    counts: Words

    def write(self, block: Words) -> None:
        num_groups, counts = self.grouping.num_groups, self.counts
        starts = np.concatenate([[0], np.cumsum(counts)])
        block[self.start + kernels.T_NUM_GROUPS] = num_groups
        block[self.start + kernels.T_SHARES] = self.shares
        block[self.start + kernels.T_TREES] = self.trees
        block[self.start + kernels.T_CAPACITIES] = self.capacities
        block[self.start + kernels.T_PLACES] = self.places
        block[self.start + kernels.T_SLOTS] = self.slots
        block[self.start + kernels.T_SLOT_STARTS] = self.slot_starts
        block[self.trees : self.trees + num_groups] = self.tree_starts
        block[self.capacities : self.capacities + num_groups] = self.tree_capacities
        block[self.slot_starts : self.slot_starts + num_groups + 1] = starts
        if self.grouping.layered:
            block[self.start + kernels.T_LAYERS] = num_groups
        elif num_groups > 1:
            groups = self.grouping.group_of_slot[self.order]
            leaves = np.arange(len(self.order)) - starts[groups]
            block[self.slots : self.slots + len(self.order)] = self.order
            block[self.places + self.order] = (groups << kernels.LEAF_BITS) | leaves
        block[self.shares : self.shares + num_groups].view(np.float64)[:] = 1.0 / num_groups


def _lay_out_table(layout: _Layout, grouping: Grouping) -> _TableLayout:
    num_groups, num_slots = grouping.num_groups, len(grouping.group_of_slot)
    counts = np.bincount(grouping.group_of_slot, minlength=num_groups).astype(np.int64)
    if grouping.layered:
        counts[:] = num_slots
    several = num_slots if num_groups > 1 and not grouping.layered else 0
    start, shares = layout.take(kernels.TABLE_WORDS), layout.take(num_groups)
    trees, capacities = layout.take(num_groups), layout.take(num_groups)
    places, slots = layout.take(several), layout.take(several)
    slot_starts = layout.take(num_groups + 1)
    tree_capacities = [_power_of_two(int(count)) for count in counts]
    tree_starts = [layout.take(2 * size) for size in tree_capacities]
    return _TableLayout(
        start,
        shares,
        trees,
        capacities,
        places,
        slots,
        slot_starts,
        tree_starts,
        tree_capacities,
        grouping,
        np.argsort(grouping.group_of_slot, kind="stable"),
        counts,
    )


def _power_of_two(count: int) -> int:
    return 1 << max(0, count - 1).bit_length()
