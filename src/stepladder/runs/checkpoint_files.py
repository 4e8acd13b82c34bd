"""The files of a run's checkpoints: what they are called, and which of them are out of date.

Each save gets a number of its own, ``latest.7.npz`` say, and the database says which number counts.
So a kill between the two leaves the old checkpoint with its step, never the new file with the old
step. `run` saves and removes; `reader` looks it up in the database.

A checkpoint of a training has a folder of its own name beside its file, ``step-000000016384`` say,
for all that the file does not hold. `training` writes it; it goes when the checkpoint goes.
"""

import os
import re
import shutil
from pathlib import Path
from typing import Any

from stepladder.errors import RunError
from stepladder.files import is_real_folder, require_folder
from stepladder.runs.encoding import checked_name

NAME = re.compile(r"\w[\w .+=-]{0,99}")
"""Allowed names of checkpoints: their files have the same names."""

MOST_BYTES = 150
"""Longest name in UTF-8: most file systems end at 255, and number and suffix come on top."""

_NUMBERED = re.compile(r".+\.(\d+)\.npz")
_FOLDER = re.compile(r"step-(\d{12,19})(?:-(\d+))?")
_UNFINISHED = re.compile(rf"\.{_FOLDER.pattern}\.\d+\.part")
_BELONGING = re.compile(r"\.?(step-[\d-]+)(?:\.\d+\.npz)?(?:\.\d+\.part)?")


def checked_checkpoint_name(name: Any) -> str:
    """Return the name of a checkpoint, which must do for a file as well."""
    checked_name(name, "the name of a checkpoint")
    if not NAME.fullmatch(name) or len(name.encode()) > MOST_BYTES:
        raise RunError(
            "the name of a checkpoint must be short, begin with a letter or digit, and hold only "
            f"letters, digits, spaces and '_.+=-'; got {name!r}."
        )
    return name


def stored_name(name: Any) -> str:
    """Return the name of a checkpoint as a database has it.

    Raises:
        RunError: A run gives no such name: as a path it may lead anywhere.
    """
    try:
        return checked_checkpoint_name(name)
    except RunError as error:
        raise RunError(
            f"the database names a checkpoint {repr(name)[:200]}, which is not a name that a run "
            "gives. Restore the database from a copy."
        ) from error


def stored_file(folder: Path, name: Any, file: Any) -> Path:
    """Return the path of a checkpoint's file, given name and file as the database has them.

    Raises:
        RunError: The file does not have a name that `next_file` gives.
    """
    name = stored_name(name)
    if not isinstance(file, str) or not re.fullmatch(_saved(name), file):
        raise RunError(
            f"the database says that the checkpoint {name!r} is in the file {file!r}, which does "
            "not belong to this run. Restore the database from a copy."
        )
    return folder / file


def next_file(folder: Path, name: str) -> Path:
    """Return a file for a checkpoint, with a number that no file in the folder has."""
    matches = (_NUMBERED.fullmatch(entry.name) for entry in folder.iterdir())
    number = max((int(match[1]) for match in matches if match), default=0) + 1
    return folder / f"{name}.{number}.npz"


def remove_older(current: Path, name: str) -> None:
    """Remove all files of a checkpoint but the current one, those of interrupted saves too."""
    for entry in _files(current.parent, name):
        if entry.name != current.name:
            entry.unlink(missing_ok=True)


def remove_all(folder: Path, name: str) -> None:
    """Remove all files of a checkpoint, and its own folder; of links, the links alone.

    Raises:
        RunError: A checkpoint cannot have this name, which may lead elsewhere.
        OSError: The folder is a link, or something cannot be removed.
    """
    stored_name(name)
    require_folder(folder)
    for entry in _files(folder, name):
        entry.unlink(missing_ok=True)
    if is_folder(folder / name):
        # Out of sight first: a kill must not leave one that is whole only in part.
        hidden = unfinished(folder, name)
        shutil.rmtree(hidden, ignore_errors=True)
        (folder / name).rename(hidden)
        shutil.rmtree(hidden)


def _files(folder: Path, name: str) -> list[Path]:
    saved = _saved(name)
    pattern = re.compile(rf"{saved}|\.{saved}\.\d+\.part")
    return [entry for entry in folder.iterdir() if pattern.fullmatch(entry.name)]


def _saved(name: str) -> str:
    """Return the pattern of what the files of a checkpoint are called."""
    return rf"{re.escape(name)}\.\d+\.npz"


def folder_name(folder: Path, step: int) -> str:
    """Return a new name for a checkpoint with a folder of its own.

    A step that is saved again gets another name: the older save stays whole meanwhile.
    """
    ages = (age(name) for name in folder_names(folder))
    version = max((known[1] for known in ages if known and known[0] == step), default=0) + 1
    return f"step-{step:012}" + (f"-{version}" if version > 1 else "")


def unfinished(folder: Path, name: str) -> Path:
    """Return where the folder of a checkpoint is while it is being made or removed."""
    return folder / f".{name}.{os.getpid()}.part"


def age(name: str) -> tuple[int, int] | None:
    """Return what to sort checkpoints by that have a folder; None is for any other name."""
    match = _FOLDER.fullmatch(name)
    return (int(match[1]), int(match[2] or 1)) if match else None


def folder_names(folder: Path) -> set[str]:
    """Return the names of all checkpoints with a folder of which anything at all is there."""
    matches = (_BELONGING.fullmatch(entry.name) for entry in folder.iterdir())
    return {match[1] for match in matches if match and age(match[1])}


def is_folder(path: Path) -> bool:
    """Whether a path is the folder of a checkpoint."""
    return bool(_FOLDER.fullmatch(path.name)) and is_real_folder(path)


def is_unfinished(path: Path) -> bool:
    """Whether a path is a folder that was being made or removed, perhaps by a process long gone."""
    return bool(_UNFINISHED.fullmatch(path.name)) and is_real_folder(path)
