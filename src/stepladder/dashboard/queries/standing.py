"""Where a run stands: its status, how far and how fast it is, and how long it may still take.

From the run's database and its config alone; every page shows some of it.
"""

import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepladder.runs import RunReader
from stepladder.runs.database import text_of

STALE_S, STALE_EPOCHS = 120.0, 10
"""A run whose process lives is stale if silent for so long, and for so many of its epochs."""

RECENT_S = 60.0
"""Speed is measured over the last so many seconds of a run."""

KILLED = "its process ended without closing the run: it was killed"
_CRASHES = ("killed", "failed")
_STOPS = ("stopped", "interrupted")

LAST_VALUE = """
SELECT value FROM metrics WHERE metric = (SELECT id FROM metric_names WHERE name = ?)
ORDER BY step DESC LIMIT 1
"""


@dataclass(frozen=True, kw_only=True)
class RunStanding:
    """Where a run stands."""

    status: str
    """running, stale, finished, stopped or crashed."""

    detail: str
    """What is behind that word, such as the reason of a crash; may be empty."""

    step: int
    budget: int | None
    """Steps after which the run ends; None if steps do not end it."""

    seconds: float
    """From its first to its last sign of life."""

    steps_per_second: float | None
    seconds_left: float | None
    """At the present speed; None unless it is running."""

    updated: float | None
    """Its last sign of life, in seconds since 1970."""

    episodes: float | None


def standing(reader: RunReader, now: float | None = None) -> RunStanding:
    """Return where a run stands at a moment, in seconds since 1970; by default now."""
    now = time.time() if now is None else now
    stored = reader.status
    with reader.database() as database:
        first, last, step, num_logged = database.execute(
            "SELECT min(time), max(time), max(step), count(*) FROM steps"
        ).fetchone()
        (last_event, event_step) = database.execute(
            "SELECT max(time), max(step) FROM events"
        ).fetchone()
        speed = _speed(database, last)
        episodes = last_value(database, "env_curriculum_stats/total_completions")
        budget = _budget(reader.config, database)
    updated = max((t for t in (last, last_event) if t is not None), default=None)
    status, detail = _status(stored, updated, now, (first, last, num_logged))
    at = max(step or 0, event_step or 0)
    is_running = status == "running"
    left = max(0, budget - at) / speed if is_running and budget and speed else None
    return RunStanding(
        status=status,
        detail=detail,
        step=at,
        budget=budget,
        seconds=0.0 if first is None else float(last) - float(first),
        steps_per_second=speed,
        seconds_left=left,
        updated=updated,
        episodes=episodes,
    )


def last_value(database: sqlite3.Connection, name: str) -> float | None:
    """Return the last value of a metric; None if it has none."""
    row = database.execute(LAST_VALUE, (name,)).fetchone()
    return None if row is None else row[0]


def _status(
    stored: str, updated: float | None, now: float, logged: tuple[Any, Any, int]
) -> tuple[str, str]:
    word, _, reason = stored.partition(": ")
    if word in _CRASHES:
        return "crashed", KILLED if word == "killed" else reason
    if word in _STOPS:
        return "stopped", "by hand, before its end" if word == "interrupted" else ""
    if word != "running":
        return ("finished", "") if word == "finished" else ("finished", stored)
    first, last, count = logged
    usual = (last - first) / (count - 1) if count > 1 else 0.0
    silent = 0.0 if updated is None else now - updated
    if silent > max(STALE_S, STALE_EPOCHS * usual):
        return "stale", "its process is there, but has logged nothing for a while"
    return "running", ""


def _speed(database: sqlite3.Connection, last: float | None) -> float | None:
    """Return steps per second over the last minute of a run."""
    if last is None:
        return None
    rows = database.execute(
        "SELECT min(step), max(step), min(time), max(time) FROM"
        " (SELECT step, time FROM steps ORDER BY step DESC LIMIT 2000) WHERE time >= ?",
        (last - RECENT_S,),
    ).fetchone()
    low, high, start, end = rows
    if low is None or end - start < 0.05 or high <= low:
        return last_value(database, "overview/steps_per_second")
    return (high - low) / (end - start)


def _budget(config: Mapping[str, Any], database: sqlite3.Connection) -> int | None:
    total = config.get("total_steps")
    if isinstance(total, int) and not isinstance(total, bool) and total > 0:
        return total
    simulation = config.get("simulation")
    epochs = simulation.get("num_epochs") if isinstance(simulation, Mapping) else None
    if isinstance(epochs, int) and epochs > 0:
        row = database.execute(
            "SELECT step, value FROM metrics WHERE metric ="
            " (SELECT id FROM metric_names WHERE name = 'metric/epoch') ORDER BY step DESC LIMIT 1"
        ).fetchone()
        if row and row[1]:
            return round(row[0] / row[1] * epochs)
    return None


def curriculum_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a run's curriculum; empty if there are none that can be read."""
    found = config.get("curriculum")
    return found if isinstance(found, Mapping) else {}


def kind_of_curriculum(config: Mapping[str, Any]) -> str:
    """Return the name of a run's curriculum; empty if it is not known."""
    settings = curriculum_of(config)
    name = settings.get("type") or settings.get("name")
    return name if isinstance(name, str) else ""


def subject(config: Mapping[str, Any]) -> str:
    """Return what a run is about: its env or its scenario; empty if it does not say."""
    simulation = config.get("simulation")
    found = config.get("env")
    if found is None and isinstance(simulation, Mapping):
        found = simulation.get("scenario")
    if found is None:
        found = config.get("scenario")
    return found if isinstance(found, str) else ""


def metric_id(database: sqlite3.Connection, name: str) -> int | None:
    """Return the number of a metric; None if the run has none of this name."""
    row = database.execute("SELECT id FROM metric_names WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]


def names_below(database: sqlite3.Connection, prefix: str) -> list[tuple[str, int]]:
    """Return what follows a prefix, and the number, of every metric whose name begins so."""
    rows = database.execute(
        "SELECT name, id FROM metric_names WHERE substr(name, 1, ?) = ? ORDER BY id",
        (len(prefix), prefix),
    )
    return [(text_of(name)[len(prefix) :], number) for name, number in rows]
