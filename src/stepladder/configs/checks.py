"""Checks that all configs share: each raises one line that names setting, value and expectation.

Used by the configs of curricula, agents and trainings when they are made.
"""

import math
import sys
from typing import Any, cast

import numpy as np

from stepladder.configs.documents import MAX_INTEGER
from stepladder.errors import ConfigError, shown

MAX_WINDOW = 1_000_000
"""Episodes that a window can hold: it is kept in memory, for every stage or task."""

MAX_ENVS = 2**20
"""Envs of one vector env: each has arrays of its own."""


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
