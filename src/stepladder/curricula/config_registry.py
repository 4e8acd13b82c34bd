"""The config of a curriculum from JSON.

The way back of `CurriculumConfig.to_json`: a run keeps its curriculum's settings in
``config.json``, and `rebuilding` makes the curriculum again from them. The same function reads
settings that were written by hand, so its errors name the field and the fix.
"""

import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from stepladder.configs.checks import is_number
from stepladder.configs.documents import require_readable
from stepladder.curricula.config import TYPE, CurriculumConfig
from stepladder.curricula.phased.config import Phase
from stepladder.curricula.phased.settings import Mixed, Ramp
from stepladder.curricula.registry import CURRICULA
from stepladder.curricula.staged.config import Stage
from stepladder.errors import ConfigError, shown

OLD_KEY = (
    ' It names a class under "config", as version 0.1.0 did; write {"type": "frontier"} instead of '
    '{"config": "FrontierConfig"}.'
)


def config_from_json(data: Any, where: str = "the curriculum") -> CurriculumConfig:
    """Return the config whose `to_json` gave this.

    Args:
        data: What `to_json` gave, perhaps through a file; fields left out have their defaults.
        where: What it is, for messages.

    Raises:
        ConfigError: It does not describe a curriculum; the message names the field.

    Example:
        >>> config_from_json({"type": "frontier", "probing": 0.1}).probing
        0.1
    """
    require_readable(data, where)
    return _config_from_json(data, where)


def _config_from_json(data: Any, where: str) -> CurriculumConfig:
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where} must be an object with its settings; got {shown(data)}.")
    settings = cast("Mapping[str, Any]", data)
    name = settings.get(TYPE)
    if not isinstance(name, str) or name not in CURRICULA:
        raise ConfigError(
            f"{where} must name its method under {TYPE!r}: one of {', '.join(CURRICULA)}; "
            f"got {shown(name)}.{old_key(settings)}"
        )
    given = {key: value for key, value in settings.items() if key != TYPE}
    return _build(CURRICULA[name], given, where)


def old_key(settings: Mapping[str, Any]) -> str:
    """Return a hint if settings name their class, as version 0.1.0 wrote them; else nothing."""
    return "" if TYPE in settings or "config" not in settings else OLD_KEY


def typed(value: Any, annotation: Any, where: str) -> Any:
    """Return a JSON value as a field's annotation wants it: tuples for lists, configs for objects.

    Raises:
        ConfigError: It does not fit; the message names `where`.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _typed_union(value, arguments, where)
    if origin is Literal:
        if not isinstance(value, str) or value not in arguments:
            raise _unfit(value, f"one of {', '.join(map(repr, arguments))}", where)
        return value
    if origin is tuple:
        return _typed_tuple(value, arguments, where)
    if origin is dict:
        return _typed_dict(value, arguments[1], where)
    if annotation is CurriculumConfig:
        return _config_from_json(value, where)
    if annotation is Stage and isinstance(value, str):
        return Stage(name=value)
    if is_dataclass(annotation):
        if not isinstance(value, Mapping):
            raise _unfit(value, "an object", where)
        return _build(cast("Any", annotation), cast("Mapping[str, Any]", value), where)
    return _typed_plain(value, annotation, where)


def _typed_union(value: Any, kinds: tuple[Any, ...], where: str) -> Any:
    """Return a value that may be None; no config has another kind of union."""
    if value is None and types.NoneType in kinds:
        return None
    (kind,) = [kind for kind in kinds if kind is not types.NoneType]
    return typed(value, kind, where)


def _typed_tuple(value: Any, kinds: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _unfit(value, "a list", where)
    entries = cast("Sequence[Any]", value)
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(entries)
    if len(kinds) != len(entries):
        raise _unfit(value, f"a list of {len(kinds)}", where)
    return tuple(
        typed(entry, kind, f"{where}[{index}]")
        for index, (entry, kind) in enumerate(zip(entries, kinds, strict=True))
    )


def _typed_dict(value: Any, kind: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _unfit(value, "an object", where)
    entries = cast("Mapping[str, Any]", value)
    return {key: typed(entry, kind, f"{where}.{key}") for key, entry in entries.items()}


def _typed_plain(value: Any, annotation: Any, where: str) -> Any:
    fits = {
        bool: isinstance(value, bool),
        float: is_number(value),
        int: is_number(value) and not isinstance(value, float),
        str: isinstance(value, str),
    }
    if annotation is Any:
        return _setting(value, where)
    if not fits.get(annotation, False):
        words = {bool: "true or false", float: "a number", int: "a whole number", str: "a text"}
        raise _unfit(value, words.get(annotation, f"a {annotation}"), where)
    return value


def _setting(value: Any, where: str) -> Any:
    """Return a phase's setting; `Mixed` and `Ramp` are told by their fields."""
    if not isinstance(value, Mapping):
        return value
    entries = cast("Mapping[str, Any]", value)
    for kind in (Mixed, Ramp):
        if entries.keys() == kind.__dataclass_fields__.keys():
            return _build(kind, entries, where)
    return dict(entries)


def _build(kind: type[Any], given: Mapping[str, Any], where: str) -> Any:
    """Make a dataclass of JSON values."""
    known = {field.name: field for field in fields(kind)}
    for name in given:
        if name not in known:
            raise ConfigError(f"{where} has no setting {name!r}; it has {', '.join(known)}.")
    for name, field in known.items():
        if field.default is MISSING and field.default_factory is MISSING and name not in given:
            raise ConfigError(f"{where} lacks {name!r}. Give it.")
    hints = get_type_hints(kind)
    if kind is Phase and given.get("mixture") is not None:
        # A phase says its inner curriculum in JSON even where that follows from the mixture.
        given = {key: value for key, value in given.items() if key != "curriculum"}
    values = {name: typed(value, hints[name], f"{where}.{name}") for name, value in given.items()}
    return kind(**values)


def _unfit(value: Any, wanted: str, where: str) -> ConfigError:
    return ConfigError(f"{where} must be {wanted}; got {shown(value)}.")
