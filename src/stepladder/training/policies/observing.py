"""Observations from anywhere: of one env or of many, checked, as rows of the env's own types.

Between a user's `predict` and the layout of a policy, which relies on what vector envs return.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Space

from stepladder.agents.observations import Observations
from stepladder.errors import ConfigError, shown


def batch_of(space: Space[Any], observation: Any) -> tuple[Observations, int, bool]:
    """Return an observation as a vector env returns it.

    Args:
        space: Of one env.
        observation: Of one env, or with a row per env.

    Returns:
        The rows, how many there are, and whether it was the observation of one env.

    Raises:
        ConfigError: It is not one of this space; the message names what is wrong.
    """
    if not isinstance(space, Dict):
        rows, is_single = _rows_of(space, observation, "the observation")
        return rows, len(rows), is_single
    if not isinstance(observation, Mapping) or observation.keys() != space.spaces.keys():
        got = sorted(observation) if isinstance(observation, Mapping) else shown(observation)
        raise ConfigError(
            f"the observation must be a dict of {', '.join(map(repr, space.spaces))}; got {got}. "
            "Pass what the env returned."
        )
    found = {
        key: _rows_of(part, observation[key], f"the observation's {key!r}")
        for key, part in space.spaces.items()
    }
    kinds = {(len(rows), is_single) for rows, is_single in found.values()}
    if len(kinds) > 1:
        counts = {key: len(rows) for key, (rows, _) in found.items()}
        raise ConfigError(
            f"the parts of the observation have different numbers of rows: {counts}. Pass what the "
            "env returned."
        )
    ((num_rows, is_single),) = kinds
    return {key: rows for key, (rows, _) in found.items()}, num_rows, is_single


def _rows_of(space: Space[Any], value: Any, what: str) -> tuple[npt.NDArray[Any], bool]:
    """Return one part of an observation with a row per env, and whether it was of one env."""
    array, shape = _array(value, what), space.shape or ()
    is_single = array.shape == shape
    if not is_single and array.shape[1:] != shape:
        raise ConfigError(
            f"{what} has shape {list(array.shape)}; expected {list(shape)} for one env, or "
            f"{['rows', *shape]} for many. Pass what the env returned."
        )
    wanted = np.dtype(space.dtype)
    is_number = array.dtype.kind in ("iub" if wanted.kind in "iub" else "iubf")
    if not is_number:
        raise ConfigError(
            f"{what} is of type {array.dtype}; expected {wanted}. Pass what the env returned."
        )
    rows = array[None] if is_single else array
    if wanted.kind == "f":
        bad, expected = ~np.isfinite(rows), "a finite number"
    else:
        low, high = _bounds_of(space)
        bad, expected = (rows < low) | (rows > high), "a number within its space"
    if bad.any():
        place = np.argwhere(bad)[0].tolist()
        raise ConfigError(f"{what} has {rows[tuple(place)]} at {place}; expected {expected}.")
    return rows.astype(wanted, copy=False), is_single


def _array(value: Any, what: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(value)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"{what} is {shown(value)}, which makes no array ({reason}). Pass what the env "
            "returned."
        ) from error


def _bounds_of(space: Space[Any]) -> tuple[Any, Any]:
    """Return the lowest and highest integers of a space."""
    if isinstance(space, Discrete):
        return int(space.start), int(space.start) + int(space.n) - 1
    if isinstance(space, MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    if isinstance(space, Box):
        return space.low, space.high
    return -np.inf, np.inf
