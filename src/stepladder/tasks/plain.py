"""Turn what callers hand in into plain values, or say exactly why not.

First step of the tasks layer: `task`, the sources and the pool pass every parameter, seed and
description through here, so that what is stored and hashed means the same in every process.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from stepladder.errors import StepladderError, TaskError, shown
from stepladder.files import MOST_DIGITS

# Made once: json.dumps would make a new encoder at each call with other than its defaults.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode

MAX_DEPTH = 100
"""Deepest nesting accepted; anything deeper is taken for a value that contains itself."""


def to_plain(value: Any, path: str, depth: int = 0) -> Any:
    """Copy a value into plain JSON types.

    Args:
        value: None, bool, int, finite float, str, a numpy scalar of these, or a list, tuple or
            mapping with string keys of such values.
        path: Dotted name of the value, used in error messages only.
        depth: How deep in the outermost value this one lies.

    Returns:
        A copy that shares nothing mutable with `value`; tuples have become lists.

    Raises:
        TaskError: If something inside is not plain, named by its dotted path.
    """
    if depth > MAX_DEPTH:
        raise TaskError(
            f"{path[:60]}... is nested deeper than {MAX_DEPTH} levels; does it contain itself? "
            "Flatten it."
        )
    if isinstance(value, np.generic):
        value = cast("Any", value).item()
    if value is None or isinstance(value, bool | int | float | str):
        return _plain_scalar(value, path)
    if isinstance(value, Mapping):
        return _plain_dict(cast("Mapping[Any, Any]", value), path, depth)
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        return [to_plain(item, f"{path}.{i}", depth + 1) for i, item in enumerate(items)]
    kind = type(cast("object", value)).__name__
    raise TaskError(
        f"{path} has type {kind}, which JSON cannot hold; use None, bool, int, float, str, list or "
        "dict (for an array, call .tolist())."
    )


def _plain_scalar(value: bool | int | float | str | None, path: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    # A subclass, such as a member of an enum, is taken for its content.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        if abs(value) >= 10**MOST_DIGITS:
            raise TaskError(
                f"{path} has more than {MOST_DIGITS} digits, which no file keeps. Choose a "
                "smaller number."
            )
        return int(value)
    if not math.isfinite(value):
        raise TaskError(f"{path} is {value}; numbers must be finite. Replace it or leave it out.")
    return float(value)


def _plain_dict(value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise TaskError(
                f"{path} has the key {key!r} of type {type(key).__name__}; keys must be strings. "
                "Convert it with str()."
            )
        plain[str.__str__(key)] = to_plain(item, f"{path}.{key}", depth + 1)
    return plain


def canonical_json(plain: Any) -> str:
    """Write a plain value as the one JSON text that stands for it: sorted keys, ASCII only."""
    return _encode(plain)


def digest(text: str) -> str:
    """Return 32 hex digits that depend only on the text, in every process and on every machine."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def whole_number(
    value: Any, name: str, low: int, high: int, error: type[StepladderError] = TaskError
) -> int:
    """Return `value` as a plain int after checking that it is one.

    Args:
        value: A Python or numpy integer. A bool is refused: it is nearly always a slip.
        name: What the number is called, for the message.
        low: Smallest value allowed.
        high: Largest value allowed.
        error: Class to raise.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise error(
            f"{name} must be an integer from {low} to {high}; got {shown(value)} of type "
            f"{type(value).__name__}. Convert it with int()."
        )
    number = int(cast("int", value))
    if not low <= number <= high:
        raise error(
            f"{name} must lie between {low} and {high}; got {shown(number)}. Choose one inside."
        )
    return number
