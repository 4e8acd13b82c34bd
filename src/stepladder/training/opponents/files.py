"""Files that several processes write: one at a time, each file whole or not at all.

Used by `archive` and `match_log`. A lock belongs to an open file and goes with its process, so a
killed writer holds nobody up.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stepladder.errors import RunError
from stepladder.files import open_regular, replacing

PATIENCE_S = 30.0
"""How long a writer waits for another: writing an agent takes milliseconds."""

_PAUSE_S = 0.002


@contextmanager
def locked(path: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Keep all other writers out, those in this process too.

    Args:
        path: The lock file, made where it is missing. It stays, so that nobody locks a removed one.
        patience_s: How long to wait for others.

    Raises:
        RunError: Somebody else has kept the lock for too long.
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
    """Turn what the file system refuses into one line that names the archive."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"the archive {folder} cannot be used ({error}). Check the path, its permissions and "
            "the space on the disk."
        ) from error
