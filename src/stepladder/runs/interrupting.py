"""Ctrl-C at a good moment: the first one waits for it, the second one does not.

Used by whoever writes a run: a simulation ends with whole epochs, a training is saved after a whole
step, and workers hear of it from the host alone.
"""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

USUAL: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
"""What a process does when nobody has said otherwise."""


class Patience:
    """Holds back the first interruption; `is_over` tells of it.

    Args:
        also_when_terminated: Whether SIGTERM counts too, which clusters and containers send before
            they kill.
    """

    def __init__(self, *, also_when_terminated: bool = False) -> None:
        self._signals = [signal.SIGINT, *([signal.SIGTERM] if also_when_terminated else [])]
        self._before: dict[signal.Signals, Any] = {}
        self._is_wished = False

    def __enter__(self) -> Self:
        # A process in the background ignores Ctrl-C, some have a handler of their own, and only
        # the main thread may set one.
        if threading.current_thread() is threading.main_thread():
            for number in self._signals:
                if signal.getsignal(number) is USUAL[number]:
                    self._before[number] = signal.signal(number, self._note)
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
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler)
