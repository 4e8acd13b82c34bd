"""Which task must be learned before which: a directed acyclic graph of tasks.

Start of the simulator's data flow: a graph and a kind of `dynamics` make a
`TaskDependencySimulator`. A node is a task; its parents are its prerequisites.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np

from stepladder.configs.checks import NotNegativeInteger, not_empty, require_integer
from stepladder.configs.codec import Config
from stepladder.configs.documents import load_document
from stepladder.configs.problems import Problems
from stepladder.tasks import ListSource, Task

LABEL = "taskclass"
"""A task's label is this and the number of its node, as users of the ancestor expect."""

NODE_PREFIX = "node"
"""Name of the parameter of a task that says which node it stands for."""

SCHEMA = 1
"""Version of the JSON format."""


@dataclass(frozen=True)
class TaskGraph(Config):
    """Prerequisites of every task, and numbers that describe where each task lies.

    Raises:
        ConfigError: A parent does not exist, or a task is its own ancestor.
    """

    parents: Annotated[tuple[tuple[NotNegativeInteger, ...], ...], not_empty]
    """Prerequisites per node, in any order."""

    features: dict[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    """Numbers per node, such as a position or a difficulty; they become parameters of the tasks."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield parents that do not exist or form a circle, and features of other tasks."""
        for node, parents in enumerate(self.parents):
            if len(set(parents)) != len(parents):
                yield f"parents[{node}]", f"names a parent twice: {list(parents)}. Name it once."
            if max(parents, default=0) >= self.num_tasks:
                text = f"must be from 0 to {self.num_tasks - 1}; got {max(parents)}."
                yield f"parents[{node}]", f"{text} Name nodes of the graph."
                return
        if len(self.order) < self.num_tasks:
            stuck = min(set(range(self.num_tasks)) - set(self.order))
            yield (
                f"parents[{stuck}]",
                f"node {stuck} is its own ancestor, or below one that is; prerequisites must not "
                "form a circle. Remove one of the edges.",
            )
        for name, values in self.features.items():
            if name == NODE_PREFIX:
                text = (
                    f"cannot be called {NODE_PREFIX!r}: tasks carry their number under that name."
                )
                yield f"features.{name}", f"{text} Rename it."
            if len(values) != self.num_tasks:
                text = f"must hold {self.num_tasks} numbers, one per node; got {len(values)}."
                yield f"features.{name}", text

    @property
    def num_tasks(self) -> int:
        """Number of nodes."""
        return len(self.parents)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All nodes, each after its parents; without those on a circle and those below it."""
        missing, children = [len(parents) for parents in self.parents], self.children()
        ready = [node for node, count in enumerate(missing) if count == 0][::-1]
        order: list[int] = []
        while ready:
            node = ready.pop()
            order.append(node)
            for child in reversed(children[node]):
                missing[child] -= 1
                if missing[child] == 0:
                    ready.append(child)
        return tuple(order)

    def depths(self) -> list[int]:
        """Return the length of the longest path from a root to each node."""
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
        params: dict[str, Any] = {NODE_PREFIX: node}
        params.update((name, values[node]) for name, values in self.features.items())
        return Task(f"{LABEL}{node}", f"{LABEL}{node}", params)

    def source(self) -> ListSource:
        """Return the tasks of all nodes; a task's id is its node."""
        return ListSource(self.task(node) for node in range(self.num_tasks))

    def latest_first(self) -> list[list[int]]:
        """Return the parents of every node, each before its own ancestors.

        They learn in this order, so that each learns from the skills before the play and the order
        in the graph does not matter.
        """
        places = {node: place for place, node in enumerate(self.order)}
        return [sorted(parents, key=lambda node: -places[node]) for parents in self.parents]

    # Shapes.

    @classmethod
    def chain(cls, num_tasks: int) -> "TaskGraph":
        """Each task unlocks the next."""
        require_integer("num_tasks", num_tasks, 1)
        parents = [() if node == 0 else (node - 1,) for node in range(num_tasks)]
        return cls(tuple(parents), {"position": tuple(float(node) for node in range(num_tasks))})

    @classmethod
    def tree(cls, num_tasks: int, branching: int = 2) -> "TaskGraph":
        """Each task unlocks `branching` others, filled level by level from the root."""
        require_integer("num_tasks", num_tasks, 1)
        require_integer("branching", branching, 1)
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
        require_integer("columns", columns, 1)
        require_integer("rows", rows, 1)
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
        require_integer("num_tasks", num_tasks, 1)
        require_integer("max_parents", max_parents, 1)
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
        require_integer("num_tasks", num_tasks, 1)
        return cls(((),) * num_tasks, {"position": tuple(float(n) for n in range(num_tasks))})

    def beside(self, other: "TaskGraph") -> "TaskGraph":
        """Return both graphs as one, the other's nodes numbered after this one's."""
        shift = self.num_tasks
        moved = tuple(tuple(parent + shift for parent in parents) for parents in other.parents)
        # A feature that one of the graphs lacks is 0 there.
        features = {
            name: self.features.get(name, (0.0,) * shift)
            + other.features.get(name, (0.0,) * other.num_tasks)
            for name in (*self.features, *other.features)
        }
        return TaskGraph(self.parents + moved, features)

    # Files.

    def to_json(self) -> dict[str, Any]:
        """Return the graph as plain JSON."""
        return {"schema": SCHEMA, **super().to_json()}

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Remove the schema version, which a graph written by hand need not have."""
        if not isinstance(value, Mapping) or "schema" not in value:
            return value
        given = dict(cast("Mapping[str, Any]", value))
        schema = given.pop("schema")
        if schema != SCHEMA:
            text = f"is {schema!r}; this version reads {SCHEMA}. Use a newer Stepladder."
            problems.at("schema").add(text)
        return given

    @classmethod
    def from_file(cls, path: Path | str) -> "TaskGraph":
        """Read a graph from a JSON file."""
        return cls.from_json(load_document(path), str(path))
