"""What a space is made of: the leaves that lie in shared memory, and the structure around them.

Used by `layout` to lay observations and actions out, and by `group` to write and read their rows.
Box, Discrete, MultiDiscrete and MultiBinary are leaves with their own place; Dict and Tuple are
structure; a leaf of any other space (a text, a graph) has no fixed size and is sent pickled.
"""

from collections.abc import Callable, Iterable
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

    @property
    def where(self) -> str:
        """The path as it is written in code: ``['camera'][0]``."""
        return "".join(f"[{step!r}]" for step in self.path)

    def get(self, value: Any) -> Any:
        """Return this leaf of a nested value."""
        for step in self.path:
            value = value[step]
        return value


def leaves_of(space: GymSpace, path: tuple[Step, ...] = ()) -> tuple[Leaf, ...]:
    """Return the leaves of a space, in the order in which `build` takes them."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        is_dict = isinstance(space, spaces.Dict)
        parts = space.spaces.items() if is_dict else enumerate(space.spaces)
        return tuple(leaf for step, part in parts for leaf in leaves_of(part, (*path, step)))
    if isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        assert space.shape is not None
        return (Leaf(path, np.dtype(space.dtype), tuple(space.shape)),)
    return (Leaf(path, None),)


def is_one_array(leaves: tuple[Leaf, ...]) -> bool:
    """Whether a value of a space is a single array."""
    return len(leaves) == 1 and not leaves[0].path and leaves[0].is_array


def map_leaves(space: GymSpace | None, value: Any, function: Callable[[Any], Any]) -> Any:
    """Return a nested value of a space with a function applied to each leaf; None is one leaf."""
    if isinstance(space, spaces.Dict):
        return {key: map_leaves(part, value[key], function) for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        parts = zip(space.spaces, value, strict=True)
        return tuple(map_leaves(part, each, function) for part, each in parts)
    return function(value)


def build(space: GymSpace, values: Iterable[Any]) -> Any:
    """Build a nested value of a space from the values of its leaves."""
    left = iter(values)
    if isinstance(space, spaces.Dict):
        return {key: build(part, left) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(build(part, left) for part in space.spaces)
    return next(left)
