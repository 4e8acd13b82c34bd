"""Which task must be learned before which: a directed acyclic graph of tasks.

Start of the simulator's data flow: a graph and a kind of `dynamics` make a
`TaskDependencySimulator`. A node is a task; its parents are its prerequisites.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stepladder import files
from stepladder.errors import ConfigError
from stepladder.tasks import ListSource, Task

LABEL = "taskclass"
"""A task's label is this and the number of its node, as users of the ancestor expect."""

NODE = "node"
"""Name of the parameter of a task that says which node it stands for."""

SCHEMA = 1
"""Version of the JSON form."""


@dataclass(frozen=True)
class TaskGraph:
    """Prerequisites of every task, and numbers that describe where each task lies.

    Raises:
        ConfigError: A parent does not exist, or a task is its own ancestor.
    """

    parents: tuple[tuple[int, ...], ...]
    """Prerequisites per node, in any order."""

    features: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    """Numbers per node, such as a position or a difficulty; they become parameters of the tasks."""

    def __post_init__(self) -> None:
        if not self.parents:
            raise ConfigError("a graph needs at least one task; got none. Add a node.")
        # Lists are welcome too; what is kept can be compared and joined.
        object.__setattr__(self, "parents", tuple(map(tuple, self.parents)))
        features = {name: tuple(values) for name, values in self.features.items()}
        object.__setattr__(self, "features", features)
        for node, parents in enumerate(self.parents):
            for parent in parents:
                if isinstance(parent, bool) or not isinstance(parent, int):
                    raise ConfigError(
                        f"node {node} has parent {parent!r}; expected the number of a node."
                    )
                if not 0 <= parent < self.num_tasks:
                    raise ConfigError(
                        f"node {node} has parent {parent}; expected 0 to {self.num_tasks - 1}."
                    )
            if len(set(parents)) != len(parents):
                raise ConfigError(f"node {node} names a parent twice: {list(parents)}.")
        for name, values in self.features.items():
            self._check_feature(name, values)
        object.__setattr__(self, "_order", _topological(self.parents))

    def _check_feature(self, name: str, values: tuple[float, ...]) -> None:
        if name == NODE:
            raise ConfigError(
                f"a feature cannot be called {NODE!r}: tasks carry their number under that name. "
                "Rename it."
            )
        if len(values) != self.num_tasks:
            raise ConfigError(
                f"feature {name!r} must hold {self.num_tasks} numbers, one per node; got "
                f"{len(values)}."
            )
        for node, value in enumerate(values):
            if not np.isfinite(value):
                raise ConfigError(f"feature {name!r} of node {node} is {value}; must be finite.")

    @property
    def num_tasks(self) -> int:
        """Number of nodes."""
        return len(self.parents)

    @property
    def order(self) -> tuple[int, ...]:
        """All nodes, each after its parents."""
        return self.__dict__["_order"]

    def depths(self) -> list[int]:
        """Return the length of the longest way from a root to each node."""
        depths = [0] * self.num_tasks
        for node in self.order:
            depths[node] = max((depths[parent] + 1 for parent in self.parents[node]), default=0)
        return depths

    def children(self) -> tuple[tuple[int, ...], ...]:
        """Return the nodes that each node is a prerequisite of."""
        children: list[list[int]] = [[] for _ in self.parents]
        for node, parents in enumerate(self.parents):
            for parent in parents:
                children[parent].append(node)
        return tuple(map(tuple, children))

    def task(self, node: int) -> Task:
        """Return the task that a node stands for."""
        params: dict[str, Any] = {NODE: node}
        params.update((name, values[node]) for name, values in self.features.items())
        return Task(f"{LABEL}{node}", f"{LABEL}{node}", params)

    def source(self) -> ListSource:
        """Return the tasks of all nodes; a task's id is its node."""
        return ListSource(self.task(node) for node in range(self.num_tasks))

    # Shapes.

    @classmethod
    def chain(cls, num_tasks: int) -> "TaskGraph":
        """Each task unlocks the next."""
        _require_count("num_tasks", num_tasks)
        parents = [() if node == 0 else (node - 1,) for node in range(num_tasks)]
        return cls(tuple(parents), {"position": tuple(float(node) for node in range(num_tasks))})

    @classmethod
    def tree(cls, num_tasks: int, branching: int = 2) -> "TaskGraph":
        """Each task unlocks `branching` others, filled level by level from the root."""
        _require_count("num_tasks", num_tasks)
        _require_count("branching", branching)
        parents = [() if node == 0 else ((node - 1) // branching,) for node in range(num_tasks)]
        # A child lies under its parent: each gets an equal part of the parent's width.
        left, width = [0.0] * num_tasks, [1.0] * num_tasks
        depth = [0.0] * num_tasks
        for node in range(1, num_tasks):
            parent, place = divmod(node - 1, branching)
            width[node] = width[parent] / branching
            left[node] = left[parent] + place * width[node]
            depth[node] = depth[parent] + 1.0
        middle = tuple(start + size / 2 for start, size in zip(left, width, strict=True))
        return cls(tuple(parents), {"difficulty": tuple(depth), "position": middle})

    @classmethod
    def grid(cls, columns: int, rows: int) -> "TaskGraph":
        """A task is unlocked by its neighbours to the left and above."""
        _require_count("columns", columns)
        _require_count("rows", rows)
        parents: list[tuple[int, ...]] = []
        for row in range(rows):
            for column in range(columns):
                left = (row * columns + column - 1,) if column else ()
                above = ((row - 1) * columns + column,) if row else ()
                parents.append(above + left)
        x = tuple(float(node % columns) for node in range(columns * rows))
        y = tuple(float(node // columns) for node in range(columns * rows))
        return cls(tuple(parents), {"x": x, "y": y})

    @classmethod
    def random_dag(cls, num_tasks: int, seed: int = 0, max_parents: int = 2) -> "TaskGraph":
        """Each task but the first has one to `max_parents` earlier tasks as parents, at random.

        Parents come from the quarter of all tasks that precedes a task, so that the graph is deep.
        """
        _require_count("num_tasks", num_tasks)
        _require_count("max_parents", max_parents)
        rng = np.random.default_rng([seed, num_tasks, max_parents])
        parents: list[tuple[int, ...]] = []
        for node in range(num_tasks):
            first = max(0, node - max(2, num_tasks // 4))
            count = min(node - first, int(rng.integers(1, max_parents + 1)))
            chosen = rng.choice(np.arange(first, node), size=count, replace=False) if node else []
            parents.append(tuple(sorted(int(parent) for parent in chosen)))
        positions = tuple(float(node) for node in range(num_tasks))
        return cls(tuple(parents), {"position": positions})

    @classmethod
    def independent(cls, num_tasks: int) -> "TaskGraph":
        """No task needs another."""
        _require_count("num_tasks", num_tasks)
        return cls(((),) * num_tasks, {"position": tuple(float(n) for n in range(num_tasks))})

    def beside(self, other: "TaskGraph") -> "TaskGraph":
        """Return both graphs as one, the other's nodes numbered after this one's."""
        shift = self.num_tasks
        moved = tuple(tuple(parent + shift for parent in parents) for parents in other.parents)
        names = dict.fromkeys((*self.features, *other.features))
        features = {
            name: _padded(self.features.get(name), shift)
            + _padded(other.features.get(name), other.num_tasks)
            for name in names
        }
        return TaskGraph(self.parents + moved, features)

    # Files.

    def to_json(self) -> dict[str, Any]:
        """Return the graph as plain JSON."""
        return {
            "schema": SCHEMA,
            "parents": [list(parents) for parents in self.parents],
            "features": {name: list(values) for name, values in self.features.items()},
        }

    @classmethod
    def from_json(cls, data: Any) -> "TaskGraph":
        """Make a graph of what `to_json` gave, or of ``{"parents": [[], [0], …]}`` alone."""
        if not isinstance(data, Mapping) or not isinstance(data.get("parents"), Sequence):
            raise ConfigError(
                'a graph in JSON is an object with "parents": one list of node numbers per task, '
                f"such as [[], [0], [0, 1]]; got {str(data)[:80]!r}."
            )
        unknown = sorted(map(str, set(data) - {"schema", "parents", "features"}))
        if unknown:
            raise ConfigError(
                f"a graph has no {unknown[0]!r}; it has schema, parents and features. Correct the "
                "name, or leave it out."
            )
        if data.get("schema", SCHEMA) != SCHEMA:
            raise ConfigError(
                f"the graph has schema {data['schema']!r}; this version reads {SCHEMA}. "
                "Use a newer Stepladder."
            )
        try:
            parents = tuple(tuple(entry) for entry in data["parents"])
            features = {
                str(name): tuple(float(value) for value in values)
                for name, values in dict(data.get("features", {})).items()
            }
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"the graph's parents must be lists of numbers and its features numbers ({error})."
            ) from error
        return cls(parents, features)

    @classmethod
    def from_file(cls, path: Path | str) -> "TaskGraph":
        """Read a graph from a JSON file."""
        return cls.from_json(read_json(path))


def read_json(path: Path | str) -> Any:
    """Return what a JSON file holds."""
    try:
        return files.read_json(path, follow=True)
    except OSError as error:
        raise ConfigError(f"the graph {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"the graph {path} is not JSON: {error}.") from error


def _topological(parents: Sequence[Sequence[int]]) -> tuple[int, ...]:
    missing = [len(entry) for entry in parents]
    children: list[list[int]] = [[] for _ in parents]
    for node, entry in enumerate(parents):
        for parent in entry:
            children[parent].append(node)
    ready = [node for node, count in enumerate(missing) if count == 0][::-1]
    order: list[int] = []
    while ready:
        node = ready.pop()
        order.append(node)
        for child in reversed(children[node]):
            missing[child] -= 1
            if missing[child] == 0:
                ready.append(child)
    if len(order) < len(parents):
        stuck = next(node for node, count in enumerate(missing) if count)
        raise ConfigError(
            f"node {stuck} is its own ancestor, or below one that is; prerequisites must not form "
            "a circle. Remove one of the edges."
        )
    return tuple(order)


def _padded(values: tuple[float, ...] | None, count: int) -> tuple[float, ...]:
    return (0.0,) * count if values is None else values


def _require_count(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ConfigError(f"{name} must be a whole number of at least 1; got {value!r}.")
