"""Limits of single values: each says in one line what is wrong with a value, or None.

Configs declare them in annotations (``exploration: UnitInterval``), where `codec` finds them for
values from JSON and from Python alike. Functions with arguments of their own call the `require_…`
forms.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np

from stepladder.configs.documents import MAX_INTEGER
from stepladder.errors import ConfigError, nearest, shown

MAX_WINDOW = 1_000_000
"""Episodes that a window can hold: it is kept in memory, for every stage or task."""

MAX_ENVS = 2**20
"""Envs of one vector env: each has arrays of its own."""

Limit: TypeAlias = Callable[[Any], str | None]
"""Takes any value; returns what is wrong with it, as in "must lie in [0, 1]; got 3.", or None."""


@dataclass(frozen=True)
class Within:
    """Finite numbers from `low` to `high`; the bounds belong to the range unless excluded."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    """Whether `low` itself is excluded."""
    below: bool = False
    """Whether `high` itself is excluded."""
    fix: str = ""
    """The next step; by default, to give such a number."""

    def __call__(self, value: Any) -> str | None:
        """Return what is wrong with a value."""
        fits = is_finite(value) and self.low <= value <= self.high
        if fits and not ((self.above and value == self.low) or (self.below and value == self.high)):
            return None
        default = "Give a number in that range." if self.high < math.inf else "Give such a number."
        return f"must {self._words}; got {shown(value)}. {self.fix or default}"

    @property
    def _words(self) -> str:
        if self.high < math.inf:
            left, right = "(" if self.above else "[", ")" if self.below else "]"
            return f"lie in {left}{self.low:g}, {self.high:g}{right}"
        if self.low > -math.inf:
            return f"be finite and {'above' if self.above else 'at least'} {self.low:g}"
        return "be a finite number"


@dataclass(frozen=True)
class Integer:
    """Integers from `least` to `most`; 5.0 is none."""

    least: int
    most: int = MAX_INTEGER

    def __call__(self, value: Any) -> str | None:
        """Return what is wrong with a value."""
        if not is_integer(value) or value < self.least:
            wanted = f"must be an integer of at least {self.least}"
            return f"{wanted}; got {shown(value)}. Give such a number."
        if value > self.most:
            return f"must be at most {self.most}; got {shown(value)}. Give a lower number."
        return None


@dataclass(frozen=True)
class OneOf:
    """One of several texts."""

    choices: tuple[str, ...]

    def __call__(self, value: Any) -> str | None:
        """Return what is wrong with a value."""
        if isinstance(value, str) and value in self.choices:
            return None
        known = ", ".join(self.choices)
        return f"must be one of {known}; got {shown(value)}.{nearest(value, self.choices)}"


def not_empty(value: Any) -> str | None:
    """Refuse an empty text, list or object."""
    if isinstance(value, str | tuple | list | dict) and not value:
        fix = "Give a text." if isinstance(value, str) else "Give at least one entry."
        return f"must not be empty; got {value!r}. {fix}"
    return None


def each_once(values: tuple[Any, ...]) -> str | None:
    """Refuse a list that names something twice."""
    for value in values:
        if values.count(value) > 1:
            return f"has {shown(value)} twice. Name it once."
    return None


UnitInterval: TypeAlias = Annotated[float, Within(0.0, 1.0)]
Positive: TypeAlias = Annotated[float, Within(0.0, above=True)]
NotNegative: TypeAlias = Annotated[float, Within(0.0)]
PositiveInteger: TypeAlias = Annotated[int, Integer(1)]
NotNegativeInteger: TypeAlias = Annotated[int, Integer(0)]
Window: TypeAlias = Annotated[int, Integer(1, MAX_WINDOW)]
Name: TypeAlias = Annotated[str, not_empty]


def require(name: str, value: Any, limit: Limit) -> None:
    """Raise unless a limit accepts a value."""
    text = limit(value)
    if text is not None:
        error = ConfigError(f"{name} {text}")
        error.problems = ((name, text),)
        raise error


def require_share(name: str, value: float) -> None:
    """Raise unless `value` is a number in [0, 1]."""
    require(name, value, Within(0.0, 1.0))


def require_positive(name: str, value: float) -> None:
    """Raise unless `value` is finite and above 0."""
    require(name, value, Within(0.0, above=True))


def require_integer(name: str, value: Any, least: int, most: int = MAX_INTEGER) -> None:
    """Raise unless `value` is an integer from `least` to `most`; 5.0 is none."""
    require(name, value, Integer(least, most))


def require_kind(name: str, value: Any, kind: type | tuple[type, ...], *, fix: str) -> None:
    """Raise unless `value` is of a kind; None is for the caller to allow."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    wanted = " or ".join(entry.__name__ for entry in kinds)
    text = f"must be a {wanted}; got {shown(value)}. {fix}"
    require(name, value, lambda value: None if isinstance(value, kind) else text)


def is_integer(value: Any) -> bool:
    """Whether a value is an integer, and not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value is a real number that a float can hold, and not a bool."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return not isinstance(value, int) or abs(value) <= sys.float_info.max


def is_finite(value: Any) -> bool:
    """Whether a value is a number, and neither infinite nor NaN."""
    return is_number(value) and math.isfinite(value)
