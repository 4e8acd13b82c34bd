"""How a worker process is started, so that neither Ctrl-C nor another thread finds it half made.

Also the errors for a worker that does not start, or hangs. Used by `worker_pool`, at the beginning
and for every worker that replaces one that has died.
"""

import os
import pickle
import signal
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any

from stepladder.envs.workers.child.worker import Assignment, main
from stepladder.envs.workers.env_functions import EnvDescription
from stepladder.envs.workers.faults import Fault, unpack_fault
from stepladder.envs.workers.main_program import known_to_worker, main_can_start
from stepladder.envs.workers.parent.timeouts import hung
from stepladder.envs.workers.parent.worker_handle import NOT_STARTED, START_S, WorkerHandle
from stepladder.errors import EnvTimeoutError, WorkerDiedError
from stepladder.forking import WORKER_START


def start_worker(
    handle: WorkerHandle, context: BaseContext, assignment: Assignment, timeout_s: float | None
) -> None:
    """Start the process of a handle.

    The handle owns each part before the next one is made, so that ending the handle ends all of it,
    wherever this was interrupted.
    """
    with WORKER_START:
        if context.get_start_method() == "forkserver":
            # Before Ctrl-C is held back: the server is everybody's, and would do so for good.
            forkserver.ensure_running()
        handle.known = known_to_worker(context.get_start_method())
        with _sigint_held_back(), main_can_start():
            handle.pipe, handle.far_end = context.Pipe()
            if timeout_s is not None:
                _limit_waiting(handle.pipe, timeout_s)
            make: Any = context.Process  # type: ignore[attr-defined]
            name = f"stepladder-worker-{assignment.worker_index}"
            handle.process = make(target=main, args=(assignment, handle.far_end), name=name)
            handle.process.start()
            # Before the next one is forked, which would otherwise keep this end open.
            handle.far_end.close()


def await_envs(
    handle: WorkerHandle, rows: Sequence[int], timeout_s: float | None
) -> list[EnvDescription]:
    """Return what a new worker has found its envs to be; waits until they are made.

    Raises:
        WorkerGoneError: It has died over it.
        WorkerDiedError: It did not start.
        EnvTimeoutError: An env is not made in time.
        Exception: Whatever an env has raised.
    """
    try:
        answer = pickle.loads(handle.receive_first(timeout_s))
    except TimeoutError as error:
        assert timeout_s is not None
        if error.args[0] == NOT_STARTED:
            raise _killed_at_start(handle, rows, max(timeout_s, START_S)) from None
        raise killed_hung(handle, rows[error.args[0]], timeout_s) from None
    if isinstance(answer, Fault):
        raise unpack_fault(answer, handle.pid)
    return answer


def _killed_at_start(
    handle: WorkerHandle, rows: Sequence[int], timeout_s: float
) -> WorkerDiedError:
    """Kill a worker that does not come up; return what to say about it."""
    pid = handle.pid
    handle.kill()
    error = WorkerDiedError(
        f"worker {handle.worker_index} (process {pid}) did not start within {timeout_s:g} s and "
        f"was killed; its envs {_listed(rows)} were not called. Check its error output and the "
        "load of the machine, or allow more time with timeout_s=…."
    )
    error.env_indices = list(rows)
    return error


def died_at_start(handle: WorkerHandle, rows: Sequence[int]) -> WorkerDiedError:
    """Say that a worker has died before it had made its envs."""
    handle.kill()
    return WorkerDiedError(
        f"worker {handle.worker_index} ended while it made its envs {list(rows)} "
        f"({handle.exit_reason}); its error output says why. A worker started with 'spawn' or "
        "'forkserver' imports the main program: put what the program runs under "
        "`if __name__ == '__main__':`."
    )


def killed_unresponsive(
    handle: WorkerHandle, rows: Sequence[int], timeout_s: float
) -> EnvTimeoutError:
    """Kill a worker that does not come to ask its envs; return what to say about it."""
    pid = handle.pid
    handle.kill()
    return EnvTimeoutError(
        f"worker {handle.worker_index} (process {pid}, now killed) did not begin its order within "
        f"{timeout_s:g} s; its envs {_listed(rows)} were not called. Check whether the process was "
        "stopped or the machine is overloaded, or allow more time with timeout_s=…."
    )


def _listed(rows: Sequence[int]) -> str:
    return ", ".join(map(str, rows))


def killed_hung(handle: WorkerHandle, row: int, timeout_s: float) -> EnvTimeoutError:
    """Kill a worker whose env hangs; return what to say about it."""
    where = f"worker process {handle.pid} (which has been killed)"
    handle.kill()
    return hung(row, timeout_s, where)


def _limit_waiting(pipe: Connection, timeout_s: float) -> None:
    """Let no transfer wait longer for a worker that has stopped in the middle of one."""
    limit = struct.pack("@ll", int(timeout_s), int(timeout_s % 1 * 1e6) or 1)
    with socket.socket(fileno=os.dup(pipe.fileno())) as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)


@contextmanager
def _sigint_held_back() -> Iterator[None]:
    """Let Ctrl-C wait until the end of the block.

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
