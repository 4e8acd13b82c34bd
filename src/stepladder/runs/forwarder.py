"""Passes what a run logs to one logger, from a thread of its own.

`RunWriter` has one per logger, so that a logger that is slow, fails or hangs holds up neither the
run, nor its database, nor another logger.
"""

import threading
from queue import SimpleQueue
from typing import Any

from stepladder.runs.loggers.base import Logger

MOST_WAITING = 10_000
"""Calls that may wait for a logger; beyond that they are left out, and counted."""

CLOSE_TIMEOUT_S = 60.0
"""How long a run that closes waits for a logger; what is still unsent then may be lost."""


class Forwarder:
    """Calls a logger in order, and counts what goes wrong instead of passing it on.

    Args:
        logger: The logger to call. Belongs to the forwarder from now on.
    """

    def __init__(self, logger: Logger):
        self.logger = logger
        self._num_failed = 0
        self._num_left_out = 0
        self._news: str | None = None
        self._queue: SimpleQueue[tuple[str, tuple[Any, ...]]] = SimpleQueue()
        name = f"logger {type(logger).__name__}"
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def num_errors(self) -> int:
        """Calls that raised, or were left out because the logger could not keep up."""
        return self._num_failed + self._num_left_out

    def put(self, method: str, *arguments: Any) -> None:
        """Have a method of the logger called, soon."""
        if self._queue.qsize() < MOST_WAITING:
            self._queue.put((method, arguments))
            return
        if self.num_errors == 0:
            self._news = f"cannot keep up: {MOST_WAITING} calls are waiting"
        self._num_left_out += 1

    def close(self) -> None:
        """Have the logger closed after all that waits, and wait for it, but not forever."""
        self._queue.put(("close", ()))
        self._thread.join(CLOSE_TIMEOUT_S)
        if self._thread.is_alive():
            if self.num_errors == 0:
                self._news = f"did not close within {CLOSE_TIMEOUT_S:g} s"
            self._num_left_out += 1

    def take_news(self) -> str | None:
        """Return the warning about the first error, once; None otherwise."""
        if self._news is None:
            return None
        news, self._news = self._news, None
        return (
            f"{type(self.logger).__name__} {news}. The run continues without what this "
            "logger missed; further errors are only counted."
        )

    def _work(self) -> None:
        method = ""
        while method != "close":
            method, arguments = self._queue.get()
            try:
                getattr(self.logger, method)(*arguments)
            # A logger is foreign code and may raise anything. It is counted and reported; a
            # training of days must not stop for it.
            except Exception as error:
                if self.num_errors == 0:
                    self._news = f"failed in {method} ({type(error).__name__}: {error})"
                self._num_failed += 1
