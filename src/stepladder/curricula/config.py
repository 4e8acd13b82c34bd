"""Settings that every curriculum has, and the checks that all configs share.

A config is a frozen dataclass beside the class it configures; it checks itself, says what is wrong
in one line, and can build what it describes.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

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
        return kind(**settings)
    if settings:
        raise ConfigError(
            f"{', '.join(sorted(settings))} was given beside a config, which decides alone. "
            "Set it there, with dataclasses.replace."
        )
    if not isinstance(cast("object", config), kind):
        raise ConfigError(f"expected a {kind.__name__}; got a {type(config).__name__}.")
    return config


def plain(value: Any) -> Any:
    """Turn a value into what JSON would give back: lists for tuples, numbers for NumPy's own."""
    if isinstance(value, np.generic):
        return cast("Any", value).item()
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        return {str(key): plain(entry) for key, entry in fields.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in cast("list[Any]", value)]
    return value


def require_share(name: str, value: float) -> None:
    """Raise unless `value` lies in [0, 1]."""
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"{name} must lie in [0, 1]; got {value!r}.")


def require_positive(name: str, value: float) -> None:
    """Raise unless `value` is finite and above 0."""
    if not (value > 0 and math.isfinite(value)):
        raise ConfigError(f"{name} must be finite and above 0; got {value!r}.")


def require_whole(name: str, value: Any, least: int) -> None:
    """Raise unless `value` is an integer of at least `least`; 5.0 is none."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}; got {value!r}.")
