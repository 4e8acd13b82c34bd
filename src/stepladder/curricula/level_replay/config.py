"""Settings of prioritised level replay.

Read by `level_replay`; the defaults are those of the paper's Procgen experiments where it names
one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from stepladder.configs.checks import (
    Integer,
    NotNegativeInteger,
    PositiveInteger,
    UnitInterval,
    Within,
)
from stepladder.curricula.config import PooledConfig, SignalConfig, Variant
from stepladder.curricula.level_replay.accel import accel_variant
from stepladder.tasks.editing import MAX_CHANGES

GREEDY_TEMPERATURE = 0.02
"""Temperature of `greedy`: rank 2 is drawn once for 2 ** 50 draws of rank 1."""


@dataclass(frozen=True, kw_only=True)
class LevelReplayConfig(PooledConfig, SignalConfig):
    """Prioritised level replay: the highest scores.

    Sets what a task's score is, and how scores, age and chance share the draws.
    """

    kind: ClassVar[str] = "level-replay"
    method_module: ClassVar[str] = "stepladder.curricula.level_replay.level_replay"

    scored_by: Literal["deviation", "trainer", "value_loss", "positive_value_loss"] = "deviation"
    """Where scores come from: `deviation` of an episode's success or return from the task's
    running mean, or the agent's values: `value_loss` is the mean absolute advantage of an episode,
    `positive_value_loss` counts negative advantages as 0. `trainer` is whatever your own loop
    passes to `report_scores`; the library's trainers then give the value loss."""

    score_weight: (
        Annotated[float, Within(0.0, 1.0, above=True, fix="1 takes the newest score alone.")] | None
    ) = None
    """Weight of the newest score in a task's score, in (0, 1]. None is 1, the newest alone, for a
    trainer's scores, and 0.1 for deviations, of which a single one says little."""

    pooled: bool = False
    """Whether tasks of the same label are judged together, where labels stand for kinds of tasks:
    a task's score is drawn towards the mean score of its label, unseen tasks of labels with high
    scores come first, and what no practice changes fades. By default every task stands for itself,
    as published."""

    transform: Literal["rank", "greedy", "proportional", "softmax"] = "rank"
    """How scores become weights: by `rank`, the best only (`greedy`), by the score itself
    (`proportional`), or by its exponential (`softmax`)."""

    temperature: Annotated[
        float,
        Within(GREEDY_TEMPERATURE, 1e6, fix="For the best task alone, set transform to 'greedy'."),
    ] = 0.1
    """The lower, the keener: weights are rank ** (-1 / temperature), score ** (1 / temperature)
    or exp(score / temperature). `greedy` has a temperature of its own."""

    staleness: UnitInterval = 0.1
    """Share of replays that go by how long ago a task was played, in [0, 1]."""

    schedule: Literal["proportionate", "fixed"] = "proportionate"
    """Whether the probability of a replay is the share of tasks that are scored (`proportionate`)
    or `replay_prob` (`fixed`). Once all tasks are scored, every draw is a replay."""

    replay_prob: UnitInterval = 0.5
    """Probability of a replay while there are unseen tasks, if the schedule is `fixed`."""

    min_seen: UnitInterval = 0.0
    """Share of tasks that must be scored before the first replay, in [0, 1]."""

    reranked_per_episode: NotNegativeInteger = 4
    """Tasks other than the one played whose rank is looked up again after each episode."""

    eviction_percentile: UnitInterval = 0.3
    """A task whose score is among this lowest share of all scored tasks is replaced, if the source
    has more tasks than the pool, in [0, 1]. 0 never replaces."""

    eviction_plays: PositiveInteger = 5
    """Scores after which a task may be replaced."""

    editing: UnitInterval = 0.0
    """Share of replacements that are an edit of a task drawn as a replay is drawn, instead of
    another task of the source, in [0, 1]. The source must be able to edit its tasks."""

    changes_per_edit: Annotated[int, Integer(1, MAX_CHANGES)] = 5
    """Small changes that one edit makes, such as a tile or a step of one parameter."""

    @classmethod
    def variants(cls) -> dict[str, Variant]:
        """Return the default settings, and those of ACCEL."""
        return {**super().variants(), **accel_variant(cls)}

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield edits that would never come in, and returns that do not span a range."""
        yield from super().contradictions()
        if self.editing and not self.eviction_percentile:
            yield (
                "editing",
                f"is {self.editing:g}, and eviction_percentile is 0, so no edit would ever come "
                "in. Raise eviction_percentile.",
            )
        if self.editing and self.pooled:
            yield (
                "pooled",
                f"is on, and editing is {self.editing:g}: edits are made of the best single tasks. "
                "Turn one of them off.",
            )

    @property
    def num_edit_changes(self) -> int:
        """Changes in each edit that is made; 0 if none is."""
        return self.changes_per_edit if self.editing else 0

    @property
    def newest_weight(self) -> float:
        """Weight of the newest score, None resolved."""
        if self.score_weight is not None:
            return self.score_weight
        return 1.0 if self.trainer_score else 0.1

    @property
    def trainer_score(self) -> str:
        """The score of an episode that a trainer gives; empty if deviations are the scores."""
        if self.scored_by == "trainer":
            return "value_loss"
        return "" if self.scored_by == "deviation" else self.scored_by

    @property
    def replaces_tasks(self) -> bool:
        """Whether tasks make room for others if the source has more tasks than the pool."""
        return True
