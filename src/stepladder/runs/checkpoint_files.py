"""The files of a run's checkpoints: what they are called, and which of them are out of date.

Each save gets a number of its own, ``latest.7.npz`` say, and the database says which number counts.
So a kill between the two leaves the old checkpoint with its step, never the new file with the old
step. `run` saves and removes; `reader` asks the database.
"""

import re
from pathlib import Path
from typing import Any

from stepladder.errors import RunError
from stepladder.runs.encoding import checked_name

NAME = re.compile(r"\w[\w .+=-]{0,99}")
"""What a checkpoint may be called, since a file is called after it."""

MOST_BYTES = 150
"""Longest name in UTF-8: most file systems end at 255, and number and suffix come on top."""

_NUMBERED = re.compile(r".+\.(\d+)\.npz")


def checked_checkpoint_name(name: Any) -> str:
    """Return the name of a checkpoint, which must do for a file as well."""
    checked_name(name, "the name of a checkpoint")
    if not NAME.fullmatch(name) or len(name.encode()) > MOST_BYTES:
        raise RunError(
            "the name of a checkpoint must be short, begin with a letter or digit, and hold only "
            f"letters, digits, spaces and '_.+=-'; got {name!r}."
        )
    return name


def next_file(folder: Path, name: str) -> Path:
    """Return a file for a checkpoint, with a number that no file in the folder has."""
    matches = (_NUMBERED.fullmatch(entry.name) for entry in folder.iterdir())
    number = max((int(match[1]) for match in matches if match), default=0) + 1
    return folder / f"{name}.{number}.npz"


def remove_older(current: Path, name: str) -> None:
    """Remove all files of a checkpoint but the current one, those of interrupted saves too."""
    saved = rf"{re.escape(name)}\.\d+\.npz"
    older = re.compile(rf"{saved}|\.{saved}\.\d+\.part")
    for entry in current.parent.iterdir():
        if entry.name != current.name and older.fullmatch(entry.name):
            entry.unlink(missing_ok=True)
