"""Which runs the dashboard shows, and by which names they are asked for.

Between the folders that a user has named and the queries: a page asks for a run by a name from
this index and never by a path, so no request can leave the folders.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepladder.errors import RunError
from stepladder.files import is_real_folder
from stepladder.runs import RunReader
from stepladder.runs.run_folder import CHECKPOINTS, CONFIG, DATABASE

MOST_RUNS = 2_000
"""Runs that are shown at most; further folders are counted."""

DEPTH = 3
"""How far below a named folder runs are looked for: runs/sweep/trial/seed."""

Stamp = tuple[int, int]
"""Size and time of what a run has written: it changes when the run does."""


class RunIndex:
    """The runs in some folders, by name.

    Args:
        folders: Folders of runs, and folders that hold runs.
        missing_ok: Whether folders may come later.

    Raises:
        RunError: A folder does not exist.
    """

    def __init__(self, folders: Sequence[Path | str], missing_ok: bool = False):
        self.folders = [Path(folder).absolute() for folder in folders]
        for given, folder in zip(folders, self.folders, strict=True):
            if not missing_ok and not folder.is_dir():
                raise RunError(
                    f"{given} is not a folder. Give folders of runs, or a folder that holds runs."
                )
        self._names = distinct_names(self.folders)
        self._found: dict[str, Path] = {}
        self.rows: dict[str, tuple[Stamp, dict[str, Any]]] = {}
        """Rows of the overview that hold as long as their runs do not change."""
        self.scan()

    @property
    def found(self) -> Mapping[str, Path]:
        """The folders of runs by name, as of the last scan."""
        return self._found

    def scan(self) -> dict[str, Path]:
        """Look for runs again; return their folders by name."""
        found: dict[str, Path] = {}
        several = len(self.folders) > 1
        for given, folder in zip(self._names, self.folders, strict=True):
            for path in _runs_below(folder, DEPTH):
                inside = path.relative_to(folder).parts
                parts = inside if inside and not several else (given, *inside)
                found["/".join(parts)] = path
                if len(found) >= MOST_RUNS:
                    break
        self._found = found
        return found

    def folder(self, name: str) -> Path:
        """Return the folder of a run.

        Raises:
            RunError: No run has this name.
        """
        path = self._found.get(name) or self.scan().get(name)
        if path is None:
            raise RunError(f"there is no run {name!r} here. Choose one of the overview.")
        return path

    def reader(self, name: str) -> RunReader:
        """Open a run.

        Raises:
            RunError: No run has this name, or it cannot be read.
        """
        return RunReader(self.folder(name))

    def without_runs(self) -> list[Path]:
        """Return the named folders in which there is no run."""
        found = list(self._found.values())
        return [f for f in self.folders if not any(path.is_relative_to(f) for path in found)]

    def stamp(self, name: str) -> Stamp:
        """Return what tells whether a run has changed since.

        Raises:
            RunError: No run has this name.
        """
        return _stamp(self.folder(name))

    def stamps(self) -> dict[str, Stamp]:
        """Return, for every run, what tells whether it has changed since."""
        return {name: _stamp(path) for name, path in self.scan().items()}


def distinct_names(folders: Sequence[Path]) -> list[str]:
    """Return the folder names, longer by parent folders where two are alike.

    The same folder given twice is numbered.
    """
    parts = [folder.resolve().parts for folder in folders]
    names: list[str] = []
    for mine in parts:
        others = {p for p in parts if p != mine}
        depth = 1
        while depth < len(mine) and any(p[-depth:] == mine[-depth:] for p in others):
            depth += 1
        names.append("/".join(mine[-depth:]))
    return [
        f"{name} ({names[:place].count(name) + 1})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _runs_below(folder: Path, depth: int) -> Iterator[Path]:
    """Return a folder if it is a run's, else those of the runs below it; links are not followed."""
    if os.path.lexists(folder / CONFIG):
        yield folder
        return
    if depth == 0:
        return
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        path = folder / name
        if not name.startswith(".") and name != CHECKPOINTS and is_real_folder(path):
            yield from _runs_below(path, depth - 1)


def _stamp(folder: Path) -> Stamp:
    size = changed = 0
    for name in (CONFIG, DATABASE, f"{DATABASE}-wal"):
        try:
            status = os.lstat(folder / name)
        except OSError:
            continue
        size += status.st_size
        changed = max(changed, status.st_mtime_ns)
    return size, changed
