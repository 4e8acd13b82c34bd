"""One worker as its parent sees it: a process, a pipe, and what has come through it.

`crew` has one per worker. Reading never waits for a worker that is gone.
"""

import pickle
import time
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import cloudpickle

from stepladder.envs.workers.messages import OVERFLOW, REPLY, Message, read_overflow

LOOK_S = 0.2
"""How often one who waits for a worker looks whether it lives, where nothing tells."""


class WorkerGoneError(Exception):
    """A worker has died; caught within the vector env, which restarts it or tells the user."""

    def __init__(self, worker_index: int):
        super().__init__(worker_index)
        self.worker_index = worker_index


class Hand:
    """A worker process and the pipe to it."""

    def __init__(self, worker_index: int, process: BaseProcess, pipe: Connection):
        self.worker_index = worker_index
        self.process = process
        self.overflows: list[Message] = []
        self._pipe = pipe
        self._replies: list[bytes] = []

    @property
    def exit_reason(self) -> str:
        """Say how a process that has died has ended."""
        code = self.process.exitcode
        if code is None:
            return "it still runs"
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process.is_alive()

    def ring(self) -> None:
        """Wake the worker."""
        self._send(b"")

    def send(self, value: Any) -> None:
        """Send a command, or what belongs to an order."""
        self._send(cloudpickle.dumps(value))

    def _send(self, data: bytes) -> None:
        try:
            self._pipe.send_bytes(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise WorkerGoneError(self.worker_index) from error

    def pump(self, timeout_s: float) -> bool:
        """Wait a while for something to come, and take it in; return whether something came.

        Raises:
            WorkerGoneError: The worker has died and left nothing unread.
        """
        ready = connection.wait([self._pipe, self.process.sentinel], timeout=timeout_s)
        if self._pipe in ready:
            try:
                self._take_in(self._pipe.recv_bytes())
            except (EOFError, ConnectionResetError) as error:
                raise WorkerGoneError(self.worker_index) from error
            return True
        if ready or not self.is_alive():
            raise WorkerGoneError(self.worker_index)
        return False

    def _take_in(self, data: bytes) -> None:
        if data[:1] == OVERFLOW:
            self.overflows.append(read_overflow(data))
        elif data:
            self._replies.append(data)

    def receive(self, timeout_s: float | None) -> bytes:
        """Return the next thing that is neither a bell nor a message without room.

        Raises:
            TimeoutError: Nothing came in time.
            WorkerGoneError: The worker has died.
        """
        began = time.monotonic()
        while not self._replies:
            has_come = self.pump(LOOK_S)
            is_late = timeout_s is not None and time.monotonic() - began > timeout_s
            if is_late and not has_come:
                raise TimeoutError
        return self._replies.pop(0)

    def receive_reply(self, timeout_s: float | None) -> Any:
        """Return the answer to a command."""
        data = self.receive(timeout_s)
        assert data[:1] == REPLY
        return pickle.loads(memoryview(data)[1:])

    def forget(self) -> None:
        """Drop whatever has come and not been used."""
        self.overflows.clear()
        self._replies.clear()

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join(timeout=5.0)

    def let_go(self) -> None:
        """Close the pipe of a process that has ended."""
        self._pipe.close()
