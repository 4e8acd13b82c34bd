"""What a sweep varies: fields of configs by name, and the values each of them takes.

Start of a sweep's data flow: turns text such as ``probing=0.02,0.1`` or ``probing=0.01..0.5:log``
into typed values, and puts a choice of values into a config.
"""

import dataclasses
import itertools
import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from stepladder.configs.codec import fit, fitted, forms_of, to_json
from stepladder.configs.problems import Problems
from stepladder.errors import ConfigError, nearest

LISTS = {tuple[str, ...]: str, tuple[int, ...]: int}
"""Fields of several values, which are written with a plus: ``features=x+y``."""

SweepParams = dict[str, Any]
"""One value per field that is varied."""

Changed = TypeVar("Changed")


@dataclass(frozen=True)
class SweepChoice:
    """A field that takes one of several values."""

    field: str
    values: tuple[Any, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"field": self.field, "values": to_json(self.values)}


@dataclass(frozen=True)
class SweepRange:
    """A field that takes any value between two numbers, both included."""

    field: str
    low: float
    high: float
    log: bool
    """Whether values are drawn on a logarithmic scale."""
    whole: bool
    """Whether values are integers."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return dataclasses.asdict(self)


Dimension = SweepChoice | SweepRange


def with_params(config: Changed, params: SweepParams, prefix: str, problems: Problems) -> Changed:
    """Return a config with the fields changed whose names have a prefix; unchanged on a problem."""
    config_class: Any = type(config)
    new: dict[str, Any] = {}
    for name, value in params.items():
        if name.startswith(prefix):
            field, dot, _ = name.removeprefix(prefix).partition(".")
            if dot:
                inner = new.get(field, getattr(config, field))
                new[field] = with_params(inner, {name: value}, f"{prefix}{field}.", problems)
            else:
                new[field] = fit(value, forms_of(config_class)[field], problems.at(name))
    return config if problems else replace(config, **new)  # pyright: ignore[reportArgumentType, reportCallIssue, reportGeneralTypeIssues]


def fields_of(config: Any, prefix: str = "") -> dict[str, Any]:
    """Return every field of a config that can be varied, by dotted name, with its annotation."""
    found: dict[str, Any] = {}
    hints = get_type_hints(type(config))
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value):
            found |= fields_of(value, f"{prefix}{field.name}.")
        elif _can_be_read(hints[field.name]):
            found[prefix + field.name] = hints[field.name]
    return found


def _can_be_read(kind: Any) -> bool:
    return _without_none(kind) in (bool, int, float, str, *LISTS) or (
        get_origin(_without_none(kind)) is Literal
    )


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        rest = [entry for entry in get_args(kind) if entry is not types.NoneType]
        return rest[0] if len(rest) == 1 else kind
    return kind


def parse_choice(text: str, fields: Mapping[str, Any]) -> SweepChoice:
    """Read ``field=value,value,…``.

    Raises:
        ConfigError: There is no such field, or a value does not fit it.
    """
    name, values = _split(text, fields, "field=value,value")
    kind = fields[name]
    read = [_value(entry, kind, name) for entry in values.split(",")]
    return SweepChoice(name, tuple(dict.fromkeys(read)))


def parse_range(text: str, fields: Mapping[str, Any]) -> SweepRange:
    """Read ``field=low..high``, or ``field=low..high:log``.

    Raises:
        ConfigError: There is no such field, it does not hold numbers, or the range is wrong.
    """
    name, rest = _split(text, fields, "field=low..high")
    kind = _without_none(fields[name])
    if kind not in (int, float):
        raise ConfigError(
            f"{name} does not hold numbers, so it has no range. List its values: {name}=a,b."
        )
    rest, colon, scale = rest.partition(":")
    low_text, dots, high_text = rest.partition("..")
    if not dots or (colon and scale != "log"):
        raise ConfigError(
            f"{text!r} is not a range; expected {name}=low..high, or {name}=low..high:log."
        )
    low, high = _value(low_text, kind, name), _value(high_text, kind, name)
    if not low < high or (scale and low <= 0):
        above = " above 0" if scale else ""
        raise ConfigError(f"the range of {name} must rise{above}; got {low} to {high}.")
    return SweepRange(name, low, high, bool(scale), kind is int)


def _split(text: str, fields: Mapping[str, Any], form: str) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not rest:
        raise ConfigError(f"{text!r} does not name values; expected {form}.")
    if name not in fields:
        raise ConfigError(
            f"there is no field {name!r} to vary; there are {', '.join(fields)}."
            f"{nearest(name, fields)}"
        )
    return name, rest.strip()


def _value(text: str, kind: Any, name: str) -> Any:
    """Read one value with the type of its field."""
    text = text.strip()
    wanted = _without_none(kind)
    if wanted is not kind and text.lower() in ("none", "null"):
        return None
    try:
        read: Any = text
        if wanted in LISTS:
            read = tuple(LISTS[wanted](entry) for entry in text.split("+") if entry)
        elif wanted is bool:
            read = {"true": True, "false": False}[text.lower()]
        elif wanted in (int, float):
            read = wanted(text)
    except (KeyError, ValueError):
        read = text
    if isinstance(read, float) and not math.isfinite(read):
        raise ConfigError(f"{name} must be finite; got {text!r}.")
    return fitted(read, kind, name)


def no_field_twice(dimensions: Sequence[Dimension]) -> None:
    """Raise if a field is varied twice, or none is."""
    names = [dimension.field for dimension in dimensions]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{name} is varied twice. Name it once, with all its values.")
    if not names:
        raise ConfigError("nothing is varied. Name a field and its values: probing=0.02,0.05,0.1.")


def combinations(choices: Sequence[SweepChoice]) -> list[dict[str, Any]]:
    """Return all combinations of values, the last field varying fastest."""
    names = [choice.field for choice in choices]
    products = itertools.product(*(choice.values for choice in choices))
    return [dict(zip(names, values, strict=True)) for values in products]


def value_text(value: Any) -> str:
    """Return a value as `parse_choice` reads it.

    Example:
        >>> value_text((64, 64)), value_text(0.5)
        ('64+64', '0.5')
    """
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)
