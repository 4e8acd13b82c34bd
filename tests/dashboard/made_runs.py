"""Runs as a simulation or a training would leave them, made up from a few curves."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from stepladder.runs import Run


def make_run(
    folder: Path,
    *,
    kind: str = "simulation",
    num_labels: int = 10,
    num_epochs: int = 60,
    last_step: int = 24_000,
    seed: int = 0,
    label: str = "taskclass{}",
    num_tasks: int = 12,
    **config: Any,
) -> Path:
    """Write a finished run in which one label after the other is learned."""
    rng = np.random.default_rng(seed)
    settings = {"scenario": "chain-10", "curriculum": {"name": "LearningProgress", **config}}
    centres = np.linspace(0, 1, num_labels)
    labels = [label.format(k) for k in range(num_labels)]
    with Run.create(folder, kind=kind, config=settings, seed=seed) as run:
        for epoch in range(1, num_epochs + 1):
            done = epoch / num_epochs
            performance = 1 / (1 + np.exp(-(1.3 * done - centres) * 14))
            probs = np.exp(-(((1.2 * done - centres) / 0.15) ** 2)) + 0.03
            probs /= probs.sum()
            metrics = scalars(epoch, last_step * epoch // num_epochs, performance, probs, rng)
            if kind == "training":
                metrics["losses/value"] = 10 * math.exp(-6 * done) * math.exp(rng.normal(0, 0.2))
                metrics["losses/policy"] = -0.02 * math.exp(-3 * done) + rng.normal(0, 0.004)
            for k, name in enumerate(labels):
                prefix = "env_curriculum_stats/per_label"
                metrics[f"{prefix}_samples/{name}"] = float(rng.poisson(400 * probs[k]))
                metrics[f"{prefix}_lp_scores/{name}"] = 0.3 * probs[k] * (1 + rng.normal(0, 0.1))
                metrics[f"{prefix}_performance/{name}"] = float(performance[k])
            run.log(last_step * epoch // num_epochs, metrics)
        for stage, share in enumerate((0.1, 0.3, 0.55, 0.8)):
            step, text = int(share * last_step), f"stage {stage} left: success 0.82 >= 0.80"
            run.event(step, "stage_advanced", text, {"success": 0.82, "episodes": 120 + stage})
        run.log_tasks(last_step, tasks(labels, num_tasks, rng))
    return folder


def scalars(
    epoch: int,
    step: int,
    performance: np.ndarray,
    probs: np.ndarray,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Metrics of one epoch that are single numbers."""
    noise = rng.normal(0, 0.01, 6)
    return {
        "metric/agent_step": float(step),
        "metric/epoch": float(epoch),
        "overview/mean_performance": float(performance.mean()),
        "overview/max_performance": float(performance.max()),
        "overview/tasks_above_threshold": float((performance > 0.9).sum()),
        "overview/sampling_entropy_normalized": float(
            -(probs * np.log(probs)).sum() / math.log(max(len(probs), 2)) + noise[0]
        ),
        "overview/reward": float(performance.mean() + 5 * noise[1]),
        "env_task_dependency/min_performance": float(performance.min()),
        "env_task_dependency/performance_std": float(performance.std()),
        "env_curriculum_stats/sampling_gini": 0.5 + noise[2],
        "env_curriculum_stats/pool_occupancy_gini": 0.3 + noise[3],
        # Nothing to tell for a while: a gap in the line.
        "env_curriculum_stats/pool_lp_gini": math.nan if 20 < epoch < 28 else 0.6 + noise[4],
        "env_curriculum_stats/mean_lp_score": 0.02 * math.exp(-epoch / 30) * (1 + noise[5]),
    }


def tasks(labels: list[str], num_tasks: int, rng: np.random.Generator) -> dict[str, Any]:
    """A per-task snapshot in which one task has not been played."""
    success = rng.random(num_tasks)
    success[0] = math.nan
    return {
        "task": [f"task{k}" for k in range(num_tasks)],
        "label": [labels[k % len(labels)] for k in range(num_tasks)],
        "prob": rng.dirichlet(np.ones(num_tasks)),
        "score": rng.random(num_tasks),
        "samples": rng.integers(0, 900, num_tasks),
        "success": success,
    }
