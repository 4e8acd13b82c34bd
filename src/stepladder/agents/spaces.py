"""Spaces as plain JSON and back.

Used by `base` in the description of an agent and by `player`, which reads it.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space

from stepladder.configs.documents import DOCUMENT, to_plain
from stepladder.errors import ConfigError, SnapshotError, shown

MAX_SIZE = 10_000_000
"""Entries of a space that is read from a file."""


def space_to_json(space: Space[Any]) -> dict[str, Any]:
    """Return a space as plain JSON.

    Raises:
        ConfigError: Agents do not support this space.
    """
    if isinstance(space, Discrete):
        return {"space": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, MultiDiscrete):
        parts = {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
        return {"space": "multi_discrete", **parts}
    if isinstance(space, MultiBinary):
        # Three switches and a row of three are different spaces to Gymnasium.
        size = space.n if isinstance(space.n, int) else list(space.shape)
        return {"space": "multi_binary", "n": size}
    if isinstance(space, Box):
        return {
            "space": "box",
            "low": _bound(space.low),
            "high": _bound(space.high),
            "shape": list(space.shape),
            "dtype": np.dtype(space.dtype).name,
        }
    if isinstance(space, Dict):
        parts = {name: space_to_json(part) for name, part in space.spaces.items()}
        return {"space": "dict", "parts": parts}
    raise ConfigError(
        "agents know Box, Discrete, MultiDiscrete, MultiBinary and Dict spaces; got "
        f"{space}. Wrap the env."
    )


def space_from_json(data: Any) -> Space[Any]:
    """Return the space of which `space_to_json` gave this."""
    try:
        to_plain(data, "a space", error=ConfigError, bounds=DOCUMENT)
        kind = data["space"]
        if kind == "discrete":
            if type(data["n"]) is not int or type(data["start"]) is not int:
                raise TypeError("n and start must be integers")
            return Discrete(data["n"], start=data["start"])
        if kind == "multi_discrete":
            return MultiDiscrete(data["nvec"], start=data["start"])
        if kind == "multi_binary":
            is_row = not isinstance(data["n"], list)
            shape = _shape([data["n"]] if is_row else data["n"])
            return MultiBinary(shape[0] if is_row else shape)
        if kind == "box":
            shape, dtype = _shape(data["shape"]), np.dtype(data["dtype"])
            if dtype.kind not in "biuf":
                raise ValueError(f"a Box of {dtype}")
            low, high = (_array(data[name], shape, dtype) for name in ("low", "high"))
            return Box(low, high, shape, dtype)  # pyright: ignore[reportArgumentType]
        if kind == "dict":
            return Dict({name: space_from_json(part) for name, part in data["parts"].items()})
    except (
        AssertionError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        OverflowError,
    ) as error:
        reason = " ".join(str(error).split())
        raise SnapshotError(
            f"{shown(data)} does not describe a space ({reason}). Use another file."
        ) from error
    raise SnapshotError(f"{shown(kind)} is not a known kind of space. Use another file.")


def _shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of a Box whose bounds can be made."""
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"shape must be a list of sizes; got {shown(shape)}")
    if math.prod(shape) > MAX_SIZE:
        raise ValueError(f"it has {math.prod(shape):.3g} entries; at most {MAX_SIZE:,} are read")
    return tuple(shape)


def _bound(bound: npt.NDArray[Any]) -> Any:
    """Return a bound as one number if it is the same everywhere; JSON has no infinity."""
    flat = [_finite(number) for number in bound.reshape(-1).tolist()]
    return flat[0] if flat and all(number == flat[0] for number in flat) else flat


def _finite(number: float) -> float | str:
    if isinstance(number, float) and not math.isfinite(number):
        return str(number)
    return number


def _array(bound: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if isinstance(bound, list):
        return np.array([_number(number) for number in bound], dtype).reshape(shape)
    return np.full(shape, _number(bound), dtype)


def _number(number: Any) -> Any:
    # As a float, integers of 64 bits would lose digits.
    return float(number) if isinstance(number, str) else number
