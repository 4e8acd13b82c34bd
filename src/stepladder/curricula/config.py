"""Settings that every curriculum has, and the checks that all configs share.

A config is a frozen dataclass beside the class it configures; it checks itself, says what is wrong
in one line, and can build what it describes.
"""

from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from stepladder.configs.checks import plain, require_share
from stepladder.errors import ConfigError
from stepladder.tasks import Pool, Source, Task

if TYPE_CHECKING:
    from stepladder.curricula.base import Curriculum

Tasks: TypeAlias = Pool | Source | Sequence[Task]
"""What a curriculum can be built over."""


@dataclass(frozen=True, kw_only=True)
class CurriculumConfig:
    """Settings that every method has."""

    exploration: float = 0.0
    """Share of draws spread evenly over all tasks, whatever the method thinks, in [0, 1]."""

    def __post_init__(self) -> None:
        require_share("exploration", self.exploration)

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Curriculum":
        """Build the curriculum that this config describes."""
        raise ConfigError(f"{type(self).__name__} describes no curriculum; use one of its kinds.")

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON, with the name of their class."""
        return {"config": type(self).__name__, **plain(asdict(self))}


Config = TypeVar("Config", bound=CurriculumConfig)


def settle(kind: type[Config], config: Config | None, settings: dict[str, Any]) -> Config:
    """Return the config that was given, or one made of the settings that were given instead."""
    if config is None:
        unknown = sorted(settings.keys() - kind.__dataclass_fields__.keys())
        if unknown:
            raise ConfigError(
                f"{kind.__name__} has no setting {unknown[0]!r}; it has "
                f"{', '.join(kind.__dataclass_fields__)}. Correct the name."
            )
        missing = [
            name
            for name, field in kind.__dataclass_fields__.items()
            if field.default is MISSING and field.default_factory is MISSING
            if name not in settings
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
