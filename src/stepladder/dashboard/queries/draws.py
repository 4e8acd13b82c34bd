"""What was practised when: the share of every label, or of the likeliest tasks, over time."""

import sqlite3
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.dashboard.queries.labels import LABEL_FAMILIES, label_order, ordered
from stepladder.dashboard.queries.params import integer
from stepladder.dashboard.queries.standing import names_below
from stepladder.runs import RunReader
from stepladder.runs.database import integer_of
from stepladder.runs.encoding import Unpacking

COLUMNS, MOST_COLUMNS = 120, 400
MOST_TASKS = 60
"""Tasks that have a row of their own: those that got most draws."""

MOST_TABLES, MOST_NUMBERS = 60, 6_000_000
"""Tables of tasks that are read for one picture, and numbers in them."""

_SUMS = """
SELECT metric, (step - :first) / :width, sum(value) FROM metrics
WHERE metric IN (SELECT id FROM metric_names WHERE substr(name, 1, :length) = :prefix)
AND value > 0 AND value < 1e200 GROUP BY 1, 2
"""


def draws(reader: RunReader, params: Mapping[str, str]) -> dict[str, Any]:
    """Return rows, the start of each column in steps, its end, and shares; ``by`` label or task."""
    if params.get("by") == "task":
        return _by_task(reader)
    prefix = LABEL_FAMILIES["samples"]
    limit = integer(params, "columns", COLUMNS, 1, MOST_COLUMNS)
    with reader.database() as database:
        numbers = dict(names_below(database, prefix))
        ends = database.execute("SELECT min(step), max(step), count(*) FROM steps").fetchone()
        if not numbers or ends[0] is None:
            return {"rows": [], "x": [], "end": 0, "grid": []}
        order = ordered(numbers, label_order(reader, database))
        first, last, count = map(integer_of, ends)
        width = max(1, -(-(last - first + 1) // min(limit, max(1, count))))
        sums = database.execute(
            _SUMS, {"first": first, "width": width, "length": len(prefix), "prefix": prefix}
        ).fetchall()
    row_of = {numbers[label]: row for row, label in enumerate(order)}
    grid = np.zeros((len(order), (last - first) // width + 1))
    for metric, column, total in sums:
        if metric in row_of and 0 <= column < grid.shape[1]:
            grid[row_of[metric], column] = total
    kept = np.flatnonzero(grid.sum(axis=0) > 0).tolist()
    # An epoch is logged at its end: what a column counts was played since the one before.
    ends_at = [min(last, first + (column + 1) * width - 1) for column in kept]
    return {
        "rows": order,
        "x": [0, *ends_at[:-1]] if kept else [],
        "end": ends_at[-1] if kept else last,
        "grid": _shares(grid[:, kept]),
    }


def _by_task(reader: RunReader) -> dict[str, Any]:
    """Return the probabilities of the likeliest tasks, as the tables of tasks have them."""
    with reader.database() as database:
        steps = [step for (step,) in database.execute("SELECT DISTINCT step FROM task_columns")]
        chosen = _spread(sorted(map(integer_of, steps)), _num_tables(database))
        known: dict[Any, dict[str, int]] = {}
        found = ((step, *_table(database, step, known)) for step in chosen)
        tables = [(step, places, probs) for step, places, probs in found if places]
    totals: dict[str, float] = {}
    for _, places, probs in tables:
        names = list(places)
        for place in np.argpartition(-probs, min(MOST_TASKS, len(probs)) - 1)[:MOST_TASKS].tolist():
            totals[names[place]] = totals.get(names[place], 0.0) + float(probs[place])
    best = sorted(totals, key=lambda name: -totals[name])[:MOST_TASKS]
    # In the order of the source, as far as the last table knows it.
    last = tables[-1][1] if tables else {}
    rows = sorted(best, key=lambda name: last.get(name, len(last)))
    grid = np.full((len(rows), len(tables)), np.nan)
    for column, (_, places, probs) in enumerate(tables):
        for row, name in enumerate(rows):
            if name in places:
                grid[row, column] = probs[places[name]]
    return {
        "rows": rows,
        "x": [0, *(step for step, _, _ in tables[:-1])],
        "end": tables[-1][0] if tables else 0,
        "grid": [[None if x != x else round(x, 5) for x in row] for row in grid.tolist()],
    }


def _num_tables(database: sqlite3.Connection) -> int:
    ((size,),) = database.execute(
        "SELECT ifnull(max(length(data)), 1) FROM task_columns WHERE name = 'prob'"
    )
    # Packed numbers have at most eight bytes each, usually far fewer.
    return max(2, min(MOST_TABLES, MOST_NUMBERS // max(1, size // 2)))


def _table(
    database: sqlite3.Connection, step: int, known: dict[Any, dict[str, int]]
) -> tuple[dict[str, int], npt.NDArray[np.float64]]:
    """Return the places of tasks by name and their probabilities at a step, if it has both.

    Most tables have the same names: they are unpacked once and kept in `known`.
    """
    unpacking = Unpacking()
    columns = {
        name: (kind, data)
        for name, kind, data in database.execute(
            "SELECT name, kind, data FROM task_columns WHERE step = ? AND name IN ('task', 'prob')",
            (step,),
        )
    }
    if columns.keys() != {"task", "prob"}:
        return {}, np.zeros(0)
    digest = columns["task"][1]
    if digest not in known:
        row = database.execute("SELECT data FROM name_lists WHERE digest = ?", (digest,)).fetchone()
        names = unpacking.names(digest if row is None else row[0])
        # Of tasks with the same name, the first counts, and no place is lost.
        known[digest] = {}
        for place, name in enumerate(names):
            known[digest][name if name not in known[digest] else f"{name} ({place})"] = place
    probs = unpacking.numbers(*columns["prob"]).astype(np.float64)
    places = known[digest]
    return (places, np.nan_to_num(probs)) if len(places) == len(probs) else ({}, np.zeros(0))


def _spread(steps: list[int], count: int) -> list[int]:
    """Return at most so many of the steps, at even distances, the last among them."""
    if len(steps) <= count:
        return steps
    places = np.linspace(0, len(steps) - 1, count).round().astype(int)
    return [steps[place] for place in sorted(set(places.tolist()))]


def _shares(grid: npt.NDArray[np.float64]) -> list[list[float]]:
    totals = grid.sum(axis=0)
    shares = grid / np.where(totals > 0, totals, 1.0)
    return [[round(share, 4) for share in row] for row in shares.tolist()]
