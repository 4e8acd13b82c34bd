"""Plain records from saved JSON: every field is there, and of the type that it declares.

Used when snapshots are restored: histories, quarantined tasks, counters. Wrong values are refused
here, not when they are shown or used later.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from stepladder.errors import SnapshotError, shown
from stepladder.saving.saved_array import MAX_COUNT

Saved = TypeVar("Saved")

_EXPECTED: dict[Any, str] = {
    bool: "true or false",
    float: "a finite number",
    int: "an integer",
    str: "a text",
}


def read_fields(kind: type[Saved], data: Any, place: str) -> Saved:
    """Make a dataclass of saved JSON.

    Args:
        kind: A dataclass of numbers, texts, tuples and dicts of them.
        data: What was saved: an object with exactly its fields.
        place: Where it was saved, for the message.

    Raises:
        SnapshotError: A field is missing, unknown, or of another type.
    """
    names = [field.name for field in fields(cast("Any", kind))]
    if not isinstance(data, Mapping) or set(cast("Mapping[str, Any]", data)) != set(names):
        raise _unfit(data, f"an object with {', '.join(names)}", place)
    saved, hints = cast("Mapping[str, Any]", data), get_type_hints(kind)
    return kind(**{name: _typed(saved[name], hints[name], f"{name} of {place}") for name in names})


def read_list(kind: type[Saved], data: Any, place: str) -> list[Saved]:
    """Make a list of dataclasses of saved JSON."""
    if not isinstance(data, list):
        raise _unfit(data, "a list", place)
    return [
        read_fields(kind, entry, f"entry {index} of {place}")
        for index, entry in enumerate(cast("list[Any]", data))
    ]


def read_numbers(value: Any, place: str) -> tuple[float, ...]:
    """Return a saved list of finite numbers."""
    return _typed(value, tuple[float, ...], place)


def read_count(value: Any, place: str) -> int:
    """Return a saved number of something: an integer from 0 up."""
    if _typed(value, int, place) < 0:
        raise _unfit(value, "an integer of at least 0", place)
    return value


def _typed(value: Any, annotation: Any, place: str) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is tuple and isinstance(value, list):
        entries = cast("list[Any]", value)
        kinds = (arguments[0],) * len(entries) if arguments[-1] is Ellipsis else arguments
        if len(kinds) == len(entries):
            return tuple(_typed(one, kind, place) for one, kind in zip(entries, kinds, strict=True))
    if origin is dict and isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return {key: _typed(entry, arguments[1], place) for key, entry in entries.items()}
    if origin is not None or not _is_plain(value, annotation):
        raise _unfit(value, _EXPECTED.get(annotation, "a list or an object of its kind"), place)
    return float(cast("float", value)) if annotation is float else cast("Any", value)


def _is_plain(value: Any, annotation: Any) -> bool:
    if annotation is Any:
        return True
    if annotation in (int, float):
        kinds = (int,) if annotation is int else (int, float)
        is_number = isinstance(value, kinds) and not isinstance(value, bool)
        return is_number and abs(value) <= MAX_COUNT
    return isinstance(value, annotation)


def _unfit(value: Any, expected: str, place: str) -> SnapshotError:
    return SnapshotError(f"{place} is {shown(value)}; expected {expected}. Use an older one.")
