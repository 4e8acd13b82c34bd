"""Some neighbouring rows of memory: actions from the user are written, results are copied out.

One for each batch and one for all rows, made once by `vector_env`, so that a step does not have to
make their views.
"""

import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from stepladder.arrays import Array
from stepladder.envs.types import Action, GymSpace
from stepladder.envs.workers.memory.layout import VectorArrays
from stepladder.envs.workers.memory.spaces import Leaf, build, is_one_array
from stepladder.errors import ConfigError

LARGE_BYTES = 1 << 16
"""Smaller copies come from memory that Python keeps."""

MAX_RECYCLED = 4
"""Copies that are used again; if the user holds more of them, new ones are made."""


class RowView:
    """Rows ``start`` to ``stop`` of a vector env."""

    def __init__(self, memory: VectorArrays, rows: slice, observation_space: GymSpace):
        self.start, self.stop = rows.start, rows.stop
        self.num_rows = rows.stop - rows.start
        self._memory = memory
        self._space = observation_space
        self._rewards = memory.rewards[rows]
        self._terminated = memory.terminated[rows]
        self._truncated = memory.truncated[rows]
        seen, acted = memory.layout.observations, memory.layout.actions
        self._observations = _views(seen, memory.observations, rows)
        self._copiers = [_copier(view) for view in self._observations]
        self._actions = _views(acted, memory.actions, rows)
        self._observation = self._observations[0] if is_one_array(seen) else None
        self._action = self._actions[0] if is_one_array(acted) else None

    # To the user.

    def observations(self, copy: bool) -> Any:
        """Return the observations, in the structure of their space."""
        if self._observation is not None:
            return self._copiers[0]() if copy else self._observation
        parts: list[Any] = []
        columns = zip(self._observations, self._memory.observations, self._copiers, strict=True)
        for view, column, copier in columns:
            if view is None:
                # Values without a fixed size; an env may go on changing its own.
                values = tuple(column[self.start : self.stop])
                parts.append(deepcopy(values) if copy else values)
            else:
                parts.append(copier() if copy else view)
        return build(self._space, parts)

    def results(self, copy: bool) -> tuple[Any, Any, Any, Any]:
        """Return observations, rewards, terminated and truncated."""
        return (
            self.observations(copy),
            self._rewards.copy(),
            self._terminated.copy(),
            self._truncated.copy(),
        )

    # From the user.

    def write_actions(self, actions: Action) -> None:
        """Write actions to memory, one per row.

        Raises:
            ConfigError: They do not fit. Then no env has been stepped.
        """
        if self._action is not None and getattr(actions, "shape", None) == self._action.shape:
            self._copy_actions(self._action, actions, "")
            return
        layout, columns = self._memory.layout.actions, self._memory.actions
        for leaf, view, column in zip(layout, self._actions, columns, strict=True):
            where = leaf.where
            values = _part(leaf, actions, where)
            if view is None:
                num_values = len(values) if hasattr(values, "__len__") else 0
                if num_values != self.num_rows:
                    raise _wrong_shape(where, (num_values,), (self.num_rows,))
                column[self.start : self.stop] = list(values)
                continue
            array = _as_array(values, where)
            if array.shape != view.shape:
                raise _wrong_shape(where, array.shape, view.shape)
            self._copy_actions(view, array, where)

    @staticmethod
    def _copy_actions(view: Array, values: Any, where: str) -> None:
        try:
            np.copyto(view, values, casting="same_kind")
        except TypeError as error:
            raise ConfigError(
                f"actions{where} are of type {np.asarray(values).dtype}; action_space has "
                f"{view.dtype}. Convert them first."
            ) from error


class Recycler:
    """Copies a large array into memory that the user no longer holds.

    New memory is much slower to write to than memory that was used before, because the system
    provides it page by page.
    """

    def __init__(self, source: Array):
        self._source = source
        self._used: list[Array] = []

    def __call__(self) -> Array:
        """Return a copy to which there is no other reference."""
        for number in range(len(self._used)):
            # Referenced by our list and this call only: neither by the user nor by a view.
            if sys.getrefcount(self._used[number]) == 2:
                copied = self._used[number]
                np.copyto(copied, self._source)
                return copied
        copied = self._source.copy()
        if len(self._used) < MAX_RECYCLED:
            self._used.append(copied)
        return copied


def _copier(view: Array | None) -> Callable[[], Any]:
    if view is None:
        return lambda: None
    return view.copy if view.nbytes < LARGE_BYTES else Recycler(view)


def _views(leaves: tuple[Leaf, ...], columns: list[Any], rows: slice) -> list[Array | None]:
    return [
        column[rows] if leaf.is_array else None
        for leaf, column in zip(leaves, columns, strict=True)
    ]


def _part(leaf: Leaf, actions: Action, where: str) -> Any:
    try:
        return leaf.get(actions)
    except (KeyError, IndexError, TypeError) as error:
        raise ConfigError(
            f"actions{where} is missing ({type(error).__name__}: {error}); expected the structure "
            "of action_space."
        ) from error


def _as_array(values: Any, where: str) -> Array:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ConfigError(f"actions{where} fit into no array ({error}). Give one array.") from error


def _wrong_shape(where: str, got: tuple[int, ...], expected: tuple[int, ...]) -> ConfigError:
    return ConfigError(
        f"actions{where} have shape {got}; expected {expected}: one action per env, in env order."
    )
