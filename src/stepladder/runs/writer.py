"""The thread that writes a run's database, so that nobody who logs waits for a disk.

`Run` puts rows into the open batch, under the writer's lock; every `COMMIT_INTERVAL_S` the thread
takes the batch away and commits it. A kill loses what is younger than that.
"""

import ctypes
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path

from stepladder.errors import RunError
from stepladder.runs.batch import Batch, write_batch
from stepladder.runs.database import inherit

COMMIT_INTERVAL_S = 0.25
"""How long a row waits at most before the thread takes it."""

STARVED_S = 2 * COMMIT_INTERVAL_S
"""A batch that has not been taken for so long shows that the thread does not get its turn."""

PATIENCE_S = 0.1
"""How long whoever logs stands aside then, at most."""

HASTE_AT = 100_000
"""Numbers waiting at which the thread is woken early."""

MOST_WAITING = 300_000
"""Numbers waiting at which whoever logs has to wait for the disk, rather than fill the memory."""


class Writer:
    """Commits batches from its own thread.

    Args:
        connection: An open database, which belongs to the writer from now on.
        path: Its file.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path):
        self._connection = connection
        self._path = path
        self._inode = path.stat().st_ino
        self._batch = Batch()
        self._num_taken = 0
        self._taken_at = time.monotonic()
        self._num_committed = 0
        self._is_closing = False
        self._has_ended = False
        self._failure: Exception | None = None
        self.lock = threading.Lock()
        """Hold it from `open_batch` until the last row is in."""
        self._changed = threading.Condition(self.lock)
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._work, name="run writer", daemon=True)
        self._thread.start()

    def open_batch(self) -> Batch:
        """Return the batch to add rows to. The lock must be held, and be kept while adding.

        Raises:
            RunError: An earlier batch could not be written, or the writer is closed.
        """
        while self._batch.num_values > MOST_WAITING and not self._has_ended:
            self._wake.set()
            self._changed.wait()
        self._require_working()
        if self._is_closing:
            raise RunError(f"{self._path.parent} has been closed. Reopen it with Run.resume.")
        if self._batch.num_values > HASTE_AT:
            self._wake.set()
        if time.monotonic() - self._taken_at > STARVED_S:
            self._let_thread_in()
        return self._batch

    def _let_thread_in(self) -> None:
        """Stand aside for a moment: who logs without a rest can keep the thread from its turn.

        Python's lock goes to whoever asks next, and the thread asks late where both share a core.
        """
        if self._batch.is_empty:
            self._taken_at = time.monotonic()
        else:
            self._wake.set()
            self._changed.wait(PATIENCE_S)

    def flush(self) -> None:
        """Wait until everything that was added before is committed.

        Raises:
            RunError: It could not be written.
        """
        with self._changed:
            turn = self._num_taken + 1
            self._wake.set()
            while self._num_committed < turn and not self._has_ended:
                self._changed.wait()
            self._require_working()

    def close(self, status: str) -> None:
        """Commit what is left, and the status, and end the thread.

        Raises:
            RunError: Something could not be written.
        """
        with self._changed:
            self._batch.settings.append(("status", status))
            self._is_closing = True
        self._wake.set()
        self._thread.join()
        if self._failure is not None:
            # The first failure is the one to tell of.
            with suppress(sqlite3.Error):
                self._connection.close()
            self._require_working()

    def disown(self) -> None:
        """Give up in a forked child: neither write nor close what the parent has open.

        The child never frees the connection. SQLite would close the parent's files with it, and may
        wait for a lock that a thread of the parent held at the moment of the fork.
        """
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
        inherit(self._path)

    def _require_working(self) -> None:
        if self._failure is not None:
            raise RunError(
                f"{self._path} can no longer be written ({self._failure}); what was logged since "
                "the last commit is lost. Mend the disk or the folder, then use Run.resume."
            ) from self._failure

    def _work(self) -> None:
        try:
            is_last = False
            while not is_last:
                self._wake.wait(COMMIT_INTERVAL_S)
                self._wake.clear()
                is_last = self._commit()
            self._connection.close()
        # Whatever it is, it must not end with this thread: the next call of the run raises it.
        except Exception as error:
            self._failure = error
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _commit(self) -> bool:
        """Write the open batch; return whether it was the last."""
        with self._changed:
            batch, self._batch = self._batch, Batch()
            self._num_taken += 1
            turn, is_last = self._num_taken, self._is_closing
            self._taken_at = time.monotonic()
            self._changed.notify_all()
        if not batch.is_empty:
            self._require_same_file()
            write_batch(self._connection, batch)
        with self._changed:
            self._num_committed = turn
            self._changed.notify_all()
        return is_last

    def _require_same_file(self) -> None:
        # SQLite goes on writing into a file that was removed, and says nothing.
        try:
            inode = self._path.stat().st_ino
        except FileNotFoundError:
            inode = None
        if inode != self._inode:
            raise FileNotFoundError(f"{self._path.name} was removed or replaced")
