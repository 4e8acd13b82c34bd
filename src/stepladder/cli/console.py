"""Where a command writes: results to standard output, what is under way to standard error or not.

Used by every verb, so that tables look alike and a pipe receives nothing but results.
"""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from stepladder.errors import ConfigError


class Screen(Console):
    """A console that says so when whoever read it has gone; `main` knows what to do then."""

    def on_broken_pipe(self) -> None:
        """Leave quietly, and with the exit code of everything else that loses its reader."""
        self.quiet = True
        raise BrokenPipeError


def results() -> Console:
    """Return the console for results; in a pipe it writes plain text."""
    return Screen(highlight=False)


def asides() -> Console | None:
    """Return the console for what is under way, or None where nobody looks on."""
    console = Console(highlight=False, stderr=True)
    return console if console.is_terminal else None


def say(text: str) -> None:
    """Write one line of results as it is, however long."""
    print(text)


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
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def refuse_foreign(path: Path, mark: str, flag: str) -> None:
    """Raise if a file is there that this command did not write.

    Args:
        path: Where a file is going to be written.
        mark: Text that every file of this command holds.
        flag: The flag that names the file, for the message.
    """
    if path.is_dir():
        raise ConfigError(f"{path} is a folder. Name a file with {flag}.")
    if path.exists() and mark.encode() not in path.read_bytes():
        raise ConfigError(
            f"{path} was not written by this command and stays as it is. "
            f"Name another file with {flag}."
        )
