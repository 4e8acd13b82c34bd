"""The labels of a run in their one order, and metrics that have a member per label.

Every chart draws a label in the colour of its place in this order: that of the stages, then that
of the source.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from stepladder.dashboard.queries.curves import MOST_POINTS, curve
from stepladder.dashboard.queries.params import integer, number
from stepladder.dashboard.queries.standing import curriculum_of, names_below
from stepladder.runs import RunReader

_STATS = "env_curriculum_stats"
LABEL_FAMILIES: Mapping[str, str] = {
    "success": f"{_STATS}/per_label_success/",
    "performance": "env_task_dependency/per_label_performance/",
    "held_out_performance": "env_task_dependency/per_label_held_out_success/",
    "probs": f"{_STATS}/per_label_probs/",
    "samples": f"{_STATS}/per_label_samples/",
    "scores": f"{_STATS}/per_label_lp_scores/",
}
"""Families of metrics by what the pages call them."""

MOST_LABELS = 200
FAMILY_POINTS = 240
"""Points of each curve of a family: there are many of them in one chart."""


def stage_labels(config: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the stages of a run's curriculum with their labels; empty without stages."""
    stages = curriculum_of(config).get("stages")
    found: list[tuple[str, list[str]]] = []
    for stage in stages if isinstance(stages, list) else []:
        if isinstance(stage, str):
            found.append((stage, [stage]))
        elif isinstance(stage, Mapping) and isinstance(stage.get("name"), str):
            labels = stage.get("labels")
            given = [x for x in labels if isinstance(x, str)] if isinstance(labels, list) else []
            found.append((stage["name"], given or [stage["name"]]))
    return found


def label_order(reader: RunReader, database: sqlite3.Connection) -> list[str]:
    """Return all labels of a run in their one order."""
    order = [label for _, labels in stage_labels(reader.config) for label in labels]
    for family in ("probs", "samples", "success", "performance"):
        order += [label for label, _ in names_below(database, LABEL_FAMILIES[family])]
    return list(dict.fromkeys(order))[:MOST_LABELS]


def labels(reader: RunReader, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the labels in order, and which families the run has."""
    with reader.database() as database:
        return {
            "labels": label_order(reader, database),
            "families": [
                name for name, prefix in LABEL_FAMILIES.items() if names_below(database, prefix)
            ],
        }


def family(reader: RunReader, params: Mapping[str, str]) -> dict[str, Any]:
    """Return a curve per label of the family that ``of`` names; without one, of none."""
    prefix = LABEL_FAMILIES.get(params.get("of", ""), "\0")
    limit = integer(params, "points", FAMILY_POINTS, 2, MOST_POINTS)
    ends = number(params, "first"), number(params, "last")
    with reader.database() as database:
        numbers = dict(names_below(database, prefix))
        order = ordered(numbers, label_order(reader, database))
        curves = [
            {"name": label, **curve(database, numbers[label], limit, *ends)} for label in order
        ]
    return {"curves": curves}


def ordered(names: Mapping[str, Any], order: Sequence[str]) -> list[str]:
    """Return names in the order of labels; those that it does not have come last."""
    known = [label for label in order if label in names]
    return [*known, *(name for name in names if name not in set(known))][:MOST_LABELS]
