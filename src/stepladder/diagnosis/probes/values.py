"""Observations as they are compared and checked: digests, numbers that are not finite, spaces.

Used by the probes that play.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Space, Tuple

from stepladder.errors import shown


def digest(*values: Any) -> str:
    """Return a short text that is the same for equal values only; NaN equals NaN."""
    hasher = hashlib.blake2b(digest_size=12)
    for value in values:
        _add(hasher, value)
    return hasher.hexdigest()


def _add(hasher: Any, value: Any) -> None:
    if isinstance(value, Mapping):
        for key in value:
            hasher.update(repr(key).encode())
            _add(hasher, value[key])
    elif isinstance(value, list | tuple):
        for entry in value:
            _add(hasher, entry)
    elif isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        hasher.update(f"{value.dtype}{value.shape}".encode())
        hasher.update(np.ascontiguousarray(value).tobytes())
    else:
        hasher.update(repr(value).encode())


def parts(
    space: Space[Any], value: Any, path: str = "observation"
) -> Iterator[tuple[str, Any, Any]]:
    """Yield path, space and value of every part that is no container; a wrong container as one."""
    if isinstance(space, Dict) and isinstance(value, Mapping) and value.keys() == space.keys():
        for name, inner in space.items():
            yield from parts(inner, value[name], f"{path}[{name!r}]")
    elif isinstance(space, Tuple) and isinstance(value, tuple) and len(value) == len(space):
        for index, inner in enumerate(space):
            yield from parts(inner, value[index], f"{path}[{index}]")
    else:
        yield path, space, value


def not_finite(value: Any) -> bool:
    """Whether there is a number in a value that is not finite."""
    array = np.asarray(value)
    return array.dtype.kind in "fc" and not bool(np.isfinite(array).all())


def outside(space: Space[Any], value: Any) -> tuple[str, bool] | None:
    """Say how a value is not in its space; None if it is.

    Returns:
        The words, and whether the values would fit if they were of the type of the space.
    """
    try:
        if not_finite(value) or space.contains(value):
            return None
    except (AttributeError, TypeError, ValueError):
        return f"is {shown(value)}; its space is {shown(space)}", False
    if not isinstance(space, Box):
        return f"is {shown(value)}; its space is {shown(space)}", False
    array = np.asarray(value)
    if array.shape != space.shape:
        return f"has shape {array.shape}; its space has {space.shape}", False
    if array.dtype.kind not in "fiub":
        return f"has type {array.dtype}; its space has {space.dtype}", False
    low, high = np.minimum(array, space.low), np.maximum(array, space.high)
    if (low < space.low).any() or (high > space.high).any():
        worst = int(np.argmax(np.maximum(space.low - low, high - space.high)))
        ends = space.low.flat[worst], space.high.flat[worst]
        place = "" if array.size == 1 else f" at place {worst}"
        return (
            f"is {array.flat[worst]:g}{place}; its space goes from {ends[0]:g} to {ends[1]:g}",
            False,
        )
    return f"has type {array.dtype}; its space has {space.dtype}", True
