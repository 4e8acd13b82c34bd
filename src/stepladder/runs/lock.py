"""One writer per run: a lock that dies with its process.

`RunWriter` holds it from before the first file is written until after the last; `RunReader` looks
at it to tell a run that is being written from one whose process was killed.
"""

import fcntl
import os
import time
from pathlib import Path

from stepladder.curricula.foreign import owners
from stepladder.errors import RunError
from stepladder.files import open_regular

PATIENCE_S = 0.5
"""How long a writer tries: a reader holds the lock for a moment as well."""

_PAUSE_S = 0.002


class RunLock:
    """A lock file, locked. The file stays when the lock goes, so that no removed file is locked.

    Args:
        descriptor: The open and locked file.
    """

    def __init__(self, descriptor: int):
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path) -> "RunLock":
        """Lock a file, making it where it is missing.

        Raises:
            RunError: Another writer, in this process or another, has the lock.
            OSError: The file cannot be made or locked, or is not a regular file.
        """
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
        try:
            if not _locked(descriptor):
                raise RunError(
                    f"{path.parent} is being written by process {_content(descriptor)}. "
                    "Wait until it ends, or choose another folder."
                )
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        except BaseException:
            os.close(descriptor)
            raise
        lock = cls(descriptor)
        owners.add(lock)
        return lock

    def release(self) -> None:
        """Release the lock. In a forked child this only closes the child's copy.

        A lock belongs to the open file, which a fork shares: an explicit unlock in a child would
        unlock the parent, and a copy left open in a child would outlive the parent.
        """
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            owners.discard(self)

    disown = release
    """Called in a forked child."""


def is_locked(path: Path) -> bool:
    """Whether a process writes the run of this lock file."""
    try:
        descriptor = open_regular(path)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _locked(descriptor: int) -> bool:
    """Try to lock for a while; return whether it worked."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE_S)
        else:
            return True


def _content(descriptor: int) -> str:
    """Return the number of the process that has the lock, as it wrote it."""
    text = os.pread(descriptor, 20, 0)
    return text.decode() if text.isdigit() else "(unknown)"
