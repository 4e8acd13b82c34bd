"""The database of a run: WAL, one schema, read-only for readers, and one line for what is wrong."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stepladder.errors import RunError
from stepladder.runs.database import create_database, open_database, reading


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


@pytest.fixture
def database(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(create_database(path)) as connection:
        yield connection


def test_a_new_database_is_in_wal_mode_and_running(database: sqlite3.Connection) -> None:
    assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    # 1 is NORMAL.
    assert database.execute("PRAGMA synchronous").fetchone() == (1,)
    assert database.execute("SELECT version FROM schema").fetchall() == [(1,)]
    assert database.execute("SELECT * FROM settings").fetchall() == [("status", "running")]
    assert not database.in_transaction


def test_a_reopened_database_is_in_wal_mode_too(database: sqlite3.Connection, path: Path) -> None:
    with closing(open_database(path)) as again:
        assert again.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert again.execute("PRAGMA synchronous").fetchone() == (1,)


def test_a_reader_cannot_write(database: sqlite3.Connection, path: Path) -> None:
    with (
        pytest.raises(RunError, match="attempt to write a readonly database"),
        reading(path) as connection,
    ):
        connection.execute("DELETE FROM settings")
    assert database.execute("SELECT count(*) FROM settings").fetchone() == (1,)


def test_all_questions_of_one_reading_see_one_state(
    database: sqlite3.Connection, path: Path
) -> None:
    with reading(path) as connection:
        before = connection.execute("SELECT count(*) FROM steps").fetchone()
        database.execute("INSERT INTO steps VALUES (1, 1.0)")
        assert connection.execute("SELECT count(*) FROM steps").fetchone() == before == (0,)
    with reading(path) as connection:
        assert connection.execute("SELECT count(*) FROM steps").fetchone() == (1,)


def test_a_path_may_hold_what_an_address_may_not(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=rw#50%é" / "run.sqlite"
    path.parent.mkdir()
    create_database(path).close()
    with reading(path) as connection:
        assert connection.execute("SELECT version FROM schema").fetchone() == (1,)
    open_database(path).close()
    assert {entry.name.split("-")[0] for entry in path.parent.iterdir()} == {"run.sqlite"}
    assert [entry.name for entry in tmp_path.iterdir()] == [path.parent.name]


def test_a_missing_database_is_not_made(path: Path) -> None:
    for use in (lambda: open_database(path), lambda: reading(path).__enter__()):
        with pytest.raises(RunError, match="has no database yet"):
            use()
        assert not path.exists()


def test_a_database_that_is_half_made_is_told_from_a_damaged_one(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    for use in (lambda: open_database(path), lambda: reading(path).__enter__()):
        with pytest.raises(RunError, match=r"was killed at that moment\. Try again"):
            use()


@pytest.mark.parametrize(("version", "words"), [(2, "schema 2"), (0, "schema 0"), (None, "no sch")])
def test_another_schema_is_refused_by_its_number(
    database: sqlite3.Connection, path: Path, version: int | None, words: str
) -> None:
    database.execute("DELETE FROM schema")
    if version is not None:
        database.execute("INSERT INTO schema VALUES (?)", (version,))
    for use in (lambda: open_database(path), lambda: reading(path).__enter__()):
        with pytest.raises(RunError, match=f"has {words}.*; this version reads 1"):
            use()


@pytest.mark.parametrize("content", [b"rubbish" * 1000, b"SQLite format 3\x00" + b"\xff" * 99])
def test_a_file_that_is_no_database_is_told_in_one_line(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for use in (lambda: open_database(path), lambda: reading(path).__enter__()):
        with pytest.raises(
            RunError, match=r"run\.sqlite cannot be read \(.*\)\. Restore"
        ) as caught:
            use()
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == content
