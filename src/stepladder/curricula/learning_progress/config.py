"""Settings of the learning-progress curriculum, and the variants of its ancestor by name.

Read by `learning_progress`. `LearningProgressConfig` is our own method; `AncestorProgressConfig`
holds the formulas of the system described in docs/learning_progress.md, for comparison.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from stepladder.configs.checks import (
    MAX_WINDOW,
    require_positive,
    require_share,
    require_whole,
)
from stepladder.curricula.config import CurriculumConfig, Tasks, Variant
from stepladder.errors import ConfigError

if TYPE_CHECKING:
    from stepladder.curricula.learning_progress.ancestor import AncestorProgress
    from stepladder.curricula.learning_progress.learning_progress import LearningProgress

Signal = Literal["success", "return"]


@dataclass(frozen=True, kw_only=True)
class SignalConfig(CurriculumConfig):
    """What is averaged."""

    signal: Signal = "success"
    """Whether progress is measured on success or on the episode's return."""

    return_low: float = 0.0
    """Return that counts as 0, if the signal is the return."""

    return_high: float = 1.0
    """Return that counts as 1, if the signal is the return; returns outside are clipped."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.signal not in ("success", "return"):
            raise ConfigError(f"signal must be 'success' or 'return'; got {self.signal!r}.")
        if not (self.return_low < self.return_high and math.isfinite(self._return_span)):
            raise ConfigError(
                f"return_low must lie below return_high, both finite; got {self.return_low!r} and "
                f"{self.return_high!r}."
            )

    @property
    def _return_span(self) -> float:
        return self.return_high - self.return_low


@dataclass(frozen=True, kw_only=True)
class LearningProgressConfig(SignalConfig):
    """Tasks whose success is changing, beyond what is noise.

    Sets how quickly progress is noticed, and how much is left to chance.
    """

    kind: ClassVar[str] = "learning-progress"

    exploration: float = 0.1
    """Share of draws spread evenly over all tasks, in [0, 1]."""

    novelty: float = 0.2
    """Share of the other draws that goes to tasks played fewer than `novice_plays` times, while
    there are any, in [0, 1]."""

    novice_plays: int = 10
    """Plays after which a task is judged by its progress alone."""

    fast_halflife_episodes: float = 4.0
    """Half-life of the average that follows the present, in plays of the same task."""

    slow_halflife_episodes: float = 16.0
    """Half-life of the average that remembers the past, in plays of the same task."""

    noise_z: float | None = 1.5
    """Standard errors that are taken off the difference of the averages: what remains is progress,
    what chance alone would produce is not. None takes off as much as the largest of so many
    noisy tasks shows, the root of 2 ln(number of tasks); 0 takes nothing off."""

    eviction_percentile: float = 0.3
    """A task whose progress is among this lowest share of all well-known tasks is replaced, if
    the source has more tasks than the pool, in [0, 1]. 0 never replaces."""

    eviction_plays: int = 15
    """Plays after which a task is well known."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_share("novelty", self.novelty)
        require_share("eviction_percentile", self.eviction_percentile)
        require_whole("novice_plays", self.novice_plays, 0)
        require_whole("eviction_plays", self.eviction_plays, 2)
        require_positive("fast_halflife_episodes", self.fast_halflife_episodes)
        require_positive("slow_halflife_episodes", self.slow_halflife_episodes)
        if not self.fast_halflife_episodes < self.slow_halflife_episodes <= 1e5:
            raise ConfigError(
                "slow_halflife_episodes must lie above fast_halflife_episodes "
                f"({self.fast_halflife_episodes}) and at most at 100000; got "
                f"{self.slow_halflife_episodes}."
            )
        if self.noise_z is not None and not 0.0 <= self.noise_z < 100.0:
            raise ConfigError(f"noise_z must lie in [0, 100); got {self.noise_z!r}.")

    @property
    def replaces_tasks(self) -> bool:
        """Whether tasks make room for others if the source has more tasks than the pool."""
        return True

    @staticmethod
    def named(variant: str) -> "LearningProgressConfig | AncestorProgressConfig":
        """Return the default settings of a variant: ours, or one of the ancestor's.

        Example:
            >>> LearningProgressConfig.named("seed").progress_smoothing
            0.01
        """
        if variant == "corrected":
            return LearningProgressConfig()
        if variant == "seed":
            return AncestorProgressConfig.seed_defaults()
        if variant == "mature":
            return AncestorProgressConfig.mature_defaults()
        raise ConfigError(
            f"unknown variant {variant!r} of learning progress; expected 'corrected' (ours), "
            "'seed' or 'mature'."
        )

    def make(self, tasks: Tasks, *, seed: int = 0) -> "LearningProgress":
        """Build the curriculum that this config describes."""
        from stepladder.curricula.learning_progress.learning_progress import LearningProgress

        return LearningProgress(tasks, self, seed=seed)


@dataclass(frozen=True, kw_only=True)
class AncestorProgressConfig(SignalConfig):
    """The ancestor's learning progress: for comparison, not for use.

    Its cost grows with the number of tasks, as the ancestor's did.
    """

    kind: ClassVar[str] = "ancestor-progress"

    variant: Literal["seed", "mature"] = "mature"
    """Which of the ancestor's versions."""

    ema_timescale: float = 0.1
    """Weight of the newest value in the fast average."""

    slow_timescale_factor: float = 0.2
    """The slow average's weight, as a factor on the fast one's."""

    exploration_bonus: float = 0.1
    """Score of a task with too few results."""

    progress_smoothing: float = 0.0
    """Added to every progress before it is turned into a probability."""

    performance_bonus_weight: float = 0.0
    """Weight of the plain average in the score; `mature` only."""

    use_baseline_normalization: bool = True
    """Whether values are measured from the first one, at most 0.75; `mature` only."""

    lp_score_temperature: float = 0.0
    """0 scales scores by their spread, otherwise they are divided by this; `mature` only."""

    z_score_amplification: float = 10.0
    """Factor on the scaled scores at temperature 0; `mature` only."""

    early_progress_amplification: float = 0.5
    """Stretches averages near 0 when below 0.5; `mature` only."""

    min_samples_for_lp: int = 10
    """Results before progress counts: 10 in `mature`; `seed` used 2."""

    memory: int = 25
    """Results whose mean feeds the averages; `seed` only."""

    min_presentations_for_eviction: int = 5
    """Results before a task may be replaced."""

    eviction_threshold_percentile: float = 0.4
    """A task at or below this rank of scores may be replaced."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in ("seed", "mature"):
            raise ConfigError(f"variant must be 'seed' or 'mature'; got {self.variant!r}.")
        require_share("ema_timescale", self.ema_timescale)
        require_share("slow_timescale_factor", self.slow_timescale_factor)
        require_share("eviction_threshold_percentile", self.eviction_threshold_percentile)
        require_whole("min_samples_for_lp", self.min_samples_for_lp, 1)
        require_whole("memory", self.memory, 1, MAX_WINDOW)
        require_whole("min_presentations_for_eviction", self.min_presentations_for_eviction, 1)
        if not 0.0 < self.early_progress_amplification < 1.0:
            raise ConfigError(
                "early_progress_amplification must lie between 0 and 1; got "
                f"{self.early_progress_amplification!r}."
            )
        for name in (
            "exploration_bonus",
            "progress_smoothing",
            "performance_bonus_weight",
            "lp_score_temperature",
            "z_score_amplification",
        ):
            if not 0.0 <= getattr(self, name) < 1e6:
                raise ConfigError(
                    f"{name} must be 0 or more and below a million; got {getattr(self, name)!r}."
                )

    @classmethod
    def seed_defaults(cls) -> "AncestorProgressConfig":
        """Return the defaults of the first version."""
        return cls(variant="seed", progress_smoothing=0.01, min_samples_for_lp=2)

    @classmethod
    def mature_defaults(cls) -> "AncestorProgressConfig":
        """Return the defaults of the last version with shared memory."""
        return cls(variant="mature")

    @classmethod
    def variants(cls) -> dict[str, Variant]:
        """Return the ancestor's first and last version, each with its own defaults."""
        about = "The ancestor's learning progress, {} version; for comparison."
        return {
            "learning-progress-seed": Variant(
                about.format("first"), lambda tasks: cls.seed_defaults()
            ),
            "learning-progress-mature": Variant(
                about.format("last"), lambda tasks: cls.mature_defaults()
            ),
        }

    def make(self, tasks: Tasks, *, seed: int = 0) -> "AncestorProgress":
        """Build the curriculum that this config describes."""
        from stepladder.curricula.learning_progress.ancestor import AncestorProgress

        return AncestorProgress(tasks, self, seed=seed)
