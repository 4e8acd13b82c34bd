"""The active tasks: a slot holds one, and counts how often it was replaced.

Between sources and curricula: a source offers task ids, the pool puts them into slots, a
curriculum weighs the slots. Records name slot and generation, so a result for a task that has
left its slot never lands on its successor.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepladder.configs.documents import to_plain
from stepladder.errors import ConfigError, TaskError
from stepladder.tasks.plain import checked_integer
from stepladder.tasks.pool_state import POOL_STATE_VERSION, check_state
from stepladder.tasks.scramble import Permutation
from stepladder.tasks.source import Source
from stepladder.tasks.task import MAX_SEED, Task

MAX_SLOTS = 1_000_000
"""Most slots of a pool."""

UNBOUNDED_IDS = 2**53
"""A pool takes its ids below this from a source without end; exact as floats in any file."""

MAX_TRIES = 10_000
"""Most ids looked at to find one with a wanted label."""


@dataclass(frozen=True)
class Newcomer:
    """A task that will enter a slot, and everything that changes with it."""

    slot: int
    task_id: int
    leaving: int
    """Id of the task that is in the slot until then."""

    generation: int
    """Of the slot, with the newcomer in it."""

    label_index: int
    weight: float
    cursor: int
    """Next position in the order of the source, if the pool walks along it."""

    passed: tuple[int, ...]
    """Ids at the front of the queue of those outside that were looked at, if there is a queue."""


class Pool:
    """The active tasks of a source, in slots 0 to `num_slots` - 1.

    All arrays have shape ``(num_slots,)``. They are for reading; only the pool writes them.

    Attributes:
        source: Where the tasks come from.
        num_slots: Number of slots.
        task_ids: Id of the task in each slot, int64, all different.
        generations: How often the task of each slot was replaced, int64.
        label_names: All labels of the source, in its order.
        label_indices: Position in `label_names` of each slot's label, int64.
        base_weights: The source's weight of each slot's task, float64.
    """

    def __init__(self, source: Source, capacity: int | None = None, seed: int = 0) -> None:
        """Fill the slots.

        Args:
            source: Where the tasks come from.
            capacity: Number of slots, from 1 to 1,000,000; no more are made than the source has
                tasks. None for all tasks of a finite source.
            seed: From 0 to 2**63 - 1. Decides which tasks come in, and in which order, wherever
                the source has more tasks than there are slots.

        Raises:
            ConfigError: If the capacity is out of range, or missing where it is needed.
        """
        self.source = source
        self.num_slots = _num_slots(source.num_tasks, capacity)
        self._seed = checked_integer(seed, "The seed of a pool", 0, MAX_SEED, ConfigError)
        self._order = Permutation(self._num_ids(), self._seed)
        self._cursor = self.num_slots
        holds_all = self.num_slots == source.num_tasks
        self.task_ids = (
            np.arange(self.num_slots, dtype=np.int64)
            if holds_all
            else self._order.items(0, self.num_slots)
        )
        self.generations = np.zeros(self.num_slots, dtype=np.int64)
        self.label_names = source.labels()
        self.label_indices = source.label_indices(self.task_ids)
        self.base_weights = source.weights(self.task_ids)
        _refuse_bad_weights(self.task_ids, self.base_weights)
        self._slots = _index_slots(self.task_ids)
        self._waiting: OrderedDict[int, None] | None = None
        if self._is_crowded():
            outside = range(0) if holds_all else self._order.items(self._cursor, self._num_ids())
            self._waiting = OrderedDict.fromkeys(int(task_id) for task_id in outside)

    @property
    def can_replace(self) -> bool:
        """Whether the source has tasks that are not in the pool, or can edit those that are."""
        return self.source.id_limit > self.num_slots

    def task(self, slot: int) -> Task:
        """Make the task that is in a slot now."""
        return self.source.get(int(self.task_ids[self._check_slot(slot)]))

    def contains(self, task_id: int) -> bool:
        """Whether the task with this id is in a slot now."""
        return self.source.check_id(task_id) in self._slots

    def slots_of_label(self, label: str) -> NDArray[np.int64]:
        """Return the slots whose task has this label now, ascending; may be empty."""
        return np.flatnonzero(self.label_indices == self._label_index(label)).astype(np.int64)

    def replace(self, slot: int, task_id: int | None = None, label: str | None = None) -> int:
        """Put another task into a slot, in place; on an error nothing has changed.

        The cost does not depend on the number of slots.

        Args:
            slot: The slot.
            task_id: Which task to put in. None for the next one outside the pool, in an order
                that depends on the seed and goes round and round through the source.
            label: The label the new task must have. None for any.

        Returns:
            The slot's new generation.

        Raises:
            TaskError: If slot, id or label is unknown, the task is in the pool already, or none
                with this label was found outside it in 10,000 tries.
        """
        newcomer = self.prepare(slot, task_id, label)
        self.admit(newcomer)
        return newcomer.generation

    def prepare(self, slot: int, task_id: int | None = None, label: str | None = None) -> Newcomer:
        """Find what `replace` would put into a slot, and change nothing."""
        slot = self._check_slot(slot)
        wanted = None if label is None else self._label_index(label)
        if task_id is None:
            task_id, num_steps = self._find_next(wanted)
        else:
            task_id, num_steps = self._check_newcomer(task_id, wanted), 0
        ids = np.array([task_id], dtype=np.int64)
        weights = self.source.weights(ids)
        _refuse_bad_weights(ids, weights)
        return Newcomer(
            slot=slot,
            task_id=task_id,
            leaving=int(self.task_ids[slot]),
            generation=int(self.generations[slot]) + 1,
            label_index=int(self.source.label_indices(ids)[0]),
            weight=float(weights[0]),
            cursor=(self._cursor + num_steps) % self._num_ids(),
            passed=tuple(islice(self._waiting or (), num_steps)),
        )

    def admit(self, newcomer: Newcomer) -> None:
        """Put a task that `prepare` found into its slot.

        Each line stores what is known beforehand: after an interrupt in the middle, calling this
        again with the same newcomer completes it.
        """
        slot, task_id, leaving = newcomer.slot, newcomer.task_id, newcomer.leaving
        if self._waiting is None:
            self._cursor = newcomer.cursor
        else:
            self._waiting.pop(leaving, None)
            # Those passed over go to the back of the queue, as if a cursor had moved past them.
            for passed in newcomer.passed:
                if passed in self._waiting:
                    self._waiting.move_to_end(passed)
            self._waiting.pop(task_id, None)
            # An edit comes in by its id only; the source does not offer it in turn.
            if leaving < self._num_ids():
                self._waiting[leaving] = None
        self._slots.pop(leaving, None)
        self._slots[task_id] = slot
        self.task_ids[slot] = task_id
        self.label_indices[slot] = newcomer.label_index
        self.base_weights[slot] = newcomer.weight
        # Last: a draw before this line plays the new task, and its result is credited to none.
        self.generations[slot] = newcomer.generation

    def rebind(self, task_ids: NDArray[np.int64], generations: NDArray[np.int64]) -> None:
        """Keep ids and generations in these arrays from now on, such as ones in shared memory.

        The present values are copied into both arrays, which later replacements change in place.

        Raises:
            ConfigError: If an array is not a writable int64 array of shape ``(num_slots,)``.
        """
        for name, array in (("task_ids", task_ids), ("generations", generations)):
            if array.shape != (self.num_slots,) or array.dtype != np.int64:
                raise ConfigError(
                    f"{name} must be int64 of shape ({self.num_slots},); got {array.dtype} of "
                    f"shape {array.shape}. Allocate it with the pool's num_slots."
                )
            if not array.flags.writeable:
                raise ConfigError(f"{name} must be writable; got a read-only array. Copy it first.")
        if np.shares_memory(task_ids, generations):
            raise ConfigError("task_ids and generations overlap in memory. Give each its own.")
        task_ids[:] = self.task_ids
        generations[:] = self.generations
        self.task_ids, self.generations = task_ids, generations

    def snapshot(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that `restore` needs: plain JSON, and copies of arrays."""
        state = {
            "version": POOL_STATE_VERSION,
            "seed": self._seed,
            "cursor": self._cursor,
            "num_slots": self.num_slots,
            "source": to_plain(self.source.describe(), "description"),
            "fingerprint": self.source.fingerprint(),
        }
        return state, {
            "task_ids": self.task_ids.copy(),
            "generations": self.generations.copy(),
            # Ids outside the pool in the order they come in, if the pool keeps a queue.
            "waiting": np.fromiter(self._waiting or (), dtype=np.int64),
        }

    def restore(
        self,
        state: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        place: str = "the snapshot of the pool",
    ) -> None:
        """Return to the state of a snapshot, in place; on an error nothing has changed.

        Later replacements are those the pool of the snapshot would have made. The seed becomes
        that of the snapshot.

        Raises:
            SnapshotError: If the snapshot is damaged, or was taken of other tasks or another
                number of slots; the message names the difference.
        """
        num_ids = self._num_ids()
        check_state(
            state,
            arrays,
            self.source,
            num_slots=self.num_slots,
            num_positions=num_ids,
            has_queue=self._is_crowded(),
            place=place,
        )
        label_indices = self.source.label_indices(arrays["task_ids"])
        base_weights = self.source.weights(arrays["task_ids"])

        self._seed, self._cursor = state["seed"], state["cursor"]
        self._order = Permutation(num_ids, self._seed)
        # Written in place: these arrays may be shared with other processes.
        self.task_ids[:] = arrays["task_ids"]
        self.generations[:] = arrays["generations"]
        self.label_indices[:] = label_indices
        self.base_weights[:] = base_weights
        self._slots = _index_slots(self.task_ids)
        if self._waiting is not None:
            self._waiting = OrderedDict.fromkeys(arrays["waiting"].tolist())

    def _num_ids(self) -> int:
        return UNBOUNDED_IDS if self.source.num_tasks is None else self.source.num_tasks

    def _is_crowded(self) -> bool:
        """Whether fewer tasks wait outside than are in the pool.

        Walking the order and skipping what is in the pool costs two steps per replacement at
        most, on average, until then; beyond, a queue of those outside keeps the cost flat.
        """
        return self._num_ids() - self.num_slots < self.num_slots

    def _candidates(self) -> Iterator[int]:
        """Yield ids, next one first. Ids in the pool may be among them."""
        if self._waiting is not None:
            yield from self._waiting
            return
        num_ids = self._num_ids()
        for step in range(num_ids):
            yield self._order.item((self._cursor + step) % num_ids)

    def _find_next(self, wanted: int | None) -> tuple[int, int]:
        """Return the next id to come in, and how many candidates were used up to find it."""
        num_tries = 0
        for num_steps, task_id in enumerate(self._candidates(), start=1):
            if task_id in self._slots:
                continue
            if wanted is None or self.source.label(task_id) == self.label_names[wanted]:
                return task_id, num_steps
            num_tries += 1
            if num_tries == MAX_TRIES:
                break
        if wanted is None:
            raise TaskError(
                f"All {self._num_ids()} tasks of the source are in the pool; there is none to put "
                "in. Check can_replace first, or make a pool with a smaller capacity."
            )
        raise TaskError(
            f"No task with the label {self.label_names[wanted]!r} was found outside the pool; "
            f"looked at {num_tries}, at most {MAX_TRIES} are tried. Give a task_id, or ask for "
            "another label."
        )

    def _check_newcomer(self, task_id: int, wanted: int | None) -> int:
        task_id = self.source.check_id(task_id)
        if task_id in self._slots:
            raise TaskError(
                f"Task {task_id} is already in slot {self._slots[task_id]}; a pool holds each task "
                "once. Choose an id for which contains() is False."
            )
        if wanted is not None and self.source.label(task_id) != self.label_names[wanted]:
            raise TaskError(
                f"Task {task_id} has the label {self.source.label(task_id)!r}; "
                f"{self.label_names[wanted]!r} was requested. Leave out one of the two."
            )
        return task_id

    def _check_slot(self, slot: int) -> int:
        return checked_integer(slot, "A slot of this pool", 0, self.num_slots - 1)

    def _label_index(self, label: str) -> int:
        if label not in self.label_names:
            raise TaskError(
                f"The source has no label {label!r}; it has {self.label_names[:10]}. Use one of "
                "these."
            )
        return self.label_names.index(label)


def _num_slots(num_tasks: int | None, capacity: int | None) -> int:
    if capacity is not None:
        capacity = checked_integer(capacity, "The capacity of a pool", 1, MAX_SLOTS, ConfigError)
        return capacity if num_tasks is None else min(capacity, num_tasks)
    if num_tasks is None or num_tasks > MAX_SLOTS:
        size = "no end of tasks" if num_tasks is None else f"{num_tasks} tasks"
        raise ConfigError(
            f"The source has {size}, and a pool at most {MAX_SLOTS} slots; got no capacity. Pass "
            "one, such as capacity=1000."
        )
    return num_tasks


def _index_slots(task_ids: NDArray[np.int64]) -> dict[int, int]:
    return {task_id: slot for slot, task_id in enumerate(task_ids.tolist())}


def _refuse_bad_weights(task_ids: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise TaskError(
            f"Task {task_ids[bad[0]]} has the base weight {weights[bad[0]]}; a finite number of at "
            "least 0 is needed. Correct the weight method of the source."
        )
