"""What level replay knows: its state, its settings and what stays the same, as kernels read them.

`kernels` reads and changes it; `level_replay` makes and saves it.
"""

import math
from typing import Annotated, NamedTuple

from stepladder.arrays import Words
from stepladder.curricula.batch_rule import Noted, Totals
from stepladder.curricula.level_replay.config import LevelReplayConfig
from stepladder.curricula.level_replay.ranks import NUM_RANK_BINS, RankPower, RankTree
from stepladder.curricula.pooled.labels import Label, LabelledTask
from stepladder.curricula.pooled.pooling import Pooling
from stepladder.curricula.returns import ReturnScale
from stepladder.records import Count, Fields, Limits, Records, Share
from stepladder.saving.saved_array import MAX_FLOAT

NO_PLAN_VERSION = 2**62
"""A plan version that no draw has."""

BY_RANK, PROPORTIONAL, SOFTMAX = 0, 1, 2
"""How scores become weights."""

BY_SCORE, BY_AGE, UNSEEN = 0, 1, 2
"""Layers of the weight table; each has a group per label, if tasks are pooled."""
NUM_REPLAY_LAYERS = 3


class TaskScore(Fields):
    """What is known of a slot's task; it fills a cache line."""

    num_plays: Count
    mean: Share
    """Running mean of its results."""
    num_scores: Count
    score: Annotated[float, Limits(0.0, MAX_FLOAT)]
    bin: Annotated[int, Limits(0, NUM_RANK_BINS - 1)]
    """Of the score, among the ranks."""
    last_play: Count
    """When it was played last, in plays of all tasks."""
    best_return: Annotated[float, Limits(-math.inf, MAX_FLOAT)]
    """Minus infinity before the first play."""
    weight: float
    """What the source gives the task."""


class ScoredSlot(Fields):
    """Which slots have a score."""

    position: int
    """Of the slot in the list of seen ones; -1 is none."""
    listed: int
    """That list itself: the slot at this position."""


class SeenVersions(Fields):
    """Plan versions from which draws of a slot are replays."""

    since: Annotated[int, Limits(0, NO_PLAN_VERSION)]
    """The version with which the slot's task had a score."""
    before: Annotated[int, Limits(0, NO_PLAN_VERSION)]
    """The same for the task before it."""


class Method(Fields):
    """What is known about the whole pool."""

    totals: Totals
    noted: Noted
    num_seen: int
    next_reranked: int
    """Position in the list of seen slots up to which ranks were looked up again."""
    ages_since: Count
    """The play from which ages are counted."""
    num_orphaned_scores: Count
    ranks: RankTree


class State(NamedTuple):
    """Everything that the method learns."""

    method: Records[Method]
    tasks: Records[TaskScore]
    seen: Records[ScoredSlot]
    seen_versions: Records[SeenVersions]
    returns: Records[ReturnScale]
    evidence: Records[LabelledTask]
    """Scores instead of successes; one per slot if tasks are pooled, else one that is not used."""
    labels: Records[Label]
    """All labels, or one for all tasks; a label's rate is its mean score."""
    pooling: Records[Pooling]
    scores: Records[ReturnScale]
    """The range of a trainer's scores, if tasks are pooled."""


class Settings(LevelReplayConfig):
    """The config as kernels read it, with what follows from it."""

    pools: bool
    """Whether labels are groups of the plan."""
    keep: float
    """What is left of a task's own scores after another one."""
    uses_trainer: bool
    uses_return: bool
    finds_range: bool
    newest_weight: float  # pyright: ignore[reportIncompatibleMethodOverride]
    how: int
    """`BY_RANK`, `PROPORTIONAL` or `SOFTMAX`."""
    power: float
    has_fixed_schedule: bool
    eviction_share: float


class Constants(NamedTuple):
    """What stays the same."""

    settings: Records[Settings]
    cells: Words
    """Every slot's label, if tasks are pooled."""
    powers: Records[RankPower]
    """What each rank is worth, if scores become weights by rank."""
