"""Where a sweep keeps its trials: a folder that a killed sweep can be continued in.

Between `sweep` and the disk. ``sweep.json`` says what is varied; ``trials.jsonl`` has one line per
finished trial, on disk before the next one is counted.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import stepladder
from stepladder.errors import RunError
from stepladder.files import open_regular, parsed_json, read_json, replacing
from stepladder.runs.lock import RunLock
from stepladder.saving.snapshot import difference

SCHEMA = 1
"""Version of the layout; another is refused."""

SETTINGS, TRIALS, LOCK = "sweep.json", "trials.jsonl", "sweep.lock"

_OWN = re.compile(rf"{SETTINGS}|{TRIALS}|{LOCK}|\.{SETTINGS}(?:\.\d+)?\.part")


class SweepFolder:
    """An open sweep, to which nobody else adds trials meanwhile.

    Args:
        folder: Where it is, or shall be.
        settings: What the sweep does, as plain JSON.

    Raises:
        RunError: The folder holds something else, or a sweep with other settings, or it is in use.
    """

    def __init__(self, folder: Path | str, settings: Mapping[str, Any]):
        self.folder = Path(folder)
        about = {
            "package": "stepladder",
            "schema": SCHEMA,
            "version": stepladder.__version__,
            **settings,
        }
        _refuse_foreign(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as undo, _naming(self.folder):
            self._lock = RunLock.take(self.folder / LOCK)
            undo.callback(self._lock.release)
            self._agree(about)
            descriptor = open_regular(self.folder / TRIALS, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            self._file = os.fdopen(descriptor, "a+b")
            undo.callback(self._file.close)
            self.entries = self._read()
            """The finished trials so far, in the order in which they finished."""
            undo.pop_all()

    def append(self, entry: Mapping[str, Any]) -> None:
        """Keep one finished trial; it is on disk when this returns."""
        with _naming(self.folder):
            self._file.write(json.dumps(entry, allow_nan=False).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let somebody else continue."""
        self._file.close()
        self._lock.release()

    def _agree(self, about: dict[str, Any]) -> None:
        """Write what the sweep does, or check that it is what it was."""
        path = self.folder / SETTINGS
        if not os.path.lexists(path):
            with replacing(path) as file:
                file.write(json.dumps(about, indent=2).encode() + b"\n")
            return
        try:
            saved = read_json(path)
        except (OSError, ValueError) as error:
            raise RunError(f"{path} is damaged ({error}). Choose another folder.") from error
        change = difference(saved, about)
        if change:
            raise RunError(
                f"{self.folder} holds a sweep with other settings: {change}. "
                "Choose another folder, or give the settings it was begun with."
            )

    def _read(self) -> list[dict[str, Any]]:
        """Return the finished trials, and cut off what a kill in the middle of a line left."""
        path = self.folder / TRIALS
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            self._file.truncate(whole)
        entries: list[dict[str, Any]] = []
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                entry = parsed_json(line)
            except ValueError as error:
                raise RunError(
                    f"line {number} of {path} is damaged ({error}). Remove the line to have its "
                    "trial played again."
                ) from error
            entries.append(entry)
        return entries


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Turn what the file system refuses into one line that names the sweep."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"the sweep {folder} cannot be used ({error}). Check the path, its permissions and the "
            "space on the disk."
        ) from error


def _refuse_foreign(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RunError(f"{folder} is a file. Choose a new or empty folder for the sweep.")
    names = (entry.name for entry in folder.iterdir())
    others = sorted(name for name in names if not _OWN.fullmatch(name))
    if others and not (folder / SETTINGS).exists():
        raise RunError(
            f"{folder} is not empty and holds no sweep: it has {others[0]!r}. "
            "Choose a new or empty folder."
        )
