"""What was practised when: the share of every label, or of the likeliest tasks, over time."""

import sqlite3
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.dashboard.queries.labels import FAMILIES, label_order, ordered
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
    prefix = FAMILIES["samples"]
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
        tables = [(step, *_table(database, step)) for step in chosen]
    tables = [(step, names, probs) for step, names, probs in tables if len(names)]
    totals: dict[str, float] = {}
    for _, names, probs in tables:
        for place in np.argsort(-probs)[:MOST_TASKS].tolist():
            totals[names[place]] = totals.get(names[place], 0.0) + float(probs[place])
    # In the order of the source, as far as the last table knows it.
    best = set(sorted(totals, key=lambda name: -totals[name])[:MOST_TASKS])
    last_names = tables[-1][1] if tables else []
    rows = [name for name in dict.fromkeys(last_names) if name in best]
    rows += [name for name in best if name not in set(rows)]
    grid = np.full((len(rows), len(tables)), np.nan)
    for column, (_, names, probs) in enumerate(tables):
        place_of = {name: place for place, name in enumerate(names)}
        for row, name in enumerate(rows):
            if name in place_of:
                grid[row, column] = probs[place_of[name]]
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


def _table(database: sqlite3.Connection, step: int) -> tuple[list[str], npt.NDArray[np.float64]]:
    """Return the names of tasks and their probabilities at a step; nothing if it lacks them."""
    unpacking = Unpacking()
    found = dict[str, Any]()
    for name, kind, data in database.execute(
        "SELECT task_columns.name, kind, ifnull(name_lists.data, task_columns.data)"
        " FROM task_columns LEFT JOIN name_lists"
        " ON kind = 'text' AND name_lists.digest = task_columns.data"
        " WHERE step = ? AND task_columns.name IN ('task', 'prob')",
        (step,),
    ):
        found[name] = unpacking.names(data) if name == "task" else unpacking.numbers(kind, data)
    names, probs = found.get("task", []), found.get("prob", np.zeros(0))
    if len(names) != len(probs):
        return [], np.zeros(0)
    return names, np.nan_to_num(probs.astype(np.float64))


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
