"""Settings of the learning-progress curriculum, and the variants of its ancestor by name.

Read by `learning_progress`. `LearningProgressConfig` is our own method; `AncestorProgressConfig`
holds the formulas of the system described in docs/learning_progress.md, for comparison.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from stepladder.configs.checks import (
    Integer,
    NotNegativeInteger,
    Positive,
    PositiveInteger,
    UnitInterval,
    Window,
    Within,
)
from stepladder.curricula.config import PooledConfig, SignalConfig, Variant
from stepladder.errors import ConfigError

Term = Annotated[float, Within(0.0, 1e6, below=True)]


@dataclass(frozen=True, kw_only=True)
class LearningProgressConfig(PooledConfig, SignalConfig):
    """Tasks whose success is changing, beyond what is noise.

    Sets how quickly progress is noticed, and how much is left to chance.
    """

    kind: ClassVar[str] = "learning-progress"
    method_module: ClassVar[str] = "stepladder.curricula.learning_progress.learning_progress"

    exploration: UnitInterval = 0.1
    """Share of draws spread evenly over all tasks, in [0, 1]."""

    novelty: UnitInterval = 0.2
    """Share of the other draws that goes to tasks played fewer than `novice_plays` times, while
    there are any, in [0, 1]."""

    novice_plays: NotNegativeInteger = 10
    """Plays after which a task is judged by its progress alone."""

    fast_halflife_episodes: Positive = 4.0
    """Half-life of the average that follows the present, in plays of the same task."""

    slow_halflife_episodes: Positive = 16.0
    """Half-life of the average that remembers the past, in plays of the same task."""

    pooled: bool = True
    """Whether tasks of the same label are judged together, where labels stand for kinds of tasks:
    what a label's success does, measured from the results of all its tasks, is the prior of each
    of them. Then new tasks have no share of their own: their label speaks for them. Without,
    every task stands for itself."""

    noise_z: Annotated[float, Within(0.0, 100.0, below=True)] | None = 1.5
    """Standard errors that are taken off the difference of the averages: what remains is progress,
    what chance alone would produce is not. None takes off as much as the largest of so many
    noisy tasks shows, the root of 2 ln(number of tasks); 0 takes nothing off."""

    eviction_percentile: UnitInterval = 0.3
    """A task whose progress is among this lowest share of all well-known tasks is replaced, if
    the source has more tasks than the pool, in [0, 1]. 0 never replaces."""

    eviction_plays: Annotated[int, Integer(2)] = 15
    """Plays after which a task is well known."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield a slow average that is not the slower one."""
        yield from super().contradictions()
        if not self.fast_halflife_episodes < self.slow_halflife_episodes <= 1e5:
            yield (
                "slow_halflife_episodes",
                f"must lie above fast_halflife_episodes ({self.fast_halflife_episodes}), up to "
                f"100000; got {self.slow_halflife_episodes}.",
            )

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


@dataclass(frozen=True, kw_only=True)
class AncestorProgressConfig(SignalConfig):
    """The ancestor's learning progress: for comparison, not for use.

    Its cost grows with the number of tasks, as the ancestor's did.
    """

    kind: ClassVar[str] = "ancestor-progress"
    method_module: ClassVar[str] = "stepladder.curricula.learning_progress.ancestor"

    variant: Literal["seed", "mature"] = "mature"
    """Which of the ancestor's versions."""

    ema_timescale: UnitInterval = 0.1
    """Weight of the newest value in the fast average."""

    slow_timescale_factor: UnitInterval = 0.2
    """The slow average's weight, as a factor on the fast one's."""

    exploration_bonus: Term = 0.1
    """Score of a task with too few results."""

    progress_smoothing: Term = 0.0
    """Added to every progress before it is turned into a probability."""

    performance_bonus_weight: Term = 0.0
    """Weight of the plain average in the score; `mature` only."""

    use_baseline_normalization: bool = True
    """Whether values are measured from the first one, at most 0.75; `mature` only."""

    lp_score_temperature: Term = 0.0
    """0 scales scores by their spread, otherwise they are divided by this; `mature` only."""

    z_score_amplification: Term = 10.0
    """Factor on the scaled scores at temperature 0; `mature` only."""

    early_progress_amplification: Annotated[float, Within(0.0, 1.0, above=True, below=True)] = 0.5
    """Stretches averages near 0 when below 0.5; `mature` only."""

    min_samples_for_lp: PositiveInteger = 10
    """Results before progress counts: 10 in `mature`; `seed` used 2."""

    memory: Window = 25
    """Results whose mean feeds the averages; `seed` only."""

    min_presentations_for_eviction: PositiveInteger = 5
    """Results before a task may be replaced."""

    eviction_threshold_percentile: UnitInterval = 0.4
    """A task at or below this rank of scores may be replaced."""

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
