"""How a worker process is started, so that Ctrl-C finds it ready.

Used by `crew`, at the beginning and for every worker that takes the place of one that has died.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from typing import Any

from stepladder.envs.workers.hand import Hand
from stepladder.envs.workers.worker import Assignment, main


def start_worker(context: BaseContext, assignment: Assignment) -> Hand:
    """Start a worker; return the parent's side of it."""
    ours, theirs = context.Pipe()
    number = assignment.worker_index
    process: Any = context.Process(  # type: ignore[attr-defined]
        target=main, args=(assignment, theirs), name=f"stepladder-worker-{number}"
    )
    if context.get_start_method() == "forkserver":
        # Before Ctrl-C is held back: the server is everybody's, and would hold it back for good.
        forkserver.ensure_running()
    with _sigint_held_back():
        process.start()
    # Before the next one is forked, which would otherwise keep this end open.
    theirs.close()
    return Hand(number, process, ours)


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
