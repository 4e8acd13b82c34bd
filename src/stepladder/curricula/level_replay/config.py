"""Settings of prioritised level replay.

Read by `level_replay`; the defaults are those of the paper's Procgen experiments where it names
one.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from stepladder.configs.checks import is_number, require_share, require_whole
from stepladder.curricula.config import Tasks
from stepladder.curricula.learning_progress.config import SignalConfig
from stepladder.errors import ConfigError

if TYPE_CHECKING:
    from stepladder.curricula.level_replay.level_replay import LevelReplay

SCORERS = ("deviation", "trainer")
TRANSFORMS = ("rank", "greedy", "proportional", "softmax")
SCHEDULES = ("proportionate", "fixed")

GREEDY_TEMPERATURE = 0.02
"""Temperature of `greedy`: rank 2 is drawn once for 2 ** 50 draws of rank 1."""


@dataclass(frozen=True, kw_only=True)
class LevelReplayConfig(SignalConfig):
    """Prioritised level replay: the highest scores.

    Sets what a task's score is, and how scores, age and chance share the draws.
    """

    kind: ClassVar[str] = "level-replay"

    scored_by: Literal["deviation", "trainer"] = "deviation"
    """Where scores come from: `deviation` of an episode's success or return from the task's
    running mean, or the `trainer`, who gives them to `report_scores`."""

    score_weight: float | None = None
    """Weight of the newest score in a task's score, in (0, 1]. None is 1, the newest alone, for a
    trainer's scores, and 0.1 for deviations, of which a single one says little."""

    transform: Literal["rank", "greedy", "proportional", "softmax"] = "rank"
    """How scores become weights: by `rank`, the best only (`greedy`), by the score itself
    (`proportional`), or by its exponential (`softmax`)."""

    temperature: float = 0.1
    """The lower, the keener: weights are rank ** (-1 / temperature), score ** (1 / temperature)
    or exp(score / temperature). `greedy` has a temperature of its own."""

    staleness: float = 0.1
    """Share of replays that go by how long ago a task was played, in [0, 1]."""

    schedule: Literal["proportionate", "fixed"] = "proportionate"
    """Whether the probability of a replay is the share of tasks that are scored (`proportionate`)
    or `replay_prob` (`fixed`). Once all tasks are scored, every draw is a replay."""

    replay_prob: float = 0.5
    """Probability of a replay while there are unseen tasks, if the schedule is `fixed`."""

    min_seen: float = 0.0
    """Share of tasks that must be scored before the first replay, in [0, 1]."""

    reranked_per_episode: int = 4
    """Tasks, beside the one played, whose rank is looked up again after each episode."""

    eviction_percentile: float = 0.3
    """A task whose score is among this lowest share of all scored tasks is replaced, if the source
    has more tasks than the pool, in [0, 1]. 0 never replaces."""

    eviction_plays: int = 5
    """Scores after which a task may be replaced."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_one_of("scored_by", self.scored_by, SCORERS)
        _require_one_of("transform", self.transform, TRANSFORMS)
        _require_one_of("schedule", self.schedule, SCHEDULES)
        for name in ("staleness", "replay_prob", "min_seen", "eviction_percentile"):
            require_share(name, getattr(self, name))
        require_whole("reranked_per_episode", self.reranked_per_episode, 0)
        require_whole("eviction_plays", self.eviction_plays, 1)
        weight = self.score_weight
        if weight is not None and not (is_number(weight) and 0.0 < weight <= 1.0):
            raise ConfigError(
                f"score_weight must lie above 0 and at most at 1; got {weight!r}. "
                "1 takes the newest score alone."
            )
        if not (is_number(self.temperature) and GREEDY_TEMPERATURE <= self.temperature <= 1e6):
            raise ConfigError(
                f"temperature must lie between {GREEDY_TEMPERATURE} and a million; got "
                f"{self.temperature!r}. For the best task alone, use transform='greedy'."
            )

    @property
    def newest_weight(self) -> float:
        """Weight of the newest score, None resolved."""
        if self.score_weight is not None:
            return self.score_weight
        return 1.0 if self.scored_by == "trainer" else 0.1

    @property
    def replaces_tasks(self) -> bool:
        """Whether tasks make room for others if the source has more tasks than the pool."""
        return True

    def make(self, tasks: Tasks, *, seed: int = 0) -> "LevelReplay":
        """Build the curriculum that this config describes."""
        from stepladder.curricula.level_replay.level_replay import LevelReplay

        return LevelReplay(tasks, self, seed=seed)


def _require_one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        wanted = ", ".join(map(repr, choices[:-1])) + f" or {choices[-1]!r}"
        raise ConfigError(f"{name} must be {wanted}; got {value!r}. Choose one of these.")
