"""One worker as its parent sees it: a process, a pipe, and what has come through it.

`pool` has one per worker. Reading never waits for a worker that is gone.
"""

import pickle
import time
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any

from stepladder.envs.workers.main_program import Known, pickled_for
from stepladder.envs.workers.memory.messages import (
    COMMAND,
    MARK,
    OVERFLOW,
    Message,
    read_overflow,
)

LOOK_S = 0.2
"""How often one who waits for a worker looks whether it lives, where nothing tells."""


START_S = 60.0
"""Least time that a process may take to start, before it is asked for an env."""

END_S = 5.0
"""Longest wait for a process that was killed."""

NOT_STARTED = -1
"""Number of envs that were made by a worker that has not begun to make any."""


class WorkerGoneError(Exception):
    """A worker has died; caught within the vector env, which restarts it or tells the user."""

    def __init__(self, worker_index: int):
        super().__init__(worker_index)
        self.worker_index = worker_index


class WorkerHandle:
    """A worker process and the pipe to it; `starting` fills it, `end` empties it."""

    def __init__(self, worker_index: int):
        self.worker_index = worker_index
        self.process: Any = None
        """Not running before it is started, and None again when it has ended and is let go of."""
        self.pipe: Connection | None = None
        self.far_end: Connection | None = None
        """The worker's end of the pipe; open here only while the worker is started."""
        self.is_ready = False
        """Whether it has its envs and the memory; if Ctrl-C comes before, it never will."""
        self.is_cut_off = False
        """Whether something is half sent or half received; if it stays so, Ctrl-C has come."""
        self._exitcode: int | None = None
        self.known: Known = {}
        """What the worker has of the main program."""
        self._overflows: dict[int, list[Message]] = {}
        self._replies: dict[int, memoryview] = {}

    @property
    def pid(self) -> int | None:
        """Number of the process; None if it was not started, or has been let go of."""
        try:
            return None if self.process is None else self.process.pid
        except ValueError:
            # Ctrl-C has come right after it was closed.
            return None

    @property
    def exit_reason(self) -> str:
        """Say how a process that has died has ended."""
        code = self._exitcode if self.process is None else self.process.exitcode
        if code is None:
            return "it still runs"
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"

    def is_alive(self) -> bool:
        """Whether the process runs and can be talked to."""
        return not self.is_cut_off and self.pid is not None and self.process.is_alive()

    def wake(self) -> None:
        """Wake the worker."""
        self.send_bytes(b"")

    def send(self, value: Any) -> None:
        """Send something that belongs to no order."""
        self.send_bytes(pickled_for(value, self.known))

    def packed(self, order: int, value: Any) -> bytes:
        """Make what belongs to an order fit to be sent, lambdas included."""
        return MARK.pack(COMMAND, order) + pickled_for(value, self.known)

    def send_bytes(self, data: bytes) -> None:
        """Send what is packed already, or a bell."""
        self.is_cut_off = True
        try:
            self._connection.send_bytes(data)
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
        pipe = self._connection
        ready = connection.wait([pipe, self.process.sentinel], timeout=timeout_s)
        if pipe in ready:
            self.is_cut_off = True
            try:
                self._take_in(pipe.recv_bytes())
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

    @property
    def _connection(self) -> Connection:
        if self.pipe is None or self.process is None:
            raise WorkerGoneError(self.worker_index)
        return self.pipe

    def receive_first(self, timeout_s: float | None) -> bytes:
        """Return the first thing that a worker sends, before there are orders.

        Raises:
            TimeoutError: An env is not made in time; its argument is how many were made before, or
                `NOT_STARTED`.
            WorkerGoneError: The worker has died.
        """
        # How long a process takes to start is not the envs' matter.
        limit_s = None if timeout_s is None else max(timeout_s, START_S)
        num_made, since = NOT_STARTED, time.monotonic()
        pipe = self._connection
        while True:
            if pipe in connection.wait([pipe, self.process.sentinel], timeout=LOOK_S):
                try:
                    if data := pipe.recv_bytes():
                        return data
                except (EOFError, OSError) as error:
                    raise WorkerGoneError(self.worker_index) from error
                # A bell: it has started, or one more env is made.
                num_made, since, limit_s = num_made + 1, time.monotonic(), timeout_s
            elif not self.is_alive():
                raise WorkerGoneError(self.worker_index)
            elif limit_s is not None and time.monotonic() - since > limit_s:
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

    def is_running(self, after_s: float) -> bool:
        """Whether the process still runs after so many seconds, or was never started."""
        if self.pid is None:
            return True
        self.process.join(timeout=after_s)
        return self.process.is_alive()

    def kill(self) -> None:
        """End the process at once."""
        if self.pid is None:
            return
        self.process.kill()
        self.process.join(timeout=END_S)
        # Another thread may have reaped the process and not have stored its exit code yet.
        until = time.monotonic() + 1.0
        while self.process.exitcode is None and time.monotonic() < until:
            time.sleep(1e-3)

    def end(self) -> None:
        """End the process and let go of it and of its pipe; may be called again."""
        self.kill()
        for end in (self.pipe, self.far_end):
            if end is not None:
                end.close()
        if self.pid is not None:
            self._exitcode = self.process.exitcode
            if self._exitcode is None:
                # Not even a kill has ended it; it stays known to `multiprocessing`.
                return
            self.process.close()
        self.process = None
