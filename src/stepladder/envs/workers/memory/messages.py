"""Messages from a worker: infos and values without a fixed size, pickled.

`worker` writes them into shared memory, one per env as soon as it exists, so that those of a worker
that is killed can still be read. `worker_pool` reads them. A message that does not fit into the
room goes through the pipe.
"""

import pickle
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
import numpy.typing as npt

from stepladder.arrays import Array

INFO_MESSAGE, OBJECTS_MESSAGE = 0, 1
"""Kinds of message: an env's info; the leaves of its observation that are not arrays."""

WAKE = b""
"""Wakes a process that sleeps. All else that goes through a pipe begins with a `MESSAGE_MARK`."""

REPLY, OVERFLOW, COMMAND_DATA = 1, 2, 3
"""Marks: the reply to a command, or the exception of an env; a message that had no room; the part
of an order that is not in an array.
"""

MESSAGE_MARK = struct.Struct("<iq")
"""Mark and order: a reply that was not read is not mistaken for that of a later order."""

MESSAGE_HEAD = struct.Struct("<iii")
"""Kind, row, length."""


def fast_view(array: Array) -> Any:
    """Return a view that takes single numbers in a third of the time that the array needs."""
    return memoryview(array)  # type: ignore[arg-type]


class Message(NamedTuple):
    """A message as the parent reads it."""

    kind: int
    row: int
    value: Any


class MessageWriter:
    """Writes the messages of one lane.

    Args:
        lane: The lane's record (`LANE_DTYPE`); sizes are written to it.
        room: Where messages go.
        send: Sends bytes through the pipe.
    """

    def __init__(self, lane: np.void, room: npt.NDArray[np.uint8], send: Callable[[bytes], None]):
        self._order = 0
        self._lane = lane
        self._room = fast_view(room)
        self._send = send
        self._used = 0

    def begin(self, order: int) -> None:
        """Begin again with an empty room, for the next order."""
        self._order = order
        self._used = 0

    def write(self, kind: int, row: int, value: Any) -> None:
        """Write one message."""
        data = pickled(value)
        start = self._used + MESSAGE_HEAD.size
        if start + len(data) > len(self._room):
            self._lane["num_overflows"] += 1
            self._send(
                MESSAGE_MARK.pack(OVERFLOW, self._order)
                + MESSAGE_HEAD.pack(kind, row, len(data))
                + data
            )
            return
        MESSAGE_HEAD.pack_into(self._room, self._used, kind, row, len(data))
        self._room[start : start + len(data)] = data
        self._used = start + len(data)
        self._lane["message_bytes"] = self._used


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
        kind, row, length = MESSAGE_HEAD.unpack_from(view, start)
        start += MESSAGE_HEAD.size
        yield Message(kind, row, pickle.loads(view[start : start + length]))
        start += length


def read_overflow(body: memoryview) -> Message:
    """Read a message that came through the pipe, without its mark."""
    kind, row, _ = MESSAGE_HEAD.unpack_from(body)
    return Message(kind, row, pickle.loads(body[MESSAGE_HEAD.size :]))
