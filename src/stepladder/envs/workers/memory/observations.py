"""Write an observation into its row, if it has the shape and the type of its space.

Part of `group`. NumPy would silently stretch a smaller value over the row, and turn a float into an
integer.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from stepladder.arrays import Array
from stepladder.envs.workers.memory.spaces import Leaf
from stepladder.errors import EnvError, shown

PLAIN_SCALARS: dict[str, tuple[type, ...]] = {
    "i": (int, np.int64),
    "u": (int, np.int64),
    "f": (float, int, np.float64, np.float32),
}
"""Types that need no check, by the kind of the space's type."""

WHOLE = "biu"
"""Kinds of NumPy's types that hold integers or flags."""


def array_writer(leaf: Leaf, array: Array) -> Callable[[int, Any], None]:
    """Return a function that writes one part of an observation into a row of an array."""
    shape, where = leaf.shape, leaf.where
    dtype = array.dtype
    accepted = {dtype}

    def write(row: int, value: Any) -> None:
        if type(value) is not np.ndarray:
            value = _as_array(value, row, where)
        if value.shape != shape:
            raise EnvError(
                f"env {row} returned an observation{where} of shape {value.shape}; its space has "
                f"{shape}. Fix the env or its observation_space."
            )
        if value.dtype not in accepted:
            is_whole = value.dtype.kind in WHOLE and dtype.kind in WHOLE
            if not (is_whole or np.can_cast(value.dtype, dtype, "same_kind")):
                raise EnvError(
                    f"env {row} returned an observation{where} of type {value.dtype}, "
                    f"{shown(value.tolist())}; its space has {dtype}. Fix the env or its "
                    "observation_space."
                )
            accepted.add(value.dtype)
        array[row] = value

    if shape:
        return write
    plain = PLAIN_SCALARS.get(dtype.kind, ())

    def write_scalar(row: int, value: Any) -> None:
        # The usual case without an array, which would take longer than the writing itself.
        if type(value) not in plain:
            write(row, value)
            return
        try:
            array[row] = value
        except OverflowError as error:
            raise EnvError(
                f"env {row} returned the observation{where} {shown(value)}, which does not fit "
                f"into {dtype}. Fix the env or its observation_space."
            ) from error

    return write_scalar


def _as_array(value: Any, row: int, where: str) -> Array:
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise EnvError(
            f"env {row} returned the observation{where} {shown(value)}, which is not an array "
            f"({' '.join(str(error).split())}). Fix the env."
        ) from error
