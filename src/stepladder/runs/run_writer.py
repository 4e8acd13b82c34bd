"""Keep what a simulation or a training leaves behind, in one folder.

Takes metrics, events, per-task snapshots, records and checkpoints; `reader` reads them back.
Logging only appends to lists in memory: `writer` commits them from its own thread, and `forwarder`
passes them on to loggers.
"""

import atexit
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from sqlite3 import Connection
from threading import Lock
from types import MappingProxyType
from typing import Any, NoReturn, Self

import numpy.typing as npt

from stepladder.closing import Closing
from stepladder.curricula.foreign import owners
from stepladder.errors import RunError
from stepladder.plans.record import Record
from stepladder.runs import encoding, run_folder
from stepladder.runs.checkpoint_files import (
    checked_checkpoint_name,
    next_file,
    remove_all,
    remove_older,
)
from stepladder.runs.database import (
    BEST_CHECKPOINT_KEY,
    STANDING_KEY,
    create_database,
    lift_limits,
    metric_ids,
    open_database,
)
from stepladder.runs.forwarder import Forwarder
from stepladder.runs.lock import RunLock
from stepladder.runs.loggers.base import Logger, check_loggers
from stepladder.runs.reasons import reason_of
from stepladder.runs.reopening import lock_run, reopen
from stepladder.runs.run_folder import CHECKPOINTS, DATABASE, RUN_LOCK, RunInfo, naming
from stepladder.runs.trust import note_own
from stepladder.runs.writer import DatabaseWriter
from stepladder.saving.snapshot import Snapshot, require_snapshot

FORKED = (
    "this run belongs to the process that opened it, and this is a fork of that process. "
    "Log from the parent, and send it the values of workers."
)

NUM_RECORD_FIELDS = len(Record._fields)


class RunWriter(Closing):
    """A run that is being written. Make one with `Run.create` or `Run.resume`.

    All methods may be called from any thread. Once something could not be written to the database,
    every further call raises `RunError`; a logger that fails is counted and otherwise ignored.
    As a context manager it closes itself, as failed if an exception comes out. A process that ends
    without closing its run leaves it complete, with the status ``"stopped"``; one that is killed
    leaves all but the last half second or so.
    """

    def __init__(
        self,
        folder: Path,
        info: RunInfo,
        lock: RunLock,
        connection: Connection,
        loggers: Sequence[Logger],
    ):
        self.folder = folder
        """Where everything is."""
        self.info = info
        """What ``config.json`` says."""
        self._refusal: str | None = None
        self._lock = lock
        self._metric_ids = metric_ids(connection)
        self._last_metric_id = max(self._metric_ids.values(), default=0)
        self._last_step = 0
        self._checkpoint_lock = Lock()
        self._close_lock = Lock()
        self._writer = DatabaseWriter(connection, folder / DATABASE)
        self._forwarders = [Forwarder(logger) for logger in loggers]
        owners.add(self)
        atexit.register(self._close_at_exit)

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        *,
        kind: str,
        config: Mapping[str, Any] | None = None,
        seed: int | Sequence[int] | None = None,
        overwrite: bool = False,
        loggers: Sequence[Logger] = (),
    ) -> Self:
        """Begin a run in a new or empty folder.

        Args:
            folder: Where to put it; made if missing.
            kind: ``"simulation"``, ``"training"`` or any other word.
            config: Settings with which the run can be repeated; plain JSON.
            seed: The seed, or several.
            overwrite: Replace a run that the folder holds. Nothing but a run is ever replaced, and
                files that the old run did not write stay.
            loggers: Where metrics and events go as well. The run closes them.

        Raises:
            RunError: The folder holds a run or something else, or cannot be written.
            ConfigError: An argument is wrong.
        """
        path = Path(folder).absolute()
        check_loggers(loggers)
        info = run_folder.describe(kind, {} if config is None else config, seed)
        with ExitStack() as undo, naming(path):
            # Before anything is written: a folder that is not ours is left exactly as it is.
            run_folder.refuse_unless_free(path, overwrite)
            path.mkdir(parents=True, exist_ok=True)
            lock = RunLock.take(path / RUN_LOCK)
            undo.callback(lock.release)
            # Again, now that no other process can make a run here.
            run_folder.refuse_unless_free(path, overwrite)
            run_folder.clear(path)
            info.write(path)
            (path / CHECKPOINTS).mkdir(exist_ok=True)
            connection = create_database(path / DATABASE)
            undo.callback(connection.close)
            run = cls(path, info, lock, connection, loggers)
            undo.pop_all()
        note_own(path, info.config)
        return run

    @classmethod
    def resume(
        cls,
        folder: str | os.PathLike[str],
        *,
        checkpoint: str | None = None,
        loggers: Sequence[Logger] = (),
        lock: RunLock | None = None,
    ) -> Self:
        """Reopen a run that was closed or killed, to append to it.

        Args:
            folder: The folder of a run.
            checkpoint: Go back to this checkpoint: everything that was logged or saved after it is
                removed, so that what is played again is not kept twice. Without it, all stays, and
                a metric that is logged again at a step replaces its older value.
            loggers: Where metrics and events go as well. The run closes them.
            lock: From `lock_run`, if the caller has read the run before. The run releases it.

        Raises:
            RunError: The folder has no run, or a damaged one, or it is being written.
        """
        path = Path(folder).absolute()
        check_loggers(loggers)
        with ExitStack() as undo, naming(path):
            lock = lock or lock_run(path)
            undo.callback(lock.release)
            info = RunInfo.read(path)
            connection = open_database(path / DATABASE)
            undo.callback(connection.close)
            step, text = reopen(connection, path, checkpoint)
            lift_limits(connection)
            run = cls(path, info, lock, connection, loggers)
            undo.pop_all()
        run._last_step = step
        run._forward(step, "event", step, "resumed", text)
        return run

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be logged any more."""
        return self._refusal is not None

    @property
    def num_logger_errors(self) -> int:
        """How often a logger raised or was too slow. The first time of each is an event as well."""
        return sum(forwarder.num_errors for forwarder in self._forwarders)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep metrics.

        Args:
            step: How many steps all envs have taken together; at least 0.
            metrics: Numbers by name. NaN and the infinities are kept. A metric has one value per
                step: another one replaces it.
        """
        self._require_open()
        if type(step) is not int or not 0 <= step <= encoding.MAX_STEP:
            step = encoding.checked_step(step)
        # Checked before anything is added, so that a call is kept as a whole or not at all.
        values = {
            name: value if type(value) is float else encoding.checked_number(name, value)
            for name, value in metrics.items()
        }
        now = time.time()
        with self._writer.adding(len(values) + 1) as rows:
            ids = self._metric_ids
            new = [name for name in values if name not in ids]
            for name in new:
                encoding.checked_name(name, "the name of a metric")
            for name in new:
                ids[name] = self._last_metric_id = self._last_metric_id + 1
                rows.metric_names.append((ids[name], name))
            rows.metrics += [(ids[name], step, value) for name, value in values.items()]
            rows.steps.append((step, now))
        self._last_step = step
        if self._forwarders:
            self._forward(step, "log", step, MappingProxyType(values))

    def event(self, step: int, kind: str, text: str, data: Mapping[str, Any] | None = None) -> None:
        """Keep something that happened, with its reason.

        Args:
            step: When, as in `log`.
            kind: What kind of thing, such as ``"stage_advanced"``.
            text: What happened and why, in words.
            data: The same in numbers: anything JSON can hold, and arrays.
        """
        self._require_open()
        step, text = encoding.checked_step(step), encoding.readable_text(text)
        self._add_event(step, encoding.checked_name(kind, "the kind of an event"), text, data)
        self._forward(step, "event", step, kind, text)

    def keep_standing(self, step: int, standing: Mapping[str, Any]) -> None:
        """Keep where the curriculum stands and why, in place of what it said before."""
        self._require_open()
        data = encoding.packed_data({**standing, "step": encoding.checked_step(step)})
        assert data is not None
        with self._writer.adding(1) as rows:
            rows.settings.append((STANDING_KEY, data))

    def log_tasks(self, step: int, columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]]) -> None:
        """Keep one row per task; a later call at the same step replaces it.

        Args:
            step: When, as in `log`.
            columns: Equally long columns by name: ``"task"`` (names), ``"label"``, and any number
                of others, which hold numbers.
        """
        self._require_open()
        step, checked = encoding.checked_step(step), encoding.checked_columns(columns)
        with self._writer.adding(len(checked) * len(checked["task"])) as rows:
            rows.tasks.append((step, checked))

    def log_records(self, records: npt.NDArray[Any]) -> None:
        """Keep records of episodes: a one-dimensional array of ``RECORD_DTYPE``."""
        self._require_open()
        copied = encoding.checked_records(records)
        with self._writer.adding(len(copied) * NUM_RECORD_FIELDS) as rows:
            rows.records.append(copied)

    def save_checkpoint(self, name: str, snapshot: Snapshot, step: int) -> Path:
        """Write a snapshot, and return its file. It is safe on disk when this returns.

        The file gets a number of its own, and the database says which one counts: at any moment
        there is either the old checkpoint with its step or the new one with its.

        Args:
            name: What to call it; an older checkpoint of this name is replaced.
            snapshot: What to save.
            step: When, as in `log`.
        """
        self._require_open()
        require_snapshot(snapshot)
        step, name = encoding.checked_step(step), checked_checkpoint_name(name)
        with self._checkpoint_lock, naming(self.folder):
            path = next_file(self.folder / CHECKPOINTS, name)
            snapshot.save(path)
            with self._writer.adding(1) as rows:
                rows.checkpoints.append((name, path.name, step, time.time()))
            self._writer.flush()
            remove_older(path, name)
        return path

    def mark_best(self, name: str) -> None:
        """Say which checkpoint is the best so far, in place of an earlier one.

        Args:
            name: What the checkpoint is called; it must have been saved.
        """
        self._require_open()
        name = checked_checkpoint_name(name)
        with self._checkpoint_lock, naming(self.folder):
            with self._writer.adding(1) as rows:
                rows.settings.append((BEST_CHECKPOINT_KEY, name))
            self._writer.flush()

    def remove_checkpoint(self, name: str) -> None:
        """Forget a checkpoint and remove what it left on disk; nothing happens if there is none."""
        self._require_open()
        name = checked_checkpoint_name(name)
        with self._checkpoint_lock, naming(self.folder):
            # The database first: a kill in between leaves files without an entry, which do no harm.
            with self._writer.adding(1) as rows:
                rows.removed_checkpoints.append(name)
            self._writer.flush()
            remove_all(self.folder / CHECKPOINTS, name)

    def flush(self) -> None:
        """Wait until all that was logged is in the database, where readers see it."""
        self._require_open()
        self._writer.flush()

    def close(self, status: str = "finished") -> None:
        """Write what is left, and the status; close the loggers. Nothing happens the second time.

        Args:
            status: How it ended: ``"finished"``, or ``"failed: …"`` with a reason.
        """
        if self._refusal is not None:
            return
        with self._close_lock:
            news = self._end(encoding.readable_text(status)) if self._refusal is None else []
        for text in news:
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def fail(self, error: BaseException) -> None:
        """Close the run as failed, with the reason; a problem with that becomes a note of it."""
        try:
            self.close(f"failed: {reason_of(error)}")
        except RunError as problem:
            # The first error is the one that the caller has to see.
            error.add_note(f"The run could not be closed either: {problem}")

    def _end_block(self, error: BaseException | None) -> None:
        if error is None:
            self.close()
        else:
            self.fail(error)

    def __reduce__(self) -> NoReturn:
        raise RunError(
            "a run cannot be copied or sent to another process: it belongs to the one that opened "
            "it. Log from there, and send it the values of workers."
        )

    def disown(self) -> None:
        """Refuse to work from now on, and touch nothing. Called in a forked child."""
        self._refusal = FORKED
        self._lock.release()
        self._writer.disown()

    def _require_open(self) -> None:
        if self._refusal is not None:
            raise RunError(self._refusal)

    def _close_at_exit(self) -> None:
        self.close("stopped")

    def _end(self, status: str) -> list[str]:
        """Close everything; return the warnings about loggers."""
        self._refusal = f"{self.folder} has been closed. Reopen it with Run.resume."
        try:
            for forwarder in self._forwarders:
                forwarder.close()
            # The database last: it also stores the last errors of loggers.
            news = self._collect_news(self._last_step)
        finally:
            atexit.unregister(self._close_at_exit)
            try:
                self._writer.close(status)
            finally:
                self._lock.release()
                owners.discard(self)
        return news

    def _add_event(self, step: int, kind: str, text: str, data: Mapping[str, Any] | None) -> None:
        row = (step, time.time(), kind, text, encoding.packed_data(data))
        with self._writer.adding(len(row)) as rows:
            rows.events.append(row)

    def _forward(self, step: int, method: str, *arguments: Any) -> None:
        for forwarder in self._forwarders:
            forwarder.put(method, *arguments)
        for text in self._collect_news(step):
            warnings.warn(text, RuntimeWarning, stacklevel=3)

    def _collect_news(self, step: int) -> list[str]:
        """Keep the first failure of each logger as an event, and return it in words."""
        news = [text for forwarder in self._forwarders if (text := forwarder.take_news())]
        for text in news:
            self._add_event(step, "logger_failed", encoding.readable_text(text), None)
        return news
