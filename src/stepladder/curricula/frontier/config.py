"""Settings of the frontier curriculum.

Read by `frontier`, which turns them into the numbers its kernels take.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from stepladder.configs.checks import (
    Integer,
    Name,
    NotNegativeInteger,
    Positive,
    UnitInterval,
    Within,
    each_once,
)
from stepladder.curricula.config import PooledConfig, Variant

PRIOR = 0.2
"""Successes, and failures, that a task is taken to have had before its first play."""

ENOUGH_PLAYS = 4.0
"""Discounted plays before a task can be taken to be mastered: luck alone would need four heads."""

REACHED_SHARE = 0.9
"""Share of all the plays that a half-life can hold which is taken to be within reach."""

Draws = Annotated[float, Within(0.0, 1000.0, above=True)]
StandardErrors = Annotated[float, Within(0.0, 100.0, below=True)]


@dataclass(frozen=True, kw_only=True)
class FrontierConfig(PooledConfig):
    """Tasks that can be learned now; found by probing.

    Sets what counts as mastered, how soon a task is judged, and how many draws go to probing.
    """

    kind: ClassVar[str] = "frontier"
    method_module: ClassVar[str] = "stepladder.curricula.frontier.frontier"

    mastery: Annotated[float, Within(0.0, 1.0, above=True, below=True)] = 0.9
    """Success rate from which a task is taken to be mastered, in (0, 1)."""

    lapse: UnitInterval = 0.1
    """How far the success rate of a mastered task must fall below `mastery` before the task is
    practised again, in [0, mastery)."""

    halflife_episodes: Annotated[float, Within(0.0, 1e5, above=True)] = 8.0
    """Plays of the same task after which a result counts half, at first; at most 100,000. It grows
    with the square root of the task's trials once these are longer than ten half-lives."""

    probing: Draws = 0.05
    """Draws that go to tasks not seen to be learnable yet, for each draw that goes to learnable
    ones; nearly all of them while nothing is learnable."""

    rehearsal: Draws = 0.002
    """Draws that go to mastered tasks, in turn, for each draw that goes to learnable ones."""

    trial_episodes: Annotated[int, Integer(2, 1_000_000)] = 20
    """Plays of the shortest trial: at its end a learnable task must have become better, or it is
    stuck. Trials become longer by themselves where tasks take longer to learn; at most 1,000,000.
    """

    patience_rounds: Positive = 10.0
    """Rounds of probing without anything new mastered after which probing gives way to rehearsal,
    more and more."""

    promote_z: StandardErrors = 2.0
    """Standard errors by which a task must beat its old level to be taken as learnable."""

    stuck_z: StandardErrors = 1.0
    """Standard errors by which a task in practice must become better from trial to trial."""

    pooled: bool = True
    """Whether tasks of a kind are judged together: what the tasks of a label have shown is the
    prior of each of them. Without, or without labels that stand for kinds, every task stands for
    itself."""

    features: Annotated[tuple[Name, ...], each_once] = ()
    """Parameters of the tasks, such as a position or a difficulty, by which tasks are neighbours:
    those near a mastered task are probed first. Among more than 20,000 tasks, those of similar
    features are judged together instead, if `pooled`. Dotted paths reach into nested parameters.
    None by default; needs a pool that holds all tasks of its source."""

    num_neighbors: Annotated[int, Integer(1, 100)] = 2
    """Nearest tasks per feature that count as neighbours, from 1 to 100."""

    eviction_plays: NotNegativeInteger = 20
    """Probes in a row after which a task that has not become learnable makes room for another, if
    the source has more tasks than the pool; more in proportion where tasks take long to learn.
    Mastered tasks then make room at once. 0 never replaces."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield a lapse above mastery, and a memory too short to ever see mastery."""
        if not self.lapse < self.mastery:
            yield "lapse", f"must lie below mastery ({self.mastery!r}); got {self.lapse!r}."
        plays = REACHED_SHARE / (1.0 - self.keep)
        highest = (plays + PRIOR) / (plays + 2.0 * PRIOR)
        if highest < self.mastery:
            yield (
                "halflife_episodes",
                f"is {self.halflife_episodes}, too short to see mastery {self.mastery}: a task "
                f"that never fails is taken to succeed {highest:.3f} of the time. Give a "
                "longer half-life or a lower mastery.",
            )

    @property
    def keep(self) -> float:
        """What is left of a result after one more play of the same task."""
        return 0.5 ** (1.0 / self.halflife_episodes)

    @property
    def evidence(self) -> float:
        """Discounted plays before a task can be taken to be mastered."""
        return min(ENOUGH_PLAYS, REACHED_SHARE / (1.0 - self.keep))

    @property
    def replaces_tasks(self) -> bool:
        """Whether tasks make room for others; neighbours by features need all tasks in the pool."""
        return not self.features

    @classmethod
    def variants(cls) -> dict[str, Variant]:
        """Return the plain method, and one that looks at the features of the tasks."""
        about = "As frontier, but tasks near a mastered one are probed first."
        return {
            cls.kind: Variant(cls.summary(), lambda tasks: cls()),
            f"{cls.kind}-features": Variant(about, lambda tasks: cls(features=tasks.features)),
        }
