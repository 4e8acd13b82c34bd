"""One training in a process of its own: what `crew` starts.

Gets a `TrainingOrder` through a connection, begins or resumes that run, sends its progress back,
and says how it ended. When the other side is gone it saves and stops, as after Ctrl-C.
"""

import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from stepladder import named
from stepladder.errors import StepladderError
from stepladder.runs import Logger, RunReader
from stepladder.runs.checkpoint_files import age
from stepladder.runs.reasons import notes_of, reason_of
from stepladder.runs.run_folder import holds_run
from stepladder.runs.trust import names_of_code
from stepladder.training.config import TrainingConfig
from stepladder.training.results import Progress, TrainingResult
from stepladder.trusted import allow

SeedLoggers = Callable[[Path, dict[str, Any]], Sequence[Logger]]
"""Makes the loggers of a run, given its folder and its settings."""


@dataclass(frozen=True, kw_only=True)
class TrainingOrder:
    """A training for another process."""

    folder: Path
    """Where its run is or will be."""

    config: TrainingConfig

    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What a resumed run changes: its end, its device."""

    initial_weights: str | None = None
    loggers: SeedLoggers | None = None

    code: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the names of the config stand for in the process that gives this order."""


@dataclass(frozen=True, kw_only=True)
class TrainingEnd:
    """How a training in another process ended."""

    how: Literal["finished", "stopped", "failed", "died"]
    """It has died if its process was ended from outside, so that it says nothing itself."""

    reason: str = ""
    """Why it failed or died, in one line."""


Message = Progress | TrainingEnd


def order_of(
    folder: Path, config: TrainingConfig, initial_weights: str | None, **others: Any
) -> TrainingOrder:
    """Return an order, with the code that this process has been given by the user."""
    names = names_of_code(config.to_json())
    code = {name: named.given(name) for name in names if named.given(name) is not None}
    return TrainingOrder(
        folder=folder.absolute(),
        config=config,
        code=code,
        initial_weights=initial_weights,
        **others,
    )


def main(connection: Connection) -> None:
    """Carry out the order that a connection brings."""
    order: TrainingOrder = pickle.loads(connection.recv_bytes())
    threading.Thread(target=_stop_with_other_side, args=(connection,), daemon=True).start()
    connection.send(_carried_out(order, connection))


def _stop_with_other_side(connection: Connection) -> None:
    try:
        connection.recv_bytes()
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGTERM)


def _carried_out(order: TrainingOrder, connection: Connection) -> TrainingEnd:
    for name, code in order.code.items():
        named.give(name, code)
    # The user has named these, or has said that they are trusted.
    allow(names_of_code(order.config.to_json()))

    def report(progress: Progress) -> None:
        try:
            connection.send(progress)
        except OSError:
            # The other side is gone; this process is about to stop.
            return

    try:
        result = _played(order, report)
    except StepladderError as error:
        return TrainingEnd(how="failed", reason=_in_one_line(error))
    except Exception as error:  # the env may raise anything; others go on, and the log has it whole
        traceback.print_exc(file=sys.stderr)
        return TrainingEnd(how="failed", reason=reason_of(error))
    return TrainingEnd(how="stopped" if result.was_stopped else "finished")


def _played(order: TrainingOrder, report: Callable[[Progress], None]) -> TrainingResult:
    from stepladder.training.starting import resume, train

    folder, make = order.folder, order.loggers
    loggers: Any = () if make is None else lambda about: make(folder, about)
    if holds_run(folder) and _can_continue(folder):
        return resume(folder, trust=True, loggers=loggers, on_epoch=report, **order.changes)
    # From its first step, if it was ended before its first checkpoint: that is the same training.
    return train(
        order.config,
        run_folder=folder,
        overwrite=True,
        initial_weights=order.initial_weights,
        loggers=loggers,
        on_epoch=report,
        **order.changes,
    )


def _can_continue(folder: Path) -> bool:
    return any(age(name) is not None for name in RunReader(folder).checkpoints())


def _in_one_line(error: StepladderError) -> str:
    notes = notes_of(error)
    text = f"{error} ({'; '.join(notes)})" if notes else str(error)
    return " ".join(text.split())
