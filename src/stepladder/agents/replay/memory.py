"""Replay memory: the latest transitions in a ring, on the device of the agent.

Filled by `dddqn` and `sac` with the transitions of `returns`, sampled by their updates. All numbers
of a transition lie in one row, so that storing is one copy and sampling one gather. Frames that
both observations of a transition have are there once.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from stepladder.agents.divergence import Extent
from stepladder.agents.observations import Layout, Seen
from stepladder.agents.replay.mirror import Mirror
from stepladder.agents.room import FLOAT_BYTES, require_room
from stepladder.agents.saved_values import NumberSpec, TensorSpec, check_state, largest
from stepladder.arrays import Bytes, Floats32
from stepladder.errors import SnapshotError


class Rows(NamedTuple):
    """Transitions to store; every array has a row per transition."""

    numbers: Floats32
    codes: Bytes
    actions: Floats32
    """As networks use them; integers for discrete ones."""

    rewards: Floats32
    """Summed over the steps of a transition."""

    discounts: Floats32
    """Of the value after it; 0 where the episode has terminated."""

    next_numbers: Floats32
    next_codes: Bytes


class Sample(NamedTuple):
    """A batch of transitions."""

    seen: Seen
    actions: torch.Tensor
    rewards: torch.Tensor
    discounts: torch.Tensor
    next_seen: Seen


class Replay:
    """Stores the latest transitions.

    Args:
        layout: Of the observations.
        num_action_columns: Numbers per action.
        capacity: Transitions that are kept; or how many there are, given the bytes of one.
        device: Where.
        mirror: The symmetry of the env, if half of the samples are mirrored.
        num_choices: Number of discrete actions; 0 for continuous ones.
        is_single_step: Whether every transition is one step, after which only the newest frame is
            another.
    """

    def __init__(
        self,
        layout: Layout,
        num_action_columns: int,
        capacity: int | Callable[[int], int],
        device: torch.device,
        mirror: Mirror | None = None,
        num_choices: int = 0,
        is_single_step: bool = False,
    ):
        self._layout, self._num_choices = layout, num_choices
        self.device, self._mirror = device, mirror
        frames = 1 if is_single_step else layout.frame_stack
        # Columns of the later observation that the earlier one does not have.
        self._new_numbers = frames * layout.frame_numbers
        self._new_codes = frames * layout.frame_codes
        self._widths = [layout.num_numbers + self._new_numbers, num_action_columns, 1, 1]
        code_width = layout.num_codes + self._new_codes
        row_bytes = FLOAT_BYTES * sum(self._widths) + code_width
        self.capacity = capacity if isinstance(capacity, int) else capacity(row_bytes)
        require_room(
            self.capacity * row_bytes,
            f"a memory of {self.capacity:,} transitions",
            "Lower buffer_size.",
            device,
        )
        self.floats = torch.empty((self.capacity, sum(self._widths)), device=device)
        self.codes = torch.empty((self.capacity, code_width), dtype=torch.uint8, device=device)
        self.size = 0
        """Number of stored transitions."""
        self.head = 0
        """Place of the next one."""
        # On the device, so that a captured update sees it grow.
        self.size_there = torch.zeros((), dtype=torch.float64, device=device)

    def add(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Store transitions; return their places."""
        count = len(rows.rewards)
        floats = np.concatenate(
            [
                rows.numbers,
                _last(rows.next_numbers, self._new_numbers),
                rows.actions,
                rows.rewards[:, None],
                rows.discounts[:, None],
            ],
            axis=1,
            dtype=np.float32,
        )
        spots = np.arange(self.head, self.head + count) % self.capacity
        self._write(self.floats, floats)
        if self._layout.num_codes:
            new = _last(rows.next_codes, self._new_codes)
            self._write(self.codes, np.concatenate([rows.codes, new], axis=1))
        self.head = (self.head + count) % self.capacity
        if self.size < self.capacity:
            self.size = min(self.capacity, self.size + count)
            self.size_there.fill_(self.size)
        return spots

    def _write(self, ring: torch.Tensor, rows: npt.NDArray[Any]) -> None:
        """Copy rows into a ring from its head on; the latest stay if there are too many."""
        is_here = self.device.type == "cpu"
        # Through NumPy where it can: torch takes three times as long over a few rows.
        there: Any = ring.numpy() if is_here else ring
        left: Any = rows if is_here else torch.from_numpy(rows).to(self.device)
        start = self.head
        while len(left):
            count = min(len(left), self.capacity - start)
            there[start : start + count] = left[:count]
            left, start = left[count:], 0

    def draw(self, count: int, generator: torch.Generator) -> torch.Tensor:
        """Draw places of transitions uniformly."""
        shares = torch.rand(count, dtype=torch.float64, device=self.device, generator=generator)
        return (shares * self.size_there).long()

    def at(self, places: torch.Tensor, generator: torch.Generator) -> Sample:
        """Return the transitions at some places; half of them mirrored if there is a mirror."""
        numbers, actions, rewards, discounts = self.floats.index_select(0, places).split(
            self._widths, dim=1
        )
        codes = self.codes.index_select(0, places)
        num_numbers, num_codes = self._layout.num_numbers, self._layout.num_codes
        sample = Sample(
            Seen(numbers[:, :num_numbers], codes[:, :num_codes]),
            actions,
            rewards.squeeze(1),
            discounts.squeeze(1),
            Seen(numbers[:, self._new_numbers :], codes[:, self._new_codes :]),
        )
        return sample if self._mirror is None else self._mirrored(sample, generator)

    def _mirrored(self, sample: Sample, generator: torch.Generator) -> Sample:
        assert self._mirror is not None
        chances = torch.rand(len(sample.rewards), 1, device=self.device, generator=generator)
        flips = chances < 0.5
        return sample._replace(
            seen=self._mirror.seen(sample.seen, flips),
            actions=self._mirror.actions(sample.actions, flips),
            next_seen=self._mirror.seen(sample.next_seen, flips),
        )

    def extent(self) -> Extent:
        """Return how large the stored rewards and numbers are."""
        numbers, _, rewards, _ = self.floats[: self.size].split(self._widths, dim=1)
        return Extent(largest(rewards), largest(numbers))

    def clear(self) -> None:
        """Drop all transitions."""
        self.size = self.head = 0
        self.size_there.zero_()

    def state_dict(self) -> dict[str, Any]:
        """Return all transitions; the tensors are views of the memory itself."""
        return {
            "floats": self.floats[: self.size],
            "codes": self.codes[: self.size],
            "size": self.size,
            "head": self.head,
        }

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise unless a state can be restored."""
        counts = [
            NumberSpec(name="size", high=self.capacity),
            NumberSpec(name="head", high=self.capacity - 1),
        ]
        for count in counts:
            count.check(state.get(count.name))
        size, head = state["size"], state["head"]
        low, high = self._bounds()
        highest = self._layout.highest_codes
        codes = torch.cat([highest, highest[len(highest) - self._new_codes :]])
        tensors = [
            TensorSpec.like("floats", self.floats[:size], low=low, high=high),
            TensorSpec.like("codes", self.codes[:size], low=0, high=codes),
        ]
        check_state(state, [*counts, *tensors])
        if size < self.capacity and head != size:
            raise SnapshotError(f"head is {head}; expected {size}, the number of transitions.")

    def _bounds(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the smallest and the largest value of each column of `floats`."""
        columns = {"actions": (0.0, self._num_choices - 1.0), "discounts": (0.0, 1.0)}
        if not self._num_choices:
            del columns["actions"]
        names = ("numbers", "actions", "rewards", "discounts")
        limits = [columns.get(name, (-math.inf, math.inf)) for name in names]
        low, high = (
            torch.repeat_interleave(torch.tensor(side), torch.tensor(self._widths))
            for side in zip(*limits, strict=True)
        )
        return low, high

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self.check_state(state)
        size, head = state["size"], state["head"]
        self.size, self.head = size, head
        self.size_there.fill_(size)
        self.floats[:size] = state["floats"].to(self.device)
        if self._layout.num_codes:
            self.codes[:size] = state["codes"].to(self.device)


def _last(columns: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    return columns[:, columns.shape[1] - count :]
