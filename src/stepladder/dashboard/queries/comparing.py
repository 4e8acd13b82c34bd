"""Several runs beside each other: what each is judged by, and in which settings they differ.

A training is judged by its evaluations, a simulation by the success that its learner has on
held-out tasks, or by the share of tasks that it has mastered; both have the same form here.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from stepladder.dashboard.queries import held_out
from stepladder.dashboard.queries.configs import settings
from stepladder.dashboard.queries.curves import curve
from stepladder.dashboard.queries.params import integer
from stepladder.dashboard.queries.standing import metric_id
from stepladder.dashboard.run_index import RunIndex
from stepladder.errors import ConfigError
from stepladder.runs import RunReader
from stepladder.runs.database import text_of

MOST_RUNS = 40
"""Runs that are compared at once."""

MOST_LABELS = 30
"""Groups of tasks that are compared."""

MOST_DIFFERENCES = 400
USUAL_POINTS = 300

SIMULATED = (
    ("overview/held_out_success", "success on held-out tasks"),
    ("overview/mastered_fraction", "share of tasks mastered"),
)
"""What a simulation is judged by: the first of these that it has, with its meaning."""

BY_LABEL = (
    "env_task_dependency/per_label_held_out_success/",
    "env_task_dependency/per_label_performance/",
)


def judged(reader: RunReader, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the curves that a run is judged by: of everything, then of its groups of tasks."""
    limit = integer(params, "points", USUAL_POINTS, 2, 2_000)
    found = held_out.held_out(reader, params)
    if found["curves"]:
        return {"kind": reader.kind, "figure": found["figure"], "curves": found["curves"]}
    with reader.database() as database:
        for metric, figure in SIMULATED:
            number = metric_id(database, metric)
            if number is not None:
                whole = {"name": held_out.WHOLE, **curve(database, number, limit)}
                labels = _labels(database, limit)
                return {"kind": reader.kind, "figure": figure, "curves": [whole, *labels]}
    return {"kind": reader.kind, "figure": "", "curves": []}


def difference(index: RunIndex, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings in which runs differ: ``runs`` holds their names as ``run=A&run=B``.

    Raises:
        ConfigError: There are too many.
        RunError: There is no run of one of these names, or it cannot be read.
    """
    names = [value for key, value in parse_qsl(params.get("runs", "")) if key == "run"]
    if len(names) > MOST_RUNS:
        raise ConfigError(f"{len(names)} runs are too many to compare; choose at most {MOST_RUNS}.")
    told = [settings(index.reader(name), {}) for name in names]
    flat = [{"kind": one["kind"], "version": one["version"], **one["settings"]} for one in told]
    keys = list(dict.fromkeys(key for one in flat for key in one))
    differing = [key for key in keys if len({one.get(key) for one in flat}) > 1]
    return {
        "names": names,
        "rows": [
            {"setting": key, "values": [one.get(key) for one in flat]}
            for key in differing[:MOST_DIFFERENCES]
        ],
        "num_left_out": max(0, len(differing) - MOST_DIFFERENCES),
        "num_same": len(keys) - len(differing),
    }


def _labels(database: Any, limit: int) -> list[dict[str, Any]]:
    """Return a curve per label of a simulation, of the first family that it has."""
    for family in BY_LABEL:
        rows = database.execute(
            "SELECT id, name FROM metric_names WHERE substr(name, 1, ?) = ? ORDER BY id LIMIT ?",
            (len(family), family, MOST_LABELS),
        ).fetchall()
        if rows:
            return [
                {"name": text_of(name).removeprefix(family), **curve(database, number, limit)}
                for number, name in rows
            ]
    return []
