"""Read the study of a sweep without touching it: settings, trials, and which parameters mattered.

Beside `study`, which writes it; for the dashboard. Optuna opens what it reads for writing, so it is
given a copy: a sweep that is going on, or that belongs to another user, is not changed.
"""

import math
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from stepladder.errors import RunError
from stepladder.files import open_regular
from stepladder.sweeps.study import JOURNAL, STUDY, import_optuna

LARGEST_JOURNAL = 200_000_000
"""Bytes of a journal that is read."""

LEAST_TRIALS = 8
"""Trials with a result from which importance is worth telling."""

LEAST_FOR_A_TENTH = 40
"""Trials with a result from which the best tenth is enough to compare with the others."""

PED_ANOVA = "PED-ANOVA of the best tenth (Watanabe et al. 2023), by Optuna"
CORRELATION = "absolute rank correlation with the cost, scaled to sum to 1"


@dataclass(frozen=True, kw_only=True)
class ReadTrial:
    """One trial, as it was saved."""

    number: int
    state: str
    """complete, fail, or running: proposed, and without a result so far."""

    params: dict[str, Any]
    cost: float | None
    """What the sweep minimises."""

    result: dict[str, Any]
    """What was measured; empty if nothing was."""


@dataclass(frozen=True, kw_only=True)
class ReadSweep:
    """A sweep, as its study says it is."""

    settings: dict[str, Any]
    trials: tuple[ReadTrial, ...]
    importance: dict[str, float]
    """How much each parameter matters; they sum to 1. Empty if too few trials have a result."""

    measure: str
    """How importance was measured, in words."""


def read_sweep(folder: Path) -> ReadSweep:
    """Return the sweep in a folder.

    Raises:
        ConfigError: Optuna is not installed.
        RunError: There is no sweep, or it cannot be read.
    """
    optuna = import_optuna()
    damage = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
    try:
        with tempfile.TemporaryDirectory() as copies:
            path = _copied(folder / JOURNAL, Path(copies))
            journal = optuna.storages.journal.JournalFileBackend(os.fspath(path))
            storage = optuna.storages.JournalStorage(journal)
            study = optuna.load_study(study_name=STUDY, storage=storage)
            found = study.user_attrs.get("settings")
            settings = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
            trials = tuple(_trial(one) for one in study.trials)
            importance, measure = _importance(optuna, study, trials)
    except (OSError, RecursionError, *damage) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RunError(
            f"the sweep {folder.name} cannot be read ({type(error).__name__}: {reason}). Check its "
            f"{JOURNAL}."
        ) from error
    return ReadSweep(settings=settings, trials=trials, importance=importance, measure=measure)


def _copied(path: Path, into: Path) -> Path:
    """Copy a journal, without the half a line that a process may be writing."""
    copy = into / JOURNAL
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as source, copy.open("wb") as target:
        if os.fstat(source.fileno()).st_size > LARGEST_JOURNAL:
            raise ValueError(f"it is larger than {LARGEST_JOURNAL} bytes")
        shutil.copyfileobj(source, target, 1 << 20)
    with copy.open("r+b") as file:
        file.seek(max(0, copy.stat().st_size - (1 << 20)))
        start, tail = file.tell(), file.read()
        file.truncate(start + tail.rfind(b"\n") + 1)
    return copy


def _trial(trial: Any) -> ReadTrial:
    result = trial.user_attrs.get("result")
    cost = trial.values[0] if trial.values else None
    return ReadTrial(
        number=int(trial.number),
        state=str(trial.state.name).lower(),
        params={str(name): value for name, value in trial.params.items()},
        cost=float(cost) if cost is not None and math.isfinite(cost) else None,
        result=cast("dict[str, Any]", result) if isinstance(result, dict) else {},
    )


def _importance(
    optuna: Any, study: Any, trials: Sequence[ReadTrial]
) -> tuple[dict[str, float], str]:
    """Return how much each parameter matters, and how that was measured."""
    played = [trial for trial in trials if trial.cost is not None]
    names = sorted({name for trial in played for name in trial.params})
    if len(played) < LEAST_TRIALS or not names:
        return {}, ""
    if len(played) < LEAST_FOR_A_TENTH:
        found = correlations(played, names)
        return found, CORRELATION if found else ""
    try:
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    except (AttributeError, ImportError, RuntimeError, ValueError):
        # An older Optuna, or one that lacks a package for it.
        found = correlations(played, names)
        return found, CORRELATION if found else ""
    return {str(name): float(value) for name, value in found.items()}, PED_ANOVA


def correlations(played: Sequence[ReadTrial], names: Sequence[str]) -> dict[str, float]:
    """Return the absolute rank correlation of each parameter with the cost, scaled to sum to 1.

    Values that are no numbers are ranked by their mean cost.
    """
    costs = _ranks(np.array([trial.cost for trial in played], dtype=np.float64))
    found: dict[str, float] = {}
    for name in names:
        values = [trial.params.get(name) for trial in played]
        ranks = _ranks(_as_numbers(values, costs))
        spread = float(ranks.std() * costs.std())
        joint = float(((ranks - ranks.mean()) * (costs - costs.mean())).mean())
        found[name] = abs(joint) / spread if spread > 0.0 else 0.0
    total = sum(found.values())
    shared = {name: value / total for name, value in found.items()} if total else {}
    return dict(sorted(shared.items(), key=lambda entry: -entry[1]))


def _as_numbers(values: Sequence[Any], costs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return np.array(values, dtype=np.float64)
    means: Mapping[str, float] = {
        str(kind): float(np.mean([c for v, c in zip(values, costs, strict=True) if v == kind]))
        for kind in values
    }
    return np.array([means[str(value)] for value in values])


def _ranks(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return mean ranks: equal values share theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2.0)[which]
