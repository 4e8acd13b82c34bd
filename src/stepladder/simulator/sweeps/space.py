"""What a sweep varies: fields of configs by name, and the values each of them takes.

Start of a sweep's data flow: turns text such as ``probing=0.02,0.1`` or ``probing=0.01..0.5:log``
into typed values, and a choice of values into the scenario and the curriculum that are played.
"""

import dataclasses
import itertools
import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from stepladder.configs.checks import require_integer
from stepladder.configs.codec import fitted, to_json
from stepladder.curricula.config import CurriculumConfig
from stepladder.errors import ConfigError
from stepladder.simulator.contestants import settings_of
from stepladder.simulator.scenarios import Scenario, scenario

SIMULATION = {"scenario": str, "num_envs": int, "budget": int | None}
"""Fields of a sweep itself that can be varied, by what they hold."""


@dataclass(frozen=True)
class Choice:
    """A field that takes one of several values."""

    field: str
    values: tuple[Any, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"field": self.field, "values": to_json(self.values)}


@dataclass(frozen=True)
class Range:
    """A field that takes any value between two numbers, both included."""

    field: str
    low: float
    high: float
    log: bool
    """Whether each doubling is as likely as the next."""
    whole: bool

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return dataclasses.asdict(self)


Dimension = Choice | Range


@dataclass(frozen=True, kw_only=True)
class Setup:
    """One choice of values, ready to be played."""

    place: Scenario
    config: CurriculumConfig
    num_envs: int
    budget: int


def sweepable_fields(curriculum: str, place: Scenario) -> dict[str, Any]:
    """Return every field that can be varied, by name, with what it holds.

    Those of the curriculum's config go by their own names, nested ones with a dot; those of the
    learner as ``dynamics.eta`` or ``noise.reward``; those of the sweep as ``simulation.num_envs``.
    """
    found = _fields_of(settings_of(curriculum, place), "")
    found |= _fields_of(place.dynamics, "dynamics.") | _fields_of(place.noise, "noise.")
    return found | {f"simulation.{name}": kind for name, kind in SIMULATION.items()}


def _fields_of(config: Any, prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    hints = get_type_hints(type(config))
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value):
            found |= _fields_of(value, f"{prefix}{field.name}.")
        elif _can_be_read(hints[field.name]):
            found[prefix + field.name] = hints[field.name]
    return found


def _can_be_read(kind: Any) -> bool:
    return _without_none(kind) in (bool, int, float, str, tuple[str, ...]) or (
        get_origin(_without_none(kind)) is Literal
    )


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        rest = [entry for entry in get_args(kind) if entry is not types.NoneType]
        return rest[0] if len(rest) == 1 else kind
    return kind


def parse_choice(text: str, fields: Mapping[str, Any]) -> Choice:
    """Read ``field=value,value,…``.

    Raises:
        ConfigError: There is no such field, or a value does not fit it.
    """
    name, values = _split(text, fields, "field=value,value")
    kind = fields[name]
    read = [_value(entry, kind, name) for entry in values.split(",")]
    return Choice(name, tuple(dict.fromkeys(read)))


def parse_range(text: str, fields: Mapping[str, Any]) -> Range:
    """Read ``field=low..high``, or ``field=low..high:log``.

    Raises:
        ConfigError: There is no such field, or it holds no numbers, or they are no range.
    """
    name, rest = _split(text, fields, "field=low..high")
    kind = _without_none(fields[name])
    if kind not in (int, float):
        raise ConfigError(
            f"{name} holds no numbers, so it has no range. List its values: {name}=a,b."
        )
    rest, colon, scale = rest.partition(":")
    low_text, dots, high_text = rest.partition("..")
    if not dots or (colon and scale != "log"):
        raise ConfigError(
            f"{text!r} is no range; expected {name}=low..high, or {name}=low..high:log."
        )
    low, high = _value(low_text, kind, name), _value(high_text, kind, name)
    if not low < high or (scale and low <= 0):
        above = " above 0" if scale else ""
        raise ConfigError(f"the range of {name} must rise{above}; got {low} to {high}.")
    return Range(name, low, high, bool(scale), kind is int)


def _split(text: str, fields: Mapping[str, Any], form: str) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not rest:
        raise ConfigError(f"{text!r} names no values; expected {form}.")
    if name not in fields:
        raise ConfigError(f"there is no field {name!r} to vary; there are {', '.join(fields)}.")
    return name, rest.strip()


def _value(text: str, kind: Any, name: str) -> Any:
    """Read one value as a field's annotation wants it."""
    text = text.strip()
    wanted = _without_none(kind)
    if wanted is not kind and text.lower() in ("none", "null"):
        return None
    if wanted == tuple[str, ...]:
        return tuple(entry for entry in text.split("+") if entry)
    try:
        read: Any = text
        if wanted is bool:
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


def combinations(choices: Sequence[Choice]) -> list[dict[str, Any]]:
    """Return all combinations of values, the last field varying fastest."""
    names = [choice.field for choice in choices]
    products = itertools.product(*(choice.values for choice in choices))
    return [dict(zip(names, values, strict=True)) for values in products]


def applied(
    params: Mapping[str, Any],
    *,
    scenario_name: str,
    curriculum: str,
    num_envs: int,
    budget: int | None,
) -> Setup:
    """Return what a choice of values means.

    Raises:
        ConfigError: These values do not go together.
    """
    simulation = {"scenario": scenario_name, "num_envs": num_envs, "budget": budget}
    for name in SIMULATION:
        simulation[name] = params.get(f"simulation.{name}", simulation[name])
    place = scenario(str(simulation["scenario"]))
    place = replace(
        place,
        dynamics=_with(place.dynamics, _part(params, "dynamics.")),
        noise=_with(place.noise, _part(params, "noise.")),
    )
    own = {
        name: value
        for name, value in params.items()
        if not name.startswith(("dynamics.", "noise.", "simulation."))
    }
    envs, limit = simulation["num_envs"], simulation["budget"]
    require_integer("simulation.num_envs", envs, 1)
    if limit is not None:
        require_integer("simulation.budget", limit, 1)
    return Setup(
        place=place,
        config=_with(settings_of(curriculum, place), own),
        num_envs=envs,  # pyright: ignore[reportArgumentType]
        budget=place.budget if limit is None else limit,  # pyright: ignore[reportArgumentType]
    )


def _part(params: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): value
        for name, value in params.items()
        if name.startswith(prefix)
    }


def _with(config: Any, changes: Mapping[str, Any]) -> Any:
    """Return a config with some fields changed, nested ones by dotted names."""
    hints = get_type_hints(type(config))
    new: dict[str, Any] = {}
    for name, value in changes.items():
        field, dot, rest = name.partition(".")
        if dot:
            new[field] = _with(new.get(field, getattr(config, field)), {rest: value})
        else:
            new[field] = fitted(value, hints[field], name)
    return replace(config, **new)
