"""Read what a training practised from its run folder; nothing of the run is imported or changed.

Between `runs` and `practice`. Everything comes from what `EpochReporter` logs by default: counts,
success and env steps per label and epoch, tables of all tasks, and events of evaluations.
"""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.curricula.reporting.meter import STATS
from stepladder.errors import RunError
from stepladder.runs import RunReader
from stepladder.runs.evaluation_events import by_way
from stepladder.simulator.calibration.practice import HeldOut, Practice
from stepladder.simulator.calibration.repeats import RepeatedPlays, repeats_of
from stepladder.simulator.generalising.config import MAX_LEARNER_TASKS
from stepladder.stats.names import OTHER_NAMES

SAMPLES, SUCCESS = f"{STATS}/per_label_samples/", f"{STATS}/per_label_success/"
SUCCESS_STEPS = f"{STATS}/per_label_success_steps/"
FAILURE_STEPS = f"{STATS}/per_label_failure_steps/"
FRACTION, ACTIVE = f"{STATS}/pool_composition_fraction/", f"{STATS}/num_active_tasks"
EVICTED = f"{STATS}/num_evicted"

USUAL_UPDATE_STEPS = 8192
FEWEST_UPDATES = 100
"""Updates of a training whose agent learns after every few steps; the simulated one learns in
larger portions."""

FEWEST_PLAYS = 20
"""Plays of a label between two tables of tasks from which it is seen how they were spread."""


def read_practice(folder: str | os.PathLike[str]) -> Practice:
    """Return what a training practised.

    Raises:
        RunError: There is no run, it is damaged, it is no training, or something is missing in it.
    """
    reader = RunReader(folder)
    names = reader.metric_names()
    groups = _groups(reader, names)
    steps, plays = _table(reader, SAMPLES, groups, names)
    success = _table(reader, SUCCESS, groups, names, steps, empty=np.nan)[1]
    # Episodes without a success value are no evidence.
    plays = np.where(np.isfinite(success), plays, 0.0)
    successes = np.where(plays > 0, plays * np.nan_to_num(success), 0.0)
    won = _table(reader, SUCCESS_STEPS, groups, names, steps)[1]
    lost = _table(reader, FAILURE_STEPS, groups, names, steps)[1]
    if not plays.sum():
        raise RunError(f"{reader.folder} has no finished episodes. Train for longer.")
    if not won.sum() + lost.sum():
        won, lost = _steps_of_records(reader, groups, successes, plays)
    if np.any(success > 1.0 + 1e-9) or np.any(steps[1:] <= steps[:-1]):
        raise RunError(f"{reader.folder} is damaged: a success is above 1. Restore it from a copy.")
    num_tasks, notes = _num_tasks(reader, groups, names, steps)
    evaluations, further = _held_out(reader, groups)
    num_envs, update_steps, more = _pace(reader.config, int(steps[-1]))
    notes += further + more
    if reader.status == "running":
        notes.append(f"it is still running; this is what it practised up to step {steps[-1]:,}")
    if OTHER_NAMES in groups:
        notes.append(f"labels beyond the first {len(groups) - 1} are one group, {OTHER_NAMES!r}")
    return Practice(
        name=reader.name,
        groups=groups,
        num_tasks=num_tasks,
        steps=steps,
        plays=plays,
        successes=successes,
        success_steps=won,
        failure_steps=lost,
        tasks_in_play=_tasks_in_play(reader, groups, steps, num_tasks),
        held_out=evaluations,
        repeats=_repeats(reader, groups, num_envs, update_steps),
        num_envs=num_envs,
        update_steps=update_steps,
        notes=tuple(notes),
    )


def _groups(reader: RunReader, names: list[str]) -> tuple[str, ...]:
    """Return the labels of a training; raise if this is none, or has none."""
    if reader.kind == "simulation":
        raise RunError(
            f"{reader.folder} is a simulation: its learner is known already. Give the folder of a "
            "training."
        )
    found = tuple(name.removeprefix(SAMPLES) for name in names if name.startswith(SAMPLES))
    if not found:
        raise RunError(
            f"{reader.folder} has no results per label of tasks. Train with a curriculum "
            "(stepladder train), or report the epochs with EpochReporter."
        )
    if not any(name.startswith(SUCCESS) for name in names):
        raise RunError(
            f"{reader.folder} has no success of episodes, and no learner can be fitted without. "
            "Let the env report is_success, and train again."
        )
    return found


def _table(
    reader: RunReader,
    prefix: str,
    groups: tuple[str, ...],
    names: list[str],
    steps: Words | None = None,
    empty: float = 0.0,
) -> tuple[Words, Floats]:
    """Return a family of metrics as a table, a row per step."""
    series = {
        group: reader.metric(prefix + group) for group in groups if prefix + group in set(names)
    }
    if steps is None:
        steps = np.unique(np.concatenate([when for when, _ in series.values()]))
    table = np.full((len(steps), len(groups)), empty)
    for group, (when, values) in series.items():
        is_kept = np.isin(when, steps) & np.isfinite(values)
        if np.any(values[is_kept] < 0.0):
            raise RunError(
                f"{reader.folder} is damaged: {prefix}{group} is negative. Restore it from a copy."
            )
        table[np.searchsorted(steps, when[is_kept]), groups.index(group)] = values[is_kept]
    return steps, table


def _steps_of_records(
    reader: RunReader, groups: tuple[str, ...], successes: Floats, plays: Floats
) -> tuple[Floats, Floats]:
    """Return the env steps per label from the records of all episodes, spread over the epochs."""
    records = reader.records()
    if not len(records):
        raise RunError(
            f"{reader.folder} has no lengths of successful and failed episodes: it was made by an "
            "older version. Train again with this one, or continue it with stepladder train "
            "--resume."
        )
    columns = _columns(reader)
    labels = np.array([_place(groups, label) for label in columns["label"]])
    known = records[(records["slot"] < len(labels)) & np.isfinite(records["success"])]
    of_record = labels[known["slot"]]
    won = np.bincount(of_record, known["success"] * known["length"], len(groups))
    lost = np.bincount(of_record, (1.0 - known["success"]) * known["length"], len(groups))
    wins, failures = successes.sum(axis=0), (plays - successes).sum(axis=0)
    return (
        successes * won / np.maximum(wins, 1e-9),
        (plays - successes) * lost / np.maximum(failures, 1e-9),
    )


def _repeats(
    reader: RunReader, groups: tuple[str, ...], num_envs: int, update_steps: int
) -> RepeatedPlays | None:
    """Return what plays of the same task say; None unless all were drawn alike and are kept."""
    curriculum = reader.config.get("curriculum")
    if not isinstance(curriculum, Mapping) or curriculum.get("type") != "uniform":
        return None
    records, labels = reader.records(), _columns(reader)["label"]
    if not len(records) or records["generation"].any() or records["slot"].max() >= len(labels):
        return None
    places = np.array([_place(groups, label) for label in labels], dtype=np.int64)
    found = repeats_of(records, places, num_envs, update_steps)
    # The last labels may have no task that was played.
    return found.in_order([*range(found.pairs.shape[1]), *[-1] * len(groups)][: len(groups)])


def _place(groups: tuple[str, ...], label: str) -> int:
    """Return the position of a label; labels that have no metric of their own are the last."""
    return groups.index(label) if label in groups else len(groups) - 1


def _columns(reader: RunReader, step: int | None = None) -> dict[str, Any]:
    columns = dict(reader.tasks(step))
    empty = {name: np.zeros(0) for name in ("samples", "generation")}
    return {"label": [], "task": [], **empty, **columns}


def _num_tasks(
    reader: RunReader, groups: tuple[str, ...], names: list[str], steps: Words
) -> tuple[Words, list[str]]:
    """Return the tasks per label, as many as there were at the same time, and notes."""
    fractions = _table(reader, FRACTION, groups, names, steps)[1]
    active = _table(reader, ACTIVE, ("",), names, steps)[1] if ACTIVE in names else np.zeros((1, 1))
    counts = np.rint(np.max(fractions * active, axis=0)).astype(np.int64)
    notes: list[str] = []
    if not counts.any():
        places = [_place(groups, label) for label in _columns(reader)["label"]]
        counts = np.bincount(np.array(places, dtype=np.int64), minlength=len(groups))
    counts = np.maximum(1, counts)
    if counts.sum() > MAX_LEARNER_TASKS:
        counts = np.maximum(1, counts * (MAX_LEARNER_TASKS - len(counts)) // counts.sum())
        notes.append(f"the copy has {counts.sum()} tasks, in the same proportions")
    if EVICTED in names and np.nanmax(reader.metric(EVICTED)[1], initial=0.0) > 0.0:
        notes.append("tasks were replaced by others; the copy has as many as were there at a time")
    return counts, notes


def _tasks_in_play(
    reader: RunReader, groups: tuple[str, ...], steps: Words, num_tasks: Words
) -> Floats:
    """Return over how many tasks the plays of each label were spread.

    That is the inverse of the chance that two plays between two tables were of the same task.
    """
    found = np.broadcast_to(num_tasks.astype(np.float64), (len(steps), len(groups))).copy()
    before: dict[str, Any] | None = None
    since = 0
    for step in reader.task_steps():
        table = _columns(reader, step)
        plays = np.asarray(table["samples"], dtype=np.float64)
        if len(plays) != len(table["label"]) or len(plays) != len(table["generation"]):
            continue
        if before is not None and len(before["samples"]) == len(plays):
            same = np.asarray(before["generation"]) == np.asarray(table["generation"])
            plays = plays - np.where(same, before["samples"], 0.0)
        labels = np.array([_place(groups, label) for label in table["label"]], dtype=np.int64)
        total = np.bincount(labels, plays, len(groups))
        pairs = np.bincount(labels, plays * (plays - 1.0), len(groups))
        enough = (total >= FEWEST_PLAYS) & (pairs > 0)
        spread = total * (total - 1.0) / np.where(pairs > 0, pairs, 1.0)
        rows = (steps > since) & (steps <= step)
        found[np.ix_(rows, enough)] = np.clip(spread, 1.0, num_tasks)[enough]
        before, since = table, step
    return found


def _held_out(reader: RunReader, groups: tuple[str, ...]) -> tuple[tuple[HeldOut, ...], list[str]]:
    """Return evaluations on tasks that were not practised, and notes on those that are left out."""
    practised = set(_columns(reader)["task"])
    found: list[HeldOut] = []
    was_best = was_practised = False
    for event in reader.events("evaluation"):
        # Practice draws its actions too.
        drawn = by_way(event.data).get("drawn")
        if drawn is None:
            was_best = True
            continue
        games, successes = np.zeros(len(groups)), np.zeros(len(groups))
        for part in _parts(drawn.get("total")):
            tasks, rate = _parts(part), part.get("rate")
            if part.get("name") not in groups or not isinstance(rate, Mapping):
                continue
            if any(task.get("name") in practised for task in tasks):
                was_practised = True
                continue
            # Games of the same task are alike, so that each task counts once.
            count = len(tasks) or int(part.get("num_trials") or 0)
            place = groups.index(part["name"])
            games[place], successes[place] = count, count * min(1.0, float(rate["value"]))
        if games.any():
            found.append(HeldOut(step=event.step, games=games, successes=successes))
    notes: list[str] = []
    if was_best:
        notes.append("evaluations of best actions are left out: practice draws its actions")
    if was_practised:
        notes.append("evaluations of practised tasks are left out")
    return tuple(found), notes


def _parts(score: Any) -> list[dict[str, Any]]:
    parts = score.get("parts") if isinstance(score, Mapping) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _pace(config: Mapping[str, Any], num_steps: int) -> tuple[int, int, list[str]]:
    """Return the number of envs, env steps from one update to the next, and notes."""
    num_envs, agent = config.get("num_envs"), config.get("agent")
    envs = num_envs if isinstance(num_envs, int) and num_envs > 0 else 1
    rollout = agent.get("rollout_steps") if isinstance(agent, Mapping) else None
    if isinstance(rollout, int) and rollout > 0:
        return envs, max(envs, rollout), []
    steps = max(envs, min(USUAL_UPDATE_STEPS, num_steps // FEWEST_UPDATES), 1)
    return envs, steps, [f"the agent has no rollouts: the copy learns every {steps} env steps"]
