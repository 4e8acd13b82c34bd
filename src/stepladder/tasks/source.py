"""Where tasks come from: the contract of a source, the plain list, and what sources share.

Sources make tasks by id; the pool puts some of these ids into slots and has the task itself made
only when it is played. So a source is deterministic in the id, and quick to give names and labels.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepladder.configs.documents import to_plain
from stepladder.errors import ConfigError, TaskError
from stepladder.tasks.plain import canonical_json, checked_integer, digest
from stepladder.tasks.task import Task

MAX_SOURCE_TASKS = 2**63
"""Ids run from 0 to 2**63 - 1, so that they fit into a signed 64-bit array."""


class Source(ABC):
    """A set of tasks, each known by an id counted from 0.

    A subclass defines `num_tasks`, `get`, `labels` and `describe`. It overrides `name`, `label`
    and `label_indices` where these need no task.
    """

    @property
    @abstractmethod
    def num_tasks(self) -> int | None:
        """Number of tasks, or None if the source is infinite."""

    @abstractmethod
    def get(self, task_id: int) -> Task:
        """Make the task with this id; the same id always gives an equal task.

        Raises:
            TaskError: If the id is negative or too large, or the task cannot be made.
        """

    @abstractmethod
    def labels(self) -> list[str]:
        """Return every label a task of this source can have, in order, each once."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return in plain JSON which tasks these are; equal descriptions mean equal task sets.

        Kept in snapshots, so that one of another task set is refused with the difference named.
        """

    def fingerprint(self) -> str:
        """Return 32 hex digits that identify what `describe` returns."""
        return digest(canonical_json(to_plain(self.describe(), "description")))

    def name(self, task_id: int) -> str:
        """Return the name of a task."""
        return self.get(task_id).name

    def label(self, task_id: int) -> str:
        """Return the label of a task."""
        return self.get(task_id).label

    def weight(self, task_id: int) -> float:
        """Return how often a task is drawn, relative to the others, before any curriculum."""
        self.check_id(task_id)
        return 1.0

    def label_indices(self, task_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the position in `labels` of each task's label, shape ``(len(task_ids),)``."""
        positions = {label: position for position, label in enumerate(self.labels())}
        indices = np.empty(len(task_ids), dtype=np.int64)
        for i, task_id in enumerate(task_ids.tolist()):
            label = self.label(task_id)
            if label not in positions:
                raise TaskError(
                    f"Task {task_id} has the label {label!r}, which is not among the source's "
                    f"labels {list(positions)[:10]}. Add it to what {type(self).__name__}.labels "
                    "returns."
                )
            indices[i] = positions[label]
        return indices

    def weights(self, task_ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the `weight` of each task, shape ``(len(task_ids),)``."""
        if self._weighs_alike():
            self.check_ids(task_ids)
            return np.ones(len(task_ids))
        return np.array([self.weight(task_id) for task_id in task_ids.tolist()], dtype=np.float64)

    def mean_weight(self) -> float:
        """Return the mean of `weight` over all tasks; 1.0 if the source is infinite."""
        # A source that keeps the default weight needs no sum, and may be too large for one.
        if self.num_tasks is None or self._weighs_alike():
            return 1.0
        return float(self.weights(np.arange(self.num_tasks, dtype=np.int64)).mean())

    @property
    def id_limit(self) -> int:
        """One more than the largest id there may be; above `num_tasks` if tasks can be edited."""
        return MAX_SOURCE_TASKS if self.num_tasks is None else self.num_tasks

    def origin(self, task_id: int) -> str:
        """Say in a clause what a task was made from; empty for one of the source's own."""
        self.check_id(task_id)
        return ""

    def check_id(self, task_id: int) -> int:
        """Return the id as a plain int, or raise TaskError if this source has no such task."""
        what = f"A task id of {type(self).__name__}"
        return checked_integer(task_id, what, 0, self.id_limit - 1)

    def check_ids(self, task_ids: NDArray[np.int64]) -> None:
        """Raise TaskError if any of these ids is not one of this source."""
        if len(task_ids):
            self.check_id(task_ids.min())
            self.check_id(task_ids.max())

    def _weighs_alike(self) -> bool:
        return type(self).weight is Source.weight


class LabelledSource(Source):
    """A source that knows the label of each task without making the task.

    A subclass sets `_labels`, and `_label_indices` unless all tasks have the first label.
    """

    _labels: list[str]
    _label_indices: NDArray[np.int64] | None = None

    def label(self, task_id: int) -> str:
        """Return the label of a task."""
        task_id = self.check_id(task_id)
        return self._labels[0 if self._label_indices is None else self._label_indices[task_id]]

    def labels(self) -> list[str]:
        """Return every label, in order."""
        return list(self._labels)

    def label_indices(self, task_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the position in `labels` of each task's label, shape ``(len(task_ids),)``."""
        self.check_ids(task_ids)
        if self._label_indices is None:
            return np.zeros(len(task_ids), dtype=np.int64)
        return self._label_indices[task_ids]

    def _label_counts(self) -> dict[str, int]:
        """Return the number of tasks by label; only for finite sources."""
        if self._label_indices is None:
            return {self._labels[0]: int(self.num_tasks or 0)}
        counts = np.bincount(self._label_indices).tolist()
        return dict(zip(self._labels, counts, strict=True))


class TaskCache:
    """The tasks that were used last, by id, for sources whose tasks take long to make.

    The pickle of a cache is an empty cache of the same size.
    """

    def __init__(self, cache_size: int) -> None:
        """Make an empty cache of at most `cache_size` tasks, from 0 to 2**31 - 1."""
        self._cache_size = checked_integer(cache_size, "cache_size", 0, 2**31 - 1, ConfigError)
        self._tasks: OrderedDict[int, Task] = OrderedDict()

    def __len__(self) -> int:
        """Return how many tasks are kept now."""
        return len(self._tasks)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the size only."""
        return TaskCache, (self._cache_size,)

    def get(self, task_id: int, make: Callable[[int], Task]) -> Task:
        """Return a task, made if it is not kept; the one unused for longest is dropped."""
        task = self._tasks.pop(task_id, None) or make(task_id)
        self._tasks[task_id] = task
        if len(self._tasks) > self._cache_size:
            self._tasks.popitem(last=False)
        return task


class ListSource(LabelledSource):
    """The tasks of a list, in its order. Labels are in the order of their first task."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        """Take the tasks; id 0 is the first.

        Raises:
            TaskError: If there are none, or two have the same name.
        """
        self._tasks = tuple(tasks)
        if not self._tasks:
            raise TaskError("A ListSource needs at least one task; got an empty list. Add a task.")
        _refuse_duplicates(self._tasks)
        positions: dict[str, int] = {}
        self._label_indices = np.array(
            [positions.setdefault(task.label, len(positions)) for task in self._tasks],
            dtype=np.int64,
        )
        self._labels = list(positions)
        self._digest: str | None = None

    @staticmethod
    def from_names(names: Iterable[str], label: str = "default") -> ListSource:
        """Make a list of tasks that differ only in their names."""
        if isinstance(names, str):
            raise TaskError(f"names must be a list of names; got the string {names!r}. Wrap it.")
        return ListSource(Task(name, label) for name in names)

    @staticmethod
    def numbered(count: int, label: str = "default", prefix: str = "task") -> NumberedSource:
        """Make `count` tasks named by `prefix` and their id, none of which take memory."""
        return NumberedSource(count, label, prefix)

    @property
    def num_tasks(self) -> int:
        """Number of tasks."""
        return len(self._tasks)

    def get(self, task_id: int) -> Task:
        """Return the task at this position."""
        return self._tasks[self.check_id(task_id)]

    def describe(self) -> dict[str, Any]:
        """Return the number of tasks, the number per label and a digest of all their keys."""
        if self._digest is None:
            hasher = hashlib.blake2b(digest_size=16)
            for task in self._tasks:
                hasher.update(task.key.encode())
            self._digest = hasher.hexdigest()
        return {
            "kind": "list",
            "num_tasks": self.num_tasks,
            "label_counts": self._label_counts(),
            "digest": self._digest,
        }


class NumberedSource(LabelledSource):
    """Tasks that differ only in a number, made when used."""

    def __init__(self, count: int, label: str = "default", prefix: str = "task") -> None:
        """Describe the tasks.

        Args:
            count: Number of tasks, from 1 to 2**63.
            label: The label of them all.
            prefix: A task's name is this followed by its id.
        """
        self._count = checked_integer(count, "The count of a NumberedSource", 1, MAX_SOURCE_TASKS)
        # A first task is made only to have label and prefix checked.
        self._labels = [Task(f"{prefix}0", label).label]
        self._prefix = prefix

    @property
    def num_tasks(self) -> int:
        """Number of tasks."""
        return self._count

    def get(self, task_id: int) -> Task:
        """Make the task with this number."""
        return Task(self.name(task_id), self._labels[0])

    def name(self, task_id: int) -> str:
        """Return prefix and number."""
        return f"{self._prefix}{self.check_id(task_id)}"

    def describe(self) -> dict[str, Any]:
        """Return everything the tasks depend on."""
        return {
            "kind": "numbered",
            "num_tasks": self._count,
            "label_counts": self._label_counts(),
            "prefix": self._prefix,
        }


def _refuse_duplicates(tasks: tuple[Any, ...]) -> None:
    positions: dict[str, int] = {}
    for position, task in enumerate(tasks):
        if not isinstance(task, Task):
            raise TaskError(
                f"A ListSource takes tasks; position {position} holds a {type(task).__name__}. "
                "Make it a Task, or use ListSource.from_names for names."
            )
        first = positions.setdefault(task.name, position)
        if first != position:
            raise TaskError(
                f"Two tasks are named {task.name!r}, at positions {first} and {position}; names "
                "must be unique within a source. Rename one."
            )
