"""What a curriculum is doing, in numbers: the `env_curriculum_stats/*` of every epoch.

Listens to one curriculum in the host process (`task_counts`), so every episode counts once,
whichever env played it. `stats.rollout.payload` logs what `metrics` returns; `task_table` is for
the run's database.
"""

from typing import Any, cast

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.curricula.base import Curriculum
from stepladder.curricula.foreign import ForeignCurriculum
from stepladder.curricula.reporting.explanation import TaskExplanation
from stepladder.curricula.reporting.task_counts import TaskCounts
from stepladder.errors import ConfigError
from stepladder.stats.inequality import (
    coefficient_of_variation,
    entropy_normalized,
    gini,
    max_min_ratio,
)
from stepladder.stats.names import MAX_PER_FAMILY, OTHER_NAMES
from stepladder.tasks.plain import checked_integer

PERCENTILES = (25, 50, 75, 90, 95)
STATS = "env_curriculum_stats"

STEPS = ("success_steps", "failure_steps")
"""Kinds of env steps that are counted per label."""

MOST_REASONS = 1000
"""Slots up to which a table of tasks says in words why each is drawn; asking all takes time."""


class CurriculumMeter(TaskCounts):
    """Counts what a curriculum observes from now on, and says what it is doing.

    Args:
        curriculum: The outermost curriculum, in the process that owns it.
        num_tracked: How many slots, from the first on, get metrics of their own; 100 at most.
    """

    def __init__(self, curriculum: Curriculum, num_tracked: int = 3):
        if not isinstance(cast("object", curriculum), Curriculum | ForeignCurriculum):
            raise ConfigError(
                f"expected a curriculum; got {curriculum!r}. Make one of your tasks first, such as "
                "Auto(tasks)."
            )
        super().__init__(curriculum)
        self.num_tracked = checked_integer(
            num_tracked, "num_tracked", 0, MAX_PER_FAMILY, ConfigError
        )
        self._shown, self._shown_of_label = _shown_labels(curriculum.pool.label_names)
        self._names: list[str] = []
        self._named_ids: Words = np.zeros(0, dtype=np.int64)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the epoch so far, by the names of docs/metrics.md."""
        return {
            **self._sampling_metrics(),
            **self._score_metrics(),
            **self._label_metrics(),
            **self._state_metrics(),
        }

    def _sampling_metrics(self) -> dict[str, float]:
        plays = self.by_label["num_samples"]
        unevenness = gini(plays)
        return {
            "overview/sampling_entropy_normalized": entropy_normalized(plays),
            "overview/sampling_gini_coefficient": unevenness,
            "overview/sampling_coefficient_of_variation": coefficient_of_variation(plays),
            "overview/sampling_max_min_ratio": max_min_ratio(np.maximum(plays, 1.0)),
            f"{STATS}/sampling_gini": unevenness,
        }

    def _score_metrics(self) -> dict[str, float]:
        active, scores = self.curriculum.plan.active, self.curriculum.scores()
        known = active[np.isfinite(scores[active])]
        metrics = {
            f"{STATS}/pool_occupancy_gini": gini(self.slots["num_samples"][active]),
            f"{STATS}/pool_lp_gini": gini(np.maximum(scores[known], 0.0)),
        }
        if len(known):
            metrics[f"{STATS}/mean_lp_score"] = float(scores[known].mean())
            points = np.percentile(scores[known], PERCENTILES)
            for point, value in zip(PERCENTILES, points.tolist(), strict=True):
                metrics[f"{STATS}/pool_lp_score_p{point}"] = value
        labels = self.labels[known]
        sums, counts = self._show(labels, scores[known]), self._show(labels)
        for name, total, count in zip(self._shown, sums, counts, strict=True):
            if count:
                metrics[f"{STATS}/per_label_lp_scores/{name}"] = total / count
        for slot in range(min(self.num_tracked, len(scores))):
            metrics[f"{STATS}/tracked_task_lp_scores/task_{slot}"] = float(scores[slot])
            metrics[f"{STATS}/tracked_task_completions/task_{slot}"] = float(
                self.slots["num_epoch_samples"][slot]
            )
        return metrics

    def _label_metrics(self) -> dict[str, float]:
        active, labels = self.curriculum.plan.active, np.arange(len(self.by_label))
        present = self._show(self.labels[active])
        columns = {
            "per_label_samples": self._show(labels, self.by_label["num_epoch_samples"]),
            "per_label_probs": self._show(self.labels, self.curriculum.probs()),
            "pool_composition_fraction": [count / max(1, len(active)) for count in present],
        }
        metrics = {
            f"{STATS}/{family}/{name}": float(value)
            for family, values in columns.items()
            for name, value in zip(self._shown, values, strict=True)
        }
        wins = self._show(labels, self.by_label["epoch_successes"])
        results = self._show(labels, self.by_label["num_epoch_judged"])
        for name, total, count in zip(self._shown, wins, results, strict=True):
            if count:
                metrics[f"{STATS}/per_label_success/{name}"] = total / count
        kinds = {kind: self._show(labels, self.label_steps[f"epoch_{kind}"]) for kind in STEPS}
        for name, *steps in zip(self._shown, *kinds.values(), strict=True):
            # Sums of episodes that were not observed one by one have no lengths by outcome.
            if sum(steps):
                for kind, amount in zip(kinds, steps, strict=True):
                    metrics[f"{STATS}/per_label_{kind}/{name}"] = float(amount)
        return metrics

    def _show(self, labels: Words, amounts: Floats | None = None) -> list[float]:
        """Sum by the labels that are shown; count, where there are no amounts."""
        return np.bincount(self._shown_of_label[labels], amounts, len(self._shown)).tolist()

    def _state_metrics(self) -> dict[str, float]:
        curriculum = self.curriculum
        numbers: dict[str, float] = {
            "num_evicted": sum(method.num_evicted for _, method in curriculum.all_methods()),
            "num_orphaned": curriculum.num_orphaned,
            "num_quarantined": curriculum.num_quarantined,
            "num_active_tasks": curriculum.pool.num_slots - curriculum.num_quarantined,
            "total_completions": self.total_completions,
            "plan_version": curriculum.plan.version,
        }
        numbers |= curriculum.state_metrics()
        method = curriculum.in_force()
        if method.config.target is not None:
            if not np.isnan(method.target_success):
                numbers["target_success"] = method.target_success
            numbers["target_share"] = curriculum.probs()[method.counts() > 0.0].sum()
        return {f"{STATS}/{name}": float(number) for name, number in numbers.items()}

    def names(self) -> list[str]:
        """Return the name of the task in each slot; only those that changed are asked for."""
        ids, source = self.curriculum.pool.task_ids, self.curriculum.pool.source
        if not self._names:
            self._names, self._named_ids = [""] * len(ids), np.full(len(ids), -1, dtype=np.int64)
        for slot in np.flatnonzero(self._named_ids != ids).tolist():
            self._names[slot] = source.name(int(ids[slot]))
        self._named_ids[:] = ids
        return list(self._names)


def task_table(meter: CurriculumMeter) -> dict[str, Any]:
    """Return a row per slot for the run's database: columns of equal length, by name.

    `success`, `mean_return` and `mean_length` are means over the episodes of the task now in
    the slot, NaN where there is none; `samples` is their number. `reason` says in words why the
    task is drawn as it is, with up to a thousand slots.
    """
    curriculum, rows = meter.curriculum, meter.slots
    pool, count = curriculum.pool, rows["num_samples"]
    columns: dict[str, Any] = {
        "task": meter.names(),
        "label": [pool.label_names[index] for index in pool.label_indices.tolist()],
        "prob": curriculum.probs(),
        "score": curriculum.scores(),
        "samples": rows["num_samples"].copy(),
        "success": _mean(rows["successes"], rows["num_judged"]),
        "mean_return": _mean(rows["returns"], count),
        "mean_length": _mean(rows["lengths"], count),
        "generation": pool.generations.copy(),
    }
    return columns | _reasons(curriculum)


def _reasons(curriculum: Curriculum) -> dict[str, list[str]]:
    """Return in words why each slot is drawn as it is; nothing for more slots than one can read."""
    num_slots = curriculum.pool.num_slots
    if num_slots > MOST_REASONS:
        return {}
    answers = (curriculum.explain(slot) for slot in range(num_slots))
    return {"reason": [cast("TaskExplanation", answer).reason for answer in answers]}


def _mean(sums: Floats, counts: Floats) -> Floats:
    return np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)


def _shown_labels(labels: list[str]) -> tuple[list[str], Words]:
    """Name the labels that get metrics, and say which of these stands for each label.

    The first ones, so that a run shows the same ones from beginning to end; the others together.
    """
    if len(labels) <= MAX_PER_FAMILY:
        return list(labels), np.arange(len(labels))
    shown = [label for label in labels if label != OTHER_NAMES][:MAX_PER_FAMILY]
    positions = {label: position for position, label in enumerate(shown)}
    return [*shown, OTHER_NAMES], np.array([positions.get(label, len(shown)) for label in labels])
