"""Settings of the learnability curriculum.

Read by `learnability` and by its kernels.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from stepladder.configs.checks import Count, Positive, Share, Within
from stepladder.curricula.config import Tasks
from stepladder.curricula.learning_progress.config import SignalConfig

if TYPE_CHECKING:
    from stepladder.curricula.learnability.learnability import Learnability

Prior = Annotated[float, Within(0.0, 1e6, above=True, fix="With more, results would not count.")]


@dataclass(frozen=True, kw_only=True)
class LearnabilityConfig(SignalConfig):
    """Tasks that succeed sometimes: p(1 - p).

    Sets how much a task is known before it is played, and how soon results are forgotten.
    """

    kind: ClassVar[str] = "learnability"

    halflife_episodes: Positive = 20.0
    """Half-life of a result, in plays of the same task: how quickly a learner is followed."""

    prior_successes: Prior = 1.0
    """Successes that a task counts as having had before its first play."""

    prior_failures: Prior = 1.0
    """Failures that a task counts as having had before its first play."""

    exponent: Annotated[float, Within(0.0, 100.0, fix="1 is the plain p(1 - p).")] = 1.0
    """Power of p(1 - p) that is the weight; above 1 is keener, 0 draws all tasks alike."""

    eviction_percentile: Share = 0.3
    """A task whose learnability is among this lowest share of all well-known tasks is replaced,
    if the source has more tasks than the pool, in [0, 1]. 0 never replaces."""

    eviction_plays: Count = 30
    """Plays after which a task is well known."""

    @property
    def replaces_tasks(self) -> bool:
        """Whether tasks make room for others if the source has more tasks than the pool."""
        return True

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Learnability":
        """Build the curriculum that this config describes."""
        from stepladder.curricula.learnability.learnability import Learnability

        return Learnability(tasks, self, seed=seed)
