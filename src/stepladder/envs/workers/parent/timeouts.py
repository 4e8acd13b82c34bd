"""Notice an env that hangs, in this process or in a worker.

`coordinator` runs a `HangWatch` over the envs that this process steps. `worker_pool` waits for the
envs of workers with a `ProgressClock`.
"""

import ctypes
import logging
import signal
import threading
import time
import weakref
from collections.abc import Callable

from stepladder.errors import EnvTimeoutError

logger = logging.getLogger("stepladder.envs")


class HangWatch:
    """Interrupts the thread that steps envs in this process when one of them hangs.

    Args:
        timeout_s: Time that one env may take.
        position: Returns the row being stepped.
    """

    def __init__(self, timeout_s: float, position: Callable[[], int]):
        self._timeout_s = timeout_s
        self._position = position
        self._num_steps = 0
        self._stepping: int | None = None
        self._tripped: EnvTimeoutError | None = None
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen, self._since = (0, 0), time.monotonic()

    def run(self, step: Callable[[], None]) -> None:
        """Make a call that steps envs.

        Raises:
            EnvTimeoutError: An env has taken longer than it may.
        """
        if self._thread is None:
            self._start()
        self._num_steps += 1
        try:
            self._stepping = threading.get_ident()
            step()
            # Inside, so that an interruption sent at the last moment arrives here and not later.
            with self._lock:
                self._stepping = None
        except (KeyboardInterrupt, EnvTimeoutError) as error:
            tripped, self._tripped = self._tripped, None
            if tripped is None:
                raise
            raise tripped from error
        finally:
            self._stepping = None

    def _start(self) -> None:
        # Without a reference to this watch, which would keep an unused vector env alive.
        interval_s = min(self._timeout_s / 4, 5.0)
        self._thread = threading.Thread(
            target=_look_regularly,
            args=(weakref.ref(self), self._is_over, interval_s),
            name="stepladder-hang",
            daemon=True,
        )
        self._thread.start()

    def look(self) -> None:
        """Interrupt the stepping thread if it has made no progress for too long."""
        now = (self._num_steps, self._position())
        if now != self._seen or self._stepping is None:
            self._seen, self._since = now, time.monotonic()
        elif time.monotonic() - self._since >= self._timeout_s:
            with self._lock:
                self._interrupt(now[1])
            self._since = time.monotonic()

    def _interrupt(self, row: int) -> None:
        thread = self._stepping
        if thread is None or self._tripped is not None:
            return
        self._tripped = hung(row, self._timeout_s, "this process")
        # Also in the log: code that is stuck outside Python cannot be interrupted from here.
        logger.error("%s", self._tripped)
        is_main = thread == threading.main_thread().ident
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            # Only a signal wakes a sleeping call; `run` turns it into a time-out.
            signal.pthread_kill(thread, signal.SIGINT)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread), ctypes.py_object(EnvTimeoutError)
            )

    def close(self) -> None:
        """Stop watching."""
        self._is_over.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=1.0)


def _look_regularly(
    watch: "weakref.ref[HangWatch]", is_over: threading.Event, interval_s: float
) -> None:
    while not is_over.wait(interval_s):
        alive = watch()
        if alive is None:
            return
        alive.look()
        del alive


class ProgressClock:
    """Measures how long there was no progress, against the time that one env may take."""

    def __init__(self, timeout_s: float | None, progress: Callable[[], int]):
        self._timeout_s = timeout_s
        self._progress = progress
        self._seen = progress()
        self._since = time.monotonic()

    def is_over(self) -> bool:
        """Whether the time is over."""
        if (now := self._progress()) != self._seen:
            self._seen, self._since = now, time.monotonic()
        return self._timeout_s is not None and time.monotonic() - self._since > self._timeout_s


def hung(row: int, timeout_s: float, where: str) -> EnvTimeoutError:
    """Return the error for an env that hangs."""
    error = EnvTimeoutError(
        f"env {row}, in {where}, has not come back from its step, reset or call, "
        f"or not been made, for {timeout_s:g} s. "
        "Fix the env, or allow more time with timeout_s=… (None is without a limit)."
    )
    error.env_index = row
    return error
