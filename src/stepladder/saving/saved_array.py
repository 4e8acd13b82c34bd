"""What a saved array must look like: one description to save, check and restore it.

Everything with state that kernels read (pools, plans, curricula, mailboxes, games, simulated
learners) describes each of its arrays with one `SavedArray`. Kernels do not check indices, so a
value from a file is checked here first: type, shape, finite, in range, integer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, cast

import numpy as np

from stepladder.arrays import Array
from stepladder.errors import SnapshotError

MAX_FLOAT = float(np.finfo(np.float64).max)
"""Largest finite number. NaN is in no range."""

MAX_COUNT = 2**61 - 1
"""Largest count that is accepted: adding to it for years does not overflow 64 bits."""


@dataclass(frozen=True)
class Part:
    """What some of an array's elements must be."""

    name: str
    """What messages call them."""

    where: Any = ...
    """Which elements: an index, or a field of records as a dotted path."""

    low: Any = -MAX_FLOAT
    """Smallest value allowed: one for all, or an array that broadcasts."""

    high: Any = MAX_FLOAT
    """Largest value allowed, likewise. By default all finite numbers are allowed."""

    whole: bool = False
    """Whether floats must be integers."""

    @classmethod
    def count(cls, name: str, where: Any = ..., high: Any = MAX_COUNT) -> "Part":
        """Describe numbers of something, or places in a table that ends with `high`."""
        return cls(name, where, 0, high, whole=True)

    @classmethod
    def share(cls, name: str, where: Any = ...) -> "Part":
        """Describe numbers from 0 to 1; a rounding error above is allowed."""
        return cls(name, where, 0.0, 1.0 + 1e-9)

    def select(self, array: Array) -> Array:
        """Return the elements this part is about."""
        if not isinstance(self.where, str):
            return array[self.where]
        for field in self.where.split("."):
            array = array[field]
        return array

    @cached_property
    def is_finite(self) -> bool:
        """Whether no infinite value is allowed."""
        return not (np.isinf(self.low).any() or np.isinf(self.high).any())

    def problem(self, array: Array) -> str | None:
        """Return what is wrong with the first bad element, or None."""
        values = np.atleast_1d(self.select(array))
        if self._is_met_by(values):
            return None
        if values.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                values = values.astype(np.float64)
        is_good = (values >= self.low) & (values <= self.high)
        if self.whole and values.dtype.kind == "f":
            is_good &= values == np.floor(values)
        if is_good.all():
            return None
        index = tuple(int(i) for i in np.argwhere(~is_good)[0])
        low, high = (np.broadcast_to(bound, values.shape)[index] for bound in (self.low, self.high))
        expected = "an integer" if self.whole or values.dtype.kind in "iu" else "a finite number"
        if low == high:
            expected = f"{low:.6g}"
        elif (low, high) != (-MAX_FLOAT, MAX_FLOAT):
            expected += f" from {low:.6g} to {high:.6g}"
        return f"{self.name or 'value'}{list(index)} is {values[index]}; expected {expected}"

    def _is_met_by(self, values: Array) -> bool:
        """Whether all values are good, by the quickest test; False may also be "not known"."""
        if values.dtype.char not in "dl" or not values.size:
            return False
        if self.whole and values.dtype.char == "d":
            return False
        # NaN is the least and the largest of any values, and in no range.
        is_inside = (values.min() >= self.low) & (values.max() <= self.high)
        return is_inside is np.True_ or bool(np.all(is_inside))


@dataclass(frozen=True)
class SavedArray:
    """One array that is saved and restored, with everything that must hold for its values.

    All floats must be finite, but for the parts that say otherwise.
    """

    name: str
    """Its name in a snapshot."""

    array: Array
    """The array itself. Its shape and type are those that a saved one must have."""

    parts: tuple[Part, ...] = ()
    """What holds beyond that. Where one has an infinite bound, they must cover all of the array."""

    max_length: int | None = None
    """Most rows that a saved one may have, if it need not have as many as the array."""

    def read(self, arrays: Mapping[str, Array], place: str = "the snapshot") -> Array:
        """Return the saved array if it can be restored.

        Args:
            arrays: Saved arrays by name.
            place: Where they come from, for the message.

        Raises:
            SnapshotError: It is missing, or a value is impossible.
        """
        saved = arrays.get(self.name)
        problem = self._problem(saved)
        if saved is None or problem is not None:
            raise SnapshotError(
                f"array {self.name!r} of {place}: {problem}. It is damaged or belongs to something "
                "else; use an older one."
            )
        return saved

    def _problem(self, saved: Array | None) -> str | None:
        """Return what is wrong with a saved array, or None."""
        if saved is None:
            return f"is missing; expected {_kind(self.array)}"
        if not isinstance(cast("object", saved), np.ndarray):
            return f"is a {type(saved).__name__}; expected {_kind(self.array)}"
        if saved.dtype != self.array.dtype or not self._has_room_for(saved.shape):
            limit = "" if self.max_length is None else f" with up to {self.max_length} rows"
            return f"is {_kind(saved)}; expected {_kind(self.array)}{limit}"
        problems = (part.problem(saved) for part in (*self.parts, *self._parts_for_all(saved)))
        return next((problem for problem in problems if problem is not None), None)

    def _has_room_for(self, shape: tuple[int, ...]) -> bool:
        if self.max_length is None:
            return shape == self.array.shape
        is_like = len(shape) == self.array.ndim and shape[1:] == self.array.shape[1:]
        return is_like and shape[0] <= self.max_length

    def _parts_for_all(self, saved: Array) -> Iterable[Part]:
        """Yield what holds for every array: finite floats, and bools that are 0 or 1."""
        if not all(part.is_finite for part in self.parts):
            return
        covered = {part.where for part in self.parts if isinstance(part.where, str)}
        for path, kind in _fields(saved.dtype):
            if kind == "f" and path not in covered:
                yield Part(path, path or ...)
            elif kind == "b":
                values = Part("", path).select(saved) if path else saved
                if (np.ascontiguousarray(values).view("u1") > 1).any():
                    yield Part(path, path or ..., low=2, high=1)


def require_parts(array_name: str, place: str, **numbers: tuple[Array, Any]) -> None:
    """Raise `SnapshotError` unless numbers that follow from saved ones are at most so large.

    Args:
        array_name: The array they follow from.
        place: Where it was saved.
        **numbers: By name the numbers, and how large they may be; none may be below 0.
    """
    for name, (values, high) in numbers.items():
        problem = Part(name.replace("_", " "), ..., 0.0, high).problem(values)
        if problem is not None:
            raise SnapshotError(
                f"array {array_name!r} of {place}: {problem}. It is damaged; use an older one."
            )


def copy_arrays(described: Iterable[SavedArray]) -> dict[str, Array]:
    """Return copies of arrays by name: what a snapshot keeps."""
    return {one.name: one.array.copy() for one in described}


def restore_arrays(
    described: Iterable[SavedArray], arrays: Mapping[str, Array], place: str = "the snapshot"
) -> None:
    """Write saved values into their arrays, in place, after all of them have been checked.

    Raises:
        SnapshotError: An array is missing or a value is impossible. Then nothing was written.
    """
    read = [(one.array, one.read(arrays, place)) for one in described]
    for array, saved in read:
        array[...] = saved


def _kind(array: Array) -> str:
    kind = "records" if array.dtype.names else array.dtype.name
    return f"{kind}{list(array.shape)}"


@cache
def _fields(dtype: np.dtype[Any], path: str = "") -> tuple[tuple[str, str], ...]:
    """Return the dotted paths of all plain fields and their kinds; of a plain type one, empty."""
    dtype = dtype.base
    if dtype.names is None:
        return ((path, dtype.kind),)
    inner = ((name, f"{path}.{name}" if path else name) for name in dtype.names)
    return tuple(field for name, place in inner for field in _fields(dtype[name], place))
