"""Settings of the learnability curriculum.

Read by `learnability` and by its kernels.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from stepladder.configs.checks import is_number, require_positive, require_share, require_whole
from stepladder.curricula.config import Tasks
from stepladder.curricula.learning_progress.config import SignalConfig
from stepladder.errors import ConfigError

if TYPE_CHECKING:
    from stepladder.curricula.learnability.learnability import Learnability


@dataclass(frozen=True, kw_only=True)
class LearnabilityConfig(SignalConfig):
    """Tasks that succeed sometimes: p(1 - p).

    Sets how much a task is known before it is played, and how soon results are forgotten.
    """

    kind: ClassVar[str] = "learnability"

    halflife_episodes: float = 20.0
    """Half-life of a result, in plays of the same task: how quickly a learner is followed."""

    prior_successes: float = 1.0
    """Successes that a task counts as having had before its first play."""

    prior_failures: float = 1.0
    """Failures that a task counts as having had before its first play."""

    exponent: float = 1.0
    """Power of p(1 - p) that is the weight; above 1 is keener, 0 draws all tasks alike."""

    eviction_percentile: float = 0.3
    """A task whose learnability is among this lowest share of all well-known tasks is replaced,
    if the source has more tasks than the pool, in [0, 1]. 0 never replaces."""

    eviction_plays: int = 30
    """Plays after which a task is well known."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("halflife_episodes", self.halflife_episodes)
        require_positive("prior_successes", self.prior_successes)
        require_positive("prior_failures", self.prior_failures)
        require_share("eviction_percentile", self.eviction_percentile)
        require_whole("eviction_plays", self.eviction_plays, 1)
        if max(self.prior_successes, self.prior_failures) > 1e6:
            raise ConfigError(
                "prior_successes and prior_failures must be at most a million; got "
                f"{self.prior_successes!r} and {self.prior_failures!r}. Results would not count."
            )
        if not (is_number(self.exponent) and 0.0 <= self.exponent <= 100.0):
            raise ConfigError(
                f"exponent must lie in [0, 100]; got {self.exponent!r}. 1 is the plain p(1 - p)."
            )

    @property
    def replaces_tasks(self) -> bool:
        """Whether tasks make room for others if the source has more tasks than the pool."""
        return True

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Learnability":
        """Build the curriculum that this config describes."""
        from stepladder.curricula.learnability.learnability import Learnability

        return Learnability(tasks, self, seed=seed)
