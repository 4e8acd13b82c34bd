"""Checks of how a run stands: its end, its signals, and what it never came to."""

import math
from collections.abc import Iterator

import numpy as np

from stepladder.diagnosis.checks.curricula import chance_of_window
from stepladder.diagnosis.finding import Told, check, error, warning
from stepladder.diagnosis.record_of_run import PER_LABEL, LabelCurve, RunEvidence
from stepladder.diagnosis.settings import leaving, staged_parts

MANY_EPISODES = 300
"""Judged episodes without which nothing is said about what never happens."""

SILENT_S = 300.0
"""Seconds without a log from which a run that goes on is called silent."""

LONG_SHARE = 0.3
"""Share of a run for which a stage must have lasted to be called stuck."""

QUARANTINED_SHARE = 0.05


@check("run-failed", "run")
def failed(run: RunEvidence) -> Iterator[Told]:
    """The run has ended by an exception, or its process was killed."""
    if run.status.startswith("failed"):
        yield error(
            f"the run has {run.status}",
            f"Fix what the message says{_again(run)}",
        )
    elif run.status in ("killed", "stopped"):
        yield warning(
            f"the run was {run.status} at step {run.num_steps:,}",
            f"Start it again{_again(run)}",
        )


def _again(run: RunEvidence) -> str:
    is_resumable = run.kind == "training"
    return (
        f"; from its last checkpoint: stepladder train --resume {run.name}"
        if (is_resumable)
        else ", and begin again."
    )


@check("run-silent", "run")
def silent(run: RunEvidence) -> Iterator[Told]:
    """The run goes on, and has logged nothing for long."""
    usual = 0.0 if math.isnan(run.interval_s) else run.interval_s
    if (
        run.status == "running"
        and SILENT_S < run.last_logged_s < math.inf
        and (run.last_logged_s > 20.0 * usual)
    ):
        yield error(
            f"nothing was logged for {run.last_logged_s / 60.0:.0f} minutes; usually it takes "
            f"{usual:.0f} s",
            "Look whether an env hangs: Ctrl-C saves and stops, and doctor on the env says where.",
        )


@check("metrics-not-finite", "run")
def not_finite(run: RunEvidence) -> Iterator[Told]:
    """Losses or returns are not finite."""
    for name, (steps, values) in run.metrics.items():
        if not name.startswith(("losses/", "overview/reward", "evaluation/return")):
            continue
        # NaN of anything else means that there was no value.
        bad = np.isinf(values) | (np.isnan(values) & name.startswith("losses/"))
        if bad.any():
            yield error(
                f"{name} is {values[bad][0]} at step {int(steps[bad][0]):,}; expected finite "
                "numbers",
                "Lower learning_rate or reward_scale, and look for large rewards in the env.",
            )


@check("success-never-in-run", "run")
def never(run: RunEvidence) -> Iterator[Told]:
    """No episode of the run was a success."""
    curves = run.practice()
    count = sum(float(curve.counts.sum()) for curve in curves)
    if count >= MANY_EPISODES and not any(float(curve.success.sum()) for curve in curves):
        yield error(
            f"success is 0 in all of {count:,.0f} episodes; a curriculum learns nothing from that",
            "Look whether the env reports it (doctor on the env); if it does, add easier tasks.",
        )


@check("success-always-in-run", "run")
def always(run: RunEvidence) -> Iterator[Told]:
    """Every episode of the run was a success, from the first on."""
    curves = [curve for curve in run.practice() if len(curve.steps)]
    count = sum(float(curve.counts.sum()) for curve in curves)
    if count >= MANY_EPISODES and all(bool((curve.success == 1.0).all()) for curve in curves):
        yield error(
            f"all of {count:,.0f} episodes count as successes, the first ones too; expected "
            "failures at the beginning",
            "Look at where the env sets is_success; else the tasks are too easy to learn from.",
        )


@check("labels-never-drawn-in-run", "run")
def never_drawn(run: RunEvidence) -> Iterator[Told]:
    """A label was never drawn, and will not be."""
    played: dict[str, float] = {}
    for name in run.metrics:
        label = name.removeprefix(f"{PER_LABEL}samples/")
        if label != name:
            played[label] = float(np.nansum(run.series(name)[1]))
    total = sum(played.values())
    if total < MANY_EPISODES or _later_may_come(run):
        return
    missing = [
        label
        for label, count in played.items()
        if not count and not run.last(f"{PER_LABEL}probs/{label}") > 0.0
    ]
    if missing:
        yield error(
            f"{', '.join(map(repr, missing[:5]))} never drawn in {total:,.0f} episodes, and the "
            f"probability is 0; expected draws of all {len(played)} labels",
            "Give the label a weight, or remove its tasks.",
        )


def _later_may_come(run: RunEvidence) -> bool:
    """Whether stages or phases are still to come."""
    return any(f"env_curriculum_stats/{kind}" in run.metrics for kind in ("stage", "phase"))


@check("stage-out-of-reach", "run")
def stage_stuck(run: RunEvidence) -> Iterator[Told]:
    """The present stage is not left, because its threshold is above the success that is there."""
    if run.training is None:
        return
    parts = [config for _, config in staged_parts(run.training.curriculum)]
    index = run.last("env_curriculum_stats/stage")
    if len(parts) != 1 or math.isnan(index) or int(index) >= len(parts[0].stages) - 1:
        return
    config, index = parts[0], int(index)
    steps, stages = run.series("env_curriculum_stats/stage")
    since = int(steps[np.flatnonzero(stages != index)[-1]]) if (stages != index).any() else 0
    labels = set(config.stages[index].task_labels)
    here = [curve for curve in run.practice(settled=True) if curve.label in labels]
    # The second half of the time in the stage, and whether success still rises in it.
    middle, late = (since + run.num_steps) / 2, (since + 3 * run.num_steps) / 4
    count, success = _pooled(here, middle, math.inf)
    newer, older = _pooled(here, late, math.inf), _pooled(here, middle, late)
    noise = math.sqrt(0.25 / max(1.0, newer[0]) + 0.25 / max(1.0, older[0]))
    if count < MANY_EPISODES / 2 or run.num_steps - since < LONG_SHARE * run.num_steps:
        return
    per_step = count / max(1.0, run.num_steps - middle)
    left = max(0, (run.total_steps or 0) - run.num_steps) or run.num_steps
    # The fastest rise that these results leave possible, for the rest of the run.
    fastest = (newer[1] - older[1] + 2.0 * noise) / max(1.0, run.num_steps - late)
    if success + max(0.0, fastest) * left >= config.threshold_of(index):
        return
    found = leaving(config, index, success, run.training.num_envs, max(1, int(per_step * left)))
    if found.share >= 0.5:
        return
    chance = chance_of_window(
        found.threshold, config.window_episodes, min(max(success, 1e-6), 1 - 1e-6)
    )
    yield error(
        f"stage {found.stage!r} has lasted since step {since:,} and asks for {found.threshold:g} "
        f"over {config.window_episodes} episodes; success is {success:.2f} and hardly rises, "
        f"and luck reaches that {_how_often(chance)}",
        f"Lower its threshold to about {max(0.05, success - 0.1):.2f}, or make its tasks easier.",
    )


def _how_often(chance: float) -> str:
    """Return how often something happens per window, as people say it."""
    if chance < 1e-6:
        return "in less than one of a million windows"
    return f"in one of {1.0 / chance:,.0f} windows" if chance < 0.5 else f"in {chance:.0%} of them"


def _pooled(curves: list[LabelCurve], after: float, until: float) -> tuple[float, float]:
    """Return episodes and their success between two steps."""
    count = won = 0.0
    for curve in curves:
        inside = (curve.steps > after) & (curve.steps <= until)
        count += float(curve.counts[inside].sum())
        won += float((curve.counts * curve.success)[inside].sum())
    return count, won / count if count else 0.0


@check("tasks-quarantined", "run")
def quarantined(run: RunEvidence) -> Iterator[Told]:
    """Tasks could not be built, and are out of play."""
    out, active = (
        run.last(f"env_curriculum_stats/{name}") for name in ("num_quarantined", "num_active_tasks")
    )
    if out > 0.0:
        share = out / (out + active)
        events = [event.text for event in run.events if "quarantine" in event.kind]
        why = f": {events[-1]}" if events else ""
        tell = error if share >= QUARANTINED_SHARE else warning
        yield tell(
            f"{out:.0f} of {out + active:.0f} tasks could not be built and are out of play{why}",
            "Fix set_task or the params of these tasks.",
        )


@check("results-orphaned", "run")
def orphaned(run: RunEvidence) -> Iterator[Told]:
    """Results come so late that their tasks had been replaced."""
    late, count = (
        run.last(f"env_curriculum_stats/{name}") for name in ("num_orphaned", "total_completions")
    )
    if count >= MANY_EPISODES and late / count > 0.2:
        yield warning(
            f"{late / count:.0%} of {count:,.0f} results came after their task had been replaced; "
            "expected at most 20 %",
            "Use a larger pool (capacity), fewer envs, or slower replacement.",
        )


CHECKS = (
    *(failed, silent, not_finite, never, always, never_drawn),
    *(stage_stuck, quarantined, orphaned),
)
