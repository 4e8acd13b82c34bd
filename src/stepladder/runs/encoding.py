"""How numbers, names and records become bytes in the database, and the way back.

`run` checks values here before anything is stored, `writer` packs them in its thread, `reader`
unpacks them. Everything is little-endian and lightly compressed. A database may come from
anywhere, so unpacking is bounded, and nothing is a pickle.
"""

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from stepladder.errors import RunError
from stepladder.files import parsed_json
from stepladder.plans.record import RECORD_DTYPE, RecordArray
from stepladder.tasks.plain import checked_integer

MAX_STEP = 2**63 - 1
"""The largest integer that SQLite holds."""

TEXT_COLUMNS = ("task", "label")
"""The columns that every per-task snapshot has."""

REASON = "reason"
"""The one other column that is text; the rest are numbers."""

COMPRESSION = 1
"""Level for zlib: the fastest one already finds most of the redundancy."""

WORTH_COMPRESSING = 4096
"""Bytes. Compressing less gains little and delays the writer's thread."""

PLAIN, COMPRESSED = b"p", b"z"

USUAL_BYTES, MOST_RATIO = 256 * 2**20, 100
"""What unpacking one answer may take: so many bytes, and so many for each that is stored."""

STORED_RECORD = RECORD_DTYPE.newbyteorder("<")

TaskColumn: TypeAlias = list[str] | npt.NDArray[np.int64] | npt.NDArray[np.float64]
"""One column of a per-task snapshot: names, integers, or numbers."""


def checked_step(step: Any) -> int:
    """Return a step as a plain int that SQLite can hold."""
    return checked_integer(step, "step", 0, MAX_STEP, RunError)


def checked_name(name: Any, what: str) -> str:
    """Return a name that can be stored and read back unchanged."""
    if not isinstance(name, str) or not name:
        raise RunError(f"{what} must be a non-empty string; got {name!r}.")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise RunError(f"{what} {name!r} cannot be written as UTF-8. Rename it.") from error
    return name


def checked_number(name: Any, value: Any) -> float:
    """Return the value of a metric as a float; NaN and the infinities are numbers too."""
    try:
        # A string of digits or an array with one entry would convert, but is usually a mistake.
        if isinstance(value, str | bytes) or getattr(value, "ndim", 0) != 0:
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise RunError(
            f"metric {name!r} must be one number; got {value!r} of type {type(value).__name__}. "
            "Reduce it to a float first."
        ) from error


def readable_text(text: Any) -> str:
    """Return text for people as it can be stored; what UTF-8 cannot hold is written as escapes."""
    return str(text).encode("utf-8", "backslashreplace").decode()


def packed_data(data: Mapping[str, Any] | None) -> str | None:
    """Write the data of an event as JSON; numbers that are not finite become null."""
    if data is None:
        return None
    if not isinstance(data, Mapping):
        raise RunError(f"the data of an event must be a mapping; got {data!r}.")
    try:
        text = json.dumps(_plain(data, "data"), allow_nan=False)
        # What a reader would refuse is refused now.
        parsed_json(text)
    except RecursionError as error:
        raise RunError("the data of an event contains itself. Flatten it.") from error
    except ValueError as error:
        raise RunError(
            f"the data of an event cannot be read again: {error}. Flatten it."
        ) from error
    return text


def _plain(value: Any, path: str) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{path}.{index}") for index, item in enumerate(value)]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    raise RunError(
        f"{path} of an event has type {type(value).__name__}, which JSON cannot hold. Convert it "
        "to numbers, strings, lists or mappings."
    )


def checked_columns(columns: Mapping[str, Any]) -> dict[str, TaskColumn]:
    """Copy a per-task snapshot, so that the caller may change its arrays afterwards.

    Raises:
        RunError: A column is missing, of another length than the first, or neither text nor
            numbers.
    """
    missing = [name for name in TEXT_COLUMNS if name not in columns]
    if missing:
        raise RunError(
            f"a per-task snapshot needs the columns 'task' and 'label'; {missing[0]!r} is missing "
            f"from {sorted(map(str, columns))}."
        )
    checked: dict[str, TaskColumn] = {}
    for name, values in columns.items():
        checked_name(name, "the name of a column")
        is_text = name in (*TEXT_COLUMNS, REASON)
        checked[name] = _names(name, values) if is_text else _numbers(name, values)
    num_tasks = len(checked["task"])
    for name, column in checked.items():
        if len(column) != num_tasks:
            raise RunError(
                f"column {name!r} has {len(column)} rows, but there are {num_tasks} tasks. "
                "Give one row per task."
            )
    return checked


def _names(name: str, values: Any) -> list[str]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise RunError(f"column {name!r} must be a list of strings; got {values!r}.")
    for value in values:
        if not isinstance(value, str):
            raise RunError(f"column {name!r} must hold strings; found {value!r}.")
    return list(values)


def _numbers(name: str, values: Any) -> npt.NDArray[Any]:
    try:
        array = np.asarray(values)
        is_integer = array.dtype.kind in "bi" or (array.dtype.kind == "u" and array.itemsize < 8)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"its entries are {array.dtype}")
        numbers = np.array(array, dtype=np.int64 if is_integer else np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise RunError(f"column {name!r} must hold numbers ({error}).") from error
    if numbers.ndim != 1:
        raise RunError(
            f"column {name!r} has shape {list(numbers.shape)}; expected one number per task."
        )
    return numbers


def packed(data: bytes) -> bytes:
    """Compress bytes if they are many; the first byte says whether they were compressed."""
    if len(data) < WORTH_COMPRESSING:
        return PLAIN + data
    return COMPRESSED + zlib.compress(data, COMPRESSION)


def packed_numbers(array: npt.NDArray[Any]) -> tuple[str, bytes]:
    """Return the kind of a column of numbers, ``"i8"`` or ``"f8"``, and its bytes."""
    kind = "i8" if array.dtype.kind == "i" else "f8"
    return kind, packed(array.astype(f"<{kind}").tobytes())


def checked_records(records: Any) -> RecordArray:
    """Copy records, so that their owner may fill the array again."""
    if not isinstance(records, np.ndarray) or records.dtype != RECORD_DTYPE or records.ndim != 1:
        found = (
            f"{records.dtype}{list(records.shape)}"
            if isinstance(records, np.ndarray)
            else repr(records)
        )
        raise RunError(
            f"records must be a one-dimensional array of RECORD_DTYPE; got {found}. "
            "Pack single records with record_array."
        )
    return records.copy()


class Unpacking:
    """Undoes `packed` for all parts of one answer, within bounds.

    A few kilobytes can stand for gigabytes. One answer may take `USUAL_BYTES`, and beyond that
    `MOST_RATIO` times what is stored; records compress far less.
    """

    def __init__(self) -> None:
        self._left = USUAL_BYTES

    def content(self, data: Any) -> bytes:
        """Undo `packed`.

        Raises:
            ValueError: `packed` did not make these bytes, or they unpack to too many.
        """
        if not isinstance(data, bytes):
            raise ValueError(f"expected bytes; got {type(data).__name__}")
        mark, content = data[:1], data[1:]
        if mark == PLAIN:
            return content
        if mark != COMPRESSED:
            raise ValueError(f"unknown mark {mark!r}")
        self._left += MOST_RATIO * len(content)
        unpacker = zlib.decompressobj()
        unpacked = unpacker.decompress(content, max(1, self._left))
        if not unpacker.eof:
            is_cut = not unpacker.unconsumed_tail
            raise ValueError("it is cut off" if is_cut else "it unpacks to far too many bytes")
        self._left -= len(unpacked)
        return unpacked

    def numbers(self, kind: Any, data: Any) -> npt.NDArray[Any]:
        """Undo `packed_numbers`."""
        if kind not in ("i8", "f8"):
            raise ValueError(f"unknown kind of numbers {kind!r}")
        return np.frombuffer(self.content(data), dtype=f"<{kind}").astype(kind)

    def names(self, data: Any) -> list[str]:
        """Return a packed list of names."""
        names = parsed_json(self.content(data))
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("expected a list of names")
        return cast(list[str], names)

    def records(self, num_records: Any, data: Any) -> RecordArray:
        """Return packed records."""
        records = np.frombuffer(self.content(data), dtype=STORED_RECORD).astype(RECORD_DTYPE)
        if len(records) != num_records:
            raise ValueError(f"expected {num_records!r} records; found {len(records)}")
        return records
