"""Ctrl-C at the n-th line of the library, for tests that try every n.

A tracer counts the lines executed in files of the library and raises `KeyboardInterrupt` before one
of them, once. Compiled code has no lines: no signal comes in the middle of it either.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import stepladder

LIBRARY = str(Path(stepladder.__file__).parent)

EVERY_LINE = bool(os.environ.get("STEPLADDER_EVERY_LINE"))
"""Whether tests that try some of the lines by default try all of them, which takes minutes."""

COMPILER = tuple(f"{LIBRARY}/{name}.py" for name in ("compiled", "inlining", "source_stamp"))
"""Their lines run while a kernel is compiled: the first time, and not again."""


class Interrupt:
    """Counts lines, and raises at one of them.

    Args:
        line: At which; 0 is none.
        within: Files and folders of the library whose lines count.
    """

    def __init__(self, line: int, within: Sequence[str] = ("",)):
        self.line = line
        self.within = tuple(f"{LIBRARY}/{place}" for place in within)
        self.num_lines = 0
        self.seen: list[tuple[str, int]] = []

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        return self._count if file.startswith(self.within) and file not in COMPILER else None

    def _count(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self.num_lines += 1
            if self.line == 0:
                self.seen.append((frame.f_code.co_filename, frame.f_lineno))
            elif self.num_lines == self.line:
                raise KeyboardInterrupt
        return self._count


def interrupted(line: int, call: Callable[[], Any], within: Sequence[str] = ("",)) -> bool:
    """Make a call and interrupt it before the given line; return whether there was such a line."""
    interrupt, before = Interrupt(line, within), sys.gettrace()
    sys.settrace(interrupt._enter)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def lines_of(call: Callable[[], Any]) -> list[tuple[str, int]]:
    """Make a call; return the lines of the library that were executed, in order."""
    interrupt, before = Interrupt(0), sys.gettrace()
    sys.settrace(interrupt._enter)
    try:
        call()
    finally:
        sys.settrace(before)
    return interrupt.seen
