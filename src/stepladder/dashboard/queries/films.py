"""Films and pictures in the folder of a run: which there are, and the file behind a name."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepladder.errors import RunError
from stepladder.files import is_real_folder
from stepladder.runs import RunReader

MEDIA: Mapping[str, str] = {".gif": "image/gif", ".mp4": "video/mp4", ".png": "image/png"}
FOLDERS = ("", "films")
"""Where films are looked for below the folder of a run."""

MOST_FILMS, MOST_BYTES = 60, 200 * 2**20
_STEP = re.compile(r"(?<!\d)(\d{2,15})(?!\d)")


def films(reader: RunReader, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the films of a run with the steps they belong to, in that order."""
    with reader.database() as database:
        rows = database.execute(
            "SELECT step, time FROM steps WHERE step % max(1, (SELECT count(*) FROM steps) / 2000)"
            " = 0 OR step = (SELECT max(step) FROM steps) ORDER BY step"
        ).fetchall()
    steps, times = [row[0] for row in rows], [row[1] for row in rows]
    found: list[dict[str, Any]] = []
    for name, path in sorted(_files(reader.folder).items()):
        status = os.lstat(path)
        named = _STEP.findall(path.stem)
        before = [step for step, time in zip(steps, times, strict=True) if time <= status.st_mtime]
        step = int(named[-1]) if named else (before[-1] if before else None)
        kind = MEDIA[path.suffix.lower()]
        found.append({"name": name, "step": step, "type": kind, "bytes": status.st_size})
    return sorted(found, key=lambda film: (film["step"] or 0, film["name"]))[:MOST_FILMS]


def film_file(folder: Path, name: str) -> tuple[Path, str]:
    """Return the file of a film and its type. The name is one that `films` has given.

    Raises:
        RunError: The run has no such film.
    """
    path = _files(folder).get(name)
    if path is None:
        raise RunError(f"{folder.name} has no film {name[:200]!r}.")
    return path, MEDIA[path.suffix.lower()]


def _files(folder: Path) -> dict[str, Path]:
    """Return the films below a folder by name: regular files of known types, no links."""
    found: dict[str, Path] = {}
    for below in FOLDERS:
        place = folder / below
        if not is_real_folder(place):
            continue
        for entry in os.scandir(place):
            suffix = os.path.splitext(entry.name)[1].lower()
            if suffix not in MEDIA or not entry.is_file(follow_symlinks=False):
                continue
            if 0 < entry.stat(follow_symlinks=False).st_size <= MOST_BYTES:
                found[f"{below}/{entry.name}" if below else entry.name] = Path(entry.path)
    return found
