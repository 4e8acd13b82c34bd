"""Continue a run where it ended, or go back to one of its checkpoints.

Called by `Run.resume`, with the lock held and before the writer starts.
"""

import os
import sqlite3
import time
from pathlib import Path

from stepladder.errors import RunError
from stepladder.files import require_folder
from stepladder.runs.checkpoint_files import age, remove_all, stored_name
from stepladder.runs.database import (
    FORGET_BEST,
    STANDING_KEY,
    integer_of,
    metric_ids,
    refusing_damage,
    stored_status,
)
from stepladder.runs.lock import RunLock
from stepladder.runs.run_folder import CHECKPOINTS, DATABASE, RUN_LOCK, RunInfo, naming
from stepladder.runs.writer import PendingRows, write_rows


def lock_run(folder: str | os.PathLike[str]) -> RunLock:
    """Lock a run for writing, before anything of it is read.

    Reading first and locking later could remove what another process has written meanwhile.

    Raises:
        RunError: The folder has no run, or another process writes it; the process is named.
    """
    path = Path(folder).absolute()
    # First, so that nothing is written into a folder without a run.
    RunInfo.read(path)
    with naming(path):
        return RunLock.take(path / RUN_LOCK)


def reopen(connection: sqlite3.Connection, folder: Path, checkpoint: str | None) -> tuple[int, str]:
    """Mark a run as running again, after removing what came after a checkpoint, if one is given.

    Returns:
        The step of the run, and a text about what happened.

    Raises:
        RunError: There is no such checkpoint, or the database is damaged.
        OSError: What came after cannot be removed.
    """
    with refusing_damage(folder / DATABASE):
        status = stored_status(connection)
        # `Run` needs them: damage is reported now, while nothing has been changed.
        metric_ids(connection)
        was = "killed" if status == "running" else status
        if checkpoint is None:
            ((last,),) = connection.execute("SELECT ifnull(max(step), 0) FROM steps")
            step = integer_of(last)
            text = f"Resumed at step {step}; the run was {was}."
        else:
            require_folder(folder / CHECKPOINTS)
            step, names = forget_after(connection, checkpoint)
            text = f"Resumed from checkpoint {checkpoint!r} at step {step}; the run was {was}."
            for name in names:
                remove_all(folder / CHECKPOINTS, name)
        event = (step, time.time(), "resumed", text, None)
        write_rows(connection, PendingRows(events=[event], settings=[("status", "running")]))
        return step, text


def _check_row(
    connection: sqlite3.Connection, name: str, step: int, last_event: int, last_chunk: int
) -> None:
    """Raise unless the row of a checkpoint is possible: it decides what is removed."""
    saved_at = age(name)
    if step < 0 or (saved_at is not None and saved_at[0] != step):
        raise RunError(
            f"the database says that checkpoint {name!r} was saved at step {step}. It is damaged; "
            "restore it from a copy."
        )
    for what, number, table in (
        ("event", last_event, "events"),
        ("chunk of records", last_chunk, "record_chunks"),
    ):
        ((most,),) = connection.execute(f"SELECT ifnull(max(id), 0) FROM {table}")
        if not 0 <= number <= integer_of(most):
            raise RunError(
                f"the database says that checkpoint {name!r} was saved after {what} {number} of "
                f"{most}. It is damaged; restore it from a copy."
            )


def forget_after(connection: sqlite3.Connection, name: str) -> tuple[int, list[str]]:
    """Remove everything that was logged or saved after a checkpoint.

    Returns:
        The step of the checkpoint, and the names of the checkpoints that were removed.

    Raises:
        RunError: There is no such checkpoint.
    """
    found = connection.execute(
        "SELECT id, step, last_event, last_chunk FROM checkpoints WHERE name = ?", (name,)
    ).fetchone()
    if found is None:
        known = [row[0] for row in connection.execute("SELECT name FROM checkpoints ORDER BY id")]
        raise RunError(f"the run has no checkpoint {name!r}; it has {known}. Choose one of them.")
    checkpoint, step, last_event, last_chunk = map(integer_of, found)
    _check_row(connection, name, step, last_event, last_chunk)
    names = connection.execute("SELECT name FROM checkpoints WHERE id > ?", (checkpoint,))
    # All of them before anything is removed: a refusal changes nothing.
    later_names = [stored_name(row[0]) for row in names]
    connection.execute("BEGIN IMMEDIATE")
    for statement, value in (
        ("DELETE FROM metrics WHERE step > ?", step),
        ("DELETE FROM steps WHERE step > ?", step),
        ("DELETE FROM task_columns WHERE step > ?", step),
        ("DELETE FROM events WHERE id > ?", last_event),
        ("DELETE FROM record_chunks WHERE id > ?", last_chunk),
        ("DELETE FROM checkpoints WHERE id > ?", checkpoint),
    ):
        connection.execute(statement, (value,))
    connection.execute("DELETE FROM settings WHERE key = ?", (STANDING_KEY,))
    connection.execute(FORGET_BEST)
    connection.execute(
        "DELETE FROM metric_names WHERE NOT EXISTS "
        "(SELECT 1 FROM metrics WHERE metric = metric_names.id)"
    )
    connection.execute("COMMIT")
    return step, later_names
