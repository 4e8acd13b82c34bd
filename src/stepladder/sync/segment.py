"""One piece of memory that several processes see, and that no crash can leave behind.

Made by the host in `shared`, attached by its clients. On Linux the memory has no name in any file
system: it is reached through the host's own file descriptor, so the kernel frees it when the last
process that holds it is gone, in whatever order processes were killed, and it does not count
against a container's small ``/dev/shm``. Elsewhere it is a POSIX segment, which Python's resource
tracker removes.

A ticket says where the memory is. It carries a random number that the memory must carry too, so a
ticket whose host is gone never leads to the memory of another program.
"""

import io
import mmap
import os
import secrets
import stat
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.shared_memory import SharedMemory
from typing import Annotated, Any

import numpy as np

from stepladder.arrays import Words
from stepladder.errors import HostGoneError, StaleSegmentError
from stepladder.records import Fields, Shape
from stepladder.sync.process import is_alive

MAGIC = 0x53544550_4C414444
"""Marks a segment of ours."""


class Mark(Fields):
    """What a segment begins with: one cache line, by which its clients recognise it."""

    magic: int
    nonce: int
    reserved: Annotated[Words, Shape(6)]


@dataclass(frozen=True)
class Ticket:
    """Where a segment is and how to recognise it; small enough to send anywhere on the machine."""

    address: str
    """Path of a file descriptor, or the name of a POSIX segment."""

    num_words: int
    nonce: int
    host_pid: int


class Segment:
    """Shared words. The host creates, clients attach; the host closes."""

    def __init__(
        self,
        words: Words,
        ticket: Ticket,
        keeper: "SharedMemory | mmap.mmap",
        free: Callable[[], None] | None = None,
    ):
        self.words = words[Mark.num_words :]
        """The usable words, zero at first."""
        self.ticket = ticket
        self._keeper: SharedMemory | mmap.mmap | None = keeper
        # Also without a call of `close`: a descriptor that is forgotten keeps the memory for good.
        self._free = None if free is None else weakref.finalize(self, free)

    @classmethod
    def create(cls, num_words: int) -> "Segment":
        """Make a segment of so many usable words."""
        total = num_words + Mark.num_words
        nonce = secrets.randbits(62)
        file: io.FileIO | None = None
        try:
            if sys.platform == "linux":
                # A file rather than a number: it can be closed twice, and closes itself.
                file = io.FileIO(os.memfd_create("stepladder"), "r+")
                free = file.close
                file.truncate(8 * total)
                keeper: SharedMemory | mmap.mmap = mmap.mmap(file.fileno(), 8 * total)
                address = f"/proc/{os.getpid()}/fd/{file.fileno()}"
                words = np.frombuffer(keeper, dtype=np.int64)
            else:
                keeper = _Posix(name=f"stepladder-{nonce:x}", create=True, size=8 * total)
                free = partial(_unlink, keeper, os.getpid())
                address = keeper.name
                words = _words_of(keeper, total)
            mark = _mark_of(words)
            mark["magic"], mark["nonce"] = MAGIC, nonce
            return cls(words, Ticket(address, num_words, nonce, os.getpid()), keeper, free)
        except BaseException:
            if file is not None:
                file.close()
            raise

    @classmethod
    def attach(cls, ticket: Ticket) -> "Segment":
        """Attach to the segment that a ticket names.

        Raises:
            HostGoneError: The host that made it is gone.
            StaleSegmentError: What is there now is not that segment.
        """
        if not is_alive(ticket.host_pid):
            raise HostGoneError(
                f"the host process {ticket.host_pid} is gone, and its plan with it. "
                "Start training again; restore its last snapshot to continue."
            )
        # All envs of a process share one mapping: each would cost a file descriptor.
        known = _attached.get(ticket)
        if known is not None:
            return known
        size = 8 * (ticket.num_words + Mark.num_words)
        if ticket.address.startswith("/"):
            keeper: SharedMemory | mmap.mmap = _map_descriptor(ticket, size)
            words = np.frombuffer(keeper, dtype=np.int64)
        else:
            keeper = _open_posix(ticket, size)
            words = _words_of(keeper, size // 8)
        mark = _mark_of(words)
        if (mark["magic"], mark["nonce"]) != (MAGIC, ticket.nonce):
            # Views must be gone before the memory is closed.
            del words, mark
            raise _stale(ticket, "it carries another mark")
        attached = _attached[ticket] = cls(words, ticket, keeper)
        return attached

    def close(self) -> None:
        """Let go of the memory; it is freed when the last process has done so. Host only."""
        self.words = np.zeros(0, dtype=np.int64)
        self._keeper = None
        if self._free is not None:
            self._free()


_attached: "weakref.WeakValueDictionary[Ticket, Segment]" = weakref.WeakValueDictionary()


def _map_descriptor(ticket: Ticket, size: int) -> mmap.mmap:
    try:
        file = io.FileIO(ticket.address, "r+", opener=_open_without_waiting)
    except OSError as error:
        raise _stale(ticket, str(error)) from error
    with file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size != size:
            raise _stale(ticket, f"it holds {status.st_size} bytes instead of {size}")
        return mmap.mmap(file.fileno(), size)


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file; not to block on a pipe, should the descriptor have become one."""
    return os.open(path, flags | os.O_NONBLOCK)


def _open_posix(ticket: Ticket, size: int) -> SharedMemory:
    try:
        memory = _Posix(name=ticket.address)
    except FileNotFoundError as error:
        raise _stale(ticket, str(error)) from error
    if memory.size < size:
        raise _stale(ticket, f"it holds {memory.size} bytes instead of {size}")
    return memory


class _Posix(SharedMemory):
    """A segment with a name; the memory stays while a view of it is left."""

    def close(self) -> None:
        with suppress(BufferError):
            super().close()


def _unlink(memory: SharedMemory, host_pid: int) -> None:
    # A copy that a fork made must not take the name away from its owner.
    if os.getpid() == host_pid:
        memory.unlink()
        memory.close()


def _mark_of(words: Words) -> Any:
    return words[: Mark.num_words].view(Mark.dtype)[0]


def _words_of(memory: SharedMemory, num_words: int) -> Words:
    assert memory.buf is not None
    return np.frombuffer(memory.buf, dtype=np.int64, count=num_words)


def _stale(ticket: Ticket, what: str) -> StaleSegmentError:
    return StaleSegmentError(
        f"the plan at {ticket.address} is not the one this client was made for ({what}). "
        "Make new clients from the host that runs now."
    )
