"""What was logged since the last commit, and how it goes into the database.

`run` fills a batch under the writer's lock; `writer` takes it away as a whole and calls
`write_batch` in its own thread.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from stepladder.plans.record import RecordArray
from stepladder.runs.encoding import (
    TaskColumn,
    names_as_json,
    packed,
    packed_numbers,
    packed_records,
)

T = TypeVar("T")

MOST_ROWS = 10_000
"""Rows that one INSERT takes at most.

Python lets other threads run once per statement, and gets its turn back from a busy one only after
five milliseconds. Row by row, thirty metrics would take a sixth of a second.
"""


@dataclass
class Batch:
    """Rows waiting for the next commit, by table."""

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
    """How many numbers wait, roughly; what memory they take."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (
            self.steps
            or self.events
            or self.tasks
            or self.records
            or self.checkpoints
            or self.removed_checkpoints
            or self.settings
        )


def write_batch(connection: sqlite3.Connection, batch: Batch) -> None:
    """Write a batch in one transaction: all of it, or nothing if an exception comes out."""
    # Whoever saves a checkpoint removes older ones next, so its row has to outlive a power cut.
    connection.execute(f"PRAGMA synchronous={'FULL' if batch.checkpoints else 'NORMAL'}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        _insert(connection, "metric_names", batch.metric_names)
        _insert(connection, "steps", batch.steps)
        _insert(connection, "metrics", batch.metrics)
        _insert(connection, "events (step, time, kind, text, data)", batch.events)
        # A later snapshot of a step takes the place of an earlier one.
        _write_tasks(connection, dict(batch.tasks))
        if batch.records:
            records = np.concatenate(batch.records)
            _insert(
                connection,
                "record_chunks (num_records, data)",
                [(len(records), packed_records(records))],
            )
        # After events and records, for it notes how many of them came before.
        for checkpoint in batch.checkpoints:
            _write_checkpoint(connection, checkpoint)
        for name in batch.removed_checkpoints:
            connection.execute("DELETE FROM checkpoints WHERE name = ?", (name,))
        _insert(connection, "settings", batch.settings)
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
    """Write per-task snapshots by step, all in a few statements."""
    texts: dict[bytes, bytes] = {}
    rows: list[tuple[int, int, str, str, bytes]] = []
    for step, columns in snapshots.items():
        for position, (name, column) in enumerate(columns.items()):
            if isinstance(column, list):
                text = names_as_json(column)
                kind, data = "text", blake2b(text, digest_size=16).digest()
                texts[data] = text
            else:
                kind, data = packed_numbers(column)
            rows.append((step, position, name, kind, data))
    for steps in _chunks(connection, list(snapshots), 1):
        connection.execute(f"DELETE FROM task_columns WHERE step IN ({_places(steps)})", steps)
    _write_name_lists(connection, texts)
    _insert(connection, "task_columns", rows)


def _write_name_lists(connection: sqlite3.Connection, texts: dict[bytes, bytes]) -> None:
    """Store each list of names once, however often it comes."""
    known: set[bytes] = set()
    for digests in _chunks(connection, list(texts), 1):
        found = connection.execute(
            f"SELECT digest FROM name_lists WHERE digest IN ({_places(digests)})", digests
        )
        known.update(digest for (digest,) in found)
    new = [(digest, packed(text)) for digest, text in texts.items() if digest not in known]
    _insert(connection, "name_lists", new)


def _write_checkpoint(
    connection: sqlite3.Connection, checkpoint: tuple[str, str, int, float]
) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO checkpoints (name, file, step, time, last_event, last_chunk) "
        "VALUES (?, ?, ?, ?, (SELECT ifnull(max(id), 0) FROM events), "
        "(SELECT ifnull(max(id), 0) FROM record_chunks))",
        checkpoint,
    )
