"""What a run practises now, and why: its labels and its likeliest tasks in the last table."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stepladder.dashboard.queries.labels import label_order
from stepladder.dashboard.queries.params import integer
from stepladder.runs import RunReader

USUAL_TASKS, MOST_TASKS, MOST_LABELS = 12, 500, 60
_NUMBERS = ("prob", "score", "samples", "success", "mean_return", "mean_length")


def practice(reader: RunReader, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the labels with their shares, and the likeliest tasks; ``find`` is part of a name."""
    limit = integer(params, "tasks", USUAL_TASKS, 1, MOST_TASKS)
    wanted = params.get("find", "").lower()
    table = reader.tasks()
    if not table or "prob" not in table:
        return {"step": None, "num_tasks": 0, "labels": [], "tasks": [], "num_found": 0}
    names, labels = list(map(str, table["task"])), list(map(str, table["label"]))
    probs = np.nan_to_num(np.asarray(table["prob"], dtype=np.float64))
    reasons = table.get("reason")
    with reader.database() as database:
        ranks = {label: rank for rank, label in enumerate(label_order(reader, database))}
    order = np.argsort(-probs, kind="stable")
    if wanted:
        found = [
            p for p in order.tolist() if wanted in names[p].lower() or wanted in labels[p].lower()
        ]
    else:
        found = order.tolist()
    return {
        "step": reader.task_steps()[-1],
        "num_tasks": len(names),
        "num_found": len(found),
        "labels": _labels(labels, probs, table, ranks),
        "tasks": [
            {
                "task": names[place],
                "label": labels[place],
                "reason": None if reasons is None else str(reasons[place]),
                **{key: float(table[key][place]) for key in _NUMBERS if key in table},
            }
            for place in found[:limit]
        ],
    }


def _labels(
    labels: list[str], probs: Any, table: Mapping[str, Any], ranks: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return each label's share and success, and why its likeliest task is drawn, by share.

    Labels with the same share stand in the one order of labels.
    """
    reasons = table.get("reason")
    names, codes = np.unique(np.asarray(labels, dtype=object), return_inverse=True)
    shares = np.bincount(codes, weights=probs, minlength=len(names))
    counts = np.bincount(codes, minlength=len(names))
    success = _mean_success(table, codes, len(names))
    likeliest = np.zeros(len(names), dtype=np.int64)
    # The last that is written stays, so the likeliest task comes last.
    rising = np.argsort(probs, kind="stable")
    likeliest[codes[rising]] = rising
    places = [ranks.get(str(name), len(ranks)) for name in names]
    order = np.lexsort((np.array(places), -np.round(shares, 9)))[:MOST_LABELS].tolist()
    return [
        {
            "label": str(names[k]),
            "share": float(shares[k]),
            "num_tasks": int(counts[k]),
            "success": float(success[k]),
            "reason": None if reasons is None else str(reasons[int(likeliest[k])]),
        }
        for k in order
    ]


def _mean_success(table: Mapping[str, Any], codes: Any, num_labels: int) -> Any:
    if "success" not in table or "samples" not in table:
        return np.full(num_labels, np.nan)
    success = np.asarray(table["success"], dtype=np.float64)
    samples = np.asarray(table["samples"], dtype=np.float64)
    known = np.isfinite(success) & (samples > 0)
    weights = np.bincount(codes[known], weights=samples[known], minlength=num_labels)
    sums = np.bincount(codes[known], weights=(success * samples)[known], minlength=num_labels)
    return np.where(weights > 0, sums / np.where(weights > 0, weights, 1.0), np.nan)
