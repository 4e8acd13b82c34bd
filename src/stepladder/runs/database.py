"""The database of a run: its tables, how it is opened, and single values read from it.

`writer` fills it from one thread; `reader` opens it again for each question, so that it can be used
from any thread and never blocks the writer.

WAL mode lets readers and the writer work side by side. What was committed survives the death of
the process; ``synchronous=NORMAL`` means that a power cut may cost the last commits, but none from
before a checkpoint.

A file may come from anywhere: SQLite holds anything in a column of any type, and a view, a trigger
or an unknown table may run foreign code. All of that is refused before anything is read.
"""

import os
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from stepladder.errors import RunError
from stepladder.files import IrregularFileError, require_regular
from stepladder.visible import one_visible_line

SCHEMA = 1
"""Version of the tables; another one is refused."""

TABLES = (
    "CREATE TABLE schema (version INTEGER NOT NULL)",
    "CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "CREATE TABLE metric_names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    """CREATE TABLE metrics (
    metric INTEGER NOT NULL, step INTEGER NOT NULL, value REAL,
    PRIMARY KEY (metric, step)
) WITHOUT ROWID""",
    "CREATE TABLE steps (step INTEGER PRIMARY KEY, time REAL NOT NULL)",
    """CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    step INTEGER NOT NULL, time REAL NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, data TEXT
)""",
    "CREATE TABLE name_lists (digest BLOB PRIMARY KEY, data BLOB NOT NULL)",
    """CREATE TABLE task_columns (
    step INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (step, position)
)""",
    """CREATE TABLE record_chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, num_records INTEGER NOT NULL, data BLOB NOT NULL
)""",
    """CREATE TABLE checkpoints (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, file TEXT NOT NULL,
    step INTEGER NOT NULL, time REAL NOT NULL,
    last_event INTEGER NOT NULL, last_chunk INTEGER NOT NULL
)""",
)

_STATEMENTS = {statement.split()[2]: " ".join(statement.split()) for statement in TABLES}

_NO_TABLES = "no such table: schema"
"""The error of a database whose process was killed while creating it."""

BEST_CHECKPOINT_KEY = "best_checkpoint"
"""Setting that names the best checkpoint; there is none if none is."""

STANDING_KEY = "curriculum"
"""Setting with what the curriculum said of itself last, as JSON; there is none in older runs."""

FORGET_BEST = (
    f"DELETE FROM settings WHERE key = '{BEST_CHECKPOINT_KEY}' "
    "AND value NOT IN (SELECT name FROM checkpoints)"
)
"""Removes that setting where its checkpoint was removed."""

BUSY_TIMEOUT_S = 30.0
"""Longest wait for another process, such as a shell in which the file is open."""

USUAL_WORK, WORK_PER_BYTE = 5_000_000, 10
"""SQLite instructions that reading may take: so many, and so many for each byte of the file.

A file may be built so that a few pages are read over and over, for years.
"""

WORK_BETWEEN = 50_000
"""Instructions between two checks of how many there were."""

SMALLEST_LIMIT, LONGEST_VALUE = 1_000_000, 1_000_000_000
"""Bytes that a value may always have, and never exceed; between them, the size of the file."""

BESIDE = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside a database."""

inherited: set[tuple[int, int]] = set()
"""Databases that were open when this process was forked (device and inode)."""


def create_database(path: Path) -> sqlite3.Connection:
    """Make the database of a new run; the file must not exist."""
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(connection)
        # All in one transaction: a reader sees the whole database or none.
        connection.execute("BEGIN")
        for statement in TABLES:
            connection.execute(statement)
        connection.execute("INSERT INTO schema VALUES (?)", (SCHEMA,))
        connection.execute("INSERT INTO settings VALUES ('status', 'running')")
        connection.execute("COMMIT")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def open_database(path: Path) -> sqlite3.Connection:
    """Open the database of an existing run for writing.

    Its work is limited; call `lift_limits` when everything stored has been read.

    Raises:
        RunError: It is missing, damaged, or of another schema.
    """
    with _explained(path), ExitStack() as undo:
        journal = path.with_name(f"{path.name}-journal")
        # A run writes a log. A journal may name files elsewhere.
        if journal.exists() and journal.stat().st_size > 0:
            raise RunError(
                f"{journal} exists, and a finished run leaves none: the run was killed while it "
                "was being created, or another program changed it. Create it again with "
                "overwrite=True."
            )
        connection = sqlite3.connect(
            f"{_address(path)}?mode=rw",
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        undo.callback(connection.close)
        _limit_work(connection, path)
        _check_schema(connection, path)
        _prepare(connection)
        undo.pop_all()
    return connection


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a run's database for reading; all questions in the block see one state.

    Raises:
        RunError: The database is missing, damaged, or of another schema.
    """
    with _explained(path), ExitStack() as stack:
        connection = stack.enter_context(_connected(f"{_address(path)}?mode=ro", path))
        if not _can_read(connection):
            address = _address_without_index(path, stack)
            connection = stack.enter_context(_connected(address, path))
        _check_schema(connection, path)
        yield connection


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise `RunError` where a database cannot be used in this process, or not at all."""
    if inherited and path.exists() and _identity(path) in inherited:
        # SQLite's own notes about the file are the parent's and wrong here.
        raise RunError(
            f"{path.parent} was open for writing when this process was forked. Read it in a "
            "process that was started afresh (start method 'spawn')."
        )
    try:
        # SQLite would follow links.
        for ending in ("", *BESIDE):
            require_regular(path.with_name(path.name + ending), missing_ok=True)
        yield
    except IrregularFileError as error:
        raise RunError(f"{error}. Restore the run from a copy.") from error
    except sqlite3.Error as error:
        if not path.exists() or _NO_TABLES in str(error):
            raise RunError(
                f"{path.parent} has no database yet: the run is being created, or was killed at "
                "that moment. Try again, or create it again with overwrite=True."
            ) from error
        reason = one_visible_line(error)
        if reason == "interrupted":
            reason = "reading it takes far longer than its size explains"
        raise RunError(f"{path} cannot be read ({reason}). Restore it from a copy.") from error


@contextmanager
def _connected(address: str, path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database, or a copy of it, for questions only."""
    with closing(
        sqlite3.connect(address, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    ) as connection:
        _limit_work(connection, path)
        connection.execute("PRAGMA query_only=ON")
        longest = max(SMALLEST_LIMIT, _num_bytes(path))
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(longest, LONGEST_VALUE))
        connection.execute("BEGIN")
        yield connection


def _can_read(connection: sqlite3.Connection) -> bool:
    """Whether a database can be read in its folder.

    Reading in WAL mode needs a file for the index of the log. In a read-only folder it cannot be
    created, and SQLite refuses the first question.
    """
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            return False
        raise
    return True


def _address_without_index(path: Path, stack: ExitStack) -> str:
    """Return where the database of a read-only folder can be read."""
    log = path.with_name(path.name + "-wal")
    if not log.exists() or log.stat().st_size == 0:
        # Without a log the file is complete, and no process writes to it.
        return f"{_address(path)}?mode=ro&immutable=1"
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    for file in (path, log):
        shutil.copyfile(file, folder / file.name, follow_symlinks=False)
    return f"{_address(folder / path.name)}?mode=ro"


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def _limit_work(connection: sqlite3.Connection, path: Path) -> None:
    """Trust nothing in a file, and bound what reading it may cost."""
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA cell_size_check=ON")
    left = USUAL_WORK + WORK_PER_BYTE * _num_bytes(path)

    def count() -> bool:
        nonlocal left
        left -= WORK_BETWEEN
        return left < 0

    connection.set_progress_handler(count, WORK_BETWEEN)


def lift_limits(connection: sqlite3.Connection) -> None:
    """Remove the bound on a connection's work, once it only writes."""
    connection.set_progress_handler(None, 0)


def _num_bytes(path: Path) -> int:
    """Return the size of a database and its log."""
    parts = (path.with_name(path.name + ending) for ending in ("", "-wal"))
    return sum(file.stat().st_size for file in parts if file.exists())


def _address(path: Path) -> str:
    return f"file:{quote(os.fsencode(path))}"


def inherit(path: Path) -> None:
    """Note, in a forked child, that its parent has a database open."""
    if path.exists():
        inherited.add(_identity(path))


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless the tables are those of this version, with no views or triggers beside them."""
    found = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    tables = {name: sql for kind, name, sql in found if kind == "table"}
    if not found:
        raise sqlite3.OperationalError(_NO_TABLES)
    for kind, name, sql in found:
        # SQLite makes an index for each key; such a one has no statement.
        if kind != "table" and not (kind == "index" and sql is None):
            raise RunError(
                f"{path} has the {kind} {name!r}, which no run has. Another program changed it; "
                "restore it from a copy."
            )
    # This one first: other versions may have other tables.
    _require_table("schema", tables, path)
    versions = [version for (version,) in connection.execute("SELECT version FROM schema LIMIT 2")]
    if versions != [SCHEMA]:
        text = f"schema {', '.join(map(repr, versions))}" if versions else "no schema"
        raise RunError(
            f"{path} has {text}; this version reads {SCHEMA}. "
            "Use the version of Stepladder that wrote it."
        )
    for name in _STATEMENTS:
        _require_table(name, tables, path)


def _require_table(name: str, tables: Mapping[str, Any], path: Path) -> None:
    if " ".join(str(tables.get(name)).split()) != _STATEMENTS[name]:
        raise RunError(
            f"{path} has no table {name!r} as this version makes it. Restore it from a copy."
        )


@contextmanager
def refusing_damage(path: Path) -> Iterator[None]:
    """Turn what zlib, json, NumPy and this module raise on impossible values into `RunError`."""
    try:
        yield
    except (LookupError, OverflowError, TypeError, ValueError, zlib.error) as error:
        raise RunError(f"{path} is damaged ({error}). Restore it from a copy.") from error


def integer_of(value: Any) -> int:
    """Return a stored integer, or raise TypeError."""
    if type(value) is not int:
        raise TypeError(f"expected an integer; found {repr(value)[:80]}")
    return value


def text_of(value: Any) -> str:
    """Return a stored text, or raise TypeError."""
    if type(value) is not str:
        raise TypeError(f"expected text; found {repr(value)[:80]}")
    return value


def metric_ids(database: sqlite3.Connection) -> dict[str, int]:
    """Return the numbers of all metrics by name."""
    found = database.execute("SELECT name, id FROM metric_names")
    return {text_of(name): integer_of(number) for name, number in found}


def stored_status(database: sqlite3.Connection) -> str:
    """Return the status of a run as it was written last.

    Raises:
        LookupError: There is none.
        TypeError: It is not text.
    """
    found = database.execute("SELECT value FROM settings WHERE key = 'status'").fetchone()
    if found is None:
        raise LookupError("it has no status")
    return text_of(found[0])
