"""Metrics of a run as curves: which there are, one of them in so many points, and the axes.

Points are buckets of steps, reduced in SQL along the primary key of the table of metrics; a bucket
keeps its mean and its extremes, so that a peak stays visible.
"""

from collections.abc import Mapping
from typing import Any

from stepladder.dashboard.queries.params import integer, number
from stepladder.dashboard.queries.standing import metric_id
from stepladder.errors import RunError
from stepladder.runs import RunReader
from stepladder.runs.database import integer_of, text_of

MOST_POINTS = 2_000
USUAL_POINTS = 400
"""Points of one curve: about one per pixel and a half of a chart."""

EPISODES = "env_curriculum_stats/total_completions"
"""The metric that says how many episodes have ended by a step."""

_ENDS = "SELECT min(step), max(step), count(*) FROM metrics WHERE metric = ?"
_BUCKETS = """
SELECT avg(step), avg(value), min(value), max(value), count(value)
FROM metrics WHERE metric = :metric AND step BETWEEN :first AND :last
GROUP BY (step - :first) / :width ORDER BY 1
"""


def metrics(reader: RunReader, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return every metric with its last value, and whether it ever changes."""
    with reader.database() as database:
        rows = database.execute(
            "SELECT name, (SELECT value FROM metrics WHERE metric = id ORDER BY step DESC LIMIT 1),"
            " (SELECT value FROM metrics WHERE metric = id ORDER BY step LIMIT 1),"
            # Two range scans that stop at the first row that differs.
            " EXISTS (SELECT 1 FROM metrics AS a WHERE a.metric = id AND a.value IS NOT"
            " (SELECT value FROM metrics WHERE metric = id ORDER BY step LIMIT 1))"
            " FROM metric_names ORDER BY id"
        ).fetchall()
    return [
        {"name": text_of(name), "last": last, "first": first, "varies": bool(varies)}
        for name, last, first, varies in rows
    ]


def series(reader: RunReader, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the curve of one metric: ``name``; ``points``, ``first`` and ``last`` are optional.

    Raises:
        RunError: The run has no such metric.
    """
    name = params.get("name", "")
    limit = integer(params, "points", USUAL_POINTS, 2, MOST_POINTS)
    with reader.database() as database:
        row = database.execute("SELECT id FROM metric_names WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise RunError(f"{reader.name} has no metric {name[:200]!r}.")
        return {"name": name, **curve(database, row[0], limit, *_bounds(params))}


def curve(
    database: Any, metric: int, limit: int, first: float | None = None, last: float | None = None
) -> dict[str, Any]:
    """Return one metric as buckets: x, y and, where a bucket holds several points, low and high."""
    begin, end, count = database.execute(_ENDS, (metric,)).fetchone()
    if not count:
        return {"x": [], "y": [], "low": None, "high": None}
    begin, end = integer_of(begin), integer_of(end)
    start = begin if first is None else max(begin, int(first))
    stop = end if last is None else min(end, int(last) + 1)
    width = max(1, -(-(stop - start + 1) // limit))
    rows = database.execute(
        _BUCKETS, {"metric": metric, "first": start, "last": stop, "width": width}
    ).fetchall()
    is_thinned = any(row[4] > 1 for row in rows)
    return {
        "x": [round(row[0]) for row in rows],
        "y": [_short(row[1]) for row in rows],
        "low": [_short(row[2]) for row in rows] if is_thinned else None,
        "high": [_short(row[3]) for row in rows] if is_thinned else None,
    }


def axes(reader: RunReader, params: Mapping[str, str]) -> dict[str, Any]:
    """Return steps, seconds since the run began, and episodes so far, for the x axis."""
    limit = integer(params, "points", USUAL_POINTS, 2, MOST_POINTS)
    with reader.database() as database:
        begin, end, began = database.execute(
            "SELECT min(step), max(step), min(time) FROM steps"
        ).fetchone()
        if begin is None:
            return {"steps": [], "seconds": [], "episodes": []}
        width = max(1, -(-(integer_of(end) - integer_of(begin) + 1) // limit))
        rows = database.execute(
            "SELECT at, time, (SELECT value FROM metrics WHERE metric = :metric AND"
            " metrics.step <= at ORDER BY metrics.step DESC LIMIT 1) FROM"
            " (SELECT max(step) AS at, max(time) AS time FROM steps"
            " GROUP BY (step - :begin) / :width) ORDER BY at",
            {"metric": metric_id(database, EPISODES), "begin": begin, "width": width},
        ).fetchall()
    return {
        "steps": [row[0] for row in rows],
        "seconds": [round(float(row[1]) - float(began), 3) for row in rows],
        "episodes": [row[2] for row in rows],
    }


def _bounds(params: Mapping[str, str]) -> tuple[float | None, float | None]:
    return number(params, "first"), number(params, "last")


def _short(value: Any) -> float | None:
    """Return a number with six digits: a chart shows no more."""
    return None if value is None else float(f"{value:.6g}")
