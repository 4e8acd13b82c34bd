"""The scenarios that curricula are judged in, by name.

Used by `compare`, `simulate` and the commands. A scenario makes the simulated learner and the
curriculum over its tasks for a seed; its name gives its shape and size: ``chain-10``, ``tree-31``,
``grid-6x6``.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from stepladder.configs.checks import require_kind
from stepladder.configs.documents import load_document
from stepladder.curricula.base import Curriculum
from stepladder.curricula.config import CurriculumConfig, TaskKnowledge
from stepladder.curricula.registry import curriculum_variant
from stepladder.errors import ConfigError
from stepladder.simulator.dynamics import Dynamics, Noise, Prerequisite, learning_order
from stepladder.simulator.graph import LABEL, TaskGraph
from stepladder.simulator.learner import TaskDependencySimulator
from stepladder.tasks import Pool

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

MAX_TASKS = 20_000


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A graph of tasks, a learner, and the number of plays it may take."""

    name: str
    graph: TaskGraph
    dynamics: Dynamics = field(default_factory=Prerequisite)
    noise: Noise = field(default_factory=Noise)
    start: tuple[tuple[int, float], ...] = ()
    """Nodes with another skill at the start than the dynamics give, and that skill."""
    impossible: tuple[int, ...] = ()
    noisy: tuple[int, ...] = ()
    capacity: int | None = None
    """Slots of a curriculum that can replace tasks; other curricula hold all tasks."""
    about: str = ""
    """Purpose, in one line."""

    @property
    def budget(self) -> int:
        """Plays after which a curriculum has failed: about twenty times what uniform needs."""
        num_tasks = self.graph.num_tasks
        depth = 1 + max(self.graph.depths())
        return 2000 * num_tasks + 400 * num_tasks * depth

    @property
    def features(self) -> tuple[str, ...]:
        """Parameters of the tasks that describe their position or difficulty."""
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

    def curriculum_config(self, curriculum: "CurriculumChoice") -> CurriculumConfig:
        """Return the config that a name or a function stands for here; a config is returned as is.

        Raises:
            ConfigError: The name is unknown, or there is no config.
        """
        if isinstance(curriculum, str):
            return curriculum_variant(curriculum).make(self.knowledge)
        config = curriculum(self) if callable(curriculum) else curriculum
        fix = "Give a name, or a config such as FrontierConfig()."
        require_kind("curriculum", config, CurriculumConfig, fix=fix)
        return config

    def curriculum(self, curriculum: "CurriculumChoice", seed: int) -> Curriculum:
        """Make a curriculum over the tasks.

        A method that replaces tasks gets a pool of the scenario's capacity.
        """
        config, source = self.curriculum_config(curriculum), self.graph.source()
        if config.replaces_tasks and self.capacity is not None:
            return config.make(Pool(source, self.capacity, seed), seed=seed)
        return config.make(source, seed=seed)


CurriculumChoice = CurriculumConfig | Callable[[Scenario], CurriculumConfig] | str
"""A curriculum: its config, a function that makes the config for a scenario, or its name."""


def _noisy(size: int) -> dict[str, Any]:
    coins = max(1, size // 2)
    return {
        "graph": TaskGraph.chain(size).beside(TaskGraph.independent(coins)),
        "noisy": tuple(range(size, size + coins)),
    }


def _impossible(size: int) -> dict[str, Any]:
    return {
        "graph": TaskGraph.chain(size).beside(TaskGraph.independent(size)),
        "impossible": tuple(range(size, 2 * size)),
    }


def _mastered(size: int) -> dict[str, Any]:
    start = tuple((node, 0.95) for node in range(size // 2))
    return {"graph": TaskGraph.chain(size), "start": start}


def _forgetting(size: int) -> dict[str, Any]:
    return {"graph": TaskGraph.chain(size), "dynamics": Prerequisite(lambda_forget=2e-4)}


def _pool(size: int) -> dict[str, Any]:
    chains = [TaskGraph.chain(10)] * max(1, size // 10)
    return {
        "graph": reduce(TaskGraph.beside, chains),
        # With the usual forgetting, so many tasks could not be mastered at once.
        "dynamics": Prerequisite(lambda_forget=2e-7),
        "capacity": max(1, len(chains) * 10 // 3),
    }


def _plateau(size: int) -> dict[str, Any]:
    pairs = [TaskGraph.chain(2)] * (size // 2) + [TaskGraph.chain(1)] * (size % 2)
    return {
        "graph": reduce(TaskGraph.beside, pairs),
        "start": tuple((node, 0.3) for node in range(1, size, 2)),
    }


FAMILIES: dict[str, tuple[str, Callable[..., dict[str, Any]]]] = {
    "chain": ("each task unlocks the next", lambda size: {"graph": TaskGraph.chain(size)}),
    "tree": ("each task unlocks two others", lambda size: {"graph": TaskGraph.tree(size)}),
    "grid": (
        "a task is unlocked by its neighbours to the left and above",
        lambda columns, rows: {"graph": TaskGraph.grid(columns, rows)},
    ),
    "dag": (
        "each task needs one or two random earlier ones",
        lambda size: {"graph": TaskGraph.random_dag(size, seed=1)},
    ),
    "noisy": ("a chain, and half as many tasks that are coin tosses", _noisy),
    "impossible": ("a chain, and as many tasks that never succeed", _impossible),
    "forgetting": ("a chain, and ten times the usual forgetting", _forgetting),
    "mastered": ("a chain whose first half is known from the start", _mastered),
    "pool": ("many chains of ten, of whose tasks the pool holds a third at a time", _pool),
    "independent": (
        "no task needs another: uniform is hard to beat here",
        lambda size: {"graph": TaskGraph.independent(size)},
    ),
    "plateau": (
        "every other task succeeds 3 times in 10, and no better before the one it needs is known",
        _plateau,
    ),
}
"""Purpose and fields of scenarios by the first part of their name. The second part is the number of
tasks, of a grid that of columns and rows."""


def scenario(name: str) -> Scenario:
    """Return the scenario of that name, or of a graph in a JSON file.

    Raises:
        ConfigError: There is no such scenario.
    """
    if name.endswith(".json"):
        return _from_file(name)
    found = re.fullmatch(r"([a-z]+)-(\d{1,9})(?:x(\d{1,9}))?", name)
    family, *parts = found.groups() if found else ("", None)
    sizes = [int(part) for part in parts if part is not None]
    if family not in FAMILIES or len(sizes) != (2 if family == "grid" else 1):
        known = ", ".join(f"{one}-{'CxR' if one == 'grid' else 'N'}" for one in FAMILIES)
        raise ConfigError(
            f"there is no scenario {name!r}; expected one of {known}, or a graph in a .json file. "
            "For example chain-10, grid-6x6."
        )
    if not 1 <= math.prod(sizes) <= MAX_TASKS:
        raise ConfigError(
            f"scenario {name!r} has {math.prod(sizes)} tasks; expected 1 to {MAX_TASKS}."
        )
    about, make = FAMILIES[family]
    return Scenario(name=f"{family}-{'x'.join(map(str, sizes))}", about=about, **make(*sizes))


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
            f"{path}: impossible and noisy must be lists of nodes, start an object from node to "
            f"skill ({error}). Correct the file."
        ) from error
    # Made once, so that a node that does not exist is reported now.
    made.simulator()
    return made
