"""How quickly success in a stage rises: the slope of a straight line through its results."""

from dataclasses import dataclass

import numpy as np

from stepladder.dashboard.queries.labels import LABEL_FAMILIES, stage_labels
from stepladder.runs import RunReader

BUCKETS, FEWEST = 40, 4
"""Points that the line is laid through, and how many it needs at least."""

CLEAR = 2.0
"""Standard errors by which a slope must lie above 0."""

_RESULTS = """
SELECT avg(time), sum(s.value * n.value), sum(n.value)
FROM metrics AS s
JOIN metrics AS n ON n.step = s.step
    AND n.metric = (SELECT id FROM metric_names WHERE name = :samples || :label)
JOIN steps ON steps.step = s.step
WHERE s.metric = (SELECT id FROM metric_names WHERE name = :success || :label)
    AND s.step >= :start AND n.value > 0
GROUP BY (s.step - :start) / :width
"""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How quickly success rises."""

    per_second: float

    is_clear: bool
    """Whether it rises by more than twice the standard error of the slope."""


def pace_of_labels(reader: RunReader, stage: str, start: int) -> Pace | None:
    """Return how quickly success in a stage has risen since a step; None if that is too recent."""
    labels = next((found for name, found in stage_labels(reader.config) if name == stage), [stage])
    points: list[tuple[float, float, float]] = []
    with reader.database() as database:
        (last,) = database.execute("SELECT ifnull(max(step), 0) FROM steps").fetchone()
        words = {
            "samples": LABEL_FAMILIES["samples"],
            "success": LABEL_FAMILIES["success"],
            "start": start,
            "width": max(1, (last - start) // BUCKETS),
        }
        for label in labels:
            rows = database.execute(_RESULTS, {**words, "label": label}).fetchall()
            points += [(time, wins / count, count) for time, wins, count in rows if count]
    if len(points) < FEWEST:
        return None
    points.sort()
    # What it does at present: the later half, if that is enough.
    points = points[-max(FEWEST, len(points) // 2) :]
    times, success, counts = np.array(points, dtype=np.float64).T
    weights = counts / counts.sum()
    times = times - (weights * times).sum()
    spread = float((weights * times**2).sum())
    if spread <= 0 or not np.isfinite(success).all():
        return None
    slope = float((weights * times * success).sum()) / spread
    rest = success - (weights * success).sum() - slope * times
    error = np.sqrt(float((weights * rest**2).sum()) / spread / (len(points) - 2))
    return Pace(per_second=slope, is_clear=slope > CLEAR * error)
