"""Scenarios of the learner that generalises, by name and in files.

Beside `simulator.scenarios`, which offers them under the same function. Numbers are of the size
that a platform game has: failures run into a limit of 300 steps, successes are short, the
learner updates every 8,192 env steps.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from stepladder.arrays import Words
from stepladder.configs.codec import Config
from stepladder.configs.problems import Problems
from stepladder.curricula.config import TaskKnowledge
from stepladder.simulator.base import Scenario, Simulator, require_labels
from stepladder.simulator.generalising.config import Generalising
from stepladder.simulator.generalising.learner import GeneralisingSimulator
from stepladder.simulator.generalising.oracle import general_policies
from stepladder.simulator.policies import OraclePolicy
from stepladder.tasks import ListSource

GENERAL_SUITE = (
    "levels-5x200",
    "params-30x30",
    "hinder-6",
    "useless-5",
    "mislabelled-5",
)
"""Scenarios of the learner that generalises that every curriculum is judged by."""

SCHEMA = 1
"""Version of the JSON format."""

MOST_BINS = 15
"""Groups along one axis of a grid of parameters."""


@dataclass(frozen=True, kw_only=True)
class GeneralScenario(Scenario, Config):
    """Groups of tasks and a learner that generalises; a sample is an env step."""

    varied = ("dynamics",)
    playground_share = 0.5

    dynamics: Generalising

    @property
    def num_tasks(self) -> int:
        """Number of tasks that can be practised."""
        return self.dynamics.total_tasks

    @property
    def budget(self) -> int:
        """Env steps after which a curriculum has failed.

        Ten times what it takes if every play teaches half of what a play can teach, and helps
        other groups as far as they help each other.
        """
        own, aim = self.dynamics, math.log(self.dynamics.goal / (1.0 - self.dynamics.goal))
        steps = (np.array(own.success_steps) + np.array(own.failure_steps)) / 2.0 + 1.0
        needs = np.maximum(1.0, np.array(own.difficulty) + np.array(own.spread) + aim)
        help_of_all = float(np.maximum(own.coupling_matrix, 0.0).sum(axis=1).mean())
        return int(10.0 * float(needs @ steps) / (0.5 * own.eta * help_of_all))

    @property
    def knowledge(self) -> TaskKnowledge:
        """What a user of a curriculum would know: which groups are easier, and where they lie."""
        own = self.dynamics
        return TaskKnowledge(
            features=own.features,
            order=self.groups[0],
            # A goal may be a low mean of easy groups and of groups that are out of reach; it does
            # not say that a group is learned at such a rate.
            mastery=max(own.goal, TaskKnowledge.mastery),
        )

    @property
    def measure(self) -> str:
        """What samples are, and when a curriculum is done."""
        of_target = " of the target" if self.aim else ""
        return f"env steps until success on held-out tasks{of_target} was {self.dynamics.goal:g}"

    @property
    def aim(self) -> dict[str, float]:
        """What counts: weights of groups; empty if all of them count alike."""
        weights = self.dynamics.target or ()
        if len(set(weights)) < 2:
            return {}
        named = zip(self.dynamics.groups, weights, strict=True)
        return {group: weight for group, weight in named if weight > 0.0}

    @property
    def groups(self) -> tuple[tuple[str, ...], Words]:
        """Groups of the learner, those that are easiest at the start in front."""
        own = self.dynamics
        order = np.argsort(-own.untrained_success, kind="stable")
        names = tuple(own.groups[group] for group in order.tolist())
        return names, np.argsort(order)[own.task_groups].astype(np.int64)

    def aimed_at(self, target: Mapping[str, float]) -> "GeneralScenario":
        """Return the same scenario, judged by held-out tasks of some groups alone."""
        require_labels(target, self.dynamics.groups, self.name)
        weights = tuple(float(target.get(group, 0.0)) for group in self.dynamics.groups)
        return replace(self, dynamics=replace(self.dynamics, target=weights))

    def epoch_samples(self, num_envs: int) -> int:
        """Return the env steps of each env in one epoch: a thousandth of the budget in all."""
        return max(1, self.budget // (1000 * num_envs))

    def source(self) -> ListSource:
        """Return all tasks that can be practised."""
        return self.dynamics.source()

    def simulator(self, seed: int = 0, num_envs: int = 1) -> GeneralisingSimulator:
        """Make the learner."""
        return GeneralisingSimulator(self.dynamics, seed=seed, num_envs=num_envs)

    def policies(self, simulator: Simulator) -> list[OraclePolicy]:
        """Return policies that see the learner's state."""
        return general_policies(cast("GeneralisingSimulator", simulator))

    def slower(self, factor: int) -> "GeneralScenario":
        """Return the same scenario with a learner that learns and forgets so many times slower."""
        names = ("eta", "eta_memory", "lambda_forget", "lambda_memory")
        rates = {name: getattr(self.dynamics, name) / factor for name in names}
        return replace(self, dynamics=replace(self.dynamics, **rates))

    # Files.

    def to_json(self) -> dict[str, Any]:
        """Return the scenario as plain JSON, with all numbers."""
        return {"schema": SCHEMA, **super().to_json()}

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Remove the schema version, which a file written by hand need not have."""
        if not isinstance(value, Mapping) or "schema" not in value:
            return value
        given = dict(cast("Mapping[str, Any]", value))
        schema = given.pop("schema")
        if schema != SCHEMA:
            text = f"is {schema!r}; this version reads {SCHEMA}. Use a newer Stepladder."
            problems.at("schema").add(text)
        return given

    def save(self, path: Path | str) -> None:
        """Write the scenario to a JSON file, which `scenario` reads."""
        Path(path).write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")


def _like_levels(names: tuple[str, ...], num_tasks: int, **settings: Any) -> Generalising:
    """Return groups of tasks, each harder than the one before, with the lengths of levels."""
    count = len(names)
    ranks = np.linspace(0.0, 1.0, count)
    usual: dict[str, Any] = {
        "difficulty": tuple((10.0 * ranks).tolist()),
        "spread": (1.0,) * count,
        "success_steps": tuple(int(steps) for steps in 60 + 40 * ranks),
        "failure_steps": (300,) * count,
    }
    return Generalising(groups=names, num_tasks=(num_tasks,) * count, **(usual | settings))


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"group-{number}" for number in range(count))


def _levels(groups: int, levels: int) -> Generalising:
    return _like_levels(_numbered(groups), levels)


def _mislabelled(groups: int) -> Generalising:
    return _like_levels(_numbered(groups), 200, mislabelled=0.25)


def _shuffled(groups: int) -> Generalising:
    return _like_levels(_numbered(groups), 200, mislabelled=1.0)


def _hinder(groups: int) -> Generalising:
    numbers = np.arange(groups)
    distance = np.abs(numbers[:, None] - numbers)
    is_rival = distance % 2 == 1
    coupling = np.where(is_rival, -0.25 * 0.5**distance, 0.5 ** (distance / 2.0))
    return _like_levels(
        _numbered(groups),
        100,
        difficulty=tuple((1.0 + 4.0 * (numbers // 2) / max(1, groups // 2)).tolist()),
        coupling=tuple(map(tuple, coupling.tolist())),
    )


def _useless(groups: int) -> Generalising:
    numbers = np.arange(groups)
    coupling = np.zeros((groups + 1, groups + 1))
    coupling[:groups, :groups] = 0.5 ** np.abs(numbers[:, None] - numbers)
    # Learned a hundredth as fast, so that its tasks stay neither easy nor hard.
    coupling[groups, groups] = 0.01
    usual = np.linspace(0.0, 10.0, groups).tolist()
    return _like_levels(
        (*_numbered(groups), "useless"),
        200,
        difficulty=(*usual, 0.0),
        coupling=tuple(map(tuple, coupling.tolist())),
        target=(*(1.0,) * groups, 0.0),
    )


def _params(columns: int, rows: int) -> Generalising:
    wide, high = min(columns, MOST_BINS), min(rows, MOST_BINS)
    widths = [len(part) for part in np.array_split(np.arange(columns), wide)]
    heights = [len(part) for part in np.array_split(np.arange(rows), high)]
    places = [(x, y) for y in range(high) for x in range(wide)]
    ranks = np.array([(x / max(1, wide - 1) + y / max(1, high - 1)) / 2.0 for x, y in places])
    return Generalising(
        groups=tuple(f"bin-{x}-{y}" for x, y in places),
        num_tasks=tuple(widths[x] * heights[y] for x, y in places),
        difficulty=tuple((8.0 * ranks).tolist()),
        spread=(0.5,) * len(places),
        success_steps=tuple(int(steps) for steps in 60 + 40 * ranks),
        failure_steps=(300,) * len(places),
        positions=tuple((float(x), float(y)) for x, y in places),
        transfer=0.6,
    )


GENERAL_FAMILIES: dict[str, tuple[str, int, Callable[..., Generalising]]] = {
    "levels": ("groups of levels, each harder than the last; neighbours help", 2, _levels),
    "params": ("a grid of parameters; bins of it are groups, and near ones help", 2, _params),
    "unlabelled": (
        "a grid of parameters without labels: only the parameters say what a task is",
        2,
        lambda columns, rows: replace(_params(columns, rows), labelled=False),
    ),
    "hinder": ("groups of which every second one hinders the others", 1, _hinder),
    "useless": ("groups of levels, and one that teaches nothing that counts", 1, _useless),
    "mislabelled": (
        "groups of levels; a quarter of the labels are drawn at random",
        1,
        _mislabelled,
    ),
    "shuffled": ("groups of levels; all labels are drawn at random", 1, _shuffled),
}
"""Purpose, number of sizes and learner of scenarios by the first part of their name."""
