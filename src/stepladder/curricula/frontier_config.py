"""Settings of the frontier curriculum.

Read by `frontier`, which turns them into the numbers its kernels take.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.curricula.config import (
    CurriculumConfig,
    Tasks,
    require_positive,
    require_share,
    require_whole,
)
from stepladder.errors import ConfigError

if TYPE_CHECKING:
    from stepladder.curricula.frontier import Frontier


@dataclass(frozen=True, kw_only=True)
class FrontierConfig(CurriculumConfig):
    """What counts as mastered, how soon a task is judged, and how much goes to looking around."""

    mastery: float = 0.9
    """Success rate from which a task is taken to be mastered, in (0, 1)."""

    lapse: float = 0.05
    """How far the success rate of a mastered task must fall below `mastery` before the task is
    practised again, in [0, 1]."""

    halflife_episodes: float = 8.0
    """Plays of the same task after which a result counts half."""

    probing: float = 0.05
    """Draws that go to tasks not seen to be learnable yet, for each draw that goes to learnable
    ones; all of them while nothing is learnable."""

    rehearsal: float = 0.003
    """Draws that go to mastered tasks, in turn, for each draw that goes to learnable ones."""

    trial_episodes: int = 40
    """Plays after which a learnable task must have become better, or it is stuck."""

    patience_rounds: float = 10.0
    """Rounds of probing without anything mastered or improved after which probing gives way to
    rehearsal, more and more."""

    promote_z: float = 2.0
    """Standard errors by which a task must beat its old level to be taken as learnable."""

    stuck_z: float = 1.0
    """Standard errors by which a task in practice must become better in `trial_episodes` plays."""

    features: tuple[str, ...] = ()
    """Parameters of the tasks, such as a position or a difficulty, by which tasks are neighbours:
    those near a mastered task are probed first. Dotted paths reach into nested parameters. None by
    default; needs a pool that holds all tasks of its source, at most 20,000."""

    num_neighbors: int = 2
    """Nearest tasks per feature that count as neighbours."""

    eviction_plays: int = 20
    """Probes without success after which a task makes room for another, if the source has more
    tasks than the pool. Mastered tasks then make room at once. 0 never replaces."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_share("mastery", self.mastery)
        require_share("lapse", self.lapse)
        if not 0.0 < self.mastery < 1.0 or not self.lapse < self.mastery:
            raise ConfigError(
                f"mastery must lie inside (0, 1) and lapse below it; got {self.mastery} and "
                f"{self.lapse}."
            )
        for name in ("halflife_episodes", "probing", "rehearsal", "patience_rounds"):
            require_positive(name, getattr(self, name))
        for name in ("promote_z", "stuck_z"):
            if not 0.0 <= getattr(self, name) < 100.0:
                raise ConfigError(f"{name} must lie in [0, 100); got {getattr(self, name)!r}.")
        require_whole("trial_episodes", self.trial_episodes, 2)
        require_whole("num_neighbors", self.num_neighbors, 1)
        require_whole("eviction_plays", self.eviction_plays, 0)
        if isinstance(self.features, str):
            raise ConfigError(
                f"features must be a list of names; got {self.features!r}. "
                f"Write ({self.features!r},)."
            )

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Frontier":
        """Build the curriculum that this config describes."""
        from stepladder.curricula.frontier import Frontier

        return Frontier(tasks, self, seed=seed)
