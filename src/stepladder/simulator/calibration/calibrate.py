"""Make a scenario of own trainings: a simulated copy on which other curricula can be tried.

Top of this folder: reads runs, fits the learner that generalises, judges the fit and writes it
down. Called by the command ``stepladder calibrate``.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from stepladder.configs.checks import require_integer
from stepladder.errors import ConfigError
from stepladder.simulator.calibration.fit import (
    Fitted,
    Lengths,
    dynamics_of,
    fit,
    rates_of,
    uncertainty,
)
from stepladder.simulator.calibration.judging import LabelFit, Likelihoods, forecast, judge_fit
from stepladder.simulator.calibration.practice import Practice
from stepladder.simulator.calibration.reading import read_practice
from stepladder.simulator.calibration.replay import Rates, replay
from stepladder.simulator.generalising.config import Generalising
from stepladder.simulator.generalising.scenarios import GeneralScenario
from stepladder.simulator.generalising.state import mean_chance

LOWEST_GOAL, HIGHEST_GOAL = 0.05, 0.95

LEAST_GAIN = 0.1
"""How far the default goal lies above the success at the start."""

UNKNOWN = 0.7
"""Share of the prior's deviation from which a setting counts as not measured."""

WHEN = {"beginning": "at the beginning", "middle": "in the middle", "end": "at the end"}

MEANINGS = {
    "eta": "how fast skill grows",
    "eta_memory": "how fast single tasks are memorised",
    "lambda_forget": "how fast skill is lost",
    "lambda_memory": "how fast memory is lost",
    "near": "how much a label helps its neighbours",
    "reach": "how far that help reaches",
}


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A learner fitted to trainings, and how well it fits."""

    scenario: GeneralScenario
    """The copy: `simulate`, `compare` and `sweep` take it, and its file."""

    runs: tuple[str, ...]
    """Names of the trainings."""

    num_plays: int
    """Episodes of all of them."""

    num_envs: int
    """Envs of the largest of them."""

    num_steps: int
    """Env steps of the longest of them."""

    labels: tuple[LabelFit, ...]
    """Seen and predicted success per label."""

    likelihoods: Likelihoods
    """Of all labels together."""

    forecast: Likelihoods | None
    """Of the last 30 %, predicted from the rest; None if the trainings are too short."""

    dispersion: float
    """How much more successes scatter around the prediction than coins would; 1 is as coins."""

    uncertainty: dict[str, float]
    """How little each shared setting could be measured, in [0, 1]; with 1 it is the default."""

    notes: tuple[str, ...]
    """What was left out of the trainings."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the fit is bad, and what it cannot know, in words."""
        return tuple(_warnings(self))

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        plain = {name: value for name, value in asdict(self).items() if name != "scenario"}
        for label, own in zip(plain["labels"], self.labels, strict=True):
            for part, one in zip(label["parts"], own.parts, strict=True):
                part["is_inside"] = one.is_inside
        return {**plain, "warnings": list(self.warnings), "scenario": self.scenario.to_json()}


def calibrate(
    runs: Sequence[str | os.PathLike[str] | Practice],
    *,
    goal: float | None = None,
    target: Sequence[str] = (),
    name: str = "calibrated",
    seed: int = 0,
) -> Calibration:
    """Fit the learner that generalises to one or more trainings.

    Args:
        runs: Folders of runs, or what was read of them. All count alike, episode by episode.
        goal: Success on held-out tasks of the target at which the copy is done; by default what
            the learner predicts for the end of the trainings.
        target: Labels that the agent is for; all by default.
        name: Name of the scenario.
        seed: Seed of the starts of the fit; the same one gives the same result.

    Raises:
        RunError: A run cannot be read, or lacks something.
        ConfigError: There is no run, or one twice, or goal or target do not fit.
    """
    require_integer("seed", seed, 0)
    _require_different(runs)
    read = [one if isinstance(one, Practice) else read_practice(one) for one in runs]
    if not read:
        raise ConfigError("there is no run to calibrate on. Name the folder of one, or of several.")
    if goal is not None and not 0.0 < goal < 1.0:
        raise ConfigError(f"goal must lie between 0 and 1; got {goal!r}.")
    practices = _in_order([one.binned() for one in read])
    _check_target(target, practices[0].groups)
    practices, fitted = _fit_in_order(practices, seed)
    groups = practices[0].groups
    rates = rates_of(fitted.vector, len(groups))
    weights = tuple(float(group in target) for group in groups) if target else None
    dynamics = replace(dynamics_of(rates, practices, _lengths(practices)), target=weights)
    dynamics = replace(dynamics, goal=goal or _reached(practices, rates, dynamics))
    labels, likelihoods = judge_fit(practices, rates)
    names = tuple(one.name for one in read)
    num_plays = sum(one.num_plays for one in read)
    about = f"a copy of {', '.join(names[:3])}{' …' if len(names) > 3 else ''}"
    return Calibration(
        scenario=GeneralScenario(
            name=name,
            dynamics=dynamics,
            about=f"{about}: fitted to {num_plays} episodes by stepladder calibrate",
        ),
        runs=names,
        num_plays=num_plays,
        num_envs=max(one.num_envs for one in read),
        num_steps=max(int(one.steps[-1]) for one in read),
        labels=labels,
        likelihoods=likelihoods,
        forecast=forecast(practices, seed),
        dispersion=fitted.dispersion,
        uncertainty=uncertainty(practices, fitted),
        notes=tuple(dict.fromkeys(f"{one.name}: {note}" for one in read for note in one.notes)),
    )


def _require_different(runs: Sequence[str | os.PathLike[str] | Practice]) -> None:
    """Raise `ConfigError` if a folder is named twice: its episodes would count twice."""
    folders = [os.path.realpath(one) for one in runs if not isinstance(one, Practice)]
    for folder in folders:
        if folders.count(folder) > 1:
            raise ConfigError(
                f"{folder} is named {folders.count(folder)} times, so that its episodes would "
                "count as often. Name every run once."
            )


def _in_order(practices: list[Practice]) -> list[Practice]:
    """Give all trainings the same groups, those with the most success first.

    Raises:
        ConfigError: Two trainings have no label in common.
    """
    first = practices[0]
    for one in practices[1:]:
        if not set(one.groups) & set(first.groups):
            raise ConfigError(
                f"{first.name} and {one.name} have no label in common ({first.groups[0]!r} and "
                f"{one.groups[0]!r}, for example). Calibrate each by itself."
            )
    groups = tuple(dict.fromkeys(group for one in practices for group in one.groups))
    same = [one.in_order(groups) for one in practices]
    plays, wins = (
        sum(getattr(one, name).sum(axis=0) for one in same) for name in ("plays", "successes")
    )
    # A label that was never practised is behind those that were never solved.
    rates = np.where(np.asarray(plays) > 0, np.asarray(wins) / np.maximum(plays, 1.0), -1.0)
    order = np.argsort(-rates, kind="stable").tolist()
    return [one.in_order(tuple(groups[place] for place in order)) for one in same]


def _fit_in_order(practices: list[Practice], seed: int) -> tuple[list[Practice], Fitted]:
    """Fit, with the groups in the order of success; then in that of difficulty, if it differs.

    A label that was practised late only has more success than its difficulty explains.
    """
    fitted = fit(practices, seed=seed)
    rates = rates_of(fitted.vector, len(practices[0].groups))
    untrained = [mean_chance(-d, s) for d, s in zip(rates.difficulty, rates.spread, strict=True)]
    order = np.argsort(-np.array(untrained), kind="stable").tolist()
    if order == sorted(order):
        return practices, fitted
    groups = practices[0].groups
    others = [one.in_order(tuple(groups[place] for place in order)) for one in practices]
    again = fit(others, seed=seed)
    return (others, again) if again.cost < fitted.cost else (practices, fitted)


def _check_target(target: Sequence[str], groups: tuple[str, ...]) -> None:
    for label in target:
        if label not in groups:
            some = ", ".join(repr(group) for group in groups[:10])
            raise ConfigError(
                f"target names {label!r}, which no run has practised; there are {some}."
            )


def _lengths(practices: Sequence[Practice]) -> Lengths:
    """Return the mean lengths of successes and failures per group.

    A group without successes has the length of those of the nearest easier group, or of its own
    failures; likewise without failures.
    """
    wins, won, plays, lost = (
        np.asarray(sum(getattr(one, name).sum(axis=0) for one in practices))
        for name in ("successes", "success_steps", "plays", "failure_steps")
    )
    failures = plays - wins
    success = np.where(wins >= 1.0, won / np.maximum(wins, 1.0), np.nan)
    failure = np.where(failures >= 1.0, lost / np.maximum(failures, 1.0), np.nan)
    for lengths, other in ((success, failure), (failure, success)):
        for group in range(len(lengths)):
            if math.isnan(lengths[group]):
                before = lengths[group - 1] if group else other[group]
                lengths[group] = before if before >= 1.0 else other[group]
    return Lengths(
        success=np.maximum(1.0, np.nan_to_num(success, nan=1.0)),
        failure=np.nan_to_num(failure, nan=1.0),
    )


def _start(dynamics: Generalising) -> float:
    """Return the success on held-out tasks before anything is learned."""
    pairs = zip(dynamics.difficulty, dynamics.spread, strict=True)
    return float(np.array([mean_chance(-d, s) for d, s in pairs]) @ dynamics.target_weights)


def _reached(practices: Sequence[Practice], rates: Rates, dynamics: Generalising) -> float:
    """Return the success on held-out tasks that the learner has at the end of the trainings.

    It is more than at the start by `LEAST_GAIN`, or nothing would be left to compare.
    """
    ends = [replay(one, rates).held_out[-1] @ dynamics.target_weights for one in practices]
    lowest = max(LOWEST_GOAL, _start(dynamics) + LEAST_GAIN)
    return round(min(HIGHEST_GOAL, max(lowest, float(np.mean(ends)))), 2)


def _warnings(found: Calibration) -> list[str]:
    said: list[str] = []
    for label in found.labels:
        far = [part for part in label.parts if part.is_far]
        if far:
            worst = max(far, key=lambda part: abs(part.seen - part.predicted))
            said.append(
                f"{label.label}: the prediction is off {WHEN[worst.part]} (seen {worst.seen:.2f}, "
                f"predicted {worst.predicted:.2f})"
            )
        if sum(part.plays for part in label.parts) and all(
            not part.plays or part.high < 0.02 + 1.0 / part.plays for part in label.parts
        ):
            said.append(f"{label.label}: never solved, so its difficulty is a guess")
    later = found.forecast
    if later is None:
        said.append("the trainings are too short to test a forecast")
    elif later.learner < max(later.last, later.constant):
        name = "the last value" if later.last >= later.constant else "a constant rate"
        said.append(
            f"fitted on the first 70 %, the learner predicts the rest worse than {name} "
            f"({later.learner:.3f} against {max(later.last, later.constant):.3f} per episode)"
        )
    unknown = [MEANINGS[name] for name, left in found.uncertainty.items() if left > UNKNOWN]
    if unknown:
        said.append(f"not measured, so near the defaults: {'; '.join(unknown)}")
    if len(unknown) == len(found.uncertainty):
        said.append("this copy is the default learner, with the difficulties of your labels")
    start, goal = _start(found.scenario.dynamics), found.scenario.dynamics.goal
    if goal <= start:
        said.append(
            f"the copy begins at {start:.2f}, so the goal {goal:.2f} leaves nothing to compare; "
            "give a higher --goal"
        )
    return said
