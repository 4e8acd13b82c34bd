"""Ctrl-C at a good moment: the first one waits for it, the second one does not.

Used by whoever writes a run: a simulation ends with whole epochs, a training is saved after a whole
step, and workers hear of it from the host alone.
"""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Patience:
    """Holds back the first interruption; `is_over` tells of it."""

    def __init__(self) -> None:
        self._before: Any = None
        self._is_wished = False

    def __enter__(self) -> Self:
        # A process in the background ignores Ctrl-C, some have a handler of their own, and only
        # the main thread may set one.
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._give_back()

    @property
    def is_over(self) -> bool:
        """Whether there was an interruption."""
        return self._is_wished

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._is_wished = True
        self._give_back()

    def _give_back(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None
