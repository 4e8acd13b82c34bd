"""How practice raises the skills of a simulated learner, and what a play shows of them.

Settings of `TaskDependencySimulator`; the arithmetic is in `learner_state`. Two kinds of dynamics:
`Prerequisite`, where a play teaches as much as the task's prerequisites allow, and `Epochwise`, the
equations of an earlier simulator, for comparison with its published settings.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from stepladder.arrays import Words
from stepladder.configs.checks import NotNegative, Positive, PositiveInteger, UnitInterval, Within
from stepladder.configs.codec import Config
from stepladder.errors import ConfigError
from stepladder.simulator.graph import TaskGraph
from stepladder.simulator.learner_state import LEARNABLE, NOISE

AboveZero = Annotated[float, Within(0.0, 1.0, above=True, fix="With 0, nothing is learned.")]


@dataclass(frozen=True, kw_only=True)
class Prerequisite(Config):
    """A play of a task adds ``eta * gate * (1 - P)`` to its skill P.

    The gate is the product of the squares of the parents' skills, 1 without parents. Each parent
    gains `gamma` times the same expression of its own. Every play, of whatever task, multiplies
    all skills by ``1 - lambda_forget``: forgetting depends on the number of plays alone, not on
    the number of envs.
    """

    eta: AboveZero = 0.05
    """Rate of learning, in (0, 1]."""

    gamma: UnitInterval = 0.1
    """How much a play also teaches the task's prerequisites, in [0, 1]."""

    lambda_forget: Annotated[
        float, Within(0.0, 1.0, below=True, fix="With 1, nothing is learned.")
    ] = 2e-5
    """Share of all skill that is lost with every play, in [0, 1)."""

    start: UnitInterval = 0.01
    """Skill at the start, in [0, 1]."""

    mastery: AboveZero = 0.9
    """Skill from which a task counts as mastered, in (0, 1]."""


@dataclass(frozen=True, kw_only=True)
class Epochwise(Config):
    """The ancestor's equations: skills change at the end of an epoch only.

    With c plays of each task in the epoch, all from the old skills::

        stimulus = c + gamma * sum of c over the parents
        gate     = product of P over the children (1 without)
        dP       = stimulus * gate * (1 - P) - lambda_forget * P
        P       <- clip(P + dP * dt / plays per epoch, 0, 1)

    The gate depends on the children, so a chain is learned from its end; forgetting is divided by
    the number of plays, so more envs forget less. Use `Prerequisite` to judge a curriculum, and
    this class to repeat an old experiment.
    """

    gamma: NotNegative = 0.1
    """Weight of the parents' plays in a task's stimulus."""

    lambda_forget: NotNegative = 0.1
    """Rate of forgetting per epoch, before it is divided by the number of plays."""

    dt: Positive = 0.1
    """Step of the update."""

    start: UnitInterval = 0.01
    """Skill at the start, in [0, 1]."""

    mastery: UnitInterval = 0.9
    """Skill from which a task counts as mastered (`performance_threshold` in the ancestor)."""

    samples_per_epoch: PositiveInteger = 50
    """Plays per env and epoch; the update divides by this times the number of envs."""


Dynamics = Prerequisite | Epochwise


def learning_order(graph: TaskGraph, dynamics: Dynamics) -> tuple[int, ...]:
    """Return all nodes in an order in which they can be learned; epochwise, from the end."""
    return graph.order[::-1] if isinstance(dynamics, Epochwise) else graph.order


def learnable_nodes(graph: TaskGraph, dynamics: Dynamics, kinds: Words) -> Words:
    """Return 1 for the nodes that can be learned, with all nodes that their gate depends on."""
    is_epochwise = isinstance(dynamics, Epochwise)
    gates = graph.children() if is_epochwise else graph.parents
    learnable = np.zeros(graph.num_tasks, dtype=np.int64)
    for node in reversed(graph.order) if is_epochwise else graph.order:
        # A coin toss always opens a gate in part.
        open_ways = (kinds[other] == NOISE or learnable[other] for other in gates[node])
        learnable[node] = kinds[node] == LEARNABLE and all(open_ways)
    return learnable


@dataclass(frozen=True, kw_only=True)
class Noise(Config):
    """What a play shows of the skill behind it.

    A play succeeds with probability P. The return is that success, or (`reward="skill"`) the skill
    itself plus an error per task and one per play, not clipped: the return rises with the skill.
    """

    reward: Literal["success", "skill"] = "success"
    """``success`` or ``skill``: what the return of a play is."""

    task_noise_std: NotNegative = 0.0
    """Standard deviation of a task's fixed error, drawn once per task from the simulator's seed."""

    sample_noise_std: NotNegative = 0.0
    """Standard deviation of the error of a single play."""

    reward_base: float = 0.0
    """Added to every return; the ancestor's is 0.5."""

    saturate: bool = False
    """Whether returns that are the skill are clipped to [0, 1], as in the ancestor: with a base of
    0.5 this hides all learning above a skill of 0.5."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield errors that are set for a return without error."""
        for name in ("task_noise_std", "sample_noise_std"):
            if self.reward == "success" and getattr(self, name) > 0.0:
                yield (
                    name,
                    f"is {getattr(self, name)}, but the return is the success itself, which has no "
                    "such error. Set reward='skill', or leave it out.",
                )


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A named set of the ancestor's settings."""

    num_tasks: int = 10
    num_epochs: int = 100
    num_envs: int = 1
    dynamics: Epochwise
    noise: Noise


_SATURATING = Noise(reward="skill", reward_base=0.5, saturate=True)

RECIPES: dict[str, Recipe] = {
    "train": Recipe(
        num_epochs=500,
        num_envs=32,
        dynamics=Epochwise(gamma=0.3, lambda_forget=0.05, mastery=0.85, samples_per_epoch=10),
        noise=replace(_SATURATING, task_noise_std=0.05, sample_noise_std=0.01),
    ),
    "train-seed": Recipe(
        num_epochs=500,
        num_envs=4,
        dynamics=Epochwise(gamma=0.3, lambda_forget=0.05, mastery=0.85, samples_per_epoch=100),
        noise=replace(_SATURATING, task_noise_std=0.05),
    ),
    "config": Recipe(
        num_envs=32,
        dynamics=Epochwise(),
        noise=replace(_SATURATING, task_noise_std=0.1, sample_noise_std=0.01),
    ),
    "tool-seed": Recipe(
        dynamics=Epochwise(gamma=0.5, lambda_forget=0.01),
        noise=replace(_SATURATING, task_noise_std=1e-8),
    ),
    "large-chain": Recipe(
        num_tasks=25,
        num_epochs=2000,
        dynamics=Epochwise(gamma=0.5, lambda_forget=0.01, samples_per_epoch=100),
        noise=replace(_SATURATING, task_noise_std=1e-8),
    ),
}
"""The ancestor's recipes by name: ``train`` as it was last (``train-seed``: first), the defaults of
its config (``config``), of its first tool (``tool-seed``), and its large chain."""


def recipe(name: str) -> Recipe:
    """Return the ancestor's recipe of that name."""
    if name not in RECIPES:
        raise ConfigError(f"there is no recipe {name!r}; there are {', '.join(RECIPES)}.")
    return RECIPES[name]
