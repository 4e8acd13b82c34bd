"""Single values of a database: of the kind that was written, or refused.

SQLite holds anything in a column of any type. Used by `reader` and `reopening`.
"""

import sqlite3
import zlib
from typing import Any

DAMAGED = (LookupError, OverflowError, TypeError, ValueError, zlib.error)
"""What unpacking raises, between zlib, json, NumPy and this, where a database holds nonsense."""


def whole(value: Any) -> int:
    """Return an integer, or raise TypeError."""
    if type(value) is not int:
        raise TypeError(f"expected an integer; found {repr(value)[:80]}")
    return value


def text_of(value: Any) -> str:
    """Return a text, or raise TypeError."""
    if type(value) is not str:
        raise TypeError(f"expected text; found {repr(value)[:80]}")
    return value


def metric_ids(database: sqlite3.Connection) -> dict[str, int]:
    """Return the numbers of all metrics by name."""
    found = database.execute("SELECT name, id FROM metric_names")
    return {text_of(name): whole(number) for name, number in found}


def stored_status(database: sqlite3.Connection) -> str:
    """Return the status of a run as it was written last.

    Raises:
        LookupError: There is none.
        TypeError: It is no text.
    """
    found = database.execute("SELECT value FROM settings WHERE key = 'status'").fetchone()
    if found is None:
        raise LookupError("it has no status")
    return text_of(found[0])
