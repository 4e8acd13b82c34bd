"""Records: named numbers that compiled code and Python share, each declared once.

Beside `compiled`, below `plans`, `curricula`, `sync` and `simulator`. A class that derives from
`Fields` declares one record: its NumPy layout and the values that a saved one may have follow from
its annotations. A state is a named tuple of arrays of such records. Kernels read
``state.tasks[slot].num_plays``; saving, checking and restoring need no other description.

    class TaskProgress(Fields):
        num_plays: Count
        fast: Share

    class State(NamedTuple):
        totals: Records[Totals]
        tasks: Records[TaskProgress]

    state = zeros(State, tasks=num_slots)
"""

import math
import types
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Words
from stepladder.saving.saved_array import MAX_COUNT, Part, SavedArray


@dataclass(frozen=True)
class Limits:
    """Smallest and largest value of a field, both allowed."""

    low: float
    high: float


@dataclass(frozen=True)
class Shape:
    """Marks a field that is an array of fixed size."""

    sizes: tuple[int, ...]

    def __init__(self, *sizes: int):
        object.__setattr__(self, "sizes", sizes)


Count: TypeAlias = Annotated[int, Limits(0, MAX_COUNT)]
"""A number of something, or an index."""

Flag: TypeAlias = Annotated[int, Limits(0, 1)]
"""Whether something holds: 1 or 0."""

Share: TypeAlias = Annotated[float, Limits(0.0, 1.0 + 1e-9)]
"""A number from 0 to 1; a rounding error above is allowed."""

Record = TypeVar("Record", covariant=True)
AnyState = TypeVar("AnyState", bound=tuple[Any, ...])

if TYPE_CHECKING:

    class Records(Protocol[Record]):
        """A NumPy array of records: one by index, a column by name."""

        @property
        def dtype(self) -> np.dtype[Any]:  # noqa: D102, NumPy's own; likewise below
            ...

        @overload
        def __getitem__(self, key: int | np.integer[Any], /) -> Record: ...
        @overload
        def __getitem__(self, key: str, /) -> npt.NDArray[Any]: ...
        @overload
        def __getitem__(self, key: slice | Words, /) -> "Records[Record]": ...
        def __setitem__(self, key: Any, value: Any, /) -> None: ...
        def __len__(self) -> int: ...
        def tolist(self) -> Any: ...  # noqa: D102
        def copy(self) -> Any: ...  # noqa: D102

else:

    class Records:
        """An annotation: a NumPy array of records of one class."""

        def __class_getitem__(cls, record: Any) -> Any:
            return Annotated[np.ndarray, record]


class Fields:
    """Base of every record. Annotations of a subclass are its fields, in their order."""

    dtype: ClassVar[np.dtype[Any]]
    num_words: ClassVar[int]
    """Size in 64-bit words."""

    def __init_subclass__(cls) -> None:
        hints = {
            name: hint for name, hint in _hints(cls).items() if get_origin(hint) is not ClassVar
        }
        cls.dtype = np.dtype([(name, *_kind(hint)) for name, hint in hints.items()], align=True)
        cls.num_words = cls.dtype.itemsize // 8

    @classmethod
    def zeros(cls, num_records: int = 1) -> "Records[Self]":
        """Return so many records of zeros."""
        return cast("Records[Self]", np.zeros(num_records, cls.dtype))

    @classmethod
    def parts(cls, limits: dict[str, tuple[Any, Any]] | None = None) -> tuple[Part, ...]:
        """Describe the values that saved records may have.

        Args:
            limits: Smallest and largest value of single fields by dotted path, in place of those
                that the class declares.
        """
        return tuple(_parts(cls, limits)) if limits else _declared_parts(cls)


def zeros(state: type[AnyState], **shapes: int | tuple[int, ...]) -> AnyState:
    """Return a state of zeros.

    Args:
        state: Its class.
        **shapes: Length or shape of each array; those that are not named have one record.
    """
    arrays = {
        name: np.zeros(shapes.pop(name, 1), _kind(hint)[0]) for name, hint in _hints(state).items()
    }
    if shapes:
        raise TypeError(f"{state.__name__} has no array {next(iter(shapes))!r}")
    return state(**arrays)


def saved_arrays(state: Any, **limits: tuple[Any, Any]) -> list[SavedArray]:
    """Describe every array of a state as it is saved.

    Args:
        state: The arrays themselves.
        **limits: Smallest and largest value by path, such as ``tasks.bin``; they replace what the
            classes declare. Give them as ``**{"tasks.bin": (0, 9)}``.
    """
    described: list[SavedArray] = []
    hints = _hints(type(state))
    for name, array in state._asdict().items():
        own = {
            path.removeprefix(f"{name}."): pair
            for path, pair in limits.items()
            if path.startswith(f"{name}.") or path == name
        }
        record = _record_of_hint(hints[name])
        if record is not None:
            parts = record.parts(own)
        else:
            pair = own.get(name) or _limits_of(hints[name])
            parts = () if pair is None else (_part(name, ..., array.dtype, pair),)
        described.append(SavedArray(name, array, parts))
    return described


def settings_record(config: Any, **derived: float) -> "Records[Any]":
    """Return the numbers of a config as one record that kernels read by the names of its fields.

    A nested config becomes a nested record with a field ``is_set``; None is one of zeros. A number
    that may be None is NaN then. Texts and tuples are left out: say what a kernel needs of them.

    Args:
        config: A dataclass.
        **derived: Further numbers; they replace fields of the same name.
    """
    dtype, values = _settings(type(config), config)
    for name, value in derived.items():
        dtype[name], values[name] = np.asarray(value).dtype, value
    record = np.array([tuple(values.values())], np.dtype(list(dtype.items()), align=True))
    return cast("Records[Any]", record)


def _settings(kind: Any, config: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the types and the values of a config's numbers by field."""
    dtype: dict[str, Any] = {}
    values: dict[str, Any] = {}
    hints = _plain_hints(kind)
    for field in fields(kind):
        hint, value = hints[field.name], getattr(config, field.name, None)
        options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        (plain,) = [option for option in options if option is not types.NoneType]
        if plain in (int, float, bool):
            can_be_none = types.NoneType in options
            dtype[field.name] = np.dtype(float if can_be_none else plain)
            values[field.name] = math.nan if value is None else value
        elif is_dataclass(plain) and isinstance(plain, type):
            inner, inner_values = _settings(plain, value)
            inner["is_set"], inner_values["is_set"] = np.dtype(bool), True
            dtype[field.name] = np.dtype(list(inner.items()), align=True)
            unset = (0,) * len(inner)
            values[field.name] = unset if value is None else tuple(inner_values.values())
    return dtype, values


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    """Return the annotations of a class; asked for whenever a state is made or saved."""
    return get_type_hints(kind, include_extras=True)


@cache
def _plain_hints(kind: type[Any]) -> dict[str, Any]:
    """Return the annotations of a config; asked for whenever a curriculum is made."""
    return get_type_hints(kind)


def _kind(hint: Any) -> tuple[Any, ...]:
    """Return the NumPy type of a field, and its shape if it has one."""
    base, marks = _unwrapped(hint)
    sizes = [mark.sizes for mark in marks if isinstance(mark, Shape)]
    record = _record_of_hint(hint)
    if record is not None:
        return (record.dtype, *sizes)
    return (_scalar(base), *sizes)


def _scalar(hint: Any) -> np.dtype[Any] | None:
    """Return the type of a number, or of the numbers in an array: ``npt.NDArray[np.int64]``, say.

    Found at any depth, because what `NDArray` stands for differs between versions of NumPy.
    """
    if isinstance(hint, type) and issubclass(hint, int | float | np.generic):
        return np.dtype(hint)
    return next(filter(None, map(_scalar, get_args(hint))), None)


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())


def _record_of_hint(hint: Any) -> type[Fields] | None:
    base, marks = _unwrapped(hint)
    for one in (base, *marks):
        if isinstance(one, type) and issubclass(one, Fields):
            return one
    return None


def _limits_of(hint: Any) -> tuple[float, float] | None:
    found = [mark for mark in _unwrapped(hint)[1] if isinstance(mark, Limits)]
    return (found[-1].low, found[-1].high) if found else None


def _part(name: str, where: Any, dtype: np.dtype[Any], limits: tuple[Any, Any]) -> Part:
    return Part(name, where, *limits, whole=dtype.base.kind in "iu")


@cache
def _declared_parts(record: type[Fields]) -> tuple[Part, ...]:
    return tuple(_parts(record, {}))


def _parts(record: type[Fields], limits: dict[str, tuple[Any, Any]]) -> Iterator[Part]:
    for path, dtype, declared in _leaves(record):
        pair = limits.get(path) or declared
        if pair is not None:
            yield _part(path.replace("_", " "), path, dtype, pair)


@cache
def _leaves(record: type[Fields]) -> tuple[tuple[str, np.dtype[Any], Any], ...]:
    """Return the path, the type and the declared limits of every field, those within others too."""
    leaves: list[tuple[str, np.dtype[Any], Any]] = []
    for name, hint in _hints(record).items():
        if get_origin(hint) is ClassVar:
            continue
        inner = _record_of_hint(hint)
        if inner is None:
            leaves.append((name, record.dtype[name], _limits_of(hint)))
        else:
            leaves += [(f"{name}.{path}", dtype, pair) for path, dtype, pair in _leaves(inner)]
    return tuple(leaves)
