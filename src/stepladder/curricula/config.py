"""Settings that every curriculum has, and the checks that all configs share.

A config is a frozen dataclass beside the class it configures. It has a name (`kind`) under which
the registry finds it, checks itself, builds what it describes (`make`), and offers ready-made
settings by name (`variants`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, cast

from stepladder.configs.checks import plain, require_share
from stepladder.errors import ConfigError
from stepladder.tasks import Pool, Source, Task

if TYPE_CHECKING:
    from stepladder.curricula.base import Curriculum

TYPE = "type"
"""Key of the method's name in the JSON form."""

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


@dataclass(frozen=True, kw_only=True)
class CurriculumConfig:
    """Settings that every method has."""

    kind: ClassVar[str]
    """Name of the method in the registry, in JSON (key "type") and on the command line."""

    exploration: float = 0.0
    """Share of draws spread evenly over all tasks, whatever the method thinks, in [0, 1]."""

    def __post_init__(self) -> None:
        require_share("exploration", self.exploration)

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Curriculum":
        """Build the curriculum that this config describes."""
        raise ConfigError(
            f"{type(self).__name__} does not define make(tasks, seed=...). Define it, or use the "
            "config of a method, such as UniformConfig."
        )

    @classmethod
    def variants(cls) -> Mapping[str, Variant]:
        """Return the ready-made settings of this method, by name.

        By default these are the default settings under the method's own name, or none where a
        setting has no default. Override it if the method needs to know something about the tasks.
        """
        if any(_is_required(field) for field in fields(cls)):
            return {}
        return {cls.kind: Variant(cls.summary(), lambda tasks: cls())}

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the class's docstring; empty if it has none of its own."""
        first = (cls.__doc__ or "").strip().partition("\n")[0]
        # A dataclass without a docstring gets its signature as one.
        return "" if first.startswith(f"{cls.__name__}(") else first

    @property
    def replaces_tasks(self) -> bool:
        """Whether tasks make room for others if the source has more tasks than the pool."""
        return False

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON, with the name of the method under "type"."""
        return {TYPE: self.kind, **plain(asdict(self))}


Config = TypeVar("Config", bound=CurriculumConfig)


def settle(kind: type[Config], config: Config | None, settings: dict[str, Any]) -> Config:
    """Return the config that was given, or one made of the settings that were given instead."""
    if config is None:
        known = {field.name: field for field in fields(kind)}
        unknown = sorted(settings.keys() - known.keys())
        if unknown:
            raise ConfigError(
                f"{kind.__name__} has no setting {unknown[0]!r}; it has {', '.join(known)}. "
                "Correct the name."
            )
        missing = [
            name for name, field in known.items() if _is_required(field) and name not in settings
        ]
        if missing:
            raise ConfigError(f"{missing[0]} is missing. Give it, or a {kind.__name__}.")
        return kind(**settings)
    if settings:
        raise ConfigError(
            f"{', '.join(sorted(settings))} was given beside a config, which decides alone. "
            "Set it there, with dataclasses.replace."
        )
    if not isinstance(cast("object", config), kind):
        raise ConfigError(
            f"expected a {kind.__name__}; got a {type(config).__name__}. Give that, or let the "
            "config make what it describes with its own make(tasks)."
        )
    return config


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING
