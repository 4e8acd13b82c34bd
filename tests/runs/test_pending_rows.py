"""Pending rows: all of them arrive, and a failing commit leaves nothing behind."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from runs.scenes import make_records
from stepladder.runs import writer as writers
from stepladder.runs.database import create_database
from stepladder.runs.encoding import checked_columns
from stepladder.runs.writer import PendingRows, write_rows


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(create_database(tmp_path / "run.sqlite")) as connection:
        yield connection


def test_no_rows_are_empty_and_any_row_changes_that() -> None:
    assert PendingRows().is_empty
    for batch in (
        PendingRows(steps=[(1, 1.0)]),
        PendingRows(events=[(1, 1.0, "a", "b", None)]),
        PendingRows(tasks=[(1, checked_columns({"task": [], "label": []}))]),
        PendingRows(records=[make_records(1)]),
        PendingRows(checkpoints=[("a", "a.1.npz", 1, 1.0)]),
        PendingRows(removed_checkpoints=["a"]),
        PendingRows(settings=[("status", "finished")]),
    ):
        assert not batch.is_empty


@pytest.mark.parametrize("num_rows", [1, 2, 99, 100, 101, 250])
@pytest.mark.parametrize("limit", [3, 300, 32766])
def test_any_number_of_rows_arrives_in_order(
    database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, num_rows: int, limit: int
) -> None:
    monkeypatch.setattr(writers, "MOST_ROWS", 100)
    database.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, limit)
    rows = [(1 + index % 7, index, index / 3) for index in range(num_rows)]
    steps = [(index, float(index)) for index in range(num_rows)]
    write_rows(database, PendingRows(metrics=rows, steps=steps))
    assert database.execute("SELECT * FROM metrics ORDER BY step").fetchall() == rows
    assert database.execute("SELECT * FROM steps").fetchall() == steps


def test_few_statements_carry_many_rows(database: sqlite3.Connection) -> None:
    # Each statement costs the thread its turn, so there must be few of them.
    said: list[str] = []
    database.set_trace_callback(said.append)
    columns = checked_columns({"task": ["a"], "label": ["x"], "p": [0.5], "q": [0.5]})
    write_rows(
        database,
        PendingRows(
            metric_names=[(index, str(index)) for index in range(1, 31)],
            metrics=[(1 + index % 30, index // 30, 0.5) for index in range(3000)],
            steps=[(step, 0.0) for step in range(100)],
            tasks=[(step, columns) for step in range(100)],
            events=[(step, 0.0, "a", "b", None) for step in range(100)],
            records=[make_records(step) for step in range(100)],
        ),
    )
    assert len(said) <= 12
    assert database.execute("SELECT count(*) FROM task_columns").fetchone() == (400,)


def test_a_batch_that_fails_leaves_nothing_behind(database: sqlite3.Connection) -> None:
    broken = PendingRows(steps=[(1, 1.0)], events=[(1, 1.0, "kind", "text", object())])  # type: ignore[list-item]
    with pytest.raises(sqlite3.Error):
        write_rows(database, broken)
    assert not database.in_transaction
    assert database.execute("SELECT count(*) FROM steps").fetchone() == (0,)
    write_rows(database, PendingRows(steps=[(1, 1.0)]))
    assert database.execute("SELECT count(*) FROM steps").fetchone() == (1,)


def test_a_list_of_names_is_stored_once(database: sqlite3.Connection) -> None:
    names = [f"task{index}" for index in range(1000)]
    columns = checked_columns({"task": names, "label": names, "p": np.zeros(1000)})
    for step in range(5):
        write_rows(database, PendingRows(tasks=[(step, columns), (step + 100, columns)]))
    other = checked_columns({"task": names[::-1], "label": names, "p": np.zeros(1000)})
    write_rows(database, PendingRows(tasks=[(7, other)]))
    assert database.execute("SELECT count(*) FROM name_lists").fetchone() == (2,)
    said: list[str] = []
    database.set_trace_callback(said.append)
    write_rows(database, PendingRows(tasks=[(3, other)]))
    assert [text for text in said if "INTO name_lists" in text] == []
    assert database.execute("SELECT count(*) FROM task_columns").fetchone() == (33,)


def test_a_snapshot_of_the_same_step_is_replaced_with_all_its_columns(
    database: sqlite3.Connection,
) -> None:
    def tasks(**columns: list[float]) -> PendingRows:
        return PendingRows(tasks=[(1, checked_columns({"task": ["a"], "label": ["x"], **columns}))])

    def names() -> list[str]:
        rows = database.execute("SELECT name FROM task_columns ORDER BY position")
        return [name for (name,) in rows]

    write_rows(database, tasks(p=[0.5], q=[0.5]))
    assert names() == ["task", "label", "p", "q"]
    write_rows(database, tasks(r=[0.5]))
    assert names() == ["task", "label", "r"]
    both = tasks(p=[0.5], q=[0.5])
    both.tasks += tasks(s=[0.5]).tasks
    write_rows(database, both)
    assert names() == ["task", "label", "s"]


def test_records_of_a_batch_become_one_chunk(database: sqlite3.Connection) -> None:
    write_rows(database, PendingRows(records=[make_records(1), make_records(), make_records(2, 3)]))
    assert database.execute("SELECT id, num_records FROM record_chunks").fetchall() == [(1, 3)]


def test_a_checkpoint_notes_what_came_before_it(database: sqlite3.Connection) -> None:
    question = "SELECT id, name, file, step, last_event, last_chunk FROM checkpoints ORDER BY id"
    write_rows(database, PendingRows(checkpoints=[("a", "a.1.npz", 5, 1.0)]))
    assert database.execute(question).fetchall() == [(1, "a", "a.1.npz", 5, 0, 0)]
    event = (1, 1.0, "kind", "text", None)
    write_rows(database, PendingRows(events=[event, event], records=[make_records(1)]))
    write_rows(database, PendingRows(checkpoints=[("b", "b.2.npz", 6, 1.0)]))
    write_rows(database, PendingRows(events=[event], checkpoints=[("a", "a.3.npz", 7, 1.0)]))
    assert database.execute(question).fetchall() == [
        (2, "b", "b.2.npz", 6, 2, 1),
        (3, "a", "a.3.npz", 7, 3, 1),
    ]


def test_only_a_commit_with_a_checkpoint_waits_for_the_disk(database: sqlite3.Connection) -> None:
    write_rows(
        database, PendingRows(checkpoints=[("a", "a.1.npz", 1, 1.0), ("b", "b.2.npz", 2, 2.0)])
    )
    assert database.execute("PRAGMA synchronous").fetchone() == (2,)
    write_rows(database, PendingRows(removed_checkpoints=["a", "none"]))
    assert database.execute("PRAGMA synchronous").fetchone() == (1,)
    assert database.execute("SELECT name FROM checkpoints").fetchall() == [("b",)]
