"""The situations a curriculum is judged in, by name.

Used by `compare`, `simulate` and the commands. A scenario makes the simulated learner and the tasks
for a seed; its name says its shape and size: ``chain-10``, ``tree-31``, ``grid-6x6``.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from stepladder.configs.documents import load_document
from stepladder.curricula.config import TaskKnowledge
from stepladder.errors import ConfigError
from stepladder.simulator.dynamics import Dynamics, Noise, Prerequisite, learning_order
from stepladder.simulator.graph import LABEL, TaskGraph
from stepladder.simulator.learner import TaskDependencySimulator

SUITE = (
    "chain-10",
    "chain-30",
    "chain-100",
    "tree-10",
    "tree-31",
    "grid-3x3",
    "grid-6x6",
    "dag-30",
    "noisy-10",
    "impossible-10",
    "forgetting-10",
    "mastered-20",
    "pool-300",
)
"""The scenarios that every curriculum is judged by."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One situation: a graph of tasks, a learner, and how long it may take."""

    name: str
    graph: TaskGraph
    dynamics: Dynamics = field(default_factory=Prerequisite)
    noise: Noise = field(default_factory=Noise)
    start: tuple[tuple[int, float], ...] = ()
    """Nodes that start with a skill of their own."""
    impossible: tuple[int, ...] = ()
    noisy: tuple[int, ...] = ()
    capacity: int | None = None
    """Slots of a curriculum that can replace tasks; those that cannot hold them all."""
    about: str = ""
    """What it is for, in one line."""

    @property
    def budget(self) -> int:
        """Plays after which a curriculum has failed: some twenty times what uniform needs."""
        num_tasks = self.graph.num_tasks
        depth = 1 + max(self.graph.depths())
        return 2000 * num_tasks + 400 * num_tasks * depth

    @property
    def features(self) -> tuple[str, ...]:
        """Parameters of the tasks that say where they lie."""
        return tuple(self.graph.features)

    @property
    def knowledge(self) -> TaskKnowledge:
        """What a user of a curriculum would know about these tasks."""
        return TaskKnowledge(
            features=self.features,
            order=tuple(f"{LABEL}{node}" for node in learning_order(self.graph, self.dynamics)),
            mastery=self.dynamics.mastery,
        )

    def simulator(self, seed: int = 0, num_envs: int = 1) -> TaskDependencySimulator:
        """Make the learner."""
        return TaskDependencySimulator(
            self.graph,
            self.dynamics,
            self.noise,
            seed=seed,
            start=dict(self.start),
            impossible=self.impossible,
            noisy=self.noisy,
            num_envs=num_envs,
        )


def _chain(size: int) -> Scenario:
    return Scenario(
        name=f"chain-{size}", graph=TaskGraph.chain(size), about="each task unlocks the next"
    )


def _tree(size: int) -> Scenario:
    return Scenario(
        name=f"tree-{size}", graph=TaskGraph.tree(size), about="each task unlocks two others"
    )


def _grid(columns: int, rows: int) -> Scenario:
    return Scenario(
        name=f"grid-{columns}x{rows}",
        graph=TaskGraph.grid(columns, rows),
        about="a task is unlocked by its neighbours to the left and above",
    )


def _dag(size: int) -> Scenario:
    return Scenario(
        name=f"dag-{size}",
        graph=TaskGraph.random_dag(size, seed=1),
        about="each task needs one or two random earlier ones",
    )


def _noisy(size: int) -> Scenario:
    coins = max(1, size // 2)
    return Scenario(
        name=f"noisy-{size}",
        graph=TaskGraph.chain(size).beside(TaskGraph.independent(coins)),
        noisy=tuple(range(size, size + coins)),
        about="a chain, and half as many tasks that are coin tosses",
    )


def _impossible(size: int) -> Scenario:
    return Scenario(
        name=f"impossible-{size}",
        graph=TaskGraph.chain(size).beside(TaskGraph.independent(size)),
        impossible=tuple(range(size, 2 * size)),
        about="a chain, and as many tasks that never succeed",
    )


def _forgetting(size: int) -> Scenario:
    return Scenario(
        name=f"forgetting-{size}",
        graph=TaskGraph.chain(size),
        dynamics=Prerequisite(lambda_forget=2e-4),
        about="a chain, and ten times the usual forgetting",
    )


def _mastered(size: int) -> Scenario:
    known = size // 2
    return Scenario(
        name=f"mastered-{size}",
        graph=TaskGraph.chain(size),
        start=tuple((node, 0.95) for node in range(known)),
        about="a chain whose first half is known from the start",
    )


def _pool(size: int) -> Scenario:
    chains = [TaskGraph.chain(10)] * max(1, size // 10)
    return Scenario(
        name=f"pool-{size}",
        graph=reduce(TaskGraph.beside, chains),
        # With the usual forgetting nobody could hold so many tasks at once.
        dynamics=Prerequisite(lambda_forget=2e-7),
        capacity=max(1, len(chains) * 10 // 3),
        about="many chains of ten, of whose tasks the pool holds a third at a time",
    )


def _independent(size: int) -> Scenario:
    return Scenario(
        name=f"independent-{size}",
        graph=TaskGraph.independent(size),
        about="no task needs another: uniform is hard to beat here",
    )


FAMILIES: dict[str, Callable[[int], Scenario]] = {
    "chain": _chain,
    "tree": _tree,
    "dag": _dag,
    "noisy": _noisy,
    "impossible": _impossible,
    "forgetting": _forgetting,
    "mastered": _mastered,
    "pool": _pool,
    "independent": _independent,
}
"""Scenarios by the first part of their name; the second is the number of tasks."""

MAX_TASKS = 20_000


def scenario(name: str) -> Scenario:
    """Return the scenario of that name, or of a graph in a JSON file.

    Raises:
        ConfigError: There is no such scenario.
    """
    if name.endswith(".json"):
        return _from_file(name)
    grid = re.fullmatch(r"grid-(\d{1,5})x(\d{1,5})", name)
    if grid:
        columns, rows = int(grid[1]), int(grid[2])
        _require_size(name, columns * rows)
        return _grid(columns, rows)
    sized = re.fullmatch(r"([a-z]+)-(\d{1,9})", name)
    if sized is None or sized[1] not in FAMILIES:
        raise ConfigError(
            f"there is no scenario {name!r}; expected one of "
            f"{', '.join(f'{family}-N' for family in FAMILIES)}, grid-CxR, or a graph in a .json "
            "file. For example chain-10, grid-6x6."
        )
    size = int(sized[2])
    _require_size(name, size)
    return FAMILIES[sized[1]](size)


def _from_file(path: str) -> Scenario:
    """Read a graph, and beside it which tasks are impossible, noisy or known from the start."""
    data = load_document(path)
    kinds: dict[str, Any] = {}
    if isinstance(data, dict):
        kinds = {key: data.pop(key) for key in ("impossible", "noisy", "start") if key in data}
    graph = TaskGraph.from_json(data, path)
    try:
        made = Scenario(
            name=Path(path).stem,
            graph=graph,
            impossible=tuple(kinds.get("impossible", ())),
            noisy=tuple(kinds.get("noisy", ())),
            start=tuple((int(node), float(p)) for node, p in dict(kinds.get("start", {})).items()),
            about=path,
        )
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{path}: impossible and noisy are lists of nodes, start is an object from node to "
            f"skill ({error})."
        ) from error
    # Made once, so that a node that does not exist is told now.
    made.simulator()
    return made


def _require_size(name: str, size: int) -> None:
    if not 1 <= size <= MAX_TASKS:
        raise ConfigError(f"scenario {name!r} has {size} tasks; expected 1 to {MAX_TASKS}.")
