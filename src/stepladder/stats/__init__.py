"""WHAT WAS MEASURED: estimators a curriculum weighs by, and the metrics of a run.

`averages`, `interval` and `window` serve the curricula. `rollout` turns the infos of an epoch into
the numbers that are logged; `metrics` declares what each of them means.
"""

from stepladder.stats.inequality import (
    coefficient_of_variation,
    entropy_normalized,
    gini,
    max_min_ratio,
)
from stepladder.stats.metrics import METRICS, Metric, Reduction, declare
from stepladder.stats.names import MetricNames
from stepladder.stats.rollout import (
    ProcessedStats,
    accumulate_rollout_stats,
    payload,
    process_training_stats,
)

__all__ = [
    "METRICS",
    "Metric",
    "MetricNames",
    "ProcessedStats",
    "Reduction",
    "accumulate_rollout_stats",
    "coefficient_of_variation",
    "declare",
    "entropy_normalized",
    "gini",
    "max_min_ratio",
    "payload",
    "process_training_stats",
]
