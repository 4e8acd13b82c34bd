"""Tasks without end, made by drawing parameters from ranges.

A source for the pool. A task depends on nothing but its own seed, and that on the source's seed
and the task's id: any process can make any task again, in any order.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from stepladder.configs.documents import to_plain
from stepladder.errors import TaskError
from stepladder.tasks.editing import EditableSource
from stepladder.tasks.paths import read_path, write_path
from stepladder.tasks.plain import checked_integer
from stepladder.tasks.ranges import MAX_LISTED_VALUES, Range, as_range
from stepladder.tasks.source import MAX_SOURCE_TASKS, LabelledSource, Source, TaskCache
from stepladder.tasks.task import MAX_SEED, Task

# Second half of the Philox key: keeps the stream of task seeds apart from those of parameters.
_SEED_STREAM = 1
_PARAMS_STREAM = 2
_EDIT_STREAM = 3


class ParameterSource(LabelledSource, EditableSource):
    """A generator over parameter ranges and choices."""

    def __init__(
        self,
        ranges: Mapping[str, Any],
        base: Mapping[str, Any] | None = None,
        label: str = "default",
        num_tasks: int | None = None,
        name: str = "task",
        seed: int = 0,
        label_from: str | None = None,
        *,
        cache_size: int = 1024,
    ) -> None:
        """Check the ranges; no task is made yet.

        Args:
            ranges: What to draw, by dotted path, such as ``"puck.speed"``: a `FloatRange`,
                `IntRange` or `Choice`; a list, which stands for a choice among its elements, any
                of which may be a range again; or a constant.
            base: Parameters that all tasks share. Values drawn are written into a copy; levels
                that a path needs and `base` lacks are added.
            label: The label of all tasks, unless `label_from` is given.
            num_tasks: Number of tasks, or None for no end.
            name: A task's name is this followed by its id.
            seed: From 0 to 2**63 - 1; another seed gives other tasks.
            label_from: Path among `ranges` whose value, as text, is the label. Only for ranges
                whose values can be listed.
            cache_size: Most tasks kept in memory.

        Raises:
            TaskError: If a range is malformed or a path cannot be written; the path is named.
        """
        self._ranges = _checked_ranges(ranges)
        self._base = cast("dict[str, Any]", to_plain({} if base is None else base, "base"))
        for path in self._ranges:
            write_path(copy.deepcopy(self._base), path, None)
        self._num_tasks = (
            None
            if num_tasks is None
            else checked_integer(num_tasks, "num_tasks", 1, MAX_SOURCE_TASKS)
        )
        # A first task is made only to have name and label checked.
        self._labels = [Task(f"{name}0", label).label]
        self._name = name
        self._seed = checked_integer(seed, "The seed of a ParameterSource", 0, MAX_SEED)
        self._label_from = label_from
        if label_from is not None:
            self._labels = self._list_labels(label_from)
        self._movable = [
            path
            for path, range_ in self._ranges.items()
            if path != label_from and len(range_.listed_values() or (0, 1)) > 1
        ]
        """What an edit may change."""
        self._cache = TaskCache(cache_size)

    @property
    def num_tasks(self) -> int | None:
        """Number of tasks, or None if the source is infinite."""
        return self._num_tasks

    def get(self, task_id: int) -> Task:
        """Make the task with this id."""
        return self._cache.get(self.check_id(task_id), self._make)

    def params_from(self, seed: int) -> dict[str, Any]:
        """Draw the parameters that a task with this seed has, whatever its id."""
        seed = checked_integer(seed, "A task's seed", 0, MAX_SEED)
        bits = np.random.Philox(key=[seed, _PARAMS_STREAM])
        params = copy.deepcopy(self._base)
        for path, range_ in self._ranges.items():
            write_path(params, path, copy.deepcopy(range_.sample(bits.random_raw)))
        return params

    def edit(self, task: Task, seed: int) -> Task:
        """Return a copy of a task in which one parameter moved by a small step in its range.

        The parameter that gives the label stays as it is. `EditableSource.edit` has the rest.
        """
        seed = checked_integer(seed, "The seed of an edit", 0, MAX_SEED)
        if not self._movable:
            return task
        bits, params = np.random.Philox(key=[seed, _EDIT_STREAM]), task.params
        path = self._movable[int(bits.random_raw()) * len(self._movable) >> 64]
        moved = self._ranges[path].step(read_path(params, path), bits.random_raw)
        write_path(params, path, copy.deepcopy(moved))
        return Task(task.name, task.label, params, task.seed)

    def name(self, task_id: int) -> str:
        """Return the source's name followed by the id."""
        return f"{self._name}{self.check_id(task_id)}"

    def label(self, task_id: int) -> str:
        """Return the label; makes the task only where the label is drawn."""
        return super().label(task_id) if self._label_from is None else self.get(task_id).label

    def label_indices(self, task_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the position in `labels` of each task's label, shape ``(len(task_ids),)``."""
        if self._label_from is None:
            return super().label_indices(task_ids)
        return Source.label_indices(self, task_ids)

    def describe(self) -> dict[str, Any]:
        """Return everything the tasks depend on."""
        return {
            "kind": "parameters",
            "num_tasks": self._num_tasks,
            "labels": self.labels(),
            "label_from": self._label_from,
            "name": self._name,
            "seed": self._seed,
            "base": copy.deepcopy(self._base),
            "ranges": {path: range_.describe() for path, range_ in self._ranges.items()},
        }

    def _make(self, task_id: int) -> Task:
        bits = np.random.Philox(key=[self._seed, _SEED_STREAM], counter=[task_id, 0, 0, 0])
        seed = int(bits.random_raw()) >> 1
        params = self.params_from(seed)
        label = self._labels[0]
        if self._label_from is not None:
            label = str(read_path(params, self._label_from))
        return Task(self.name(task_id), label, params, seed)

    def _list_labels(self, path: str) -> list[str]:
        if path not in self._ranges:
            raise TaskError(
                f"label_from must be one of the paths in ranges, {list(self._ranges)}; got "
                f"{path!r}. Add it there or choose another."
            )
        values = self._ranges[path].listed_values()
        if values is None:
            raise TaskError(
                f"label_from={path!r} has values that cannot be listed, or more than "
                f"{MAX_LISTED_VALUES}. Use a Choice, a list or a small IntRange there."
            )
        labels = list(dict.fromkeys(str(value) for value in values))
        if "" in labels:
            raise TaskError(
                f"label_from={path!r} may draw an empty string, which cannot be a label. Replace "
                "it in the range."
            )
        return labels


def _checked_ranges(ranges: Mapping[str, Any]) -> dict[str, Range]:
    """Return the ranges in order of path, in which they are also drawn."""
    if not isinstance(cast("object", ranges), Mapping):
        raise TaskError(
            f"ranges must map dotted paths to ranges; got {type(ranges).__name__}. Pass a dict."
        )
    for path in ranges:
        if not isinstance(cast("object", path), str) or not all(path.split(".")):
            raise TaskError(
                f"ranges has the path {path!r}; a path is one or more names joined by dots, such "
                "as 'puck.speed'. Rename it."
            )
    for path in ranges:
        names = path.split(".")
        for length in range(1, len(names)):
            outer = ".".join(names[:length])
            if outer in ranges:
                raise TaskError(
                    f"ranges has both {outer!r} and {path!r}, which lies inside it. Remove one."
                )
    return {path: as_range(ranges[path], path) for path in sorted(ranges)}
