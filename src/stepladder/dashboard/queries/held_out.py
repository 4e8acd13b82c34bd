"""How well a policy plays what it was not trained on: every evaluation of a run, with intervals."""

import json
from typing import Any

from stepladder.runs import RunReader
from stepladder.runs.evaluation_events import ends_of, figure_of, scores_by_way
from stepladder.runs.reader import Event

WHOLE = "all"


def last_held_out(reader: RunReader) -> dict[str, Any] | None:
    """Return the last evaluation as one figure with its interval; None if there is none."""
    events = _latest(reader, "evaluation", 1)
    for event in events:
        scores = scores_by_way(event.data)
        if scores:
            own = next(iter(scores.values()))
            name = WHOLE if WHOLE in own else next(reversed(own))
            value, low, high = ends_of(own[name])
            return {
                "value": value,
                "low": low,
                "high": high,
                "step": event.step,
                "figure": figure_of(own),
            }
    return None


def _latest(reader: RunReader, kind: str, count: int) -> list[Event]:
    with reader.database() as database:
        rows = database.execute(
            "SELECT step, time, text, data FROM events WHERE kind = ? ORDER BY id DESC LIMIT ?",
            (kind, count),
        ).fetchall()
    return [Event(step, time, kind, text, _data(data)) for step, time, text, data in rows]


def _data(text: Any) -> dict[str, Any]:
    parsed: Any = json.loads(text) if isinstance(text, str) else {}
    return parsed if isinstance(parsed, dict) else {}
