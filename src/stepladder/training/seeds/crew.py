"""Trainings in processes of their own, several at a time.

Between `starting` and sweeps, which give orders, and `child`, which carries one out. Each process
gets its share of the cores. A process of its own per training, rather than a thread or a fork:
torch cannot be forked once it has computed, and one training that fails must not end the others.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

import cloudpickle

from stepladder.closing import Closing
from stepladder.cores import share_of_cores, usable_cores
from stepladder.files import open_regular
from stepladder.runs.interrupting import USUAL
from stepladder.training.results import Progress
from stepladder.training.seeds.child import TrainingEnd, TrainingOrder

OnProgress = Callable[[Path, Progress], None]
"""Called after every epoch of a training with the folder of its run; never twice at once."""

PROGRAM = """
import sys
from multiprocessing.connection import Connection
connection = Connection(int(sys.argv[1]))
sys.path[:] = connection.recv()
from stepladder.training.seeds.child import main
main(connection)
"""
"""What a process runs; it finds modules where this process does."""

LOOK_EVERY_S = 0.5
"""How often a silent process is looked at: one that was killed says nothing."""


class Crew(Closing):
    """Processes that train; use it as a context manager.

    Leaving it by an exception, such as Ctrl-C, lets every training save and stop, and waits for
    them; a second Ctrl-C ends them at once. SIGTERM counts as Ctrl-C meanwhile.

    Args:
        jobs: Trainings at once.
        on_progress: Called after every epoch.
        num_cores: Cores of each; by default all of this machine are shared out.
    """

    def __init__(
        self, jobs: int, on_progress: OnProgress | None = None, num_cores: int | None = None
    ):
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="stepladder-training")
        self._share = share_of_cores(jobs if num_cores is None else usable_cores() // num_cores)
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._is_stopping = False
        self._before: Any = None

    def __enter__(self) -> Self:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGTERM) is USUAL[signal.SIGTERM]:
            self._before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        return self

    def _end_block(self, error: BaseException | None) -> None:
        try:
            if error is not None:
                self._end(signal.SIGTERM)
            self._threads.shutdown(wait=True, cancel_futures=True)
        except BaseException:
            self._end(signal.SIGKILL)
            raise
        finally:
            if self._before is not None:
                signal.signal(signal.SIGTERM, self._before)

    def start(self, order: TrainingOrder) -> Future[TrainingEnd]:
        """Carry out an order as soon as a place is free."""
        # By value what is defined in the main program, which another process cannot import.
        return self.start_dumped(order.folder, cloudpickle.dumps(order))

    def start_dumped(self, folder: Path, order: bytes) -> Future[TrainingEnd]:
        """Do the same with the bytes of an order and its folder."""
        return self._threads.submit(self._supervise, folder, order)

    def stop(self) -> None:
        """Let every training save and stop; leaving the crew waits for them."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        with self._lock:
            self._is_stopping = True
            for process in self._processes:
                if process.poll() is None:
                    os.killpg(process.pid, number)

    def _supervise(self, folder: Path, order: bytes) -> TrainingEnd:
        ours, theirs = Pipe()
        log = folder.with_name(f"{folder.name}.log")
        with ours, theirs:
            with self._lock:
                if self._is_stopping:
                    return TrainingEnd(how="stopped")
                process = _started(theirs, log, self._share)
                self._processes.add(process)
            try:
                theirs.close()
                outcome = self._listened(process, ours, folder, order)
            finally:
                process.wait()
                with self._lock:
                    self._processes.discard(process)
        if log.stat().st_size == 0:
            log.unlink()
        return outcome or self._unsaid(process.returncode, log)

    def _unsaid(self, code: int, log: Path) -> TrainingEnd:
        """Return how a training ended whose process has not said it."""
        if self._is_stopping:
            # Before it had begun: there was nothing to save.
            return TrainingEnd(how="stopped")
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        said = f"; {log} has what it printed" if log.exists() else ""
        return TrainingEnd(how="died", reason=f"its process was ended by {how}{said}")

    def _listened(
        self, process: subprocess.Popen[bytes], ours: Connection, folder: Path, order: bytes
    ) -> TrainingEnd | None:
        """Return how a training ended; None if its process has not said so."""
        try:
            ours.send(sys.path)
            ours.send_bytes(order)
            while True:
                is_alive = process.poll() is None
                if ours.poll(LOOK_EVERY_S):
                    message = ours.recv()
                    if isinstance(message, TrainingEnd):
                        return message
                    self._report(folder, message)
                elif not is_alive:
                    return None
        except (EOFError, OSError, pickle.UnpicklingError):
            return None

    def _report(self, folder: Path, progress: Progress) -> None:
        if self._on_progress is not None:
            with self._lock:
                self._on_progress(folder, progress)


def _started(theirs: Connection, log: Path, share: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a process; a session of its own keeps Ctrl-C in the terminal away from it."""
    with os.fdopen(open_regular(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as output:
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **share},
            start_new_session=True,
        )
