"""The database of a run: its tables, and how it is opened for writing and for reading.

`writer` fills it from one thread (through `batch`); `reader` opens it anew for each question, so
that it may be asked from any thread and never stands in a writer's way.

WAL mode lets readers and the writer work side by side. What was committed survives the death of
the process; ``synchronous=NORMAL`` means that a power cut may cost the last commits, but none from
before a checkpoint.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from stepladder.errors import RunError

SCHEMA = 1
"""Version of the tables; another is refused."""

BUSY_TIMEOUT_S = 30.0
"""How long to wait for another process, such as a shell in which somebody looks at the file."""

TABLES = """
BEGIN;
CREATE TABLE schema (version INTEGER NOT NULL);
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE metric_names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE metrics (
    metric INTEGER NOT NULL, step INTEGER NOT NULL, value REAL,
    PRIMARY KEY (metric, step)
) WITHOUT ROWID;
CREATE TABLE steps (step INTEGER PRIMARY KEY, time REAL NOT NULL);
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    step INTEGER NOT NULL, time REAL NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, data TEXT
);
CREATE TABLE name_lists (digest BLOB PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE task_columns (
    step INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (step, position)
);
CREATE TABLE record_chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, num_records INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE TABLE checkpoints (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, file TEXT NOT NULL,
    step INTEGER NOT NULL, time REAL NOT NULL,
    last_event INTEGER NOT NULL, last_chunk INTEGER NOT NULL
);
"""

inherited: set[tuple[int, int]] = set()
"""Databases that this process got open from the one it was forked from (device and inode)."""


def create_database(path: Path) -> sqlite3.Connection:
    """Make the database of a new run; the file must not exist."""
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(connection)
        connection.executescript(TABLES)
        connection.execute("INSERT INTO schema VALUES (?)", (SCHEMA,))
        connection.execute("INSERT INTO settings VALUES ('status', 'running')")
        # All in one transaction: a reader sees a whole run, or none yet.
        connection.execute("COMMIT")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def open_database(path: Path) -> sqlite3.Connection:
    """Open the database of an existing run for writing.

    Raises:
        RunError: It is missing, damaged, or of another schema.
    """
    refuse_inherited(path)
    try:
        with ExitStack() as undo:
            connection = sqlite3.connect(
                f"{_address(path)}?mode=rw",
                uri=True,
                timeout=BUSY_TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,
            )
            undo.callback(connection.close)
            check_schema(connection, path)
            _prepare(connection)
            undo.pop_all()
    except sqlite3.Error as error:
        raise unreadable(path, error) from error
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a run's database for reading; all questions asked in the block see one state.

    Raises:
        RunError: The database is missing, damaged, or of another schema.
    """
    refuse_inherited(path)
    try:
        with _read_only(path) as connection:
            check_schema(connection, path)
            yield connection
    except sqlite3.Error as error:
        raise unreadable(path, error) from error


@contextmanager
def _read_only(path: Path) -> Iterator[sqlite3.Connection]:
    with ExitStack() as stack:
        connection = stack.enter_context(closing(_connected(f"{_address(path)}?mode=ro")))
        if not _can_read(connection):
            address = _address_without_index(path, stack)
            connection = stack.enter_context(closing(_connected(address)))
        yield connection


def _connected(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    connection.execute("BEGIN")
    return connection


def _can_read(connection: sqlite3.Connection) -> bool:
    """Whether a database can be read where it lies.

    Reading in WAL mode needs a file for the index of the log. In a folder that may not be written
    to it cannot be made, and SQLite refuses the first question.
    """
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            return False
        raise
    return True


def _address_without_index(path: Path, stack: ExitStack) -> str:
    """Return where a database can be read that lies in a folder which may not be written to."""
    log = path.with_name(path.name + "-wal")
    if not log.exists() or log.stat().st_size == 0:
        # Without a log the file is complete in itself, and nobody is writing to it.
        return f"{_address(path)}?mode=ro&immutable=1"
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    for file in (path, log):
        shutil.copyfile(file, folder / file.name)
    return f"{_address(folder / path.name)}?mode=ro"


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless the tables are those of this version."""
    version = connection.execute("SELECT version FROM schema").fetchone()
    if version != (SCHEMA,):
        found = "no schema" if version is None else f"schema {version[0]!r}"
        raise RunError(
            f"{path} has {found}; this version reads {SCHEMA}. "
            "Use the version of Stepladder that wrote it."
        )


def unreadable(path: Path, error: sqlite3.Error) -> RunError:
    """Say in one line why a database cannot be read."""
    if not path.exists() or "no such table: schema" in str(error):
        return RunError(
            f"{path.parent} has no database yet: the run is just being made, or was killed at "
            "that moment. Try again, or make it anew with overwrite=True."
        )
    return RunError(f"{path} cannot be read ({error}). Restore it from a copy.")


def refuse_inherited(path: Path) -> None:
    """Raise where SQLite's own notes about a file are the parent's and not true here."""
    if inherited and path.exists() and _identity(path) in inherited:
        raise RunError(
            f"{path.parent} was open for writing when this process was forked. Read it in a "
            "process that was started afresh (start method 'spawn')."
        )


def inherit(path: Path) -> None:
    """Note, in a forked child, that its parent has a database open."""
    if path.exists():
        inherited.add(_identity(path))


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _address(path: Path) -> str:
    return f"file:{quote(os.fsencode(path))}"
