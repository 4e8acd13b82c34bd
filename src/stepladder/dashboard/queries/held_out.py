"""How well a policy plays what it was not trained on: every evaluation of a run, with intervals."""

import math
from collections.abc import Mapping
from typing import Any

from stepladder.dashboard.queries.labels import label_order, ordered
from stepladder.files import parsed_json
from stepladder.runs import RunReader
from stepladder.runs.evaluation_events import Scores, ends_of, figure_of, scores_by_way

WHOLE = "all"
"""The name of the score of all games."""

MOST_EVALUATIONS = 400
"""Evaluations that are shown; of more, these at even distances and the last."""

Ends = tuple[float | None, float | None, float | None]


def held_out(reader: RunReader, params: Mapping[str, str]) -> dict[str, Any]:
    """Return all evaluations: a curve with intervals per group, the last table, random play."""
    with reader.database() as database:
        order = label_order(reader, database)
        ((count,),) = database.execute("SELECT count(*) FROM events WHERE kind = 'evaluation'")
        rows = database.execute(
            "SELECT step, data FROM (SELECT step, data, row_number() OVER (ORDER BY id) AS place"
            " FROM events WHERE kind = 'evaluation') WHERE place % ? = 0 OR place = ?"
            " ORDER BY place",
            (max(1, -(-count // MOST_EVALUATIONS)), count),
        ).fetchall()
        base = database.execute(
            "SELECT data FROM events WHERE kind = 'baseline' ORDER BY id LIMIT 1"
        ).fetchone()
    measured = [(step, ways) for step, data in rows if (ways := _ways(data))]
    if not measured:
        return {"curves": [], "ways": {}, "figure": "", "own": "", "step": None, "random": {}}
    figure = figure_of(next(iter(measured[-1][1].values())))
    curves: dict[str, dict[str, Any]] = {}
    for step, ways in measured:
        for name, score in next(iter(ways.values())).items():
            value, low, high = _ends(score)
            found = curves.setdefault(name, {"x": [], "y": [], "low": [], "high": []})
            for key, entry in (("x", step), ("y", value), ("low", low), ("high", high)):
                found[key].append(entry)
    random = _ways(base[0]) if base else {}
    last_step, last = measured[-1]
    table = {**random, **last}
    return {
        "figure": figure,
        "own": next(iter(last)),
        "step": last_step,
        "curves": [{"name": name, **curves[name]} for name in ordered(curves, [WHOLE, *order])],
        "ways": {
            way: {name: _ends(score) for name, score in scores.items()}
            for way, scores in table.items()
        },
        "random": {name: _ends(score)[0] for name, score in random.get("random", {}).items()},
    }


def ends_of_whole(reader: RunReader) -> list[tuple[int, Ends, str]]:
    """Return step, figure with interval, and its meaning, of the first and the last evaluation."""
    with reader.database() as database:
        rows = database.execute(
            "SELECT step, data FROM events WHERE kind = 'evaluation' AND id IN"
            " ((SELECT min(id) FROM events WHERE kind = 'evaluation'),"
            " (SELECT max(id) FROM events WHERE kind = 'evaluation')) ORDER BY id"
        ).fetchall()
    found: list[tuple[int, Ends, str]] = []
    for step, data in rows:
        ways = _ways(data)
        if ways:
            own = next(iter(ways.values()))
            found.append(
                (step, _ends(own.get(WHOLE) or next(reversed(own.values()))), figure_of(own))
            )
    return found


def random_play(reader: RunReader) -> float | None:
    """Return how well random play does in the same games; None if it was not measured."""
    with reader.database() as database:
        row = database.execute(
            "SELECT data FROM events WHERE kind = 'baseline' ORDER BY id LIMIT 1"
        ).fetchone()
    scores = next(iter(_ways(row[0]).values()), {}) if row else {}
    return _ends(scores[WHOLE])[0] if WHOLE in scores else None


def _ways(data: Any) -> dict[str, Scores]:
    parsed = parsed_json(data) if isinstance(data, str) else {}
    return scores_by_way(parsed) if isinstance(parsed, dict) else {}


def _ends(score: Mapping[str, Any]) -> Ends:
    value, low, high = (round(x, 4) if math.isfinite(x) else None for x in ends_of(score))
    return value, low, high
