"""Settings that every curriculum has.

A config is a frozen dataclass, defined next to the class it configures; `configs.codec` checks,
reads and writes it. It has a name (`kind`) under which the registry finds it, builds its curriculum
(`make`), and offers ready-made settings by name (`variants`).
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar, cast

from stepladder.configs.checks import Name, UnitInterval, Within, each_once, require
from stepladder.configs.codec import UNREAD, Config, Kinds, make
from stepladder.configs.problems import Problems
from stepladder.curricula.target import Target
from stepladder.errors import ConfigError
from stepladder.tasks import EditedSource, ListSource, Pool, Source, Task

if TYPE_CHECKING:
    from stepladder.curricula.base import Curriculum
    from stepladder.curricula.phased.config import Phase

FEW_TASKS = 300
"""In a pool of so few tasks, all others may wait for one: its share has no limit by default."""

USUAL_MAX_SHARE = 0.05
"""Largest share of one task in larger pools."""

LargestShare: TypeAlias = Annotated[float, Within(0.0, 1.0, above=True)]

Tasks: TypeAlias = Pool | Source | Sequence[Task]
"""What a curriculum can be built over."""


@dataclass(frozen=True, kw_only=True)
class TaskKnowledge:
    """What a user knows about the tasks before the first one is played."""

    features: tuple[str, ...] = ()
    """Parameters of the tasks that say where a task lies, such as a position or a difficulty."""

    order: tuple[str, ...] = ()
    """Labels of the tasks, prerequisites first."""

    mastery: float = 0.75
    """Success rate from which a task counts as mastered, in [0, 1]."""


@dataclass(frozen=True)
class Variant:
    """Ready-made settings of a curriculum, by a name that commands and `compare` accept."""

    about: str
    """One line for the help text."""

    make: Callable[[TaskKnowledge], "CurriculumConfig"]
    """Returns the settings for tasks of which this is known."""

    edits: bool = False
    """Whether they need tasks that can be edited."""


@dataclass(frozen=True, kw_only=True)
class CurriculumConfig(Config):
    """Settings that every method has."""

    kind: ClassVar[str]
    """Name of the method in the registry, in JSON (key "type") and on the command line."""

    curriculum_class: ClassVar[Any] = None
    """The class that names this one as its `Config`; set when that class is defined."""

    method_module: ClassVar[str] = ""
    """Module of that class, if it is not imported with this one but when a curriculum is made."""

    exploration: UnitInterval = 0.0
    """Share of draws spread evenly over all tasks, whatever the method thinks, in [0, 1]."""

    max_share: LargestShare | None = None
    """Largest share of the draws that the method may give to one task, in (0, 1]: an agent
    memorises what it plays again and again. What is above it is spread evenly over all tasks. By
    default 0.05 in pools of more than 300 tasks, and no limit (1) in smaller ones and where the
    user says what is drawn: uniform, staged, mixture."""

    target: Target | None = None
    """What the agent is for: labels or names of the tasks that count, or weights by name. Tasks
    that do not count are stepping stones: drawn as the method says while the target fails, and ever
    less as it succeeds. All tasks count alike by default."""

    limits_shares: ClassVar[bool] = True
    """Whether `max_share` has a default in large pools: not where the user says what is drawn."""

    takes_target: ClassVar[bool] = True
    """Whether the method accepts a target."""

    def __post_init__(self) -> None:
        """Check everything; refuse a target where the settings say what is drawn."""
        super().__post_init__()
        if self.target is not None and not self.takes_target:
            text = (
                f"is given to {self.kind!r}, whose own settings say what is drawn. Leave it out, "
                "or choose an automatic curriculum."
            )
            require("target", self.target, lambda target: text)

    @classmethod
    def kinds(cls) -> Kinds:
        """Return the config class of every curriculum, by the name that JSON has under "type"."""
        # Imported here: the registry holds classes that derive from this one.
        from stepladder.curricula.registry import CURRICULA

        return CURRICULA

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Refuse settings as version 0.1.0 wrote them."""
        if cls is not CurriculumConfig or not isinstance(value, Mapping):
            return value
        if "config" not in value or cls.type_key in value:
            return cast("Any", value)
        problems.at(cls.type_key).add(
            f"must be one of {', '.join(cls.kinds())}; it is missing. The class under "
            '"config" is how version 0.1.0 wrote it: write {"type": "frontier"} instead of '
            '{"config": "FrontierConfig"}.'
        )
        return UNREAD

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Curriculum":
        """Build the curriculum that this config describes."""
        if self.curriculum_class is None and self.method_module:
            import_module(self.method_module)
        if self.curriculum_class is None:
            raise ConfigError(
                f"no curriculum that was imported has Config = {type(self).__name__}. Import the "
                "module of its class, or define make(tasks, seed=...) in the config."
            )
        return self.curriculum_class(tasks, self, seed=seed)

    @classmethod
    def variants(cls) -> Mapping[str, Variant]:
        """Return the ready-made settings of this method, by name.

        By default these are the default settings under the method's own name, or none where a
        setting has no default. Override it if the method needs to know something about the tasks.
        """
        if any(one.default is MISSING and one.default_factory is MISSING for one in fields(cls)):
            return {}
        return {cls.kind: Variant(cls.summary(), lambda tasks: cls())}

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the class's docstring; empty if it has none of its own."""
        first = (cls.__doc__ or "").strip().partition("\n")[0]
        # A dataclass without a docstring gets its signature as one.
        return "" if first.startswith(f"{cls.__name__}(") else first

    def all_phases(self) -> "tuple[Phase, ...]":
        """Return the phases of the curriculum in order; empty if it has none."""
        return ()

    def about_labels(self, labels: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield the path and the text of settings that do not fit tasks with these labels."""
        yield from ()

    def largest_share(self, num_tasks: int) -> float:
        """Return the largest share of the draws that one of so many tasks may have."""
        if self.max_share is not None:
            return self.max_share
        return USUAL_MAX_SHARE if self.limits_shares and num_tasks > FEW_TASKS else 1.0

    @property
    def replaces_tasks(self) -> bool:
        """Whether tasks make room for others if the source has more tasks than the pool."""
        return False

    @property
    def num_edit_changes(self) -> int:
        """Changes in each edit that the method makes of tasks; 0 if it makes none."""
        return 0

    def editable(self, tasks: "Tasks") -> "Tasks":
        """Return tasks that can be edited, if the method edits any, else what was given.

        Raises:
            ConfigError: They cannot be edited, or differ in the number of changes.
        """
        num_changes = self.num_edit_changes
        if not num_changes:
            return tasks
        source = tasks.source if isinstance(tasks, Pool) else tasks
        if isinstance(source, EditedSource):
            if source.num_changes != num_changes:
                raise ConfigError(
                    f"changes_per_edit is {num_changes}, and the tasks were given as an "
                    f"EditedSource with num_changes={source.num_changes}. Make the two equal."
                )
            return tasks
        edited = EditedSource(cast("Source", source), num_changes)
        if isinstance(tasks, Pool):
            raise ConfigError(
                "the tasks were given as a Pool, whose source makes no edits. Make it with "
                f"Pool(EditedSource(source, {edited.num_changes}), ...), or give the source itself."
            )
        return edited

    @property
    def trainer_score(self) -> str:
        """Name of the score that a trainer with values must give for each episode; empty is none.

        `stats.level_scores.STEP_SCORES` has the names. The curriculum derives from `TrainerScored`.
        """
        return ""

    @property
    def needs_trainer(self) -> bool:
        """Whether the method learns nothing without that score, as on a simulated learner."""
        return bool(self.trainer_score)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON, with the name of the method under "type"."""
        return {self.type_key: self.kind, **super().to_json()}


@dataclass(frozen=True, kw_only=True)
class PooledConfig(CurriculumConfig):
    """Settings of methods that judge tasks of a kind together."""

    pooled: bool = True
    """Whether tasks of a kind are judged together, where labels or features say which are of a
    kind. Without, every task stands for itself."""

    features: Annotated[tuple[Name, ...], each_once] = ()
    """Parameters of the tasks, such as a position or a difficulty: tasks of similar features are of
    a kind, within their label if labels stand for kinds. Dotted paths reach into nested parameters.
    None by default; needs a pool that holds all tasks of its source."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield features that nothing would look at."""
        yield from super().contradictions()
        if self.features and not self.pooled:
            yield "features", "make kinds of tasks, which are judged together only if pooled is on."


@dataclass(frozen=True, kw_only=True)
class SignalConfig(CurriculumConfig):
    """Settings of methods that measure either success or the return."""

    signal: Literal["success", "return"] = "success"
    """Whether a task is judged by success or by the episode's return."""

    return_low: float | None = None
    """Return that counts as 0, if the signal is the return. None is found out, unless
    `return_high` is given; then it is 0."""

    return_high: float | None = None
    """Return that counts as 1, if the signal is the return; returns outside are clipped. None is
    found out, unless `return_low` is given; then it is 1."""

    @property
    def return_range(self) -> tuple[float, float] | None:
        """The returns that count as 0 and as 1; None if they are found out."""
        if self.return_low is None and self.return_high is None:
            return None
        low = 0.0 if self.return_low is None else self.return_low
        return low, 1.0 if self.return_high is None else self.return_high

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield returns that do not span a range."""
        low, high = self.return_range or (0.0, 1.0)
        if not 0.0 < high - low < math.inf:
            yield (
                "return_low",
                f"must lie below return_high ({high!r}), by a finite number; got {low!r}.",
            )


Chosen = TypeVar("Chosen", bound=Config)


def resolve_config(kind: type[Chosen], config: Chosen | None, settings: dict[str, Any]) -> Chosen:
    """Return the config that was given, or one made of the settings that were given instead."""
    if config is None:
        problems = Problems()
        made = make(kind, settings, problems)
        problems.raise_if_any()
        return made
    if settings:
        raise ConfigError(
            f"{', '.join(sorted(settings))} was given in addition to a config. Set it in the "
            "config, with dataclasses.replace."
        )
    if not isinstance(cast("object", config), kind):
        raise ConfigError(
            f"expected a {kind.__name__}; got a {type(config).__name__}. Give that, or let the "
            "config make what it describes with its own make(tasks)."
        )
    return config


def as_pool(tasks: Tasks, capacity: int | None, seed: int) -> Pool:
    """Make a pool of whatever a curriculum was given."""
    if isinstance(tasks, Pool):
        if capacity is not None:
            raise ConfigError(
                f"capacity {capacity} was given with a Pool, which has one "
                f"({tasks.num_slots}). Leave it out."
            )
        return tasks
    if isinstance(tasks, Source):
        return Pool(tasks, capacity, seed)
    if not isinstance(cast("object", tasks), Iterable) or isinstance(tasks, str):
        raise ConfigError(
            f"a curriculum needs tasks: a list of Task, a source or a Pool; got {tasks!r}. "
            "Give one of these."
        )
    return Pool(ListSource(tasks), capacity, seed)
