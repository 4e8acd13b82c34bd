"""Moving what a vector env holds: to the user, between shelves, into buffers.

Used by `batch`. Observations and actions are arrays, or dicts of arrays.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Buffers(NamedTuple):
    """The memory of a vector env, for adapters that show it as their own."""

    observations: Any
    rewards: npt.NDArray[np.float64]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    actions: Any


def given(memory: Any, is_copied: bool) -> Any:
    """Return what the user gets of our memory."""
    if not is_copied:
        return memory
    if isinstance(memory, dict):
        return {key: part.copy() for key, part in memory.items()}
    return memory.copy()


def copy_row(source: Any, source_row: int, target: Any, target_row: int) -> None:
    """Copy one row of every array of a shelf."""
    for from_array, to_array in zip(source, target, strict=True):
        to_array[target_row] = from_array[source_row]


def keep_actions(buffer: Any, actions: Any) -> None:
    """Copy actions into the buffer that shows them, if they fit; `step` judges them."""
    if isinstance(buffer, dict):
        for key, part in buffer.items():
            keep_actions(part, actions[key])
    elif np.shape(actions) == buffer.shape:
        buffer[:] = actions
