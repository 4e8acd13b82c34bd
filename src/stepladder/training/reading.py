"""Typed configs from JSON: every field is read, whatever is wrong with the others.

Between a file and `config`. `curricula.config_registry.typed` stops at the first thing that does
not fit; here a document is read to its end, and `Problems` holds all that was found.
"""

import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from os import PathLike
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from stepladder.agents.config import AGENTS, AgentConfig
from stepladder.curricula.config import TYPE, CurriculumConfig
from stepladder.curricula.config_registry import old_key, typed
from stepladder.curricula.phased.config import Phase
from stepladder.curricula.registry import CURRICULA
from stepladder.curricula.staged.config import Stage
from stepladder.curricula.uniform import UniformConfig
from stepladder.errors import ConfigError, TaskError, shown
from stepladder.files import read_json
from stepladder.tasks import Task
from stepladder.training.contradictions import ContradictionError
from stepladder.training.problems import Problems, join, meant

UNREAD: Final = object()
"""Stands for a value that could not be read; `Problems` says why."""

STAND_IN = "stand-in"

STAND_INS: Mapping[str, Any] = {
    "name": STAND_IN,
    "stages": (Stage(name=STAND_IN),),
    "phases": (Phase(name=STAND_IN),),
    "values": (0,),
    "start": 0.0,
    "end": 0.0,
}
"""Values for fields without a default that are wrong or missing, so that the rest is checked."""


def load_document(path: str | PathLike[str]) -> Any:
    """Return what a JSON file holds.

    Raises:
        ConfigError: It cannot be read, or is no JSON that is accepted.
    """
    try:
        return read_json(path, follow=True)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. Correct the path.") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}. Mend it there.") from error


def read(value: Any, annotation: Any, path: str, problems: Problems) -> Any:
    """Return a JSON value as an annotation wants it.

    Args:
        value: What `json` gave.
        annotation: Type of a field of a config.
        path: Where the value is, for messages.
        problems: Where all that does not fit goes.

    Returns:
        The value, or `UNREAD` if anything in it does not fit.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        if value is None and types.NoneType in arguments:
            return None
        (kind,) = [kind for kind in arguments if kind is not types.NoneType]
        return read(value, kind, path, problems)
    if origin is tuple and arguments[-1] is Ellipsis:
        return _read_list(value, arguments[0], path, problems)
    if origin is dict:
        return _read_dict(value, arguments[1], path, problems)
    if annotation in (CurriculumConfig, AgentConfig):
        return _read_kind(value, annotation, path, problems)
    if is_dataclass(annotation) and not (annotation is Stage and isinstance(value, str)):
        return read_object(value, annotation, path, problems)
    return _read_leaf(value, annotation, path, problems)


def read_object(value: Any, kind: Any, path: str, problems: Problems) -> Any:
    """Return a dataclass made of a JSON object, or `UNREAD`; fields left out have defaults."""
    if not isinstance(value, Mapping):
        problems.add(path, f"must be an object with settings; got {shown(value)}.")
        return UNREAD
    before = len(problems)
    values = _read_fields(value, kind, path, problems)
    for field in fields(kind):
        name = field.name
        if _is_required(field) and name not in values:
            if name not in value:
                problems.add(join(path, name), "is missing. Give it.")
            values[name] = STAND_INS[name]
    if values.get("stages") is STAND_INS["stages"]:
        values.pop("starting_stage", None)
    _find_refusals(kind, values, path, problems)
    if len(problems) > before:
        return UNREAD
    try:
        return kind(**values)
    except ContradictionError as error:
        # Only now: what a field that is wrong says cannot contradict another one.
        for place, text in error.found:
            problems.add(join(path, place), text)
        return UNREAD


def _read_fields(
    value: Mapping[str, Any], kind: Any, path: str, problems: Problems
) -> dict[str, Any]:
    """Return those values of an object that could be read."""
    known, hints = [field.name for field in fields(kind)], get_type_hints(kind)
    values: dict[str, Any] = {}
    for name, entry in value.items():
        if name not in known:
            problems.add_unknown(path, name, known)
            continue
        got = read(entry, hints[name], join(path, name), problems)
        if got is not UNREAD:
            values[name] = got
    follows = values.get("mixture") is not None or values.get("curriculum") == UniformConfig()
    if kind is Phase and follows:
        # A phase says its inner curriculum in JSON even where that follows from the rest.
        values.pop("curriculum", None)
    return values


def _is_required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _find_refusals(kind: Any, values: dict[str, Any], path: str, problems: Problems) -> None:
    """Where a dataclass refuses values, find out whose fault it is, and look for more."""
    while (error := _refusal(kind, values)) is not None:
        name = _culprit(kind, values, error)
        if name is None:
            problems.add(path, error)
            return
        # The path says so already.
        for said in (f" of stage {STAND_IN!r}", f" of phase {STAND_IN!r}"):
            error = error.replace(said, "")
        problems.add(join(path, name), error.removeprefix(f"{name} "))
        values = _without(values, name, kind)


def _refusal(kind: Any, values: dict[str, Any]) -> str | None:
    try:
        kind(**values)
    except ContradictionError:
        return None
    except ConfigError as error:
        return str(error)
    return None


def _culprit(kind: Any, values: dict[str, Any], error: str) -> str | None:
    """Return the field without which a dataclass would not complain, or not about this."""
    involved = [
        name
        for name, value in values.items()
        if value is not STAND_INS.get(name)
        if _refusal(kind, _without(values, name, kind)) != error
    ]
    named = [name for name in involved if error.startswith(f"{name} ")]
    return next(iter(named + involved), None)


def _without(values: dict[str, Any], name: str, kind: Any) -> dict[str, Any]:
    """Return the values with one field as it is by default."""
    rest = {key: value for key, value in values.items() if key != name}
    if _is_required(kind.__dataclass_fields__[name]):
        rest[name] = STAND_INS[name]
    return rest


def _read_kind(value: Any, annotation: Any, path: str, problems: Problems) -> Any:
    """Return a config of a kind that the document names: a curriculum's or an agent's."""
    kinds = AGENTS if annotation is AgentConfig else CURRICULA
    if not isinstance(value, Mapping):
        problems.add(path, f"must be an object with settings; got {shown(value)}.")
        return UNREAD
    name = value.get(TYPE)
    if not isinstance(name, str) or name not in kinds:
        got = f"got {shown(name)}" if TYPE in value else "it is missing"
        hint = old_key(value) or meant(name, kinds)
        problems.add(join(path, TYPE), f"must be one of {', '.join(kinds)}; {got}.{hint}")
        return UNREAD
    settings = {field: entry for field, entry in value.items() if field != TYPE}
    return read_object(settings, kinds[name], path, problems)


def _read_list(value: Any, kind: Any, path: str, problems: Problems) -> Any:
    if isinstance(value, str) or not isinstance(value, Sequence):
        problems.add(path, f"must be a list; got {shown(value)}.")
        return UNREAD
    entries = [read(entry, kind, f"{path}[{index}]", problems) for index, entry in enumerate(value)]
    return UNREAD if any(entry is UNREAD for entry in entries) else tuple(entries)


def _read_dict(value: Any, kind: Any, path: str, problems: Problems) -> Any:
    if not isinstance(value, Mapping):
        problems.add(path, f"must be an object; got {shown(value)}.")
        return UNREAD
    entries = {name: read(entry, kind, join(path, name), problems) for name, entry in value.items()}
    return UNREAD if any(entry is UNREAD for entry in entries.values()) else entries


def _read_leaf(value: Any, annotation: Any, path: str, problems: Problems) -> Any:
    try:
        return Task.from_json(value) if annotation is Task else typed(value, annotation, path)
    except (ConfigError, TaskError) as error:
        problems.add(path, str(error).removeprefix(f"{path} "))
        return UNREAD
