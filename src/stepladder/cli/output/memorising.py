"""Does an agent memorise what it practises: success in practice beside success on held-out tasks.

Used by `explain`. Both come from the run's database: success per label and epoch, and the last
evaluation. What was evaluated on practised tasks says nothing about memorising and is left out.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from stepladder.curricula.reporting.meter import STATS
from stepladder.runs import RunReader
from stepladder.runs.evaluation_events import by_way
from stepladder.stats.interval import wilson_lower

SAMPLES, SUCCESS = f"{STATS}/per_label_samples/", f"{STATS}/per_label_success/"

LATE = 0.25
"""Of all steps before an evaluation, the last share; older episodes say nothing about now."""

ENOUGH_EPISODES = 200
"""So many of the latest ones are looked at, where there are as many."""

LEAST_REPEATS = 3
"""Plays per task below which nothing can have been memorised."""

CLEAR_GAP = 0.15
"""Differences up to this are not worth a line."""

Z = 1.959964
"""Standard deviations of a two-sided interval of 95 %."""


def memorised(reader: RunReader) -> list[dict[str, Any]]:
    """Return what an agent solves in practice and not on held-out tasks, label by label.

    A label is named if the two intervals of 95 % do not overlap and practice is clearly better.
    """
    found: list[dict[str, Any]] = []
    evaluations = reader.events("evaluation")
    if not evaluations:
        return found
    last = evaluations[-1]
    ways = by_way(last.data)
    # Practice draws its actions; so what was drawn is compared with it where it was measured.
    is_best = "drawn" not in ways and "best" in ways
    measured = ways.get("drawn", last.data)
    for label, rate in _held_out(reader, measured.get("total")):
        success, count = _practised(reader, label, last.step)
        if wilson_lower(success, float(count), Z) <= rate["high"] or not _repeated(reader, label):
            continue
        if success - rate["value"] > CLEAR_GAP:
            numbers = {"practised": success, "num_practised": count, "held_out": rate}
            text = _text(label, success, count, rate, is_best)
            found.append({"label": label, "step": last.step, **numbers, "text": text})
    return found


def _text(label: str, success: float, count: int, rate: Mapping[str, float], is_best: bool) -> str:
    acting = " with its best actions, while practice draws them" if is_best else ""
    return (
        f"practised {success:.2f} in {count} episodes, held-out {rate['value']:.2f} "
        f"({rate['low']:.2f} to {rate['high']:.2f}){acting}: the agent may memorise `{label}`; "
        "add levels, or let practice spread over more of them (exploration, max_share)"
    )


def _repeated(reader: RunReader, label: str) -> bool:
    """Whether the tasks of a label were played several times each: what is new is not memorised."""
    if SAMPLES + label not in reader.metric_names():
        return False
    _, counts = reader.metric(SAMPLES + label)
    num_tasks = list(reader.tasks().get("label", ())).count(label)
    return bool(np.nansum(counts) >= LEAST_REPEATS * max(1, num_tasks))


def _held_out(reader: RunReader, total: Any) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the rate on held-out tasks of every label that was evaluated."""
    table = reader.tasks()
    practised, labels = set(table.get("task", ())), set(table.get("label", ()))
    for part in _parts(total):
        rate, name = part.get("rate"), part.get("name")
        was_practised = any(task.get("name") in practised for task in _parts(part))
        if name in labels and isinstance(rate, Mapping) and not was_practised:
            ends = [rate.get(end) for end in ("value", "low", "high")]
            numbers = [float(end) for end in ends if isinstance(end, int | float)]
            if len(numbers) == len(ends):
                yield str(name), dict(zip(("value", "low", "high"), numbers, strict=True))


def _practised(reader: RunReader, label: str, step: int) -> tuple[float, int]:
    """Return the success of the latest practised episodes of a label, and their number."""
    names = (SAMPLES + label, SUCCESS + label)
    if not set(names) <= set(reader.metric_names()):
        return 0.0, 0
    (steps, counts), (when, rates) = (reader.metric(name) for name in names)
    plays = dict(zip(steps.tolist(), counts.tolist(), strict=True))
    successes, count = 0.0, 0.0
    for moment, rate in zip(when[::-1].tolist(), rates[::-1].tolist(), strict=True):
        if (1.0 - LATE) * step <= moment <= step and count < ENOUGH_EPISODES:
            weight = plays.get(moment, 0.0)
            if np.isfinite(weight * rate):
                successes, count = successes + weight * rate, count + weight
    return (min(1.0, successes / count), int(count)) if count >= 1.0 else (0.0, 0)


def _parts(score: Any) -> list[dict[str, Any]]:
    parts = score.get("parts") if isinstance(score, Mapping) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
