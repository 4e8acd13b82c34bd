"""Numbers, names and records again, of the bytes that a database holds, within bounds.

The way back of `encoding`, for `reader`. Nothing is pickle, and nothing is believed: a database may
come from anywhere.
"""

import zlib
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from stepladder.files import parsed_json
from stepladder.plans.record import RECORD_DTYPE, RecordArray
from stepladder.runs.encoding import COMPRESSED, PLAIN, STORED_RECORD

USUAL_BYTES, MOST_RATIO = 256 * 2**20, 100
"""What unpacking one answer may take: so many bytes, and so many for each that is stored."""

NUMBER_KINDS = ("i8", "f8")
"""What columns of numbers are made of: integers, or floats."""


class Unpacking:
    """Undoes `packed`, for all that one answer consists of, within bounds.

    A few kilobytes can stand for gigabytes. Of one answer, so much may come as the memory of any
    machine has to give, and beyond that a hundredfold of what is stored, which is far more than
    records give.
    """

    def __init__(self) -> None:
        self._left = USUAL_BYTES

    def content(self, data: Any) -> bytes:
        """Undo `packed`.

        Raises:
            ValueError: These bytes are none of ours, or stand for too many.
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
            raise ValueError("it is cut off" if is_cut else "it stands for far too many bytes")
        self._left -= len(unpacked)
        return unpacked

    def numbers(self, kind: Any, data: Any) -> npt.NDArray[Any]:
        """Undo `packed_numbers`."""
        if kind not in NUMBER_KINDS:
            raise ValueError(f"unknown kind of numbers {kind!r}")
        return np.frombuffer(self.content(data), dtype=f"<{kind}").astype(kind)

    def names(self, data: Any) -> list[str]:
        """Return the list of names that `names_as_json` and `packed` made bytes of."""
        names = parsed_json(self.content(data))
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("expected a list of names")
        return cast(list[str], names)

    def records(self, num_records: Any, data: Any) -> RecordArray:
        """Undo `packed_records`."""
        records = np.frombuffer(self.content(data), dtype=STORED_RECORD).astype(RECORD_DTYPE)
        if len(records) != num_records:
            raise ValueError(f"expected {num_records!r} records; found {len(records)}")
        return records
