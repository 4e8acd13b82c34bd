"""How a worker process is started, so that Ctrl-C finds it ready.

Used by `crew`, at the beginning and for every worker that takes the place of one that has died.
"""

import os
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any

from stepladder.envs.workers.hand import Hand
from stepladder.envs.workers.mains import known_to_worker, main_can_start
from stepladder.envs.workers.worker import Assignment, main


def start_worker(context: BaseContext, assignment: Assignment, timeout_s: float | None) -> Hand:
    """Start a worker; return the parent's side of it."""
    ours, theirs = context.Pipe()
    if timeout_s is not None:
        _limit_waiting(ours, timeout_s)
    number = assignment.worker_index
    process: Any = context.Process(  # type: ignore[attr-defined]
        target=main, args=(assignment, theirs), name=f"stepladder-worker-{number}"
    )
    if context.get_start_method() == "forkserver":
        # Before Ctrl-C is held back: the server is everybody's, and would hold it back for good.
        forkserver.ensure_running()
    known = known_to_worker(context.get_start_method())
    with _sigint_held_back(), main_can_start():
        process.start()
    # Before the next one is forked, which would otherwise keep this end open.
    theirs.close()
    return Hand(number, process, ours, known)


def _limit_waiting(pipe: Connection, timeout_s: float) -> None:
    """Let no transfer wait longer for a worker that has stopped in the middle of one."""
    limit = struct.pack("@ll", int(timeout_s), int(timeout_s % 1 * 1e6) or 1)
    with socket.socket(fileno=os.dup(pipe.fileno())) as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)


@contextmanager
def _sigint_held_back() -> Iterator[None]:
    """Let Ctrl-C wait: a process that starts meanwhile begins with it held back, and ignores it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
