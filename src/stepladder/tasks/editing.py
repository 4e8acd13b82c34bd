"""Tasks made by small changes of other tasks: which sources can do it, and the ids of the edits.

A source for the pool, around a source that can change its tasks. The id of an edit holds the whole
way to it: the task it began from, and a digit for each edit since. So any process that has the
source can make any edit again from its id alone, as it makes any other task: nothing about edits
has to be sent to workers, kept by the pool or saved beside the ids.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from stepladder.errors import ConfigError, TaskError, shown
from stepladder.tasks.plain import checked_integer
from stepladder.tasks.scramble import stream_key
from stepladder.tasks.source import Source, TaskCache
from stepladder.tasks.task import Task

FIRST_EDIT = 2**60
"""Ids from here on are edits: the largest id is what a saved count may be at most."""

DIGIT_BITS = 5
NUM_VARIANTS = 2**DIGIT_BITS - 1
"""Edits that can be made of one task; digit 0 says that there is none."""

MOST_OWN_TASKS = 2**22
"""A source without end takes part with so many of its tasks."""

MAX_CHANGES = 1000
"""Most changes that one edit makes."""

_DIGITS = "0123456789abcdefghijklmnopqrstuv"
_MASK = NUM_VARIANTS


class EditableSource(Source):
    """A source that can make a changed copy of a task."""

    edit_version: int = 1
    """Raised with every change of what `edit` makes, so that old snapshots are refused."""

    @abstractmethod
    def edit(self, task: Task, seed: int) -> Task:
        """Return a copy of a task with one small change.

        Deterministic in both arguments, in every process. Where no change is possible it returns
        the task as it is. Name and label of what it returns are not used: an edit is named after
        the task it was made from, and has its label.

        Args:
            task: One of this source, or what an earlier call returned.
            seed: From 0 to 2**63 - 1; another seed gives another change.
        """


class EditedSource(Source):
    """The tasks of a source, and all edits of them.

    The pool offers the source's own tasks in turn; edits come in by their ids, which `child` makes.
    An edit has the label and the weight of the task it began from, and its name with a tilde and a
    digit for each edit: ``maze7~3f`` is edit f of edit 3 of ``maze7``.
    """

    def __init__(self, source: Source, num_changes: int = 5, *, cache_size: int = 1024) -> None:
        """Wrap a source.

        Args:
            source: What can be edited. Of a source without end, the first 4 million tasks.
            num_changes: Changes that each edit makes, from 1 to 1,000.
            cache_size: Most edits kept in memory.

        Raises:
            ConfigError: The source cannot edit tasks, or has too many.
        """
        if not isinstance(cast("object", source), EditableSource):
            raise ConfigError(
                f"tasks of {_described(source)} cannot be edited, and editing was asked for. Set "
                "editing to 0, or use a source that can: ParameterSource, a game's own, or yours "
                "as an EditableSource."
            )
        self.source = cast("EditableSource", source)
        self.num_changes = checked_integer(num_changes, "num_changes", 1, MAX_CHANGES, ConfigError)
        own = self.source.num_tasks
        self._num_tasks = MOST_OWN_TASKS if own is None else own
        self._own_bits = (self._num_tasks - 1).bit_length()
        self.max_depth = (FIRST_EDIT.bit_length() - 1 - self._own_bits) // DIGIT_BITS
        """Edits that can follow one upon the other: the more tasks, the fewer."""
        if self.max_depth < 1:
            raise ConfigError(
                f"a source of {self._num_tasks} tasks leaves no room for edits in their ids; at "
                f"most {2**55} do. Use fewer tasks, or a source without end."
            )
        self._cache = TaskCache(cache_size)

    # The source.

    @property
    def num_tasks(self) -> int:
        """Number of tasks that are not edits."""
        return self._num_tasks

    @property
    def id_limit(self) -> int:
        """One more than the largest id there may be."""
        return 2 * FIRST_EDIT

    def get(self, task_id: int) -> Task:
        """Make a task; an edit from the task that it was made from."""
        task_id = self.check_id(task_id)
        if task_id < FIRST_EDIT:
            return self.source.get(task_id)
        return self._cache.get(task_id, self._make)

    def name(self, task_id: int) -> str:
        """Return the name of the source's own task, with a digit for each edit."""
        task_id = self.check_id(task_id)
        digits = "".join(_DIGITS[digit] for digit in self._digits(task_id))
        own = self.source.name(self.root(task_id))
        return f"{own}~{digits}" if digits else own

    def label(self, task_id: int) -> str:
        """Return the label of the source's own task."""
        return self.source.label(self.root(task_id))

    def labels(self) -> list[str]:
        """Return every label, in order."""
        return self.source.labels()

    def label_indices(self, task_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the position in `labels` of each task's label, shape ``(len(task_ids),)``."""
        return self.source.label_indices(self._roots(task_ids))

    def weight(self, task_id: int) -> float:
        """Return the weight of the source's own task."""
        return self.source.weight(self.root(task_id))

    def weights(self, task_ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the `weight` of each task, shape ``(len(task_ids),)``."""
        return self.source.weights(self._roots(task_ids))

    def mean_weight(self) -> float:
        """Return the mean weight of the source's own tasks."""
        return self.source.mean_weight()

    def describe(self) -> dict[str, Any]:
        """Return everything that the tasks and their edits depend on."""
        return {
            "kind": "edited",
            "num_tasks": self._num_tasks,
            "num_changes": self.num_changes,
            "edit_version": self.source.edit_version,
            "source": self.source.describe(),
        }

    def origin(self, task_id: int) -> str:
        """Say which task an edit was made of, and how far it is from the source's own."""
        depth = self.depth(task_id)
        if depth == 0:
            return ""
        own = self.source.name(self.root(task_id))
        if depth == 1:
            return f"an edit of {own!r}"
        return f"an edit of {self.name(self.parent(task_id))!r}, {depth} edits away from {own!r}"

    # Edits.

    def child(self, task_id: int, variant: int) -> int:
        """Return the id of an edit of a task.

        Args:
            task_id: A task or an edit; not `max_depth` edits deep.
            variant: Which edit of that task, from 1 to `NUM_VARIANTS`.
        """
        depth = self.depth(task_id)
        variant = checked_integer(variant, "The variant of an edit", 1, NUM_VARIANTS)
        if depth == self.max_depth:
            raise TaskError(
                f"Task {self.name(task_id)!r} is {depth} edits deep, and no more fit into the ids "
                "of this source. Edit another task."
            )
        way = 0 if depth == 0 else (task_id - FIRST_EDIT) >> self._own_bits
        return self._pack(self.root(task_id), (way << DIGIT_BITS) | variant)

    def parent(self, task_id: int) -> int:
        """Return the id of the task that an edit was made of; that of any other task is its own."""
        if self.depth(task_id) == 0:
            return task_id
        return self._pack(
            self.root(task_id), (task_id - FIRST_EDIT) >> self._own_bits >> DIGIT_BITS
        )

    def root(self, task_id: int) -> int:
        """Return the id of the source's own task that an edit began from."""
        task_id = self.check_id(task_id)
        return task_id if task_id < FIRST_EDIT else task_id & ((1 << self._own_bits) - 1)

    def depth(self, task_id: int) -> int:
        """Return how many edits a task is away from one of the source's own."""
        return len(self._digits(self.check_id(task_id)))

    def depths(self, task_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the `depth` of each task, shape ``(len(task_ids),)``."""
        return np.array([self.depth(task_id) for task_id in task_ids.tolist()], dtype=np.int64)

    def check_id(self, task_id: int) -> int:
        """Return the id as a plain int, or raise TaskError if there is no such task or edit."""
        task_id = super().check_id(task_id)
        if task_id < self._num_tasks:
            return task_id
        own, digits = task_id & ((1 << self._own_bits) - 1), self._digits(task_id)
        is_edit = task_id >= FIRST_EDIT and 0 < len(digits) <= self.max_depth
        if not is_edit or own >= self._num_tasks or 0 in digits:
            raise TaskError(
                f"{task_id} is the id of no task and of no edit: there are {self._num_tasks} "
                f"tasks, and edits up to {self.max_depth} deep. Take ids from the pool or from "
                "child()."
            )
        return task_id

    def check_ids(self, task_ids: NDArray[np.int64]) -> None:
        """Raise TaskError if any of these ids is not one of this source."""
        own = (task_ids >= 0) & (task_ids < self._num_tasks)
        for task_id in task_ids[~own].tolist():
            self.check_id(task_id)

    def _pack(self, root: int, way: int) -> int:
        return FIRST_EDIT + (way << self._own_bits) + root if way else root

    def _digits(self, task_id: int) -> list[int]:
        """Return the digits of an edit, oldest first; none for the source's own tasks."""
        way = (task_id - FIRST_EDIT) >> self._own_bits if task_id >= FIRST_EDIT else 0
        digits: list[int] = []
        while way:
            digits.append(way & _MASK)
            way >>= DIGIT_BITS
        return digits[::-1]

    def _roots(self, task_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        self.check_ids(task_ids)
        return np.where(task_ids < FIRST_EDIT, task_ids, task_ids & ((1 << self._own_bits) - 1))

    def _make(self, task_id: int) -> Task:
        task = self.get(self.parent(task_id))
        for change in range(self.num_changes):
            # A key has 64 bits, a seed 63.
            task = self._changed(task, task_id, stream_key(task_id, change) >> 1)
        return Task(self.name(task_id), self.label(task_id), task.params, task.seed)

    def _changed(self, task: Task, task_id: int, seed: int) -> Task:
        """Let the source change a task once.

        Raises:
            TaskError: It fails, or what it returns is no task.
        """
        source, name = _described(self.source), self.name(task_id)
        try:
            changed: Any = self.source.edit(task, seed)
        except Exception as error:  # the source's own code may raise anything; it is reported
            raise TaskError(
                f"edit of {source} fails for {name!r} with seed {seed} ({type(error).__name__}: "
                f"{error}). Correct edit(); where no change is possible, return the task as it is."
            ) from error
        if not isinstance(changed, Task):
            raise TaskError(
                f"edit of {source} returned {shown(changed)} for {name!r}; expected a Task. "
                "Correct edit(); where no change is possible, return the task as it is."
            )
        return changed


def _described(source: object) -> str:
    return type(source).__name__ if isinstance(source, Source) else "a plain list"
