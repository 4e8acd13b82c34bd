"""Settings of the staged curriculum: stages, rules of advancement, mixing, demotion.

Read by `staged` and its kernels. A rule that is None is switched off. A value set on one
stage holds for that stage alone; the value of `StagedConfig` holds for all that set none.
"""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from stepladder.configs.checks import (
    MAX_WINDOW,
    require_kind,
    require_positive,
    require_range,
    require_share,
    require_whole,
)
from stepladder.curricula.config import CurriculumConfig, TaskKnowledge, Tasks, Variant
from stepladder.errors import ConfigError

if TYPE_CHECKING:
    from stepladder.curricula.staged.staged import Staged


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A group of tasks that unlocks the next."""

    name: str
    """How the stage is called; also the label of its tasks unless `labels` says otherwise."""

    labels: tuple[str, ...] = ()
    """Labels of the tasks that belong to the stage; empty means the stage's own name."""

    threshold: float | None = None
    """Success needed to leave this stage, in [0, 1]; None takes the curriculum's."""

    min_episodes: int | None = None
    """Episodes since entry needed to leave this stage; None takes the curriculum's."""

    demotion_threshold: float | None = None
    """Success below which this stage is left downwards; None takes the demotion rule's."""

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.name), str) or not self.name:
            raise ConfigError(f"a stage needs a name; got {self.name!r}. Give it a text.")
        if isinstance(self.labels, str):
            raise ConfigError(
                f"labels of stage {self.name!r} must be several texts; got {self.labels!r}. "
                f"Write ({self.labels!r},)."
            )
        where = f"of stage {self.name!r}"
        if self.threshold is not None:
            require_share(f"threshold {where}", self.threshold)
        if self.min_episodes is not None:
            require_whole(f"min_episodes {where}", self.min_episodes, 1)
        if self.demotion_threshold is not None:
            require_share(f"demotion_threshold {where}", self.demotion_threshold)

    @property
    def task_labels(self) -> tuple[str, ...]:
        """Labels of this stage's tasks."""
        return self.labels or (self.name,)


@dataclass(frozen=True, kw_only=True)
class EarlyRule:
    """Leave sooner than the minimum when success is outstanding."""

    success: float = 0.90
    """Success needed, in [0, 1]."""

    min_episodes: int = 30
    """Episodes since entry needed all the same."""

    def __post_init__(self) -> None:
        require_share("success of the early rule", self.success)
        require_whole("min_episodes of the early rule", self.min_episodes, 1)


@dataclass(frozen=True, kw_only=True)
class TrendRule:
    """Leave a little sooner and a little below the threshold when success is rising."""

    min_trend: float = 0.15
    """The newer half of the window must beat the older half by more than this."""

    episodes_factor: float = 0.8
    """Share of the stage's minimum that suffices."""

    slack: float = 0.05
    """How far below the threshold success may lie."""

    min_results: int = 20
    """With fewer results in the window there is no trend."""

    def __post_init__(self) -> None:
        require_share("min_trend", self.min_trend)
        require_share("episodes_factor", self.episodes_factor)
        require_share("slack", self.slack)
        require_whole("min_results of the trend rule", self.min_results, 2)


@dataclass(frozen=True, kw_only=True)
class DemotionRule:
    """Go back one stage when the present one turns out to be too hard.

    Each demotion out of a stage multiplies the evidence needed for the next one out of it, so
    that in n episodes a stage can be left downwards at most about log2(n / min_episodes) times:
    two stages cannot take turns for ever.
    """

    threshold: float = 0.20
    """Success below which a stage is left downwards, unless the stage sets its own."""

    min_episodes: int = 200
    """Episodes since entry needed before the first demotion out of a stage."""

    backoff: float = 2.0
    """Factor on that number after each demotion out of the same stage; more than 1, up to 1000."""

    def __post_init__(self) -> None:
        require_share("threshold of the demotion rule", self.threshold)
        require_whole("min_episodes of the demotion rule", self.min_episodes, 1)
        if not 1.0 < self.backoff <= 1000.0:
            raise ConfigError(
                f"backoff of the demotion rule must be more than 1, or two stages could take "
                f"turns for ever, and at most 1000; got {self.backoff!r}."
            )


@dataclass(frozen=True, kw_only=True)
class Mixing:
    """How much of earlier stages is mixed into the present one."""

    base_ratio: float = 0.20
    """Share of earlier tasks while there are too few results, or always if not adaptive."""

    adaptive: bool = True
    """Whether the share depends on the success of the present stage."""

    table: tuple[tuple[float, float], ...] = ((0.50, 0.40), (0.65, 0.25), (0.80, 0.15))
    """Pairs (success below, share), rising in success."""

    otherwise: float = 0.05
    """Share when success is at or above the last entry of the table."""

    min_results: int = 5
    """Results since entry needed before the table is used."""

    source: Literal["previous", "all_earlier"] = "previous"
    """Whether the share goes to the stage just before, or evenly to all earlier ones."""

    def __post_init__(self) -> None:
        require_share("base_ratio", self.base_ratio)
        require_share("otherwise", self.otherwise)
        require_whole("min_results of mixing", self.min_results, 1)
        bounds = [bound for bound, _ in self.table]
        if bounds != sorted(set(bounds)):
            raise ConfigError(f"the mixing table must rise in success; got bounds {bounds}.")
        for bound, ratio in self.table:
            require_share("a success in the mixing table", bound)
            require_share("a share in the mixing table", ratio)
        if self.source not in ("previous", "all_earlier"):
            raise ConfigError(
                f"mixing source must be 'previous' or 'all_earlier'; got {self.source!r}."
            )


@dataclass(frozen=True, kw_only=True)
class StagedConfig(CurriculumConfig):
    """Ordered stages; advance on success."""

    kind: ClassVar[str] = "staged"

    stages: tuple[Stage, ...]
    """The stages, easiest first; a plain string stands for a stage of that name."""

    starting_stage: str | None = None
    """Where to begin; None is the first stage."""

    threshold: float = 0.70
    """Success needed to leave a stage that sets no threshold of its own, in [0, 1]."""

    min_episodes: int = 100
    """Episodes since entry needed to leave a stage that sets no minimum of its own."""

    window_episodes: int = 50
    """Success is the mean over this many latest episodes of a stage since entry."""

    check_interval_episodes: int = 10
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

    confidence_z: float | None = None
    """Judge by Wilson's lower bound at so many standard deviations; None takes the plain rate."""

    balance_by: str | None = None
    """Dotted path of a task parameter (a generator's name, say); the values found in a stage are
    drawn equally often, however many tasks each has."""

    ignore_truncated: bool = False
    """Leave episodes that were cut off without success out of the success rate."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.stages, str):
            raise ConfigError(f"stages must be several stages; got {self.stages!r}. Give a tuple.")
        stages = tuple(Stage(name=s) if isinstance(s, str) else s for s in self.stages)
        for stage in stages:
            require_kind("a stage", stage, Stage, fix="Give Stage(name=…), or just its name.")
        object.__setattr__(self, "stages", stages)
        self._check_stages()
        self._check_rules()
        require_share("threshold", self.threshold)
        require_whole("min_episodes", self.min_episodes, 1)
        require_whole("window_episodes", self.window_episodes, 2, MAX_WINDOW)
        require_whole("check_interval_episodes", self.check_interval_episodes, 1)
        if self.confidence_z is not None:
            require_positive("confidence_z", self.confidence_z)
            require_range("confidence_z", self.confidence_z, 0.0, 100.0)
        if not (self.standard or self.early or self.trend):
            raise ConfigError(
                "all three rules of advancement are switched off, so no stage could ever be left. "
                "Leave at least one of standard, early and trend on."
            )
        self._check_hysteresis()
        self._check_reach()

    def _check_rules(self) -> None:
        require_kind("standard", self.standard, bool, fix="Give True or False.")
        for name, kind in (
            ("early", EarlyRule),
            ("trend", TrendRule),
            ("mixing", Mixing),
            ("demotion", DemotionRule),
        ):
            if getattr(self, name) is not None:
                fix = f"Give {kind.__name__}(…), or None to switch it off."
                require_kind(name, getattr(self, name), kind, fix=fix)

    def _check_reach(self) -> None:
        """Refuse a confidence bound that even perfect success cannot lift over the bar."""
        if self.confidence_z is None:
            return
        best = self.window_episodes / (self.window_episodes + self.confidence_z**2)
        for index, stage in enumerate(self.stages[:-1]):
            bars = [self.threshold_of(index)] if self.standard else []
            bars += [self.early.success] if self.early else []
            bars += [self.threshold_of(index) - self.trend.slack] if self.trend else []
            if min(bars) > best:
                raise ConfigError(
                    f"stage {stage.name!r} could never be left: with confidence_z="
                    f"{self.confidence_z} and a window of {self.window_episodes} episodes the "
                    f"lower bound reaches at most {best:.3f}, and {min(bars):g} is needed. Raise "
                    "window_episodes, or lower the threshold or confidence_z."
                )

    def _check_stages(self) -> None:
        if not self.stages:
            raise ConfigError("stages is empty; expected at least one stage.")
        names = [stage.name for stage in self.stages]
        owner: dict[str, str] = {}
        for stage in self.stages:
            if names.count(stage.name) > 1:
                raise ConfigError(
                    f"stage {stage.name!r} is named twice; names must differ. Rename one."
                )
            for label in stage.task_labels:
                if label in owner:
                    raise ConfigError(
                        f"label {label!r} belongs to stages {owner[label]!r} and {stage.name!r}; "
                        "a label belongs to one stage."
                    )
                owner[label] = stage.name
        if self.starting_stage is not None:
            self.index_of(self.starting_stage)

    def _check_hysteresis(self) -> None:
        if self.demotion is None:
            return
        for index, stage in enumerate(self.stages):
            low, high = self.demotion_threshold_of(index), self.threshold_of(index)
            if index > 0 and low >= high:
                raise ConfigError(
                    f"stage {stage.name!r} is left downwards below {low} and upwards from {high}; "
                    "the first must be smaller. Lower the stage's demotion_threshold or the "
                    "threshold of the DemotionRule, or pass demotion=None."
                )

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
        """Return the success below which a stage is left downwards; 0 without demotion."""
        if self.demotion is None:
            return 0.0
        own = self.stages[index].demotion_threshold
        return self.demotion.threshold if own is None else own

    def needs_of(self, index: int, num_envs: int, evidence: float) -> dict[str, tuple[float, int]]:
        """Return the success and the episodes that each rule asks for in a stage.

        Args:
            index: Position of the stage.
            num_envs: Number of envs; no rule decides on fewer episodes.
            evidence: Episodes that a demotion out of the stage asks for by now.
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

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Staged":
        """Build the curriculum that this config describes."""
        from stepladder.curricula.staged.staged import Staged

        return Staged(tasks, self, seed=seed)


def _in_order(tasks: TaskKnowledge) -> StagedConfig:
    if not tasks.order:
        raise ConfigError(
            "staged needs to know the order of the tasks' labels, and nothing is known about it. "
            "Give the stages: StagedConfig(stages=(...))."
        )
    stages = tuple(Stage(name=label) for label in tasks.order)
    return StagedConfig(stages=stages, threshold=tasks.mastery, min_episodes=10)
