"""What a damaged or hostile run can make of a query: an error in one line, and nothing else."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stepladder.errors import RunError, StepladderError
from stepladder.visible import one_visible_line

_SURPRISES = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
    sqlite3.Error,
)
"""What values of a wrong kind raise where a query works with them."""


@contextmanager
def naming_damage(folder: Path) -> Iterator[None]:
    """Turn what impossible values raise into an error that names the run."""
    try:
        yield
    except StepladderError:
        raise
    except _SURPRISES as error:
        raise RunError(
            f"{folder.name} holds values that no run has ({one_visible_line(repr(error))[:200]}). "
            "Restore it from a copy."
        ) from error
