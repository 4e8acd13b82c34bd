"""The thread that writes a run's database, so that logging never waits for a disk.

`RunWriter` adds rows to the pending ones; every `COMMIT_INTERVAL_S` the thread
takes them away and commits them in one transaction. A kill loses what is younger than that.
"""

import ctypes
import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from stepladder.errors import RunError
from stepladder.plans.record import RecordArray
from stepladder.runs.database import FORGET_BEST, STANDING_KEY, inherit
from stepladder.runs.encoding import STORED_RECORD, TaskColumn, packed, packed_numbers

T = TypeVar("T")

COMMIT_INTERVAL_S = 0.25
"""Longest time that a row waits for the thread."""

STARVED_S = 2 * COMMIT_INTERVAL_S
"""Rows that wait for so long show that the thread is starved."""

PATIENCE_S = 0.1
"""Longest wait of the logging thread for a starved writer."""

HASTE_AT = 100_000
"""Waiting numbers at which the thread is woken early."""

MOST_WAITING = 300_000
"""Waiting numbers at which logging blocks until they are written, to bound the memory."""

MOST_ROWS = 10_000
"""Most rows of one INSERT.

Each statement releases Python's lock, and a busy thread returns it only after five milliseconds:
row by row, thirty metrics would take a sixth of a second.
"""


@dataclass
class PendingRows:
    """Rows that wait for the next commit, by table."""

    metric_names: list[tuple[int, str]] = field(default_factory=list)
    metrics: list[tuple[int, int, float]] = field(default_factory=list)
    steps: list[tuple[int, float]] = field(default_factory=list)
    events: list[tuple[int, float, str, str, str | None]] = field(default_factory=list)
    tasks: list[tuple[int, dict[str, TaskColumn]]] = field(default_factory=list)
    records: list[RecordArray] = field(default_factory=list)
    checkpoints: list[tuple[str, str, int, float]] = field(default_factory=list)
    removed_checkpoints: list[str] = field(default_factory=list)
    settings: list[tuple[str, str]] = field(default_factory=list)

    num_values: int = 0
    """Roughly how many numbers wait; what memory they take."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not any(getattr(self, table.name) for table in fields(self))


class DatabaseWriter:
    """Commits pending rows from its own thread.

    Args:
        connection: An open database, which belongs to the writer from now on.
        path: Its file.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path):
        self._connection = connection
        self._path = path
        self._inode = path.stat().st_ino
        self._rows = PendingRows()
        self._num_taken = 0
        self._taken_at = time.monotonic()
        self._num_committed = 0
        self._is_closing = False
        self._has_ended = False
        self._failure: Exception | None = None
        self._changed = threading.Condition(threading.Lock())
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._work, name="run writer", daemon=True)
        self._thread.start()

    @contextmanager
    def adding(self, num_values: int) -> Iterator[PendingRows]:
        """Let the block add rows with so many numbers, for the next commit.

        Raises:
            RunError: Earlier rows could not be written, or the writer is closed.
        """
        with self._changed:
            while self._rows.num_values > MOST_WAITING and not self._has_ended:
                self._wake.set()
                self._changed.wait()
            self._require_working()
            if self._is_closing:
                raise RunError(f"{self._path.parent} has been closed. Reopen it with Run.resume.")
            if self._rows.num_values > HASTE_AT:
                self._wake.set()
            if time.monotonic() - self._taken_at > STARVED_S:
                # Logging without a pause can starve the thread where both share a core.
                if self._rows.is_empty:
                    self._taken_at = time.monotonic()
                else:
                    self._wake.set()
                    self._changed.wait(PATIENCE_S)
            yield self._rows
            self._rows.num_values += num_values

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
            self._rows.settings.append(("status", status))
            self._is_closing = True
        self._wake.set()
        self._thread.join()
        if self._failure is not None:
            # The first failure is the one to report.
            with suppress(sqlite3.Error):
                self._connection.close()
            self._require_working()

    def disown(self) -> None:
        """Give up in a forked child: neither write nor close what the parent has open.

        The child never frees the connection: SQLite would close the parent's files, and may wait
        for a lock that a thread of the parent held at the fork.
        """
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
        inherit(self._path)

    def _require_working(self) -> None:
        if self._failure is not None:
            raise RunError(
                f"{self._path} can no longer be written ({self._failure}); what was logged since "
                "the last commit is lost. Repair the disk or the folder, then use Run.resume."
            ) from self._failure

    def _work(self) -> None:
        try:
            is_last = False
            while not is_last:
                self._wake.wait(COMMIT_INTERVAL_S)
                self._wake.clear()
                is_last = self._commit()
            self._connection.close()
        # Any error must outlive this thread: the next call of the run raises it.
        except Exception as error:
            self._failure = error
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _commit(self) -> bool:
        """Write the pending rows; return whether they were the last."""
        with self._changed:
            rows, self._rows = self._rows, PendingRows()
            self._num_taken += 1
            turn, is_last = self._num_taken, self._is_closing
            self._taken_at = time.monotonic()
            self._changed.notify_all()
        if not rows.is_empty:
            # SQLite goes on writing into a file that was removed, and reports nothing.
            if not self._path.exists() or self._path.stat().st_ino != self._inode:
                raise FileNotFoundError(f"{self._path.name} was removed or replaced")
            write_rows(self._connection, rows)
        with self._changed:
            self._num_committed = turn
            self._changed.notify_all()
        return is_last


def write_rows(connection: sqlite3.Connection, rows: PendingRows) -> None:
    """Write rows in one transaction: all of them, or none if an exception comes out."""
    # Saving a checkpoint, or saying which is the best, removes older ones next, so these rows have
    # to outlive a power cut.
    is_final = bool(rows.checkpoints) or any(key != STANDING_KEY for key, _ in rows.settings)
    connection.execute(f"PRAGMA synchronous={'FULL' if is_final else 'NORMAL'}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        _insert(connection, "metric_names", rows.metric_names)
        _insert(connection, "steps", rows.steps)
        _insert(connection, "metrics", rows.metrics)
        _insert(connection, "events (step, time, kind, text, data)", rows.events)
        # A later snapshot of a step replaces an earlier one.
        _write_tasks(connection, dict(rows.tasks))
        if rows.records:
            records = np.concatenate(rows.records)
            chunk = (len(records), packed(records.astype(STORED_RECORD).tobytes()))
            _insert(connection, "record_chunks (num_records, data)", [chunk])
        # After events and records: a checkpoint notes how many of them came before.
        for checkpoint in rows.checkpoints:
            connection.execute(
                "INSERT OR REPLACE INTO checkpoints "
                "(name, file, step, time, last_event, last_chunk) "
                "VALUES (?, ?, ?, ?, (SELECT ifnull(max(id), 0) FROM events), "
                "(SELECT ifnull(max(id), 0) FROM record_chunks))",
                checkpoint,
            )
        for name in rows.removed_checkpoints:
            connection.execute("DELETE FROM checkpoints WHERE name = ?", (name,))
        _insert(connection, "settings", rows.settings)
        if rows.removed_checkpoints:
            connection.execute(FORGET_BEST)
        connection.execute("COMMIT")
    except BaseException:
        # Some failures, such as a full disk, have ended the transaction already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _insert(connection: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows, many per statement; a row with a known key replaces the older one."""
    if not rows:
        return
    row = f"({_places(rows[0])})"
    for chunk in _chunks(connection, rows, len(rows[0])):
        connection.execute(
            f"INSERT OR REPLACE INTO {table} VALUES {','.join([row] * len(chunk))}",
            list(chain.from_iterable(chunk)),
        )


def _chunks(
    connection: sqlite3.Connection, items: Sequence[T], num_values: int
) -> Iterator[Sequence[T]]:
    """Cut items of so many values each into what one statement can take."""
    limit = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    size = min(MOST_ROWS, limit // num_values)
    return (items[start : start + size] for start in range(0, len(items), size))


def _places(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))


def _write_tasks(
    connection: sqlite3.Connection, snapshots: dict[int, dict[str, TaskColumn]]
) -> None:
    """Write per-task snapshots by step, in a few statements; each list of names is stored once."""
    name_lists: dict[bytes, bytes] = {}
    rows: list[tuple[int, int, str, str, bytes]] = []
    for step, columns in snapshots.items():
        for position, (name, column) in enumerate(columns.items()):
            if isinstance(column, list):
                text = json.dumps(column).encode()
                kind, data = "text", blake2b(text, digest_size=16).digest()
                name_lists[data] = text
            else:
                kind, data = packed_numbers(column)
            rows.append((step, position, name, kind, data))
    for steps in _chunks(connection, list(snapshots), 1):
        connection.execute(f"DELETE FROM task_columns WHERE step IN ({_places(steps)})", steps)
    known: set[bytes] = set()
    for digests in _chunks(connection, list(name_lists), 1):
        found = connection.execute(
            f"SELECT digest FROM name_lists WHERE digest IN ({_places(digests)})", digests
        )
        known.update(digest for (digest,) in found)
    new = [(digest, packed(text)) for digest, text in name_lists.items() if digest not in known]
    _insert(connection, "name_lists", new)
    _insert(connection, "task_columns", rows)
