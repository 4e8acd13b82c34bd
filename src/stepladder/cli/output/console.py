"""Where a command writes: results to standard output, progress to standard error.

Used by every verb, so that tables look alike and a pipe receives nothing but results.
"""

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from stepladder.errors import ConfigError
from stepladder.files import read_bytes, replacing
from stepladder.visible import visible

MOST_BYTES = 2**31
"""Largest file that `refuse_foreign` reads: a long film."""


class Screen(Console):
    """A console that escapes text from outside: neither rich nor the terminal interprets it."""

    def __init__(self, *, stderr: bool = False):
        super().__init__(highlight=False, markup=False, emoji=False, stderr=stderr)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments to show, escaped; rich's own control codes stay as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Leave the error to `main`, which ends every command in the same way."""
        self.quiet = True
        raise BrokenPipeError


def results() -> Console:
    """Return the console for results; in a pipe it writes plain text."""
    return Screen()


def progress_console() -> Console | None:
    """Return the console for progress, or None where standard error is not a terminal."""
    console = Screen(stderr=True)
    return console if console.is_terminal else None


@contextmanager
def progress(text: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner with a text in a terminal; yields a function that changes the text."""
    console = progress_console()
    if console is None:
        yield lambda text: None
    else:
        with console.status(text) as status:
            yield status.update


def plain_table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """Return a table without lines: columns of text, then columns of numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    for column in numbers:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def say(text: str) -> None:
    """Write one line of results, of any length; text from outside is escaped."""
    print(visible(text))


def print_json(entry: Mapping[str, Any]) -> None:
    """Write one object as one line and flush it; numbers that are not finite become null."""
    print(json.dumps(_finite(entry), allow_nan=False), flush=True)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(entry) for name, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list | tuple) else value


def write_whole(path: Path, text: str) -> None:
    """Write a file under another name first, so that readers never see half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text.encode())


def refuse_foreign(path: Path, mark: str, flag: str) -> None:
    """Raise if a file exists that this command did not write.

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
            f"{path} was not written by this command and is not replaced. "
            f"Name another file with {flag}."
        )
