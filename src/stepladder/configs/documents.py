"""What no setting can be, found before a document is read.

Configs come from files, from other programs and from Python. Whoever reads one asks here first, so
that each reader only has to know its own fields: every value is one that JSON can hold, of a size
that fits into 64 bits, not too long and not too deep.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from stepladder.errors import ConfigError, shown

MAX_DEPTH = 60
"""Deepest nesting; no config comes near it."""

MAX_TEXT = 4_096
"""Characters of a name, a path or another text."""

MAX_INTEGER = 2**63 - 1
"""Largest whole number; what arrays and databases hold."""

MAX_FOUND = 20
"""Problems that are looked for in one document."""


def unreadable(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the path of everything in a document that no setting can be, and what is wrong.

    Example:
        >>> list(unreadable({"agent": {"gamma": float("nan")}}))
        [('agent.gamma', 'must be finite; got nan.')]
    """
    if depth > MAX_DEPTH:
        yield path, f"is nested deeper than {MAX_DEPTH} levels. Flatten it."
    elif isinstance(value, Mapping):
        yield from _in_object(cast("Mapping[Any, Any]", value), path, depth)
    elif isinstance(value, list | tuple):
        for index, entry in enumerate(cast("list[Any]", value)):
            yield from unreadable(entry, f"{path}[{index}]", depth + 1)
    else:
        text = _about_scalar(value)
        if text is not None:
            yield path, text


def require_readable(value: Any, where: str) -> None:
    """Raise if anything in a document can be no setting.

    Raises:
        ConfigError: Something is; the message names the first of it.
    """
    for path, text in unreadable(value, where):
        raise ConfigError(f"{path} {text}")


def _in_object(value: Mapping[Any, Any], path: str, depth: int) -> Iterator[tuple[str, str]]:
    for key, entry in value.items():
        if not isinstance(key, str):
            yield path, f"has the key {shown(key)}; keys must be texts. Put it in quotes."
            continue
        if len(key) > MAX_TEXT:
            yield path, f"has a key of {len(key)} characters, {shown(key)}. Shorten it."
            continue
        yield from unreadable(entry, f"{path}.{key}" if path else key, depth + 1)


def _about_scalar(value: Any) -> str | None:
    """Return what is wrong with a value that holds no others, or None."""
    if isinstance(value, np.generic):
        value = cast("Any", value).item()
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            return f"is a text of {len(value)} characters, {shown(value)}; at most {MAX_TEXT}."
        if not value.isascii() and not _can_be_written(value):
            return f"is {shown(value)}, which cannot be written as UTF-8. Correct the text."
        return None
    if isinstance(value, int):
        fits = -MAX_INTEGER - 1 <= value <= MAX_INTEGER
        return None if fits else f"is {shown(value)}; it must fit into 64 bits. Give a smaller one."
    if isinstance(value, float):
        return None if math.isfinite(value) else f"must be finite; got {value}."
    return f"is a {type(value).__name__}, which JSON cannot hold; got {shown(value)}."


def _can_be_written(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
