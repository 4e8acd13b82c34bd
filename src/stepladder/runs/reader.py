"""Read a run: while it is being written, after it ended, and after its process was killed.

Opens what `run` wrote, read-only, for the dashboard, the report and the commands. Each question
opens the database each time, so that answers are up to date and any thread may ask.
"""

import difflib
import math
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stepladder.errors import RunError
from stepladder.files import parsed_json, require_folder, require_regular
from stepladder.plans.record import RECORD_DTYPE, RecordArray
from stepladder.runs.checkpoint_files import stored_file, stored_name
from stepladder.runs.database import (
    BEST_CHECKPOINT_KEY,
    STANDING_KEY,
    integer_of,
    reading,
    refusing_damage,
    stored_status,
    text_of,
)
from stepladder.runs.encoding import REASON, TEXT_COLUMNS, TaskColumn, Unpacking
from stepladder.runs.lock import is_locked
from stepladder.runs.run_folder import CHECKPOINTS, DATABASE, RUN_LOCK, RunInfo, naming
from stepladder.saving.snapshot import Snapshot

Series = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Steps in rising order, and one value for each."""


class Event(NamedTuple):
    """Something that happened during a run."""

    step: int
    time: float
    """Seconds since 1970."""

    kind: str
    text: str
    data: dict[str, Any]
    """Empty where none was given."""


class RunReader:
    """What a run has left so far.

    Args:
        folder: The folder of a run.

    Raises:
        RunError: The folder has no run, or a damaged one, or one of a newer version.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder).absolute()
        """Where the run is."""
        self.info = RunInfo.read(self.folder)
        """All that ``config.json`` says."""
        with self.database():
            pass

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the run."""
        return self.info.config

    @property
    def kind(self) -> str:
        """``"simulation"``, ``"training"`` or another word."""
        return self.info.kind

    @property
    def seed(self) -> int | list[int] | None:
        """The seed, or several, or None."""
        return self.info.seed

    @property
    def status(self) -> str:
        """How the run stands.

        ``"running"``; ``"finished"``; ``"failed: …"`` with the reason; ``"stopped"`` if its process
        ended without closing it; ``"killed"`` if its process died; or the word that it was closed
        with.
        """
        status = self._stored_status()
        with naming(self.folder):
            if status != "running" or is_locked(self.folder / RUN_LOCK):
                return status
        # It may have been closed meanwhile. The lock goes last, so this answer is final.
        status = self._stored_status()
        return "killed" if status == "running" else status

    def metric_names(self) -> list[str]:
        """Return the names of all metrics, in the order in which they first came."""
        with self.database() as database:
            names = database.execute("SELECT name FROM metric_names ORDER BY id")
            return [text_of(name) for (name,) in names]

    def metric(self, name: str) -> Series:
        """Return one metric as its steps, rising, and its values.

        Raises:
            RunError: The run has no such metric.
        """
        with self.database() as database:
            found = database.execute(
                "SELECT id FROM metric_names WHERE name = ?", (str(name),)
            ).fetchone()
            if found is None:
                raise self._no_metric(name)
            return _series(
                database, "SELECT step, value FROM metrics WHERE metric = ? ORDER BY step", found
            )

    def last_metrics(self) -> dict[str, float]:
        """Return the latest value of each metric."""
        with self.database() as database:
            rows = database.execute(
                "SELECT name, (SELECT value FROM metrics WHERE metric = metric_names.id "
                "ORDER BY step DESC LIMIT 1) FROM metric_names ORDER BY id"
            ).fetchall()
            return {
                text_of(name): math.nan if value is None else float(value) for name, value in rows
            }

    def times(self) -> Series:
        """Return the steps at which something was logged, and when, in seconds since 1970."""
        with self.database() as database:
            return _series(database, "SELECT step, time FROM steps ORDER BY step", ())

    def events(self, kind: str | None = None) -> list[Event]:
        """Return the events of all kinds, or of one, in the order in which they were logged."""
        with self.database() as database:
            rows = database.execute(
                "SELECT step, time, kind, text, data FROM events "
                "WHERE :kind IS NULL OR kind = :kind ORDER BY id",
                {"kind": kind},
            ).fetchall()
            return [_event(*row) for row in rows]

    def curriculum_standing(self) -> dict[str, Any]:
        """Return what the curriculum said of itself last; empty if the run does not keep it.

        The fields of its explanation, ``text`` (the same in words) and ``step``.
        """
        with self.database() as database:
            found = database.execute(
                "SELECT value FROM settings WHERE key = ?", (STANDING_KEY,)
            ).fetchone()
            parsed = {} if found is None else parsed_json(text_of(found[0]))
        return parsed if isinstance(parsed, dict) else {}

    def task_steps(self) -> list[int]:
        """Return the steps of all per-task snapshots, rising."""
        with self.database() as database:
            return _task_steps(database)

    def tasks(self, step: int | None = None) -> dict[str, TaskColumn]:
        """Return one per-task snapshot: its columns by name, one row per task.

        Args:
            step: One of `task_steps`; the latest by default.

        Returns:
            Lists of names for ``"task"`` and ``"label"``, arrays for the others. Empty if the run
            has no snapshot and `step` is None.

        Raises:
            RunError: There is no snapshot of this step.
        """
        with self.database() as database:
            if step is None:
                ((step,),) = database.execute("SELECT max(step) FROM task_columns")
            rows = database.execute(
                "SELECT task_columns.name, kind, ifnull(name_lists.data, task_columns.data) "
                "FROM task_columns LEFT JOIN name_lists "
                "ON kind = 'text' AND name_lists.digest = task_columns.data "
                "WHERE step = ? ORDER BY position",
                (step,),
            ).fetchall()
            if step is not None and not rows:
                raise RunError(
                    f"{self.folder} has no per-task snapshot of step {step!r}; it has "
                    f"{_some(_task_steps(database))}. Choose one of them."
                )
            return _columns(rows)

    @property
    def num_records(self) -> int:
        """How many records of episodes were kept."""
        with self.database() as database:
            ((count,),) = database.execute("SELECT ifnull(sum(num_records), 0) FROM record_chunks")
            return integer_of(count)

    def records(self) -> RecordArray:
        """Return all records of episodes, in the order in which they were logged."""
        with self.database() as database:
            unpacking = Unpacking()
            chunks = [
                unpacking.records(count, data)
                for count, data in database.execute(
                    "SELECT num_records, data FROM record_chunks ORDER BY id"
                )
            ]
            return np.concatenate([np.zeros(0, dtype=RECORD_DTYPE), *chunks])

    def checkpoints(self) -> list[str]:
        """Return the names of all checkpoints, in the order in which they were saved."""
        with self.database() as database:
            names = database.execute("SELECT name FROM checkpoints ORDER BY id")
            return [stored_name(name) for (name,) in names]

    def best_checkpoint(self) -> str | None:
        """Return the name of the best checkpoint so far; None if none was called so.

        Raises:
            RunError: The run has no checkpoint of this name.
        """
        with self.database() as database:
            found = database.execute(
                "SELECT value FROM settings WHERE key = ?", (BEST_CHECKPOINT_KEY,)
            ).fetchone()
            if found is None:
                return None
            name = stored_name(found[0])
            (count,) = database.execute(
                "SELECT count(*) FROM checkpoints WHERE name = ?", (name,)
            ).fetchone()
        if count:
            return name
        raise RunError(
            f"the database says that {name!r} is the best checkpoint, and it has none of this "
            "name. Restore it from a copy."
        )

    def checkpoint_step(self, name: str | None = None) -> int:
        """Return the step at which a checkpoint was saved; the latest by default.

        Raises:
            RunError: There is no such checkpoint.
        """
        return self._checkpoint(name)[1]

    def checkpoint(self, name: str | None = None) -> Snapshot:
        """Return a saved snapshot; the latest by default.

        Raises:
            RunError: There is no such checkpoint.
            SnapshotError: Its file is missing or damaged.
        """
        path = self._checkpoint(name)[0]
        if not path.exists():
            # It may have been replaced by a newer one meanwhile.
            path = self._checkpoint(name)[0]
        with naming(self.folder):
            require_folder(path.parent)
            require_regular(path, missing_ok=True)
        return Snapshot.load(path)

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Open the database for questions of the caller's own; it cannot be written through this.

        All questions in the block see one state. What they ask for is bounded, and what cannot be
        read, or is not what the tables should hold, becomes a `RunError`.
        """
        path = self.folder / DATABASE
        with refusing_damage(path), reading(path) as database:
            yield database

    def _stored_status(self) -> str:
        with self.database() as database:
            return stored_status(database)

    def _checkpoint(self, name: str | None) -> tuple[Path, int]:
        with self.database() as database:
            found = database.execute(
                "SELECT name, file, step FROM checkpoints WHERE :name IS NULL OR name = :name "
                "ORDER BY id DESC LIMIT 1",
                {"name": name},
            ).fetchone()
            if found is not None:
                called, file, step = found
                return stored_file(self.folder / CHECKPOINTS, called, file), integer_of(step)
        wanted = "checkpoint" if name is None else f"checkpoint {name!r}"
        raise RunError(
            f"{self.folder} has no {wanted}; it has {_some(self.checkpoints())}. "
            "Choose one of them, or another run."
        )

    def _no_metric(self, name: str) -> RunError:
        names = self.metric_names()
        similar = difflib.get_close_matches(str(name), names, n=3, cutoff=0.4)
        return RunError(
            f"{self.folder} has no metric {name!r}; it has {_some(similar or names)}. "
            "Choose one of metric_names()."
        )


def _series(database: sqlite3.Connection, question: str, arguments: tuple[Any, ...]) -> Series:
    rows = database.execute(question, arguments).fetchall()
    # None, which is how SQLite keeps NaN, becomes NaN again.
    values = np.array([value for _, value in rows], dtype=np.float64)
    return np.array([step for step, _ in rows], dtype=np.int64), values


def _task_steps(database: sqlite3.Connection) -> list[int]:
    steps = database.execute("SELECT DISTINCT step FROM task_columns ORDER BY step")
    return [integer_of(step) for (step,) in steps]


def _columns(rows: list[tuple[Any, Any, Any]]) -> dict[str, TaskColumn]:
    """Return the columns of a per-task snapshot, all of them equally long."""
    unpacking = Unpacking()
    columns: dict[str, TaskColumn] = {}
    for name, kind, data in rows:
        is_text = text_of(name) in (*TEXT_COLUMNS, REASON)
        if is_text != (kind == "text"):
            raise ValueError(f"column {name!r} of a per-task snapshot is {kind!r}")
        columns[name] = unpacking.names(data) if is_text else unpacking.numbers(kind, data)
    missing = [name for name in TEXT_COLUMNS if name not in columns]
    if columns and missing:
        raise ValueError(f"a per-task snapshot has no column {missing[0]!r}")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of a per-task snapshot have different lengths: {lengths}")
    return columns


def _event(step: Any, time: Any, kind: Any, text: Any, data: Any) -> Event:
    parsed = parsed_json("{}" if data is None else text_of(data))
    if not isinstance(parsed, dict):
        raise ValueError(f"the data of an event is {type(parsed).__name__}, not an object")
    return Event(integer_of(step), float(time), text_of(kind), text_of(text), parsed)


def _some(items: list[Any]) -> str:
    """Return the first few items as text."""
    if not items:
        return "none"
    return ", ".join(map(repr, items[:5])) + (", …" if len(items) > 5 else "")
