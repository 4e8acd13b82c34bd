"""Sweeps: which there are beside the runs, and the trials of one with what mattered in it.

Names of sweeps come from the folders of the index, as names of runs do. Trials of trainings have
runs of their own; those of simulated learners can be played again in the playground.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from stepladder.dashboard.run_index import DEPTH, RunIndex, Stamp
from stepladder.errors import RunError, StepladderError
from stepladder.files import is_real_folder
from stepladder.runs.run_folder import CHECKPOINTS, CONFIG
from stepladder.sweeps.reading import ReadSweep, read_sweep
from stepladder.sweeps.study import JOURNAL
from stepladder.visible import one_visible_line

MOST_SWEEPS = 200


def sweeps(index: RunIndex, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row for every sweep."""
    rows: list[dict[str, Any]] = []
    for name, folder in sweep_folders(index).items():
        try:
            found = _read(folder)
        except StepladderError as error:
            rows.append({"name": name, "problem": one_visible_line(error)})
            continue
        costs = [trial.cost for trial in found.trials if trial.cost is not None]
        rows.append(
            {
                "name": name,
                **_subject(found.settings),
                "num_trials": len(found.trials),
                "num_played": len(costs),
                "best": min(costs, default=None),
            }
        )
    return rows


def sweep(index: RunIndex, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the sweep ``name`` with all its trials, the best first.

    Raises:
        RunError: There is no such sweep, or it cannot be read.
    """
    name = params.get("name", "")
    folder = sweep_folders(index).get(name)
    if folder is None:
        raise RunError(f"there is no sweep {name[:200]!r} here. Choose one of the list.")
    found = _read(folder)
    groups = _groups(index, folder)
    trials = [
        {**asdict(trial), "group": groups.get(f"trial-{trial.number}")} for trial in found.trials
    ]
    trials.sort(key=lambda row: (row["cost"] is None, row["cost"] or 0.0, row["number"]))
    dimensions = found.settings.get("dimensions")
    return {
        "name": name,
        **_subject(found.settings),
        "dimensions": dimensions if isinstance(dimensions, list) else [],
        "trials": trials,
        "importance": found.importance,
        "measure": found.measure,
    }


def sweep_stamps(index: RunIndex) -> dict[str, Stamp]:
    """Return, for every sweep, what tells whether it has changed since."""
    found: dict[str, Stamp] = {}
    for name, folder in sweep_folders(index).items():
        try:
            status = os.lstat(folder / JOURNAL)
        except OSError:
            continue
        found[name] = status.st_size, status.st_mtime_ns
    return found


def sweep_folders(index: RunIndex) -> dict[str, Path]:
    """Return the folders of sweeps by name."""
    found: dict[str, Path] = {}
    for folder in index.folders:
        for path in _studies_below(folder, DEPTH):
            inside = path.relative_to(folder).parts
            name = "/".join(
                inside if inside and len(index.folders) == 1 else (folder.name, *inside)
            )
            found.setdefault(name, path)
            if len(found) >= MOST_SWEEPS:
                return found
    return found


def _studies_below(folder: Path, depth: int) -> Iterator[Path]:
    if os.path.lexists(folder / JOURNAL):
        yield folder
        return
    if depth == 0 or os.path.lexists(folder / CONFIG):
        return
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if not name.startswith(".") and name != CHECKPOINTS and is_real_folder(folder / name):
            yield from _studies_below(folder / name, depth - 1)


def _read(folder: Path) -> ReadSweep:
    try:
        stat = os.lstat(folder / JOURNAL)
    except OSError as error:
        raise RunError(f"the sweep {folder.name} is gone ({error.strerror}).") from error
    return _read_once(folder, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=32)
def _read_once(folder: Path, changed: int, size: int) -> ReadSweep:
    """Read a sweep, unless it is as it was the last time."""
    return read_sweep(folder)


def _subject(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is swept: scenario and curriculum, or a training."""
    training = settings.get("training")
    subject = training.get("env") if isinstance(training, Mapping) else None
    return {
        "scenario": settings.get("scenario"),
        "curriculum": settings.get("curriculum"),
        "training": subject if isinstance(subject, str) or subject is None else None,
        "is_training": isinstance(training, Mapping),
        "num_seeds": settings.get("num_seeds"),
        "num_envs": settings.get("num_envs"),
        "search": settings.get("search"),
    }


def _groups(index: RunIndex, folder: Path) -> dict[str, str]:
    """Return the names under which the runs of each trial stand, by the trial's folder."""
    found: dict[str, str] = {}
    for name, path in index.scan().items():
        if not path.is_relative_to(folder):
            continue
        inside = path.relative_to(folder).parts
        if inside:
            parts = name.split("/")
            keep = len(parts) - len(inside) + 1
            found.setdefault(inside[0], "/".join(parts[:keep]))
    return found
