"""Plain JSON values: what a document, a setting or a task's parameter can hold.

First step of everything that comes from outside: `codec` passes documents and settings through
`to_plain`, `tasks` passes parameters. What is stored afterwards means the same in every process.
"""

import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from stepladder.configs.yaml_text import MOST_YAML_BYTES, YAML_SUFFIXES, parsed_yaml
from stepladder.errors import ConfigError, StepladderError, TaskError, shown
from stepladder.files import MAX_JSON_DIGITS, read_bytes, read_json

MAX_INTEGER = 2**63 - 1
"""Largest integer of a setting: what arrays and databases hold."""

MAX_FOUND = 20
"""Problems that are looked for in one document."""


class Bounds(NamedTuple):
    """How large a plain value may be."""

    depth: int
    """Levels of nesting; anything deeper is taken for a value that contains itself."""

    integer: int
    """Integers lie between minus this, included, and this, excluded."""

    text: int | None
    """Characters of a text that must also be valid UTF-8; None accepts every text."""


DOCUMENT = Bounds(depth=60, integer=2**63, text=4_096)
"""Bounds of a config; no config comes near them."""

PARAMS = Bounds(depth=100, integer=10 ** (MAX_JSON_DIGITS - 1), text=None)
"""Bounds of a task's parameters, which may hold a whole level."""

Found = list[tuple[str, str]]


def to_plain(
    value: Any,
    path: str,
    *,
    error: type[StepladderError] = TaskError,
    bounds: Bounds = PARAMS,
    found: Found | None = None,
) -> Any:
    """Copy a value into plain JSON types.

    Args:
        value: None, bool, int, finite float, str, a numpy scalar of these, or a list, tuple or
            mapping with string keys of such values.
        path: Name of the value in messages, such as ``params``.
        error: Class to raise.
        bounds: How large the value may be.
        found: Collects the path and the text of each problem in place of an error, up to
            `MAX_FOUND`; the copy is incomplete then.

    Returns:
        A copy that shares nothing mutable with `value`; tuples have become lists.

    Raises:
        StepladderError: Something inside is not plain; the message begins with its path.

    Example:
        >>> to_plain({"a": (1, 2)}, "params")
        {'a': [1, 2]}
    """
    return _copy(value, path, _Checks(error, bounds, found), 0)


class _Checks(NamedTuple):
    error: type[StepladderError]
    bounds: Bounds
    found: Found | None

    def refuse(self, path: str, text: str) -> None:
        if self.found is None:
            raise self.error(f"{path} {text}")
        self.found.append((path, text))


def _copy(value: Any, path: str, checks: _Checks, depth: int) -> Any:
    if isinstance(value, np.generic):
        value = cast("Any", value).item()
    if value is None or isinstance(value, bool | int | float | str):
        return _copy_scalar(value, path, checks)
    if checks.found is not None and len(checks.found) >= MAX_FOUND:
        return None
    if depth >= checks.bounds.depth and isinstance(value, Mapping | list | tuple):
        text = f"is nested deeper than {checks.bounds.depth} levels; does it contain itself? "
        checks.refuse(path if len(path) <= 60 else f"{path[:60]}...", f"{text}Flatten it.")
    elif isinstance(value, Mapping):
        return _copy_object(cast("Mapping[Any, Any]", value), path, checks, depth)
    elif isinstance(value, list | tuple):
        entries = cast("list[Any]", value)
        return [_copy(one, f"{path}[{i}]", checks, depth + 1) for i, one in enumerate(entries)]
    else:
        kind = type(cast("object", value)).__name__
        checks.refuse(
            path,
            f"has type {kind}, which JSON cannot hold; use None, bool, int, float, str, list or "
            "dict (for an array, call .tolist()).",
        )
    return None


def _copy_object(
    value: Mapping[Any, Any], path: str, checks: _Checks, depth: int
) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, entry in value.items():
        if not isinstance(key, str):
            kind = type(key).__name__
            checks.refuse(
                path, f"has the key {shown(key)} of type {kind}; keys must be strings. Quote it."
            )
            continue
        # A subclass, such as a member of an enum, is taken for its content.
        name = str.__str__(key)
        if checks.bounds.text is not None:
            _copy_scalar(name, path, checks)
        plain[name] = _copy(entry, f"{path}.{name}" if path else name, checks, depth + 1)
    return plain


def _copy_scalar(value: bool | int | float | str | None, path: str, checks: _Checks) -> Any:
    if value is None or isinstance(value, bool):
        return value
    bounds = checks.bounds
    if isinstance(value, str):
        if bounds.text is not None and len(value) > bounds.text:
            size = f"a text of {len(value)} characters"
            checks.refuse(path, f"has {size}, {shown(value)}; at most {bounds.text}. Shorten it.")
        elif bounds.text is not None and not value.isascii() and not _is_utf8(value):
            checks.refuse(
                path, f"has {shown(value)}, which cannot be written as UTF-8. Correct the text."
            )
        return str.__str__(value)
    if isinstance(value, int):
        if not -bounds.integer <= value < bounds.integer:
            size = "64 bits" if bounds is DOCUMENT else f"{MAX_JSON_DIGITS - 1} digits"
            checks.refuse(path, f"must fit into {size}; got {shown(value)}. Give a smaller number.")
        return int(value)
    if not math.isfinite(value):
        checks.refuse(path, f"is {value}; numbers must be finite. Replace it or leave it out.")
    return float(value)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def load_document(path: str | PathLike[str]) -> Any:
    """Return what a file holds: YAML if its name ends so, else JSON.

    Raises:
        ConfigError: The file cannot be read, or it is not JSON or YAML that is accepted.
    """
    is_yaml = Path(path).suffix.lower() in YAML_SUFFIXES
    try:
        if is_yaml:
            return parsed_yaml(read_bytes(path, MOST_YAML_BYTES, follow=True))
        return read_json(path, follow=True)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. Correct the path.") from error
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        raise ConfigError(
            f"{path} is YAML, which needs the package PyYAML. Install it with: pip install "
            "'stepladder[cli]', or write the file as JSON."
        ) from error
    except ValueError as error:
        kind = "YAML that is read" if is_yaml else "JSON"
        raise ConfigError(f"{path} is not {kind}: {error}. Correct the file.") from error
