"""The scenarios that curricula are judged in, by name.

Used by `compare`, `simulate` and the commands. A scenario makes the simulated learner and the
curriculum over its tasks for a seed; its name gives its shape and size: ``chain-10``, ``tree-31``,
``grid-6x6``. The suffix ``-slow10`` makes the learner ten times slower.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from stepladder.arrays import Words
from stepladder.configs.documents import load_document
from stepladder.configs.yaml_text import YAML_SUFFIXES
from stepladder.curricula.config import TaskKnowledge
from stepladder.errors import ConfigError, nearest, shown
from stepladder.saving.saved_array import MAX_COUNT
from stepladder.simulator.base import Scenario, Simulator, require_labels
from stepladder.simulator.dynamics import Dynamics, Noise, Prerequisite, learning_order
from stepladder.simulator.generalising import config as general
from stepladder.simulator.generalising.scenarios import GENERAL_FAMILIES, GeneralScenario
from stepladder.simulator.graph import LABEL, TaskGraph
from stepladder.simulator.learner import TaskDependencySimulator
from stepladder.simulator.oracle import graph_policies
from stepladder.simulator.policies import OraclePolicy
from stepladder.tasks import ListSource

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

GRAPH_KEYS, KIND_KEYS = ("parents", "features"), ("impossible", "noisy", "start", "target")
"""Keys of a file with a graph: the graph itself, and what its tasks are like."""

MAX_GRAPH_TASKS = 20_000
"""Tasks of a graph; groups of tasks may have `generalising.config.MAX_LEARNER_TASKS`."""


@dataclass(frozen=True, kw_only=True)
class GraphScenario(Scenario):
    """A graph of tasks and its learner; a sample is a play."""

    varied = ("dynamics", "noise")
    playground_share = 0.1

    graph: TaskGraph
    dynamics: Dynamics = field(default_factory=Prerequisite)
    noise: Noise = field(default_factory=Noise)
    start: tuple[tuple[int, float], ...] = ()
    """Nodes with another skill at the start than the dynamics give, and that skill."""
    impossible: tuple[int, ...] = ()
    noisy: tuple[int, ...] = ()
    target: tuple[int, ...] = ()
    """Nodes that count; all of them if there are none."""

    @property
    def num_tasks(self) -> int:
        """Number of tasks in the graph."""
        return self.graph.num_tasks

    @property
    def measure(self) -> str:
        """What samples are, and when a curriculum is done."""
        what = "learnable task of the target" if self.target else "learnable task"
        return f"plays until every {what} was mastered at once"

    @property
    def aim(self) -> dict[str, float]:
        """What counts: labels of nodes; empty if all of them do."""
        return {f"{LABEL}{node}": 1.0 for node in self.target}

    @property
    def groups(self) -> tuple[tuple[str, ...], Words]:
        """Every task is a group of its own, prerequisites first."""
        order = learning_order(self.graph, self.dynamics)
        return tuple(f"{LABEL}{node}" for node in order), np.argsort(order).astype(np.int64)

    def aimed_at(self, target: Mapping[str, float]) -> "GraphScenario":
        """Return the same scenario, judged by some nodes alone; they count alike."""
        labels = [f"{LABEL}{node}" for node in range(self.num_tasks)]
        require_labels(target, labels, self.name)
        return replace(self, target=tuple(labels.index(label) for label in target))

    def epoch_samples(self, num_envs: int) -> int:
        """Return the plays of each env in one epoch."""
        return 25

    def slower(self, factor: int) -> "GraphScenario":
        """Return the same scenario with a learner that learns and forgets so many times slower."""
        if not isinstance(self.dynamics, Prerequisite):
            raise ConfigError("only a learner with Prerequisite dynamics has a rate to slow down.")
        names = ("eta", "lambda_forget")
        rates = {name: getattr(self.dynamics, name) / factor for name in names}
        return replace(self, dynamics=replace(self.dynamics, **rates))

    @property
    def budget(self) -> int:
        """Plays after which a curriculum has failed: about twenty times what uniform needs."""
        num_tasks = self.graph.num_tasks
        depth = 1 + max(self.graph.depths())
        slowness = 1.0
        if isinstance(self.dynamics, Prerequisite):
            slowness = max(1.0, Prerequisite().eta / self.dynamics.eta)
        return int(min(MAX_COUNT, slowness * (2000 * num_tasks + 400 * num_tasks * depth)))

    @property
    def features(self) -> tuple[str, ...]:
        """Parameters of the tasks that describe their position or difficulty."""
        return tuple(self.graph.features)

    @property
    def knowledge(self) -> TaskKnowledge:
        """What a user of a curriculum would know about these tasks."""
        return TaskKnowledge(
            features=self.features,
            order=self.groups[0],
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
            target=self.target,
        )

    def source(self) -> ListSource:
        """Return the tasks of all nodes."""
        return self.graph.source()

    def policies(self, simulator: Simulator) -> list[OraclePolicy]:
        """Return policies that see the hidden skills."""
        return graph_policies(cast("TaskDependencySimulator", simulator))


def _side_by_side(graphs: list[TaskGraph]) -> TaskGraph:
    """Return all graphs as one; halves first, because joining costs as much as both sides have."""
    if len(graphs) == 1:
        return graphs[0]
    half = len(graphs) // 2
    return _side_by_side(graphs[:half]).beside(_side_by_side(graphs[half:]))


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
        "graph": _side_by_side(chains),
        # With the usual forgetting, so many tasks could not be mastered at once.
        "dynamics": Prerequisite(lambda_forget=2e-7),
        "capacity": max(1, len(chains) * 10 // 3),
    }


def _plateau(size: int) -> dict[str, Any]:
    pairs = [TaskGraph.chain(2)] * (size // 2) + [TaskGraph.chain(1)] * (size % 2)
    return {
        "graph": _side_by_side(pairs),
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
    """Return the scenario of that name, or the one in a JSON file.

    Raises:
        ConfigError: There is no such scenario.
    """
    if name.endswith((".json", *YAML_SUFFIXES)):
        return _from_file(name)
    found = re.fullmatch(r"([a-z]+)-(\d{1,9})(?:x(\d{1,9}))?(?:-slow(\d{1,6}))?", name)
    family, first, second, slow = found.groups() if found else ("", None, None, None)
    sizes = [int(part) for part in (first, second) if part is not None]
    known = _sizes_by_family()
    if len(sizes) != known.get(family, -1) or (slow is not None and int(slow) < 1):
        forms = ", ".join(f"{one}-{_sizes(one, count)}" for one, count in known.items())
        raise ConfigError(
            f"there is no scenario {name!r}; expected one of {forms}, or a .json or .yaml file. "
            "For example chain-10, grid-6x6, or chain-10-slow100 for a learner that is 100 times "
            f"slower.{nearest(name, [_usual_name(one, name) for one in known])}"
        )
    most = MAX_GRAPH_TASKS if family in FAMILIES else general.MAX_LEARNER_TASKS
    if not 1 <= math.prod(sizes) <= most:
        raise ConfigError(f"scenario {name!r} has {math.prod(sizes)} tasks; expected 1 to {most}.")
    plain = f"{family}-{'x'.join(map(str, sizes))}"
    made: Scenario
    if family in FAMILIES:
        about, make = FAMILIES[family]
        made = GraphScenario(name=plain, about=about, **make(*sizes))
    else:
        about, _, make = GENERAL_FAMILIES[family]
        made = GeneralScenario(name=plain, about=about, dynamics=make(*sizes))
    return made if slow is None else replace(made.slower(int(slow)), name=f"{plain}-slow{slow}")


def _sizes(family: str, count: int) -> str:
    """Return what the sizes in the names of a family mean, in capitals."""
    if count == 1:
        return "N"
    return "GxN" if family == "levels" else "CxR"


def _usual_name(family: str, like: str) -> str:
    """Return a name of a family with the sizes that another name seems to have."""
    sizes = [*re.findall(r"\d+", like), "10", "10"][: _sizes_by_family()[family]]
    return f"{family}-{'x'.join(sizes)}"


def _sizes_by_family() -> dict[str, int]:
    """Return how many sizes the name of a scenario has, by family."""
    graphs = {family: 2 if family == "grid" else 1 for family in FAMILIES}
    return graphs | {family: count for family, (_, count, _) in GENERAL_FAMILIES.items()}


def _require_graph(data: dict[str, Any], path: str) -> None:
    """Raise `ConfigError` if a file is no scenario at all, or has a key that none has."""
    if "parents" not in data:
        raise ConfigError(
            f"{path} must have 'parents', the prerequisites of every task, or 'dynamics', a "
            f"learner that generalises; it has {shown(sorted(data))}."
        )
    known = (*GRAPH_KEYS, *KIND_KEYS)
    for key in data:
        if key not in known:
            raise ConfigError(
                f"{path}: unknown key {shown(key)}; there are {', '.join(known)}."
                f"{nearest(key, known)}"
            )


def _from_file(path: str) -> Scenario:
    """Read a graph, and beside it which tasks are impossible, noisy or known from the start.

    Or a learner that generalises, which a file has under "dynamics".
    """
    data = load_document(path)
    if isinstance(data, dict) and "dynamics" in data:
        return GeneralScenario.from_json({"name": Path(path).stem, **data}, path)
    kinds: dict[str, Any] = {}
    if isinstance(data, dict):
        _require_graph(data, path)
        kinds = {key: data.pop(key) for key in KIND_KEYS if key in data}
    graph = TaskGraph.from_json(data, path)
    try:
        made = GraphScenario(
            name=Path(path).stem,
            graph=graph,
            impossible=tuple(kinds.get("impossible", ())),
            noisy=tuple(kinds.get("noisy", ())),
            target=tuple(kinds.get("target", ())),
            start=tuple((int(node), float(p)) for node, p in dict(kinds.get("start", {})).items()),
            about=path,
        )
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{path}: impossible, noisy and target must be lists of nodes, start an object from "
            f"node to skill ({error}). Correct the file."
        ) from error
    # Made once, so that a node that does not exist is reported now.
    made.simulator()
    return made
