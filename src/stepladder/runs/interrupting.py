"""Ctrl-C at a good moment: the first one waits for it, the second one does not.

Used while a run is written: a simulation ends with whole epochs, a training is saved after a whole
step, and only the host process sees the signal.
"""

import signal
import threading
from types import FrameType
from typing import Any, Self

USUAL: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
"""Handlers of a process that has set none."""


class InterruptGuard:
    """Holds back the first interruption; `was_interrupted` reports it.

    Args:
        also_when_terminated: Whether SIGTERM counts too, which clusters and containers send before
            they kill.
    """

    def __init__(self, *, also_when_terminated: bool = False) -> None:
        self._signals = [signal.SIGINT, *([signal.SIGTERM] if also_when_terminated else [])]
        self._before: dict[signal.Signals, Any] = {}
        self.was_interrupted = False
        """Whether there was an interruption."""

    def __enter__(self) -> Self:
        # A process in the background ignores Ctrl-C, some have a handler of their own, and only
        # the main thread may set one.
        if threading.current_thread() is threading.main_thread():
            for number in self._signals:
                if signal.getsignal(number) is USUAL[number]:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.was_interrupted = True
        self.__exit__()
