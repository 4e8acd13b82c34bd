"""The writer's thread: it commits by itself, when asked and at the end, or tells that it cannot."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runs.scenes import wait_until
from stepladder.errors import RunError
from stepladder.runs import writer as writers
from stepladder.runs.database import create_database
from stepladder.runs.writer import DatabaseWriter, PendingRows, write_rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


@pytest.fixture
def writer(path: Path) -> Iterator[DatabaseWriter]:
    made = DatabaseWriter(create_database(path), path)
    yield made
    if made._thread.is_alive():
        made.close("finished")


def add(writer: DatabaseWriter, step: int, num_values: int = 1) -> None:
    with writer.adding(num_values) as rows:
        rows.steps.append((step, 0.0))


def steps_in(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [step for (step,) in connection.execute("SELECT step FROM steps ORDER BY step")]


def test_rows_are_committed_without_being_asked_for(writer: DatabaseWriter, path: Path) -> None:
    add(writer, 1)
    assert writers.COMMIT_INTERVAL_S <= 0.5
    wait_until(lambda: steps_in(path) == [1], "a commit")
    add(writer, 2)
    wait_until(lambda: steps_in(path) == [1, 2], "a second commit")


def test_flushing_waits_for_all_that_was_added(
    writer: DatabaseWriter, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_slowly(connection: sqlite3.Connection, rows: PendingRows) -> None:
        time.sleep(0.05)
        write_rows(connection, rows)

    monkeypatch.setattr(writers, "write_rows", write_slowly)
    for step in range(5):
        add(writer, step)
        # The thread may be in the middle of an older batch, which does not count.
        time.sleep(0.01 * step)
        writer.flush()
        assert steps_in(path) == list(range(step + 1))


def test_flushing_nothing_returns(writer: DatabaseWriter) -> None:
    writer.flush()
    writer.flush()


def test_closing_commits_the_rest_and_the_status(writer: DatabaseWriter, path: Path) -> None:
    add(writer, 1)
    writer.close("finished")
    assert steps_in(path) == [1]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT value FROM settings").fetchall() == [("finished",)]
    with pytest.raises(RunError, match="has been closed"):
        add(writer, 2)
    writer.flush()


def test_an_idle_writer_writes_nothing(
    writer: DatabaseWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(connection: sqlite3.Connection, rows: PendingRows) -> None:
        raise AssertionError("nothing to write")

    with monkeypatch.context() as patch:
        patch.setattr(writers, "write_rows", refuse)
        writer.flush()
        time.sleep(2 * writers.COMMIT_INTERVAL_S)
        writer.flush()


def test_whoever_is_faster_than_the_disk_has_to_wait(
    writer: DatabaseWriter, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def write_slowly(connection: sqlite3.Connection, rows: PendingRows) -> None:
        sizes.append(rows.num_values)
        time.sleep(0.01)
        write_rows(connection, rows)

    monkeypatch.setattr(writers, "write_rows", write_slowly)
    monkeypatch.setattr(writers, "HASTE_AT", 50)
    monkeypatch.setattr(writers, "MOST_WAITING", 100)
    threads = [
        threading.Thread(
            target=lambda first=first: [add(writer, first + i, 10) for i in range(100)]
        )
        for first in (0, 1000)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.flush()
    assert len(steps_in(path)) == 200
    assert max(sizes) <= 110
    assert sum(sizes) == 2000


def test_who_waits_for_a_disk_that_fails_is_told(
    writer: DatabaseWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, go = threading.Event(), threading.Event()

    def fail(connection: sqlite3.Connection, rows: PendingRows) -> None:
        entered.set()
        assert go.wait(30)
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(writers, "write_rows", fail)
    monkeypatch.setattr(writers, "MOST_WAITING", 5)
    errors: list[str] = []

    def attempt(use: Any) -> None:
        try:
            use()
        except RunError as error:
            errors.append(str(error))

    add(writer, 1)
    assert entered.wait(30)
    add(writer, 2, 10)
    waiting = [
        threading.Thread(target=attempt, args=(use,))
        for use in (lambda: add(writer, 3), writer.flush)
    ]
    for thread in waiting:
        thread.start()
    time.sleep(0.05)
    go.set()
    for thread in waiting:
        thread.join(30)
    assert len(errors) == 2
    for error in errors:
        assert "run.sqlite can no longer be written (database or disk is full)" in error
    with pytest.raises(RunError, match="disk is full"):
        writer.close("finished")


def test_a_file_that_was_replaced_is_noticed(writer: DatabaseWriter, path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.write_bytes(b"something else")
    add(writer, 1)
    with pytest.raises(RunError, match="was removed or replaced"):
        writer.flush()
    with pytest.raises(RunError, match="was removed or replaced"):
        writer.close("finished")
    assert path.read_bytes() == b"something else"
