"""The canonical JSON text and the digest of a plain value, and checked integers.

Used by `task`, the sources and the pool, after `configs.documents.to_plain`: what is stored and
hashed means the same in every process.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

import numpy as np

from stepladder.errors import StepladderError, TaskError, shown

# Made once: json.dumps would make a new encoder at each call with other than its defaults.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical_json(plain: Any) -> str:
    """Write a plain value as its one canonical JSON text: sorted keys, ASCII only."""
    return _encode(plain)


def digest(text: str) -> str:
    """Return 32 hex digits that depend only on the text, in every process and on every machine."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def checked_integer(
    value: Any, name: str, low: int, high: int, error: type[StepladderError] = TaskError
) -> int:
    """Return `value` as a plain int after checking that it is one.

    Args:
        value: A Python or numpy integer. A bool is refused: it is usually a mistake.
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
