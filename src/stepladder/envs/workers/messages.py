"""What a worker has to say beside numbers: infos and values without a fixed size, pickled.

Written by `worker` into its lane's room in shared memory, one message per env as soon as there is
one, so that those of a worker that is killed can still be read; read by `crew`. A message that does
not fit into the room goes through the pipe.
"""

import pickle
import struct
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle
import numpy as np
import numpy.typing as npt

from stepladder.envs.workers.control import MESSAGE_BYTES, NUM_OVERFLOWS
from stepladder.envs.workers.memory import fast_view

INFO, OBJECTS = 0, 1
"""Kinds of message: an env's info; the leaves of its observation that are no arrays."""

BELL = b""
"""What wakes one who sleeps; everything else that goes through a pipe has a mark and a number."""

REPLY, OVERFLOW, COMMAND = 1, 2, 3
"""Marks: the answer to a command, or what an env has raised; a message that had no room; what
belongs to an order and lies in no array.
"""

MARK = struct.Struct("<iq")
"""Mark, and the order it belongs to: what was never taken is not mistaken for something later."""

HEAD = struct.Struct("<iii")
"""Kind, row, length."""

Message = tuple[int, int, Any]
"""Kind, row, value."""


class Writer:
    """Leaves messages in one lane."""

    def __init__(
        self,
        words: Any,
        lane: int,
        room: npt.NDArray[np.uint8],
        send: Callable[[bytes], None],
    ):
        self._order = 0
        self._words = words
        self._lane = lane
        self._room = fast_view(room)
        self._send = send
        self._used = 0

    def begin(self, order: int) -> None:
        """Begin anew, for the next order."""
        self._order = order
        self._used = 0

    def write(self, kind: int, row: int, value: Any) -> None:
        """Leave one message."""
        data = pickled(value)
        start = self._used + HEAD.size
        if start + len(data) > len(self._room):
            self._words[self._lane + NUM_OVERFLOWS] += 1
            self._send(MARK.pack(OVERFLOW, self._order) + HEAD.pack(kind, row, len(data)) + data)
            return
        HEAD.pack_into(self._room, self._used, kind, row, len(data))
        self._room[start : start + len(data)] = data
        self._used = start + len(data)
        self._words[self._lane + MESSAGE_BYTES] = self._used


def pickled(value: Any) -> bytes:
    """Pickle a value, by name where that is possible.

    Not by value at once, as cloudpickle does for whatever stands in the main program: an enum or a
    class would arrive as a copy of itself, and be equal to nothing.
    """
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        # A lambda, or a class made in a function.
        return cloudpickle.dumps(value)


def read_messages(room: npt.NDArray[np.uint8], num_bytes: int) -> Iterator[Message]:
    """Read all messages of a lane."""
    view = fast_view(room)
    start = 0
    while start < num_bytes:
        kind, row, length = HEAD.unpack_from(view, start)
        start += HEAD.size
        yield kind, row, pickle.loads(view[start : start + length])
        start += length


def read_overflow(body: memoryview) -> Message:
    """Read a message that came through the pipe, without its mark."""
    kind, row, _ = HEAD.unpack_from(body)
    return kind, row, pickle.loads(body[HEAD.size :])
