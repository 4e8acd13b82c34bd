"""Files that several processes write: one at a time, each file whole or not at all.

Used by `archive`. A lock belongs to an open file and ends with its process, so a killed writer does
not block others. The log of games only grows, one JSON object per line; the rest of a line that a
killed writer left has no end of line, is not read, and is cut off by the next writer.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from stepladder.errors import RunError
from stepladder.files import open_for_reading, open_regular, parsed_json, replacing

PATIENCE_S = 30.0
"""How long a writer waits for another: writing an agent takes milliseconds."""

_PAUSE_S = 0.002


@contextmanager
def locked(path: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Keep all other writers out, those in this process too.

    Args:
        path: The lock file, created if missing. It stays, so that no process locks a removed one.
        patience_s: How long to wait for others.

    Raises:
        RunError: Another process has kept the lock for too long.
    """
    descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    try:
        deadline = time.monotonic() + patience_s
        while not _taken(descriptor):
            if time.monotonic() > deadline:
                raise RunError(
                    f"{path.parent} has been locked by another process for {patience_s:g} s. "
                    "Find out which one hangs, and stop it."
                )
            time.sleep(_PAUSE_S)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in one step and wait until the disk has it."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def naming(folder: Path) -> Iterator[None]:
    """Turn an error of the file system into one line that names the archive."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"the archive {folder} cannot be used ({error}). Check the path, its permissions and "
            "the space on the disk."
        ) from error


def append_entry(path: Path, entry: Mapping[str, Any]) -> int:
    """Add an entry; return where the log ends now. The caller holds the lock."""
    line = json.dumps(entry, allow_nan=False, separators=(",", ":")).encode() + b"\n"
    descriptor = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    with os.fdopen(descriptor, "a+b") as file:
        end = _whole_end(file)
        file.truncate(end)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    return end + len(line)


def read_entries(path: Path, start: int) -> Iterator[Any]:
    """Yield every whole entry from a position on; None for a line that is not JSON."""
    try:
        with open_for_reading(path) as file:
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                yield _parsed(line)
    except FileNotFoundError:
        return


def _parsed(line: bytes) -> Any:
    try:
        return parsed_json(line)
    except ValueError:
        return None


def _whole_end(file: IO[bytes]) -> int:
    """Return where the last whole line ends."""
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return 0
    file.seek(size - 1)
    if file.read(1) == b"\n":
        return size
    file.seek(0)
    return file.read().rfind(b"\n") + 1
