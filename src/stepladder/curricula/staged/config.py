"""Settings of the staged curriculum: stages, rules of advancement, mixing, demotion.

Read by `staged` and its kernels. A rule that is None is switched off. A value set on one
stage holds for that stage alone; the value of `StagedConfig` holds for all that set none.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from stepladder.configs.checks import (
    MAX_WINDOW,
    Integer,
    Name,
    PositiveInteger,
    UnitInterval,
    Within,
    not_empty,
)
from stepladder.configs.codec import Config
from stepladder.configs.problems import Problems
from stepladder.curricula.config import CurriculumConfig, TaskKnowledge, Variant
from stepladder.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Stage(Config):
    """A group of tasks that unlocks the next; in JSON, a text stands for the stage of that name."""

    name: Name
    """How the stage is called; also the label of its tasks unless `labels` says otherwise."""

    labels: tuple[str, ...] = ()
    """Labels of the tasks that belong to the stage; empty means the stage's own name."""

    threshold: UnitInterval | None = None
    """Success needed to leave this stage, in [0, 1]; None takes the curriculum's."""

    min_episodes: PositiveInteger | None = None
    """Episodes since entry needed to leave this stage; None takes the curriculum's."""

    demotion_threshold: UnitInterval | None = None
    """Demoted if success falls below this; None takes the demotion rule's."""

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Return the settings of a stage of which only the name is given."""
        return {"name": value} if isinstance(value, str) else value

    @property
    def task_labels(self) -> tuple[str, ...]:
        """Labels of this stage's tasks."""
        return self.labels or (self.name,)


@dataclass(frozen=True, kw_only=True)
class EarlyRule(Config):
    """Leave sooner than the minimum when success is outstanding."""

    success: UnitInterval = 0.90
    """Success needed, in [0, 1]."""

    min_episodes: PositiveInteger = 30
    """Episodes since entry needed all the same."""


@dataclass(frozen=True, kw_only=True)
class TrendRule(Config):
    """Leave a little sooner and a little below the threshold when success is rising."""

    min_trend: UnitInterval = 0.15
    """The newer half of the window must beat the older half by more than this."""

    episodes_factor: UnitInterval = 0.8
    """Share of the stage's minimum that suffices."""

    slack: UnitInterval = 0.05
    """How far below the threshold success may lie."""

    min_results: Annotated[int, Integer(2)] = 20
    """With fewer results in the window there is no trend."""


@dataclass(frozen=True, kw_only=True)
class DemotionRule(Config):
    """Go back one stage when the present one turns out to be too hard.

    Each demotion out of a stage multiplies the evidence needed for the next one out of it. In n
    episodes a stage can be demoted at most about log2(n / min_episodes) times, so two stages cannot
    take turns without end.
    """

    threshold: UnitInterval = 0.20
    """Demoted if success falls below this, unless the stage sets its own threshold."""

    min_episodes: PositiveInteger = 200
    """Episodes since entry needed before the first demotion out of a stage."""

    backoff: Annotated[
        float, Within(1.0, 1000.0, above=True, fix="With 1, two stages could alternate forever.")
    ] = 2.0
    """Factor on that number after each demotion out of the same stage; more than 1, up to 1000."""


@dataclass(frozen=True, kw_only=True)
class Mixing(Config):
    """How much of earlier stages is mixed into the present one."""

    base_ratio: UnitInterval = 0.20
    """Share of earlier tasks while there are too few results, or always if not adaptive."""

    adaptive: bool = True
    """Whether the share depends on the success of the present stage."""

    table: tuple[tuple[UnitInterval, UnitInterval], ...] = (
        (0.50, 0.40),
        (0.65, 0.25),
        (0.80, 0.15),
    )
    """Pairs (success below, share), rising in success."""

    otherwise: UnitInterval = 0.05
    """Share when success is at or above the last entry of the table."""

    min_results: PositiveInteger = 5
    """Results since entry needed before the table is used."""

    source: Literal["previous", "all_earlier"] = "all_earlier"
    """Whether the share goes evenly to all earlier stages, so that none is forgotten, or to the
    one just before, as published."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield a table that does not rise."""
        bounds = [bound for bound, _ in self.table]
        if bounds != sorted(set(bounds)):
            yield "table", f"must rise in success; got bounds {bounds}. Sort its entries."


@dataclass(frozen=True, kw_only=True)
class StagedConfig(CurriculumConfig):
    """Ordered stages; advance on success."""

    kind: ClassVar[str] = "staged"
    method_module: ClassVar[str] = "stepladder.curricula.staged.staged"
    limits_shares: ClassVar[bool] = False
    takes_target: ClassVar[bool] = False

    stages: Annotated[tuple[Stage, ...], not_empty]
    """The stages, easiest first; a plain string stands for a stage of that name."""

    starting_stage: str | None = None
    """Where to begin; None is the first stage."""

    threshold: UnitInterval = 0.70
    """Success needed to leave a stage that sets no threshold of its own, in [0, 1]."""

    min_episodes: PositiveInteger = 100
    """Episodes since entry needed to leave a stage that sets no minimum of its own."""

    window_episodes: Annotated[int, Integer(2, MAX_WINDOW)] = 50
    """Success is the mean over this many latest episodes of a stage since entry."""

    check_interval_episodes: PositiveInteger = 10
    """Advancement is considered after every so many episodes, whichever env they come from."""

    standard: bool = True
    """Whether reaching threshold and minimum advances."""

    early: EarlyRule | None = field(default_factory=EarlyRule)
    """Rule for outstanding success; None switches it off."""

    trend: TrendRule | None = field(default_factory=TrendRule)
    """Rule for rising success; None switches it off."""

    mixing: Mixing | None = field(default_factory=Mixing)
    """How earlier stages are mixed in; None never mixes."""

    demotion: DemotionRule | None = field(default_factory=DemotionRule)
    """When to go back a stage; None never does."""

    confidence_z: Annotated[float, Within(0.0, 100.0, above=True)] | None = None
    """Judge by Wilson's lower bound at so many standard deviations; None takes the plain rate."""

    balance_by: str | None = None
    """Dotted path of a task parameter (a generator's name, say); the values found in a stage are
    drawn equally often, however many tasks each has."""

    ignore_truncated: bool = False
    """Leave episodes that were cut off without success out of the success rate."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield stages that share a name or a label, and stages that could never be left."""
        yield from self._about_names()
        if not (self.standard or self.early or self.trend):
            yield (
                "standard",
                "is off, and so are early and trend: no stage could ever be left. Leave at least "
                "one of them on.",
            )
            return
        for index in range(len(self.stages)):
            low, high = self.demotion_threshold_of(index), self.threshold_of(index)
            if self.demotion is not None and index > 0 and low >= high:
                yield (
                    f"stages[{index}]",
                    f"demotes below {low} and advances from {high}; the first must be smaller. "
                    "Lower its demotion_threshold or the threshold of the DemotionRule, or set "
                    "demotion to None.",
                )
        yield from self._about_reach()

    def _about_names(self) -> Iterator[tuple[str, str]]:
        owner: dict[str, str] = {}
        names = [stage.name for stage in self.stages]
        for index, stage in enumerate(self.stages):
            if stage.name in names[:index]:
                yield (
                    f"stages[{index}].name",
                    f"is {stage.name!r}, as of an earlier stage. Rename one.",
                )
                continue
            for label in stage.task_labels:
                if owner.setdefault(label, stage.name) != stage.name:
                    yield (
                        f"stages[{index}].labels",
                        f"has {label!r}, which belongs to stage {owner[label]!r} too; a label "
                        "belongs to one stage.",
                    )
        if self.starting_stage is not None and self.starting_stage not in names:
            yield (
                "starting_stage",
                f"unknown stage {self.starting_stage!r}; the stages are {names}. Correct the name.",
            )

    def _about_reach(self) -> Iterator[tuple[str, str]]:
        """Yield stages that even perfect success cannot lift over a confidence bound."""
        if self.confidence_z is None:
            return
        best = self.window_episodes / (self.window_episodes + self.confidence_z**2)
        for index, stage in enumerate(self.stages[:-1]):
            bars = [self.threshold_of(index)] if self.standard else []
            bars += [self.early.success] if self.early else []
            bars += [self.threshold_of(index) - self.trend.slack] if self.trend else []
            if min(bars) > best:
                yield (
                    "confidence_z",
                    f"is {self.confidence_z}, and stage {stage.name!r} could never be left: with a "
                    f"window of {self.window_episodes} episodes the lower bound reaches at most "
                    f"{best:.3f}, and {min(bars):g} is needed. Raise window_episodes, or lower the "
                    "threshold or confidence_z.",
                )

    def about_labels(self, labels: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield stages without a task, and labels without a stage."""
        for index, stage in enumerate(self.stages):
            if not set(stage.task_labels) & set(labels):
                there = f"the tasks have {', '.join(labels)}"
                yield f"stages[{index}]", f"no task belongs to {stage.name!r}; {there}."
        staged = {label for stage in self.stages for label in stage.task_labels}
        for label in labels:
            if label not in staged:
                yield "stages", f"tasks labelled {label!r} are in no stage; add it."

    def index_of(self, stage: str) -> int:
        """Return the position of a stage.

        Raises:
            ConfigError: There is no such stage.
        """
        names = [entry.name for entry in self.stages]
        if stage not in names:
            raise ConfigError(f"unknown stage {stage!r}; the stages are {names}. Correct the name.")
        return names.index(stage)

    def threshold_of(self, index: int) -> float:
        """Return the success needed to leave a stage."""
        own = self.stages[index].threshold
        return self.threshold if own is None else own

    def min_episodes_of(self, index: int) -> int:
        """Return the episodes needed to leave a stage."""
        own = self.stages[index].min_episodes
        return self.min_episodes if own is None else own

    def demotion_threshold_of(self, index: int) -> float:
        """Return the success below which a stage is demoted; 0 without demotion."""
        if self.demotion is None:
            return 0.0
        own = self.stages[index].demotion_threshold
        return self.demotion.threshold if own is None else own

    def needs_of(self, index: int, num_envs: int, evidence: float) -> dict[str, tuple[float, int]]:
        """Return the success and the episodes that each rule asks for in a stage.

        No rule decides on fewer episodes than there are envs. `evidence` is the number of episodes
        that a demotion out of the stage asks for by now.
        """
        threshold, minimum = self.threshold_of(index), self.min_episodes_of(index)
        needs: dict[str, tuple[float, float]] = {"standard": (threshold, minimum)}
        if self.early is not None:
            needs["early"] = (self.early.success, self.early.min_episodes)
        if self.trend is not None:
            least = math.ceil(self.trend.episodes_factor * minimum)
            needs["trend"] = (threshold - self.trend.slack, least)
        if self.demotion is not None:
            needs["demotion"] = (self.demotion_threshold_of(index), evidence)
        return {
            rule: (success, max(int(episodes), num_envs))
            for rule, (success, episodes) in needs.items()
        }

    def with_stage(self, name: str, **settings: Any) -> "StagedConfig":
        """Return a copy in which one stage is set differently; the others stay as they are.

        Example:
            >>> config = StagedConfig(stages=("easy", "hard")).with_stage("hard", threshold=0.5)
            >>> config.threshold_of(0), config.threshold_of(1)
            (0.7, 0.5)
        """
        index = self.index_of(name)
        stages = list(self.stages)
        stages[index] = replace(stages[index], **settings)
        return replace(self, stages=tuple(stages))

    @classmethod
    def variants(cls) -> dict[str, Variant]:
        """Return one stage per label, in the order that is known of the tasks."""
        return {cls.kind: Variant("One stage per label, in the order of prerequisites.", _in_order)}


def _in_order(tasks: TaskKnowledge) -> StagedConfig:
    if not tasks.order:
        raise ConfigError(
            "staged needs to know the order of the tasks' labels, and nothing is known about it. "
            "Give the stages: StagedConfig(stages=(...))."
        )
    stages = tuple(Stage(name=label) for label in tasks.order)
    return StagedConfig(stages=stages, threshold=tasks.mastery, min_episodes=10)


PUBLISHED_MIXING = Mixing(source="previous")
"""How the published training system mixes: in only the stage just before."""

SEVEN_STAGES = StagedConfig(
    mixing=PUBLISHED_MIXING,
    stages=(
        Stage(name="simplest", threshold=0.60, min_episodes=50),
        Stage(name="simpler", threshold=0.65, min_episodes=60, demotion_threshold=0.30),
        Stage(name="simple", threshold=0.70, min_episodes=80, demotion_threshold=0.30),
        Stage(name="medium", threshold=0.70, min_episodes=100, demotion_threshold=0.25),
        Stage(name="complex", threshold=0.75, min_episodes=120, demotion_threshold=0.20),
        Stage(name="exploration", threshold=0.80, min_episodes=150, demotion_threshold=0.15),
        Stage(name="mine_heavy", threshold=0.80, min_episodes=150, demotion_threshold=0.15),
    ),
)
"""The seven stages of a platform-game agent; the bar rises with the difficulty."""

SEVEN_STAGES_LENIENT = StagedConfig(
    mixing=PUBLISHED_MIXING,
    stages=(
        Stage(name="simplest", threshold=0.70, min_episodes=50),
        Stage(name="simpler", threshold=0.60, min_episodes=50, demotion_threshold=0.30),
        Stage(name="simple", threshold=0.50, min_episodes=75, demotion_threshold=0.30),
        Stage(name="medium", threshold=0.45, min_episodes=100, demotion_threshold=0.25),
        Stage(name="complex", threshold=0.40, min_episodes=150, demotion_threshold=0.20),
        Stage(name="exploration", threshold=0.35, min_episodes=150, demotion_threshold=0.15),
        Stage(name="mine_heavy", threshold=0.30, min_episodes=200, demotion_threshold=0.15),
    ),
)
"""The same stages as set later, because real runs never advanced: the bar falls."""
