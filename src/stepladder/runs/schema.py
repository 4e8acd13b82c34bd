"""The tables of a run's database, and whether a file has just these.

Used by `database` before anything else is asked: a view, a trigger or a table of another make is
somebody else's code, which a question about a run must not start.
"""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepladder.errors import RunError

SCHEMA = 1
"""Version of the tables; another is refused."""

NO_TABLES = "no such table: schema"
"""What is wrong with a database that was just being made when its process was killed."""

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


def _name_of(statement: str) -> str:
    return statement.split()[2]


_STATEMENTS = {_name_of(statement): " ".join(statement.split()) for statement in TABLES}


def make_tables(connection: sqlite3.Connection) -> None:
    """Make all tables, and say which version they are; the caller has begun a transaction."""
    for statement in TABLES:
        connection.execute(statement)
    connection.execute("INSERT INTO schema VALUES (?)", (SCHEMA,))


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless the tables are those of this version, and nothing else can act in them.

    Raises:
        RunError: They are not.
        sqlite3.Error: The file cannot be read.
    """
    found = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    tables = {name: sql for kind, name, sql in found if kind == "table"}
    if not found:
        raise sqlite3.OperationalError(NO_TABLES)
    for kind, name, sql in found:
        # SQLite makes an index of its own for each key; such a one has no statement.
        if kind != "table" and not (kind == "index" and sql is None):
            raise RunError(
                f"{path} has the {kind} {name!r}, which no run has. It was changed by somebody "
                "else; restore it from a copy."
            )
    # This one first: what another version calls its other tables is its own affair.
    _require_table("schema", tables, path)
    versions = [version for (version,) in connection.execute("SELECT version FROM schema LIMIT 2")]
    if versions != [SCHEMA]:
        said = f"schema {', '.join(map(repr, versions))}" if versions else "no schema"
        raise RunError(
            f"{path} has {said}; this version reads {SCHEMA}. "
            "Use the version of Stepladder that wrote it."
        )
    for name in _STATEMENTS:
        _require_table(name, tables, path)


def _require_table(name: str, tables: Mapping[str, Any], path: Path) -> None:
    if " ".join(str(tables.get(name)).split()) != _STATEMENTS[name]:
        raise RunError(
            f"{path} has no table {name!r} as this version makes it. Restore it from a copy."
        )
