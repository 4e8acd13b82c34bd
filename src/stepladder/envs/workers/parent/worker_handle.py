"""One worker as its parent sees it: a process, a pipe, and what has come through it.

`worker_pool` has one per worker. Starting is safe against Ctrl-C and other threads, and reading
never waits for a worker that has ended. Errors about one worker are made here.
"""

import os
import pickle
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import connection, forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any

from stepladder.envs.workers.child.worker import Assignment, main
from stepladder.envs.workers.env_functions import EnvDescription
from stepladder.envs.workers.faults import Fault, unpack_fault
from stepladder.envs.workers.main_program import (
    Known,
    known_to_worker,
    main_can_start,
    pickled_for,
)
from stepladder.envs.workers.memory.messages import (
    COMMAND_DATA,
    MESSAGE_MARK,
    OVERFLOW,
    WAKE,
    Message,
    read_overflow,
)
from stepladder.envs.workers.parent.timeouts import hung
from stepladder.errors import EnvTimeoutError, WorkerDiedError
from stepladder.forking import WORKER_START

WORKER_CHECK_S = 0.2
"""Interval of checks whether a worker that is waited for still runs."""

START_S = 60.0
"""Least time that a process may take to start, before its first env is made."""

KILLED_WAIT_S = 5.0
"""Longest wait for a process that was killed."""

NOT_STARTED = -1
"""Number of envs that were made by a worker that has not begun to make any."""


class WorkerGoneError(Exception):
    """A worker has died; caught within the vector env, which restarts it or raises."""

    def __init__(self, worker_index: int):
        super().__init__(worker_index)
        self.worker_index = worker_index


class WorkerHandle:
    """A worker process and the pipe to it; `start` makes both, `end` releases them."""

    def __init__(self, worker_index: int):
        self.worker_index = worker_index
        self.process: Any = None
        """Not running before it is started, and None again when it has ended and is released."""
        self.pipe: Connection | None = None
        self.far_end: Connection | None = None
        """The worker's end of the pipe; open here only while the worker is started."""
        self.is_ready = False
        """Whether it has its envs and the memory; if Ctrl-C comes before, it never will."""
        self.is_cut_off = False
        """Whether something is half sent or half received; if it stays so, Ctrl-C has come."""
        self._exitcode: int | None = None
        self._known: Known = {}
        """What the worker has of the main program."""
        self._overflows: dict[int, list[Message]] = {}
        self._replies: dict[int, memoryview] = {}

    @property
    def pid(self) -> int | None:
        """Number of the process; None if it was not started, or has been released."""
        try:
            return None if self.process is None else self.process.pid
        except ValueError:
            # Ctrl-C has come right after it was closed.
            return None

    @property
    def exit_reason(self) -> str:
        """How the process has ended."""
        code = self._exitcode if self.process is None else self.process.exitcode
        if code is None:
            return "it still runs"
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"

    def is_alive(self) -> bool:
        """Whether the process runs and messages can be exchanged with it."""
        return not self.is_cut_off and self.pid is not None and self.process.is_alive()

    # Starting.

    def start(self, context: BaseContext, assignment: Assignment, timeout_s: float | None) -> None:
        """Start the process.

        The handle owns each part before the next one is made, so that `end` ends all of it,
        wherever this was interrupted.
        """
        with WORKER_START:
            if context.get_start_method() == "forkserver":
                # Before Ctrl-C is held back: the server is shared, and would do so for good.
                forkserver.ensure_running()
            self._known = known_to_worker(context.get_start_method())
            with _sigint_held_back(), main_can_start():
                self.pipe, self.far_end = context.Pipe()
                if timeout_s is not None:
                    _limit_waiting(self.pipe, timeout_s)
                make: Any = context.Process  # type: ignore[attr-defined]
                name = f"stepladder-worker-{self.worker_index}"
                self.process = make(target=main, args=(assignment, self.far_end), name=name)
                self.process.start()
                # Before the next one is forked, which would otherwise keep this end open.
                self.far_end.close()

    def await_envs(self, rows: Sequence[int], timeout_s: float | None) -> list[EnvDescription]:
        """Wait until a new worker has made its envs; return their descriptions.

        Raises:
            WorkerGoneError: It has died meanwhile.
            WorkerDiedError: It did not start.
            EnvTimeoutError: An env is not made in time.
            Exception: Whatever an env has raised.
        """
        # The time that a process takes to start does not depend on the envs.
        limit_s = None if timeout_s is None else max(timeout_s, START_S)
        num_made, since, data = NOT_STARTED, time.monotonic(), WAKE
        pipe = self._connection
        while data == WAKE:
            if pipe in connection.wait([pipe, self.process.sentinel], timeout=WORKER_CHECK_S):
                try:
                    data = pipe.recv_bytes()
                except (EOFError, OSError) as error:
                    raise WorkerGoneError(self.worker_index) from error
                # Woken: it has started, or one more env is made.
                num_made, since, limit_s = num_made + 1, time.monotonic(), timeout_s
            elif not self.is_alive():
                raise WorkerGoneError(self.worker_index)
            elif limit_s is not None and time.monotonic() - since > limit_s:
                if num_made == NOT_STARTED:
                    raise self._kill_at_start(rows, limit_s)
                raise self.kill_hung(rows[min(num_made, len(rows) - 1)], limit_s)
        answer = pickle.loads(data)
        if isinstance(answer, Fault):
            raise unpack_fault(answer, self.pid)
        return answer

    # Sending and receiving.

    def send(self, value: Any) -> None:
        """Send something that belongs to no order."""
        self.send_bytes(pickled_for(value, self._known))

    def packed(self, order: int, value: Any) -> bytes:
        """Pickle what belongs to an order, lambdas included."""
        return MESSAGE_MARK.pack(COMMAND_DATA, order) + pickled_for(value, self._known)

    def send_bytes(self, data: bytes) -> None:
        """Send what is packed already; `WAKE` wakes the worker."""
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
        """Wait at most so long for a message, and store it; return whether one came.

        Raises:
            WorkerGoneError: The worker has died and left nothing unread.
        """
        pipe = self._connection
        ready = connection.wait([pipe, self.process.sentinel], timeout=timeout_s)
        if pipe in ready:
            self.is_cut_off = True
            try:
                self._store(pipe.recv_bytes())
            # The latter also where it was killed in the middle of a message.
            except (EOFError, OSError) as error:
                self.is_cut_off = False
                raise WorkerGoneError(self.worker_index) from error
            self.is_cut_off = False
            return True
        if ready or not self.is_alive():
            raise WorkerGoneError(self.worker_index)
        return False

    def _store(self, data: bytes) -> None:
        if data == WAKE:
            return
        mark, order = MESSAGE_MARK.unpack_from(data)
        body = memoryview(data)[MESSAGE_MARK.size :]
        if mark == OVERFLOW:
            self._overflows.setdefault(order, []).append(read_overflow(body))
        else:
            self._replies[order] = body

    @property
    def _connection(self) -> Connection:
        if self.pipe is None or self.process is None:
            raise WorkerGoneError(self.worker_index)
        return self.pipe

    def has_replied(self, order: int) -> bool:
        """Whether the answer to an order has come."""
        return order in self._replies

    def take_reply(self, order: int) -> Any:
        """Return the answer to an order, which has come."""
        return pickle.loads(self._replies.pop(order))

    def overflows(self, order: int, number: int) -> list[Message]:
        """Return so many messages of an order that had no room; or those of a dead worker."""
        while len(self._overflows.get(order, ())) < number:
            try:
                self.pump(WORKER_CHECK_S)
            except WorkerGoneError:
                break
        return self._overflows.pop(order, [])

    def forget(self) -> None:
        """Drop all messages that were not used."""
        self._overflows.clear()
        self._replies.clear()

    # The end.

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
        self.process.join(timeout=KILLED_WAIT_S)
        # Another thread may have reaped the process and not have stored its exit code yet.
        until = time.monotonic() + 1.0
        while self.process.exitcode is None and time.monotonic() < until:
            time.sleep(1e-3)

    def end(self) -> None:
        """End the process and release it and its pipe; may be called again."""
        self.kill()
        for end in (self.pipe, self.far_end):
            if end is not None:
                end.close()
        if self.pid is not None:
            self._exitcode = self.process.exitcode
            if self._exitcode is None:
                # Not even a kill has ended it; `multiprocessing` still lists it.
                return
            self.process.close()
        self.process = None

    def _kill_at_start(self, rows: Sequence[int], timeout_s: float) -> WorkerDiedError:
        """Kill a worker that does not start; return the error to raise."""
        pid = self.pid
        self.kill()
        error = WorkerDiedError(
            f"worker {self.worker_index} (process {pid}) did not start within {timeout_s:g} s and "
            f"was killed; its envs {', '.join(map(str, rows))} were not called. Check its error "
            "output and the load of the machine, or allow more time with timeout_s=…."
        )
        error.env_indices = list(rows)
        return error

    def died_at_start(self, rows: Sequence[int]) -> WorkerDiedError:
        """Return the error for a worker that has died before it had made its envs."""
        self.kill()
        return WorkerDiedError(
            f"worker {self.worker_index} ended while it made its envs {list(rows)} "
            f"({self.exit_reason}); its error output says why. A worker started with 'spawn' or "
            "'forkserver' imports the main program: put what the program runs under "
            "`if __name__ == '__main__':`."
        )

    def kill_unresponsive(self, rows: Sequence[int], timeout_s: float) -> EnvTimeoutError:
        """Kill a worker that does not begin its order; return the error to raise."""
        pid = self.pid
        self.kill()
        return EnvTimeoutError(
            f"worker {self.worker_index} (process {pid}, now killed) did not begin its order "
            f"within {timeout_s:g} s; its envs {', '.join(map(str, rows))} were not called. Check "
            "whether the process was stopped or the machine is overloaded, or allow more time with "
            "timeout_s=…."
        )

    def kill_hung(self, row: int, timeout_s: float) -> EnvTimeoutError:
        """Kill a worker whose env hangs; return the error to raise."""
        where = f"worker process {self.pid} (which has been killed)"
        self.kill()
        return hung(row, timeout_s, where)


def _limit_waiting(pipe: Connection, timeout_s: float) -> None:
    """Limit how long a transfer waits for a worker that has stopped in the middle of one."""
    limit = struct.pack("@ll", int(timeout_s), int(timeout_s % 1 * 1e6) or 1)
    with socket.socket(fileno=os.dup(pipe.fileno())) as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)


@contextmanager
def _sigint_held_back() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block.

    The signal is blocked for the process that is started, which begins with it blocked and then
    ignores it. For this process that is not enough, because the system gives the signal to another
    thread and Python handles it in the main thread all the same; so the handler waits as well.
    """
    arrived: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if is_main else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        if handler is not None:
            signal.signal(signal.SIGINT, lambda number, frame: arrived.append(number))
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
        if arrived:
            signal.raise_signal(signal.SIGINT)
