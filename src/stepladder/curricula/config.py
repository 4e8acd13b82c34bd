"""Settings that every curriculum has, and the checks that all configs share.

A config is a frozen dataclass beside the class it configures; it checks itself, says what is wrong
in one line, and can build what it describes.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from stepladder.curricula.documents import MAX_INTEGER
from stepladder.errors import ConfigError, shown
from stepladder.tasks import Pool, Source, Task

if TYPE_CHECKING:
    from stepladder.curricula.base import Curriculum

Tasks: TypeAlias = Pool | Source | Sequence[Task]
"""What a curriculum can be built over."""

MAX_WINDOW = 1_000_000
"""Episodes that a window can hold: it is kept in memory, for every stage or task."""

MAX_ENVS = 2**20
"""Envs of one vector env: each has arrays of its own."""


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
    """Raise unless `value` is a number in [0, 1]."""
    require_range(name, value, 0.0, 1.0)


def require_range(name: str, value: float, low: float, high: float) -> None:
    """Raise unless `value` is a number from `low` to `high`."""
    if not is_number(value) or not low <= value <= high:
        raise ConfigError(
            f"{name} must lie in [{low:g}, {high:g}]; got {shown(value)}. Give a number in that "
            "range."
        )


def require_positive(name: str, value: float) -> None:
    """Raise unless `value` is finite and above 0."""
    if not is_finite(value) or not value > 0:
        raise ConfigError(
            f"{name} must be finite and above 0; got {shown(value)}. Give such a number."
        )


def require_whole(name: str, value: Any, least: int, most: int = MAX_INTEGER) -> None:
    """Raise unless `value` is an integer from `least` to `most`; 5.0 is none."""
    if not _is_whole(value) or value < least:
        raise ConfigError(
            f"{name} must be a whole number of at least {least}; got {shown(value)}. Give such a "
            "number."
        )
    if value > most:
        raise ConfigError(
            f"{name} must be at most {most}; got {shown(value)}. Give a lower number."
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def require_kind(name: str, value: Any, kind: type | tuple[type, ...], *, fix: str) -> None:
    """Raise unless `value` is of a kind; None is for the caller to allow."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(entry.__name__ for entry in kinds)
        raise ConfigError(f"{name} must be a {wanted}; got {shown(value)}. {fix}")


def is_number(value: Any) -> bool:
    """Whether a value is a real number that a float can hold, and not a bool."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return not isinstance(value, int) or abs(value) <= sys.float_info.max


def is_finite(value: Any) -> bool:
    """Whether a value is a number, and neither infinite nor NaN."""
    return is_number(value) and math.isfinite(value)
