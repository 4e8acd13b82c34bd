"""What a space is made of: the leaves that lie in shared memory, and the structure around them.

Used by `memory` to lay observations and actions out, and by `group` to write and read their rows.
Box, Discrete, MultiDiscrete and MultiBinary are leaves with a place of their own; Dict and Tuple
are structure; a leaf of any other space (a text, a graph) has no fixed size and travels pickled.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from stepladder.envs.types import DType, GymSpace

Step = str | int
"""One step down into a nested value: a key of a dict, or a position in a tuple."""


@dataclass(frozen=True)
class Leaf:
    """One part of a space that holds no others."""

    path: tuple[Step, ...]
    """How to get there from the whole value."""

    dtype: DType | None
    """None: values of this leaf have no fixed size."""

    shape: tuple[int, ...] = ()

    @property
    def is_array(self) -> bool:
        """Whether rows of this leaf lie in an array."""
        return self.dtype is not None

    def get(self, value: Any) -> Any:
        """Return this leaf of a nested value."""
        for step in self.path:
            value = value[step]
        return value


def leaves_of(space: GymSpace, path: tuple[Step, ...] = ()) -> tuple[Leaf, ...]:
    """Return the leaves of a space, in the order in which `build` takes them."""
    if isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        assert space.shape is not None
        return (Leaf(path, np.dtype(space.dtype), tuple(space.shape)),)
    return tuple(
        leaf for step, part in _parts(space) for leaf in leaves_of(part, (*path, step))
    ) or (() if isinstance(space, spaces.Dict | spaces.Tuple) else (Leaf(path, None),))


def _parts(space: GymSpace) -> list[tuple[Step, GymSpace]]:
    if isinstance(space, spaces.Dict):
        return list(space.spaces.items())
    if isinstance(space, spaces.Tuple):
        return list(enumerate(space.spaces))
    return []


def build(space: GymSpace, values: Sequence[Any]) -> Any:
    """Build a nested value of a space from the values of its leaves."""
    return _build(space, iter(values))


def _build(space: GymSpace, values: Iterator[Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {step: _build(part, values) for step, part in _parts(space)}
    if isinstance(space, spaces.Tuple):
        return tuple(_build(part, values) for _, part in _parts(space))
    return next(values)
