"""One worker as its parent sees it: a process, a pipe, and what has come through it.

`crew` has one per worker. Reading never waits for a worker that is gone.
"""

import pickle
import time
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from stepladder.envs.workers.mains import Known, pickled_for
from stepladder.envs.workers.messages import (
    COMMAND,
    MARK,
    OVERFLOW,
    Message,
    read_overflow,
)

LOOK_S = 0.2
"""How often one who waits for a worker looks whether it lives, where nothing tells."""


class WorkerGoneError(Exception):
    """A worker has died; caught within the vector env, which restarts it or tells the user."""

    def __init__(self, worker_index: int):
        super().__init__(worker_index)
        self.worker_index = worker_index


class Hand:
    """A worker process and the pipe to it."""

    def __init__(self, worker_index: int, process: BaseProcess, pipe: Connection, known: Known):
        self.worker_index = worker_index
        self.process = process
        self.is_ready = False
        """Whether it has its envs and the memory; if Ctrl-C comes before, it never will."""
        self.is_cut_off = False
        """Whether something is half sent or half received; if it stays so, Ctrl-C has come."""
        self._pipe = pipe
        self._known = known
        self._overflows: dict[int, list[Message]] = {}
        self._replies: dict[int, memoryview] = {}

    @property
    def exit_reason(self) -> str:
        """Say how a process that has died has ended."""
        code = self.process.exitcode
        if code is None:
            return "it still runs"
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"

    def is_alive(self) -> bool:
        """Whether the process runs and can be talked to."""
        return not self.is_cut_off and self.process.is_alive()

    def ring(self) -> None:
        """Wake the worker."""
        self.send_bytes(b"")

    def send(self, value: Any) -> None:
        """Send something that belongs to no order."""
        self.send_bytes(pickled_for(value, self._known))

    def packed(self, order: int, value: Any) -> bytes:
        """Make what belongs to an order fit to be sent, lambdas included."""
        return MARK.pack(COMMAND, order) + pickled_for(value, self._known)

    def send_bytes(self, data: bytes) -> None:
        """Send what is packed already, or a bell."""
        self.is_cut_off = True
        try:
            self._pipe.send_bytes(data)
        except BlockingIOError as error:
            # It has read nothing for as long as an env may take: it hangs.
            self.kill()
            raise WorkerGoneError(self.worker_index) from error
        except (BrokenPipeError, ConnectionResetError) as error:
            self.is_cut_off = False
            raise WorkerGoneError(self.worker_index) from error
        self.is_cut_off = False

    def pump(self, timeout_s: float) -> bool:
        """Wait a while for something to come, and take it in; return whether something came.

        Raises:
            WorkerGoneError: The worker has died and left nothing unread.
        """
        ready = connection.wait([self._pipe, self.process.sentinel], timeout=timeout_s)
        if self._pipe in ready:
            self.is_cut_off = True
            try:
                self._take_in(self._pipe.recv_bytes())
            # The latter also where it was killed in the middle of a message.
            except (EOFError, OSError) as error:
                self.is_cut_off = False
                raise WorkerGoneError(self.worker_index) from error
            self.is_cut_off = False
            return True
        if ready or not self.is_alive():
            raise WorkerGoneError(self.worker_index)
        return False

    def _take_in(self, data: bytes) -> None:
        if not data:
            return
        mark, order = MARK.unpack_from(data)
        body = memoryview(data)[MARK.size :]
        if mark == OVERFLOW:
            self._overflows.setdefault(order, []).append(read_overflow(body))
        else:
            self._replies[order] = body

    def receive_first(self, timeout_s: float | None) -> bytes:
        """Return the first thing that a worker sends, before there are orders.

        Raises:
            TimeoutError: An env is not made in time; its argument is how many were made before.
            WorkerGoneError: The worker has died.
        """
        num_made, since = 0, time.monotonic()
        while True:
            if self._pipe in connection.wait([self._pipe, self.process.sentinel], timeout=LOOK_S):
                try:
                    if data := self._pipe.recv_bytes():
                        return data
                except (EOFError, OSError) as error:
                    raise WorkerGoneError(self.worker_index) from error
                # A bell: one more env is made.
                num_made, since = num_made + 1, time.monotonic()
            elif not self.is_alive():
                raise WorkerGoneError(self.worker_index)
            elif timeout_s is not None and time.monotonic() - since > timeout_s:
                raise TimeoutError(num_made)

    def has_replied(self, order: int) -> bool:
        """Whether the answer to an order has come."""
        return order in self._replies

    def take_reply(self, order: int) -> Any:
        """Return the answer to an order, which has come."""
        return pickle.loads(self._replies.pop(order))

    def overflows(self, order: int, number: int) -> list[Message]:
        """Return so many messages of an order that had no room; or what a dead worker has sent."""
        while len(self._overflows.get(order, ())) < number:
            try:
                self.pump(LOOK_S)
            except WorkerGoneError:
                break
        return self._overflows.pop(order, [])

    def forget(self) -> None:
        """Drop whatever has come and not been used."""
        self._overflows.clear()
        self._replies.clear()

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join(timeout=5.0)

    def let_go(self) -> None:
        """Close the pipe of a process that has ended."""
        self._pipe.close()
