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
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
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


def write_durably(path: Path, content: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in one step: whoever reads sees the old one or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write_durably(temporary, content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


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
