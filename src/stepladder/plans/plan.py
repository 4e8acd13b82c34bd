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
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Floats, Words
from stepladder.errors import SnapshotError
from stepladder.plans import choosing, kernels
from stepladder.plans.layout import (
    GROUP,
    GROUP_WORDS,
    HEADER,
    HEADER_WORDS,
    PLAN_LAYOUT_VERSION,
    SLOT,
    SLOT_WORDS,
    TABLE,
    TABLE_WORDS,
    Group,
    Slot,
)
from stepladder.records import Records
from stepladder.saving.saved_array import MAX_FLOAT, Part, SavedArray


@dataclass(frozen=True)
class Grouping:
    """How one weight table splits the slots: `group_of_slot` has shape ``(num_slots,)``."""

    group_of_slot: Words
    num_groups: int
    num_layers: int = 0
    """If positive, so many layers, each of which splits the slots with weights of its own."""
    has_target: bool = False
    """Whether some slots count more than others."""

    @classmethod
    def single(cls, num_slots: int) -> "Grouping":
        """All slots in one group."""
        return cls(np.zeros(num_slots, dtype=np.int64), 1)

    @classmethod
    def layers(cls, num_slots: int, num_layers: int) -> "Grouping":
        """All slots in each of several layers, none of which splits them."""
        return cls(np.zeros(num_slots, dtype=np.int64), 1, num_layers)


class Plan:
    """Views over one block; the curriculum that made it is the only writer."""

    def __init__(self, num_slots: int, groupings: Sequence[Grouping], num_dials: int, seed: int):
        self.num_slots = num_slots
        self.num_dials = num_dials
        layout = _Layout()
        layout.take(HEADER_WORDS)
        dials_at, slots_at = layout.take(num_dials), layout.take(SLOT_WORDS * num_slots)
        active_at, positions_at = layout.take(num_slots), layout.take(num_slots)
        tables = [_TableLayout(layout, grouping) for grouping in groupings]
        self.tables = [table.start for table in tables]
        """The word at which each weight table begins."""
        self._see(aligned_words(layout.num_words))
        header = self.header
        header["layout"], header["seed"] = PLAN_LAYOUT_VERSION, seed
        header["num_slots"], header["num_active"] = num_slots, num_slots
        header["num_dials"], header["dials_at"] = num_dials, dials_at
        header["slots_at"], header["active_at"] = slots_at, active_at
        header["positions_at"], header["table_at"] = positions_at, self.tables[0]
        self.active[:] = self.positions[:] = np.arange(num_slots)
        for table in tables:
            table.write(self)

    def _see(self, block: Words) -> None:
        self.block = block
        self.header: Any = header_record(block)
        """The header, in the block. Write only inside `writing`; the tick alone, which no draw
        depends on, is written outside."""

    @property
    def version(self) -> int:
        """Number of times the plan has changed."""
        return int(self.header["sequence"]) >> 1

    @property
    def tick(self) -> int:
        """Number of collections in which the host found records."""
        return int(self.header["tick"])

    @property
    def slots(self) -> Records[Slot]:
        """Task id and generation of every slot, in the block."""
        start = int(self.header["slots_at"])
        return cast("Any", self.block[start : start + SLOT_WORDS * self.num_slots].view(SLOT))

    @property
    def task_ids(self) -> Words:
        """Task id per slot, in the block."""
        return self.slots["task_id"]

    @property
    def generations(self) -> Words:
        """Generation per slot, in the block."""
        return self.slots["generation"]

    @property
    def dials(self) -> Floats:
        """The dials, in the block. Write only inside `writing`."""
        start = int(self.header["dials_at"])
        return self.block[start : start + self.num_dials].view(np.float64)

    @property
    def active(self) -> Words:
        """Slots that may be drawn, in no particular order; a view."""
        start = int(self.header["active_at"])
        return self.block[start : start + int(self.header["num_active"])]

    @property
    def positions(self) -> Words:
        """Per slot its position among the active ones, or -1; a view."""
        start = int(self.header["positions_at"])
        return self.block[start : start + self.num_slots]

    def table(self, table: int) -> Any:
        """Return the record of a weight table, in the block. Write only inside `writing`."""
        return self.block[table : table + TABLE_WORDS].view(TABLE)[0]

    def groups(self, table: int) -> Records[Group]:
        """Return the records of a table's groups, in the block."""
        own = self.table(table)
        start, num_groups = int(own["groups_at"]), int(own["num_groups"])
        return cast("Any", self.block[start : start + GROUP_WORDS * num_groups].view(GROUP))

    def shares(self, table: int) -> Floats:
        """Shares of a table's groups, in the block. Write only inside `writing`."""
        return self.groups(table)["share"]

    def set_exploration(self, table: int, exploration: float) -> None:
        """Set the share of draws that ignore the weights. Call inside `writing`."""
        self.table(table)["exploration"] = exploration

    def set_max_share(self, table: int, max_share: float) -> None:
        """Set the largest share of draws that one slot may have. Call inside `writing`."""
        self.table(table)["max_share"] = max_share

    def targets(self, table: int) -> Floats:
        """How much each active slot counts, in [0, 1], in the block; empty without a target."""
        own = self.table(table)
        start = int(own["targets_at"]) + int(own["targets_capacity"])
        return self.block[start : start + self.num_slots * (start > 0)].view(np.float64)

    def leaves(self, table: int) -> Floats:
        """Return a copy of all slots' weights; shape ``(layers, num_slots)``."""
        num_layers = max(1, int(self.table(table)["num_layers"]))
        weights = np.empty((num_layers, self.num_slots))
        kernels.copy_leaves(self.block, table, weights)
        return weights

    def probs(self) -> Floats:
        """Return the probability of every slot; sums to one."""
        probs = np.empty(self.num_slots)
        choosing.fill_probs(self.block, probs)
        return probs

    @contextmanager
    def writing(self) -> Generator[Words]:
        """Keep readers out for the length of a ``with`` block; raises the version by one."""
        try:
            # Inside, or Ctrl-C right after it would keep all readers out forever.
            kernels.begin_write(self.block)
            yield self.block
        finally:
            if int(self.header["sequence"]) & 1:
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
        self.header["num_active"] = len(active)
        self.active[:] = active
        self.positions[:] = -1
        self.positions[active] = np.arange(len(active))
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
        self._see(block[: len(self.block)])


def header_record(block: Words) -> Any:
    """Return the header of a block, whose fields are read and set by name.

    An array without dimensions: NumPy reads a field of one in a quarter of the time that it takes
    for a single record.
    """
    return block[:HEADER_WORDS].view(HEADER).reshape(())


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


class _TableLayout:
    """Where one weight table's parts lie, and what they hold at the start."""

    def __init__(self, layout: _Layout, grouping: Grouping):
        num_slots, num_sets = len(grouping.group_of_slot), max(1, grouping.num_layers)
        num_groups = grouping.num_groups * num_sets
        self.grouping = grouping
        counts = np.bincount(grouping.group_of_slot, minlength=grouping.num_groups)
        self.counts = np.tile(counts.astype(np.int64), num_sets)
        splits = num_slots if grouping.num_groups > 1 else 0
        self.start, self.groups_at = (
            layout.take(TABLE_WORDS),
            layout.take(GROUP_WORDS * num_groups),
        )
        self.places_at, self.members_at = layout.take(splits), layout.take(splits)
        self.capacities = [_power_of_two(int(count)) for count in self.counts]
        self.trees = [layout.take(2 * capacity) for capacity in self.capacities]
        self.targets_at, self.target_trees = 0, [0] * num_groups
        self.targets_capacity = _power_of_two(num_slots) if grouping.has_target else 0
        if grouping.has_target:
            self.targets_at = layout.take(2 * self.targets_capacity)
            self.target_trees = [layout.take(2 * capacity) for capacity in self.capacities]

    def write(self, plan: "Plan") -> None:
        grouping, block, table = self.grouping, plan.block, plan.table(self.start)
        num_groups = len(self.counts)
        table["num_groups"], table["groups_at"] = num_groups, self.groups_at
        table["places_at"], table["members_at"] = self.places_at, self.members_at
        table["num_layers"], table["layer_groups"] = grouping.num_layers, grouping.num_groups
        table["max_share"] = table["other_share"] = 1.0
        table["targets_at"] = self.targets_at
        table["targets_capacity"] = self.targets_capacity
        groups = plan.groups(self.start)
        own = self.counts[: grouping.num_groups]
        first = np.cumsum(own) - own
        groups["share"] = 1.0 / num_groups
        groups["tree_at"], groups["capacity"] = self.trees, self.capacities
        groups["target_tree_at"] = self.target_trees
        groups["first_member"] = np.tile(first, num_groups // grouping.num_groups)
        groups["num_members"] = self.counts
        if grouping.num_groups > 1:
            order = np.argsort(grouping.group_of_slot, kind="stable")
            group = grouping.group_of_slot[order]
            leaves = np.arange(len(order)) - first[group]
            block[self.members_at : self.members_at + len(order)] = order
            block[self.places_at + order] = (group << choosing.LEAF_BITS) | leaves


def _power_of_two(count: int) -> int:
    return 1 << max(0, count - 1).bit_length()
