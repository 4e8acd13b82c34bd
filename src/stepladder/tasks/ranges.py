"""What a parameter may be: a span of numbers, or one of several values.

The vocabulary of `parameters`. Each range turns raw 64-bit numbers into a value by arithmetic of
its own, so that a seed gives the same value with every numpy version.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

from stepladder.configs.documents import to_plain
from stepladder.errors import TaskError
from stepladder.tasks.plain import checked_integer

MAX_LISTED_VALUES = 1000
"""Most values of a range that may serve as labels."""

STEP_SHARE = 0.1
"""Largest step of an edit, as a share of the range."""

MAX_REDRAWS = 20
"""Draws after which a choice counts as having one value only."""

RawBits = Callable[[], int]
"""Gives the next raw number, uniform in [0, 2**64)."""


class Range(ABC):
    """A set of values with a way to draw one."""

    @abstractmethod
    def sample(self, raw_bits: RawBits) -> Any:
        """Draw a value, plain JSON; takes as many raw numbers as it needs."""

    @abstractmethod
    def step(self, value: Any, raw_bits: RawBits) -> Any:
        """Return another value, close to this one where values have an order.

        The same value only if there is no other.
        """

    @abstractmethod
    def listed_values(self) -> list[Any] | None:
        """Return all values in order, or None if they are not few enough to list."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the range in plain JSON."""


@dataclass(frozen=True)
class FloatRange(Range):
    """Any number between two, evenly spread."""

    low: float
    """Smallest value."""

    high: float
    """Largest value; above `low`."""

    log: bool = False
    """Spread evenly over orders of magnitude instead. `low` must then be above 0."""

    def __post_init__(self) -> None:
        """Check the bounds."""
        for name in ("low", "high"):
            bound = to_plain(getattr(self, name), f"FloatRange.{name}")
            if isinstance(bound, bool) or not isinstance(bound, int | float):
                raise TaskError(
                    f"FloatRange.{name} must be a number; got {bound!r}. For values that are not "
                    "numbers, use Choice."
                )
            object.__setattr__(self, name, float(bound))
        _refuse_empty_span(self.low, self.high, "FloatRange")
        if self.log and self.low <= 0:
            raise TaskError(
                f"FloatRange with log=True needs low above 0; got {self.low}. Raise low, or "
                "leave log out."
            )

    def sample(self, raw_bits: RawBits) -> float:
        """Draw a number in [low, high]."""
        share = _unit(raw_bits())
        if self.log:
            value = math.exp((1 - share) * math.log(self.low) + share * math.log(self.high))
        else:
            value = (1 - share) * self.low + share * self.high
        # Rounding may carry the value one last digit past a bound.
        return min(max(value, self.low), self.high)

    def step(self, value: Any, raw_bits: RawBits) -> float:
        """Move a number by up to a tenth of the range, in logarithms if it is drawn in them."""
        raw = raw_bits()
        low, high, place = self.low, self.high, float(value)
        if self.log:
            low, high, place = math.log(low), math.log(high), math.log(place)
        # Halves: the range may be wider than the largest float. The lowest bit is the direction.
        distance = 2.0 * STEP_SHARE * _unit(raw) * (high / 2 - low / 2) * (1 if raw & 1 else -1)
        moved = place + (distance if low <= place + distance <= high else -distance)
        return min(max(math.exp(moved) if self.log else moved, self.low), self.high)

    def listed_values(self) -> None:
        """Return None: there are too many."""
        return None

    def describe(self) -> dict[str, Any]:
        """Return the range in plain JSON."""
        return {"kind": "float", "low": self.low, "high": self.high, "log": self.log}


@dataclass(frozen=True)
class IntRange(Range):
    """Any integer between two, both included, all alike."""

    low: int
    """Smallest value."""

    high: int
    """Largest value; above `low`."""

    def __post_init__(self) -> None:
        """Check the bounds."""
        for name in ("low", "high"):
            bound = checked_integer(getattr(self, name), f"IntRange.{name}", -(2**63), 2**63 - 1)
            object.__setattr__(self, name, bound)
        _refuse_empty_span(self.low, self.high, "IntRange")

    def sample(self, raw_bits: RawBits) -> int:
        """Draw an integer in [low, high]."""
        return self.low + (raw_bits() * (self.high - self.low + 1) >> 64)

    def step(self, value: Any, raw_bits: RawBits) -> int:
        """Move an integer by at least one and at most a tenth of the range."""
        raw = raw_bits()
        most = max(1, int((self.high - self.low) * STEP_SHARE))
        distance = (1 + (raw * most >> 64)) * (1 if raw & 1 else -1)
        moved = value + (distance if self.low <= value + distance <= self.high else -distance)
        return min(max(moved, self.low), self.high)

    def listed_values(self) -> list[int] | None:
        """Return all values if they are few."""
        if self.high - self.low >= MAX_LISTED_VALUES:
            return None
        return list(range(self.low, self.high + 1))

    def describe(self) -> dict[str, Any]:
        """Return the range in plain JSON."""
        return {"kind": "int", "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Choice(Range):
    """One of several values; a value that is itself a range is drawn from in turn."""

    values: Sequence[Any]
    """Plain JSON values or ranges; at least one."""

    weights: Sequence[float] | None = None
    """How likely each value is, relative to the others; all alike if left out."""

    def __post_init__(self) -> None:
        """Check and copy the values."""
        given = cast("object", self.values)
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise TaskError(
                f"Choice.values must be a list; got {self.values!r}. Wrap a single value in a list."
            )
        values = tuple(
            value if isinstance(value, Range) else to_plain(value, f"Choice.values.{i}")
            for i, value in enumerate(self.values)
        )
        if not values:
            raise TaskError("Choice.values is empty; at least one value is needed. Add one.")
        object.__setattr__(self, "values", values)
        if self.weights is not None:
            object.__setattr__(self, "weights", _checked_weights(self.weights, len(values)))

    def sample(self, raw_bits: RawBits) -> Any:
        """Draw one of the values, and on from it if it is a range."""
        value = self.values[self._pick(raw_bits())]
        return value.sample(raw_bits) if isinstance(value, Range) else value

    def _pick(self, raw: int) -> int:
        if self.weights is None:
            return raw * len(self.values) >> 64
        cumulative = list(accumulate(self.weights))
        # Among the smallest floats, scaling rounds up to the total itself, which belongs to the
        # last value that has weight.
        last = bisect_right(cumulative, math.nextafter(cumulative[-1], 0))
        return min(bisect_right(cumulative, _unit(raw) * cumulative[-1]), last)

    def step(self, value: Any, raw_bits: RawBits) -> Any:
        """Draw until another value comes up: a choice says nothing about which are close."""
        for _ in range(MAX_REDRAWS):
            other = self.sample(raw_bits)
            if other != value:
                return other
        return value

    def listed_values(self) -> list[Any] | None:
        """Return all values, those of inner ranges included, if all can be listed."""
        listed: list[Any] = []
        for value in self.values:
            inner = value.listed_values() if isinstance(value, Range) else [value]
            if inner is None:
                return None
            listed += inner
        return listed if len(listed) <= MAX_LISTED_VALUES else None

    def describe(self) -> dict[str, Any]:
        """Return the range in plain JSON."""
        values = [
            value.describe() if isinstance(value, Range) else {"kind": "value", "value": value}
            for value in self.values
        ]
        weights = None if self.weights is None else list(self.weights)
        return {"kind": "choice", "values": values, "weights": weights}


def as_range(value: Any, path: str) -> Range:
    """Read one entry of a mapping of ranges.

    Args:
        value: A range; a list or tuple, which stands for a choice of its elements; or any other
            plain JSON value, which is the only choice. A list inside a list is a plain value.
        path: Dotted path of the parameter, for messages.
    """
    if isinstance(value, Range):
        return value
    values = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else [value]
    try:
        return Choice(values)
    except TaskError as error:
        raise TaskError(f"ranges[{path!r}]: {error}") from error


def _unit(raw: int) -> float:
    return (raw >> 11) * 2.0**-53


def _refuse_empty_span(low: float, high: float, kind: str) -> None:
    if not low < high:
        raise TaskError(
            f"{kind} needs low below high; got low={low} and high={high}. Swap them, or give a "
            "plain value for a constant."
        )


def _checked_weights(weights: Sequence[float], num_values: int) -> tuple[float, ...]:
    plain: list[Any] = to_plain(list(weights), "Choice.weights")
    if len(plain) != num_values:
        raise TaskError(
            f"Choice.weights must hold {num_values} numbers, one per value; got {plain}. Add or "
            "remove some."
        )
    for i, weight in enumerate(plain):
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
            raise TaskError(
                f"Choice.weights.{i} must be a number of at least 0; got {weight!r}. Use 0 for a "
                "value never to be drawn."
            )
    if not 0 < sum(plain) < math.inf:
        raise TaskError(f"Choice.weights must have a positive, finite sum; got {plain}. Raise one.")
    return tuple(float(weight) for weight in plain)
