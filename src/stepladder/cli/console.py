"""Where a command writes: results to standard output, what is under way to standard error or not.

Used by every verb, so that tables look alike and a pipe receives nothing but results.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from stepladder.errors import ConfigError
from stepladder.files import read_bytes, replacing
from stepladder.visible import visible

MOST_BYTES = 2**31
"""Largest file of a command that is looked at before it is replaced: a long film."""


class Screen(Console):
    """A console for text from outside: none of it is obeyed, as markup or by the terminal.

    Says so when whoever read it has gone; `main` knows what to do then.
    """

    def __init__(self, *, stderr: bool = False):
        super().__init__(highlight=False, markup=False, emoji=False, stderr=stderr)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return what is shown; what rich itself tells the terminal is no text, and stays."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Leave quietly, and with the exit code of everything else that loses its reader."""
        self.quiet = True
        raise BrokenPipeError


def results() -> Console:
    """Return the console for results; in a pipe it writes plain text."""
    return Screen()


def asides() -> Console | None:
    """Return the console for what is under way, or None where nobody looks on."""
    console = Screen(stderr=True)
    return console if console.is_terminal else None


def say(text: str) -> None:
    """Write one line of results, however long; a text from outside may be in it."""
    print(visible(text))


def print_json(entry: Mapping[str, Any]) -> None:
    """Write one object as one line, and let it through at once; what is not finite is null."""
    print(json.dumps(_finite(entry), allow_nan=False), flush=True)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(entry) for name, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list | tuple) else value


def write_whole(path: Path, text: str) -> None:
    """Write a file under another name first, so that nobody ever reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text.encode())


def refuse_foreign(path: Path, mark: str, flag: str) -> None:
    """Raise if a file is there that this command did not write.

    Args:
        path: Where a file is going to be written.
        mark: Text that every file of this command holds.
        flag: The flag that names the file, for the message.
    """
    if path.is_dir():
        raise ConfigError(f"{path} is a folder. Name a file with {flag}.")
    if not os.path.lexists(path):
        return
    try:
        is_ours = mark.encode() in read_bytes(path, MOST_BYTES)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be replaced: {error.strerror}. Name another file with {flag}."
        ) from error
    if not is_ours:
        raise ConfigError(
            f"{path} was not written by this command and stays as it is. "
            f"Name another file with {flag}."
        )
