"""What happened in a run, with its reason: a page of events, and how many of each kind."""

from collections.abc import Mapping
from typing import Any

from stepladder.dashboard.queries.params import integer
from stepladder.runs import RunReader
from stepladder.runs.database import text_of

USUAL_EVENTS, MOST_EVENTS = 100, 500
MOST_LETTERS = 2_000
"""Letters of one event that are shown."""

MOST_MARKS = 24
"""Events of one kind that are marked in charts; more would hide the lines."""

UNMARKED = (
    "explanation",
    "evaluation",
    "baseline",
    "undeclared_metrics",
    "tasks_moved",
    "replaced",
)
"""Kinds that have a place of their own on the page, or say nothing about its course."""


def events(reader: RunReader, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the latest events: ``kind`` and ``find`` choose, ``before`` goes back."""
    limit = integer(params, "limit", USUAL_EVENTS, 1, MOST_EVENTS)
    before = integer(params, "before", 2**62, 0, 2**62)
    words = {
        "kind": params.get("kind") or None,
        "find": params.get("find", "").lower(),
        "before": before,
    }
    with reader.database() as database:
        rows = database.execute(
            "SELECT id, step, time, kind, substr(text, 1, :letters) FROM events"
            " WHERE id < :before AND (:kind IS NULL OR kind = :kind)"
            " AND (:find = '' OR instr(lower(text), :find) OR instr(lower(kind), :find))"
            " ORDER BY id DESC LIMIT :limit",
            {**words, "letters": MOST_LETTERS, "limit": limit},
        ).fetchall()
        kinds = database.execute(
            "SELECT kind, count(*) FROM events GROUP BY kind ORDER BY count(*) DESC LIMIT 100"
        ).fetchall()
    return {
        "kinds": {text_of(kind): count for kind, count in kinds},
        "events": [
            {"id": number, "step": step, "time": time, "kind": text_of(kind), "text": text_of(text)}
            for number, step, time, kind, text in rows
        ],
    }


def marks(reader: RunReader, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the events that charts mark: those of the rarer kinds."""
    with reader.database() as database:
        rows = database.execute(
            "SELECT step, kind, substr(text, 1, 300) FROM events WHERE kind IN"
            " (SELECT kind FROM events GROUP BY kind HAVING count(*) <= ?) ORDER BY id",
            (MOST_MARKS,),
        ).fetchall()
    return [
        {"step": step, "kind": text_of(kind), "text": text_of(text)}
        for step, kind, text in rows
        if kind not in UNMARKED
    ]
