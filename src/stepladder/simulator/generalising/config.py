"""Settings of the learner that generalises: groups of tasks, rates, lengths, and what it is for.

Start of this folder's data flow: `state` lays the numbers out for kernels, `learner` is the learner
as an object. Everything here is a number or a list of numbers, so that a file can hold all of it
and a program can fit it to a real training.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.configs.checks import (
    Name,
    NotNegative,
    Positive,
    PositiveInteger,
    UnitInterval,
    Within,
    each_once,
    not_empty,
)
from stepladder.configs.codec import Config
from stepladder.simulator.graph import NODE_PREFIX
from stepladder.tasks import ListSource, Task

MAX_LEARNER_TASKS = 100_000
MAX_GROUPS = 1_000
"""What a group gives to every other one is a matrix."""

AXES = ("x", "y", "z")
UNLABELLED = "task"
"""Label of all tasks if groups are hidden from the curriculum."""
PER_GROUP = (
    "num_tasks",
    "difficulty",
    "spread",
    "success_steps",
    "failure_steps",
    "positions",
    "coupling",
    "target",
)
"""Settings with an entry per group."""

Keeping = Annotated[float, Within(0.0, 1.0, below=True, fix="With 1, nothing is kept.")]


@dataclass(frozen=True, kw_only=True)
class Generalising(Config):
    """A learner with a skill per group, which other tasks profit from, and a memory per task.

    With S the skill of a task's group, u its memory and d its difficulty, a play succeeds with
    probability ``p = 1 / (1 + exp(-(S + u - d)))`` and teaches ``s = 4 p (1 - p)``. At an update,
    every play since the last one adds ``eta * coupling[h][g] * s`` to the skill of every group h,
    where g is its own group, and ``eta_memory * s`` to the memory of its task. Before that, skills
    lose the share `lambda_forget` and memories the share `lambda_memory`.

    Held-out tasks are unseen tasks of a group: their memory is 0.
    """

    groups: Annotated[tuple[Name, ...], not_empty, each_once]
    """Names of the groups; they are the labels of the tasks."""

    num_tasks: tuple[PositiveInteger, ...]
    """Tasks per group that can be practised."""

    difficulty: tuple[float, ...]
    """Mean difficulty per group: the skill at which half of the plays succeed."""

    spread: tuple[NotNegative, ...]
    """Difficulties of a group lie evenly within this distance of its mean."""

    success_steps: tuple[PositiveInteger, ...]
    """Env steps of a play that succeeds, per group."""

    failure_steps: tuple[PositiveInteger, ...]
    """Env steps of a play that fails, per group."""

    length_spread: UnitInterval = 0.1
    """How far a single play may be shorter or longer, as a share."""

    eta: Positive = 8e-4
    """What one play adds to the skill of its own group, if it succeeds in half of all cases."""

    eta_memory: NotNegative = 1.0
    """What it adds to the memory of its task."""

    lambda_forget: Keeping = 1e-4
    """Share of all skill that is lost with every update."""

    lambda_memory: Keeping = 0.05
    """Share of all memory that is lost with every update."""

    transfer: UnitInterval = 0.5
    """What a play gives to a group at distance 1, as a share of what it gives to its own; at
    distance x it is ``transfer ** x``. Without effect if `coupling` is given."""

    positions: tuple[Annotated[tuple[float, ...], not_empty], ...] | None = None
    """Where each group lies; by default one after the other on a line. Also parameters of the
    tasks: ``position``, or ``x``, ``y``, ``z``."""

    coupling: tuple[tuple[float, ...], ...] | None = None
    """What a play of group g gives to group h, in row h and column g; negative if it hinders."""

    target: tuple[NotNegative, ...] | None = None
    """What the agent is for: weights of the groups in the score; all alike by default."""

    goal: Annotated[float, Within(0.0, 1.0, above=True, below=True)] = 0.9
    """Mean success on held-out tasks of the target at which the learner is done."""

    update_steps: PositiveInteger = 8192
    """Env steps, of all envs together, from one update of the learner to the next."""

    labelled: bool = True
    """Whether tasks have their group as label; else all have the same one, and only their
    parameters say what they are."""

    mislabelled: UnitInterval = 0.0
    """Share of the tasks whose label names a group that is drawn at random."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield lists of another length than the groups, and sizes beyond the limits."""
        count = len(self.groups)
        if count > MAX_GROUPS:
            yield "groups", f"must be at most {MAX_GROUPS}; got {count}. Use larger groups."
            return
        for name in PER_GROUP:
            value = getattr(self, name)
            if value is not None and len(value) != count:
                yield name, f"must have an entry per group ({count}); got {len(value)}."
        total = sum(self.num_tasks)
        if total > MAX_LEARNER_TASKS:
            yield (
                "num_tasks",
                f"must be at most {MAX_LEARNER_TASKS} together; got {total}. Use fewer.",
            )
        for group, row in enumerate(self.coupling or ()):
            if len(row) != count:
                yield f"coupling[{group}]", f"must have {count} entries; got {len(row)}."
        lengths = {len(place) for place in self.positions or ()}
        if len(lengths) > 1 or max(lengths, default=1) > len(AXES):
            text = f"must have the same number of axes for all groups, at most {len(AXES)}"
            yield "positions", f"{text}; got {sorted(lengths)}."
        if self.target is not None and sum(self.target) == 0.0:
            yield "target", "must name a group with a weight above 0; all are 0. Raise one."

    @property
    def total_tasks(self) -> int:
        """Number of tasks of all groups."""
        return sum(self.num_tasks)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the parameters that say where a task's group lies."""
        if self.positions is None or len(self.positions[0]) == 1:
            return ("position",)
        return AXES[: len(self.positions[0])]

    @cached_property
    def places(self) -> Floats:
        """Where each group lies, shape ``(num_groups, num_axes)``."""
        line = [(float(group),) for group in range(len(self.groups))]
        return np.array(self.positions or line, dtype=np.float64)

    @cached_property
    def coupling_matrix(self) -> Floats:
        """What a play of a group (column) gives to each group (row)."""
        if self.coupling is not None:
            return np.array(self.coupling, dtype=np.float64)
        distances = np.linalg.norm(self.places[:, None] - self.places[None], axis=2)
        return np.ascontiguousarray(np.power(self.transfer, distances))

    @cached_property
    def target_weights(self) -> Floats:
        """Weight of each group in the score; they sum to one."""
        weights = np.array(self.target or np.ones(len(self.groups)), dtype=np.float64)
        return weights / weights.sum()

    @cached_property
    def untrained_success(self) -> Floats:
        """Mean success per group of a learner that has learned nothing yet."""
        easy, spread = -np.array(self.difficulty), np.maximum(self.spread, 1e-6)
        whole = np.logaddexp(0.0, easy + spread) - np.logaddexp(0.0, easy - spread)
        return whole / (2.0 * spread)

    @cached_property
    def task_groups(self) -> Words:
        """The group that each task belongs to, whatever its label says."""
        return np.repeat(np.arange(len(self.groups)), self.num_tasks)

    @cached_property
    def label_groups(self) -> Words:
        """The group that the label of each task names."""
        rng = np.random.default_rng([len(self.groups), self.total_tasks, 1])
        labels = self.task_groups.copy()
        is_wrong = rng.random(len(labels)) < self.mislabelled
        labels[is_wrong] = rng.integers(len(self.groups), size=int(is_wrong.sum()))
        return labels

    @cached_property
    def task_difficulties(self) -> Floats:
        """Difficulty of each task; within a group in no order."""
        rng = np.random.default_rng([len(self.groups), self.total_tasks, 2])
        found: list[Floats] = []
        for mean, spread, count in zip(self.difficulty, self.spread, self.num_tasks, strict=True):
            evenly = 2.0 * (np.arange(count) + 0.5) / count - 1.0
            found.append(mean + spread * rng.permutation(evenly))
        return np.concatenate(found)

    @cached_property
    def _source(self) -> ListSource:
        features = self.features
        places: list[dict[str, Any]] = [
            dict(zip(features, place, strict=True)) for place in self.places.tolist()
        ]
        return ListSource(
            Task(
                f"task-{node}",
                self.groups[group] if self.labelled else UNLABELLED,
                {NODE_PREFIX: node, **places[group]},
            )
            for node, group in enumerate(self.label_groups.tolist())
        )

    def source(self) -> ListSource:
        """Return all tasks; the same object every time."""
        return self._source
