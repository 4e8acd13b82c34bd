"""Several sources taken as one, each with a share.

A source for the pool. With finite children, the shares are base weights of the tasks; as soon as
one child has no end, they are the odds by which an id belongs to a child.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from stepladder.configs.documents import to_plain
from stepladder.errors import TaskError
from stepladder.tasks.scramble import mix64, stream_key
from stepladder.tasks.source import MAX_SOURCE_TASKS, Source
from stepladder.tasks.task import Task

MAX_NAMES_CHECKED = 100_000
"""Largest union whose task names are checked for duplicates."""


class UnionSource(Source):
    """The tasks of several sources.

    All children finite: ids run through the first child, then the second, and so on. Drawing by
    `weight` hits each child in proportion to its own weight.

    Any child without end: the union has no end either. Which child an id belongs to depends on
    the id alone; a finite child then meets each of its tasks under many ids.
    """

    def __init__(self, sources: Sequence[Source] | Sequence[tuple[Source, float]]) -> None:
        """Join the sources.

        Args:
            sources: Sources, or pairs of a source and its weight, which is positive and finite.
                A source without a weight has 1.0.

        Raises:
            TaskError: If there are none, a weight is malformed, or two tasks of a finite union
                have the same name (not checked above 100,000 tasks).
        """
        pairs = [_checked_pair(entry, i) for i, entry in enumerate(sources)]
        if not pairs:
            raise TaskError("A UnionSource needs at least one source; got none. Add a source.")
        self._children = [child for child, _ in pairs]
        self._child_weights = [weight for _, weight in pairs]
        self._labels = list(
            dict.fromkeys(lbl for child in self._children for lbl in child.labels())
        )
        counts = [child.num_tasks for child in self._children]
        finite_counts = [count for count in counts if count is not None]
        self._num_tasks = sum(finite_counts) if len(finite_counts) == len(counts) else None
        # An inner union gets the id of the outer one, and must not repeat its choice.
        depths = [child._depth for child in self._children if isinstance(child, UnionSource)]
        self._depth = 1 + max(depths, default=0)
        self._salt = stream_key(0, self._depth)
        self._shares = _shares(self._child_weights)
        self._thresholds = [
            min(int(part * 2.0**64), 2**64 - 1) for part in accumulate(self._shares[:-1])
        ]
        if self._num_tasks is not None:
            self._starts = [0, *accumulate(finite_counts[:-1])]
            self._task_factors = self._make_task_factors(self._num_tasks, finite_counts)
            self._refuse_duplicates(self._num_tasks)

    @property
    def num_tasks(self) -> int | None:
        """Number of tasks of all children, or None if one of them has no end."""
        return self._num_tasks

    def get(self, task_id: int) -> Task:
        """Make the child's task."""
        child_index, child_id = self._locate(task_id)
        return self._children[child_index].get(child_id)

    def name(self, task_id: int) -> str:
        """Return the name the child gives."""
        child_index, child_id = self._locate(task_id)
        return self._children[child_index].name(child_id)

    def label(self, task_id: int) -> str:
        """Return the label the child gives."""
        child_index, child_id = self._locate(task_id)
        return self._children[child_index].label(child_id)

    def labels(self) -> list[str]:
        """Return the labels of the children, in order, each once."""
        return list(self._labels)

    def weight(self, task_id: int) -> float:
        """Return the base weight: 1.0 on average in a finite union, always in one without end."""
        child_index, child_id = self._locate(task_id)
        if self._num_tasks is None:
            return 1.0
        return self._task_factors[child_index] * self._children[child_index].weight(child_id)

    def label_indices(self, task_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the position in `labels` of each task's label, shape ``(len(task_ids),)``."""
        indices = np.empty(len(task_ids), dtype=np.int64)
        for child_index, places, child_ids in self._split(task_ids):
            child = self._children[child_index]
            positions = np.array([self._labels.index(label) for label in child.labels()])
            indices[places] = positions[child.label_indices(child_ids)]
        return indices

    def weights(self, task_ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the `weight` of each task, shape ``(len(task_ids),)``."""
        weights = np.ones(len(task_ids))
        if self._num_tasks is None:
            self.check_ids(task_ids)
            return weights
        for child_index, places, child_ids in self._split(task_ids):
            child_weights = self._children[child_index].weights(child_ids)
            weights[places] = self._task_factors[child_index] * child_weights
        return weights

    def mean_weight(self) -> float:
        """Return 1.0, which the weights are scaled to."""
        return 1.0

    def describe(self) -> dict[str, Any]:
        """Return the weights and descriptions of all children."""
        return {
            "kind": "union",
            "num_tasks": self._num_tasks,
            "children": [
                {"weight": weight, "source": child.describe()}
                for child, weight in zip(self._children, self._child_weights, strict=True)
            ],
        }

    def _locate(self, task_id: int) -> tuple[int, int]:
        """Return the index of the child that an id belongs to, and the id it has there."""
        task_id = self.check_id(task_id)
        if self._num_tasks is not None:
            child_index = bisect_right(self._starts, task_id) - 1
            return child_index, task_id - self._starts[child_index]
        child_index = bisect_right(self._thresholds, mix64(task_id ^ self._salt))
        num_tasks = self._children[child_index].num_tasks
        return child_index, task_id if num_tasks is None else task_id % num_tasks

    def _split(
        self, task_ids: NDArray[np.int64]
    ) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.int64]]]:
        """Yield each child that has some of the ids: its index, their positions and its own ids."""
        self.check_ids(task_ids)
        if self._num_tasks is not None:
            owners = np.searchsorted(self._starts, task_ids, side="right") - 1
        else:
            mixed = mix64(task_ids.astype(np.uint64) ^ np.uint64(self._salt))
            thresholds = np.array(self._thresholds, dtype=np.uint64)
            owners = np.searchsorted(thresholds, mixed, side="right")
        for child_index, child in enumerate(self._children):
            places = np.flatnonzero(owners == child_index)
            if not places.size:
                continue
            child_ids = task_ids[places]
            if self._num_tasks is not None:
                child_ids = child_ids - self._starts[child_index]
            elif child.num_tasks is not None:
                child_ids = child_ids % child.num_tasks
            yield child_index, places, child_ids

    def _make_task_factors(self, num_tasks: int, counts: list[int]) -> list[float]:
        """Return what to multiply each child's task weights by."""
        if num_tasks > MAX_SOURCE_TASKS:
            raise TaskError(
                f"The sources of this union have {num_tasks} tasks together; at most "
                f"{MAX_SOURCE_TASKS} fit. Leave num_tasks out of one for a union without end."
            )
        factors: list[float] = []
        for i, (child, share) in enumerate(zip(self._children, self._shares, strict=True)):
            mean = child.mean_weight()
            if not 0 < mean < math.inf:
                raise TaskError(
                    f"The task weights of source {i} average {mean}; a positive number is needed. "
                    f"Correct {type(child).__name__}.weight."
                )
            factors.append(share * num_tasks / (counts[i] * mean))
        return factors

    def _refuse_duplicates(self, num_tasks: int) -> None:
        if num_tasks > MAX_NAMES_CHECKED:
            return
        first_ids: dict[str, int] = {}
        for task_id in range(num_tasks):
            name = self.name(task_id)
            first_id = first_ids.setdefault(name, task_id)
            if first_id != task_id:
                one, other = self._locate(first_id)[0], self._locate(task_id)[0]
                raise TaskError(
                    f"The task name {name!r} comes from source {one} and from source {other}; "
                    "names must be unique within a finite union. Rename it, for example through "
                    "the source's name or prefix."
                )


def _shares(weights: list[float]) -> list[float]:
    # Scaled by the largest first, because a sum of very large weights may overflow.
    largest = max(weights)
    total = math.fsum(weight / largest for weight in weights)
    return [weight / largest / total for weight in weights]


def _checked_pair(entry: Any, position: int) -> tuple[Source, float]:
    parts = cast("tuple[Any, ...]", entry) if isinstance(entry, tuple) else (entry, 1.0)
    if len(parts) != 2 or not isinstance(parts[0], Source):
        raise TaskError(
            f"Entry {position} of a union must be a Source or a pair (source, weight); got "
            f"{entry!r}."
        )
    weight = to_plain(parts[1], f"The weight of source {position}")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or weight <= 0:
        raise TaskError(
            f"The weight of source {position} must be a positive number; got {weight!r}. "
            "Leave the source out to give it no share."
        )
    return parts[0], float(weight)
