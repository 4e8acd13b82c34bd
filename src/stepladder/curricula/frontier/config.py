"""Settings of the frontier curriculum.

Read by `frontier`, which turns them into the numbers its kernels take.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from stepladder.configs.checks import (
    is_number,
    require_positive,
    require_share,
    require_whole,
)
from stepladder.curricula.config import CurriculumConfig, Tasks, Variant
from stepladder.errors import ConfigError

if TYPE_CHECKING:
    from stepladder.curricula.frontier.frontier import Frontier

PRIOR = 0.2
"""Successes, and failures, that a task is taken to have had before its first play."""

ENOUGH_PLAYS = 4.0
"""Discounted plays before a task can be taken to be mastered: luck alone would need four heads."""

REACHED_SHARE = 0.9
"""Share of all the plays that a half-life can hold which is taken to be within reach."""

MAX_HALFLIFE = 1e5
MAX_SHARE = 1000.0
MAX_NEIGHBORS = 100


@dataclass(frozen=True, kw_only=True)
class FrontierConfig(CurriculumConfig):
    """Tasks that can be learned now; found by probing.

    Sets what counts as mastered, how soon a task is judged, and how many draws go to probing.
    """

    kind: ClassVar[str] = "frontier"

    mastery: float = 0.9
    """Success rate from which a task is taken to be mastered, in (0, 1)."""

    lapse: float = 0.1
    """How far the success rate of a mastered task must fall below `mastery` before the task is
    practised again, in [0, mastery)."""

    halflife_episodes: float = 8.0
    """Plays of the same task after which a result counts half; at most 100,000."""

    probing: float = 0.05
    """Draws that go to tasks not seen to be learnable yet, for each draw that goes to learnable
    ones; nearly all of them while nothing is learnable."""

    rehearsal: float = 0.002
    """Draws that go to mastered tasks, in turn, for each draw that goes to learnable ones."""

    trial_episodes: int = 40
    """Plays after which a learnable task must have become better, or it is stuck."""

    patience_rounds: float = 10.0
    """Rounds of probing without anything new mastered after which probing gives way to rehearsal,
    more and more."""

    promote_z: float = 2.0
    """Standard errors by which a task must beat its old level to be taken as learnable."""

    stuck_z: float = 1.0
    """Standard errors by which a task in practice must become better in `trial_episodes` plays."""

    features: tuple[str, ...] = ()
    """Parameters of the tasks, such as a position or a difficulty, by which tasks are neighbours:
    those near a mastered task are probed first. Dotted paths reach into nested parameters. None by
    default; needs a pool that holds all tasks of its source, at most 20,000."""

    num_neighbors: int = 2
    """Nearest tasks per feature that count as neighbours, from 1 to 100."""

    eviction_plays: int = 20
    """Probes in a row after which a task that has not become learnable makes room for another, if
    the source has more tasks than the pool. Mastered tasks then make room at once. 0 never
    replaces."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_share("mastery", self.mastery)
        require_share("lapse", self.lapse)
        if not 0.0 < self.mastery < 1.0 or not self.lapse < self.mastery:
            raise ConfigError(
                f"mastery must lie inside (0, 1) and lapse below it; got {self.mastery!r} and "
                f"{self.lapse!r}. Give such numbers."
            )
        for name in ("halflife_episodes", "probing", "rehearsal", "patience_rounds"):
            require_positive(name, getattr(self, name))
        for name in ("probing", "rehearsal"):
            _require_at_most(name, getattr(self, name), MAX_SHARE)
        for name in ("promote_z", "stuck_z"):
            value: Any = getattr(self, name)
            if not is_number(value) or not 0.0 <= value < 100.0:
                raise ConfigError(f"{name} must lie in [0, 100); got {value!r}. Give a number.")
        require_whole("trial_episodes", self.trial_episodes, 2)
        require_whole("eviction_plays", self.eviction_plays, 0)
        require_whole("num_neighbors", self.num_neighbors, 1)
        _require_at_most("num_neighbors", self.num_neighbors, MAX_NEIGHBORS)
        _require_names(self.features)
        self._require_memory()

    def _require_memory(self) -> None:
        """Raise if results are forgotten too soon to ever tell the success rate of `mastery`."""
        _require_at_most("halflife_episodes", self.halflife_episodes, MAX_HALFLIFE)
        plays = REACHED_SHARE / (1.0 - self.keep)
        highest = (plays + PRIOR) / (plays + 2.0 * PRIOR)
        if highest < self.mastery:
            raise ConfigError(
                f"mastery {self.mastery} cannot be seen with halflife_episodes "
                f"{self.halflife_episodes}: a task that never fails is taken to succeed "
                f"{highest:.3f} of the time. Give a longer half-life or a lower mastery."
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

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Frontier":
        """Build the curriculum that this config describes."""
        from stepladder.curricula.frontier.frontier import Frontier

        return Frontier(tasks, self, seed=seed)


def _require_at_most(name: str, value: float, most: float) -> None:
    if value > most:
        raise ConfigError(f"{name} must be at most {most:g}; got {value!r}. Give a lower number.")


def _require_names(features: Any) -> None:
    if isinstance(features, str):
        raise ConfigError(
            f"features must be several names; got {features!r}. Write ({features!r},)."
        )
    names = cast("tuple[Any, ...]", features)
    if not isinstance(features, tuple | list) or not all(
        isinstance(name, str) and name for name in names
    ):
        raise ConfigError(f"features must be names of parameters; got {features!r}. Give a tuple.")
    if len(set(names)) < len(names):
        raise ConfigError(f"features names the same parameter twice: {features!r}. Name it once.")
