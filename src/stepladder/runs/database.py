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
from stepladder.files import IrregularFileError, require_regular
from stepladder.runs.schema import NO_TABLES, check_schema, make_tables
from stepladder.visible import one_visible_line

BUSY_TIMEOUT_S = 30.0
"""How long to wait for another process, such as a shell in which somebody looks at the file."""

USUAL_WORK, WORK_PER_BYTE = 5_000_000, 10
"""Instructions of SQLite that a reading may take: so many, and so many for each byte of the file.

A file may be built so that a few pages are read over and over, for years.
"""

WORK_BETWEEN = 50_000
"""Instructions between two looks at how many there were."""

SMALLEST_LIMIT = 1_000_000
"""Bytes that a value may have at least; otherwise no value is longer than its file."""

LONGEST_VALUE = 1_000_000_000
"""Bytes that SQLite lets a value have in any case."""

BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database, by its ending."""

inherited: set[tuple[int, int]] = set()
"""Databases that this process got open from the one it was forked from (device and inode)."""


def create_database(path: Path) -> sqlite3.Connection:
    """Make the database of a new run; the file must not exist."""
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(connection)
        connection.execute("BEGIN")
        make_tables(connection)
        connection.execute("INSERT INTO settings VALUES ('status', 'running')")
        # All in one transaction: a reader sees a whole run, or none yet.
        connection.execute("COMMIT")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def open_database(path: Path) -> sqlite3.Connection:
    """Open the database of an existing run for writing.

    Its work is limited; `lift_limits` when what was written before has been read.

    Raises:
        RunError: It is missing, damaged, or of another schema.
    """
    refuse_inherited(path)
    try:
        _require_files(path)
        _refuse_journal(path)
        with ExitStack() as undo:
            connection = sqlite3.connect(
                f"{_address(path)}?mode=rw",
                uri=True,
                timeout=BUSY_TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,
            )
            undo.callback(connection.close)
            limit_work(connection, path)
            check_schema(connection, path)
            _prepare(connection)
            undo.pop_all()
    except sqlite3.Error as error:
        raise unreadable(path, error) from error
    return connection


def limit_work(connection: sqlite3.Connection, path: Path) -> None:
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
    """Let a connection work without end, once all that it does is to write."""
    connection.set_progress_handler(None, 0)


def _num_bytes(path: Path) -> int:
    """Return how large a database is, with what is still in its log."""
    beside = (path.with_name(path.name + ending) for ending in ("", "-wal"))
    return sum(file.stat().st_size for file in beside if file.exists())


def _require_files(path: Path) -> None:
    """Raise unless a database and what lies beside it are files; SQLite would follow links."""
    try:
        for ending in ("", *BESIDE):
            require_regular(path.with_name(path.name + ending), missing_ok=True)
    except IrregularFileError as error:
        raise RunError(f"{error}. Restore the run from a copy.") from error


def _refuse_journal(path: Path) -> None:
    """Raise if there is a journal: a run writes a log, and a journal may name files elsewhere."""
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists() and journal.stat().st_size > 0:
        raise RunError(
            f"{journal} is there, which no finished run leaves: the run was killed when it was "
            "just being made, or somebody has changed it. Make it anew with overwrite=True."
        )


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
        _require_files(path)
        with _read_only(path) as connection:
            check_schema(connection, path)
            yield connection
    except sqlite3.Error as error:
        raise unreadable(path, error) from error


@contextmanager
def _read_only(path: Path) -> Iterator[sqlite3.Connection]:
    with ExitStack() as stack:
        connection = stack.enter_context(_connected(f"{_address(path)}?mode=ro", path))
        if not _can_read(connection):
            address = _address_without_index(path, stack)
            connection = stack.enter_context(_connected(address, path))
        yield connection


@contextmanager
def _connected(address: str, path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database, or a copy of it, so that questions can be asked and nothing else done."""
    with closing(
        sqlite3.connect(address, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    ) as connection:
        limit_work(connection, path)
        connection.execute("PRAGMA query_only=ON")
        longest = max(SMALLEST_LIMIT, _num_bytes(path))
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(longest, LONGEST_VALUE))
        connection.execute("BEGIN")
        yield connection


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
        shutil.copyfile(file, folder / file.name, follow_symlinks=False)
    return f"{_address(folder / path.name)}?mode=ro"


def unreadable(path: Path, error: sqlite3.Error) -> RunError:
    """Say in one line why a database cannot be read."""
    if not path.exists() or NO_TABLES in str(error):
        return RunError(
            f"{path.parent} has no database yet: the run is just being made, or was killed at "
            "that moment. Try again, or make it anew with overwrite=True."
        )
    reason = str(error)
    if reason == "interrupted":
        reason = "reading it takes far longer than its size explains"
    return RunError(f"{path} cannot be read ({one_visible_line(reason)}). Restore it from a copy.")


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
