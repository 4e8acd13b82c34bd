"""What a sweep varies: fields of configs by name, and the values each of them takes.

Start of a sweep's data flow: turns text such as ``probing=0.02,0.1`` or ``probing=0.01..0.5:log``
into typed values, and one choice of values into the scenario and the curriculum to play.
"""

import dataclasses
import itertools
import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from stepladder.configs.checks import NotNegativeInteger, PositiveInteger
from stepladder.configs.codec import Config, fit, fitted, forms_of, to_json
from stepladder.configs.problems import Problems
from stepladder.curricula.config import CurriculumConfig
from stepladder.errors import ConfigError
from stepladder.simulator.base import Scenario
from stepladder.simulator.scenarios import scenario

SIMULATION = ("scenario", "num_envs", "budget")
"""Fields of a sweep itself that can be varied."""

GROUPS = ("dynamics.", "noise.", "simulation.")
"""Prefixes of fields; those without a prefix belong to the curriculum."""

Params = dict[str, Any]
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


@dataclass(frozen=True, kw_only=True)
class Setup:
    """One choice of values, ready to be played."""

    place: Scenario
    config: CurriculumConfig
    num_envs: int
    budget: int


@dataclass(frozen=True, kw_only=True)
class SweepConfig(Config):
    """What every trial of a sweep has in common."""

    scenario: str = "chain-10"
    """Name of a scenario, such as chain-10, tree-31 or grid-6x6, or a .json or .yaml file."""

    curriculum: str = "frontier"
    """Name of a curriculum, as in stepladder compare."""

    num_seeds: PositiveInteger = 8
    """Seeds per trial; the same ones for every trial."""

    seed: NotNegativeInteger = 0
    """First of the seeds; a search also depends on it."""

    num_envs: PositiveInteger = 1
    """Envs that play at the same time."""

    budget: PositiveInteger | None = None
    """Samples after which a seed ends unfinished; by default the scenario's own budget."""

    def fields(self) -> dict[str, Any]:
        """Return every field that can be varied, by name, with its annotation.

        Fields of the curriculum's config have their own names, nested ones with a dot; those of the
        learner names such as ``dynamics.eta`` or ``noise.reward``; those of the sweep names such as
        ``simulation.num_envs``.
        """
        place = scenario(self.scenario)
        found = _fields_of(place.curriculum_config(self.curriculum), "")
        for part in place.varied:
            found |= _fields_of(getattr(place, part), f"{part}.")
        hints = get_type_hints(SweepConfig)
        return found | {f"simulation.{name}": hints[name] for name in SIMULATION}

    def setup(self, params: Params) -> Setup:
        """Return what a choice of values stands for.

        Raises:
            ConfigError: A value is wrong, or values contradict each other.
        """
        problems = Problems()
        common = _changed(self, params, "simulation.", problems)
        problems.raise_if_any()
        place = scenario(common.scenario)
        parts: dict[str, Any] = {
            part: _changed(getattr(place, part), params, f"{part}.", problems)
            for part in place.varied
        }
        place = replace(place, **parts)
        own = {name: value for name, value in params.items() if not name.startswith(GROUPS)}
        config = _changed(place.curriculum_config(common.curriculum), own, "", problems)
        problems.raise_if_any()
        budget = place.budget if common.budget is None else common.budget
        return Setup(place=place, config=config, num_envs=common.num_envs, budget=budget)


def _changed(config: Changed, params: Params, prefix: str, problems: Problems) -> Changed:
    """Return a config with the fields changed whose names have a prefix; unchanged on a problem."""
    config_class: Any = type(config)
    new: dict[str, Any] = {}
    for name, value in params.items():
        if name.startswith(prefix):
            field, dot, _ = name.removeprefix(prefix).partition(".")
            if dot:
                inner = new.get(field, getattr(config, field))
                new[field] = _changed(inner, {name: value}, f"{prefix}{field}.", problems)
            else:
                new[field] = fit(value, forms_of(config_class)[field], problems.at(name))
    return config if problems else replace(config, **new)  # pyright: ignore[reportArgumentType, reportCallIssue, reportGeneralTypeIssues]


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
        raise ConfigError(f"there is no field {name!r} to vary; there are {', '.join(fields)}.")
    return name, rest.strip()


def _value(text: str, kind: Any, name: str) -> Any:
    """Read one value with the type of its field."""
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


def combinations(choices: Sequence[SweepChoice]) -> list[dict[str, Any]]:
    """Return all combinations of values, the last field varying fastest."""
    names = [choice.field for choice in choices]
    products = itertools.product(*(choice.values for choice in choices))
    return [dict(zip(names, values, strict=True)) for values in products]
