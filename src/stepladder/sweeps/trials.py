"""Which settings are best: plays the trials of a sweep and saves their results.

Every trial is one choice of values, played with the same seeds and measured by an `Objective`.
`study` proposes the trials and saves each result at once, so a sweep that was killed can be
resumed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepladder.configs.checks import require_integer
from stepladder.configs.codec import to_json
from stepladder.errors import ConfigError, RunError
from stepladder.sweeps.objective import Measured, Objective, OnNews, Start
from stepladder.sweeps.space import (
    Dimension,
    SweepChoice,
    SweepParams,
    combinations,
    no_field_twice,
)
from stepladder.sweeps.study import SweepStudy

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


@dataclass(frozen=True, kw_only=True)
class SweepTrial:
    """One choice of values, and its result."""

    number: int
    params: SweepParams
    cell: Measured | None
    """The measurement; None if the values cannot be played."""

    error: str | None = None
    """Reason why it could not be played."""

    @property
    def cost(self) -> float | None:
        """What a sweep minimises; None if it could not be played."""
        return None if self.cell is None else self.cell.cost

    def to_json(self) -> dict[str, Any]:
        """Return the trial as plain JSON."""
        return {
            "number": self.number,
            "params": to_json(self.params),
            "cost": self.cost,
            "cell": None if self.cell is None else self.cell.to_json(),
            "error": self.error,
        }


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """All trials of a sweep."""

    trials: tuple[SweepTrial, ...]
    """In the order of their numbers."""

    num_resumed: int
    """Number of them that an earlier process had finished."""

    def ranked(self) -> list[SweepTrial]:
        """Return the trials that could be played, the best first."""
        played = [trial for trial in self.trials if trial.cost is not None]
        return sorted(played, key=lambda trial: (trial.cost, trial.number))


OnTrial = Callable[[SweepTrial, int, int], None]
"""Called after every trial with the trial, the number of finished trials and their total."""


def sweep(
    objective: Objective,
    dimensions: Sequence[Dimension],
    *,
    folder: Path | str,
    num_trials: int | None = None,
    jobs: int | None = None,
    on_trial: OnTrial | None = None,
    on_news: OnNews | None = None,
) -> SweepResult:
    """Play many settings, or resume such a sweep.

    Args:
        objective: What all trials have in common, and how they are measured.
        dimensions: What is varied.
        folder: Where the trials are kept. If it holds a sweep with the same settings, its finished
            trials are not played again.
        num_trials: Trials that Optuna proposes, of any kind of dimension; may grow from call to
            call. None plays all combinations of choices.
        jobs: Seeds that are played at once; as many as there are cores by default. The results do
            not depend on it.
        on_trial: Called after every trial.
        on_news: Called with one line about the trials that are being played, where they take long.

    Raises:
        ConfigError: A setting is wrong, or a value is wrong in every combination.
        RunError: The folder holds something else or a sweep with other settings.
    """
    if jobs is not None:
        require_integer("jobs", jobs, 1)
    no_field_twice(dimensions)
    choices = [entry for entry in dimensions if isinstance(entry, SweepChoice)]
    if num_trials is not None:
        require_integer("num_trials", num_trials, 1)
    elif ranges := [entry.field for entry in dimensions if not isinstance(entry, SweepChoice)]:
        raise ConfigError(f"{ranges[0]} has a range, which only a search can try. Give num_trials.")
    else:
        _refuse_useless_values(objective, choices)
    settings = {
        **objective.settings(),
        "search": "grid" if num_trials is None else "optuna",
        "dimensions": [dimension.to_json() for dimension in dimensions],
    }
    total = len(combinations(choices)) if num_trials is None else num_trials
    study = SweepStudy(folder, settings, dimensions, objective.seed)
    try:
        trials = {one.number: _finished(study, one, objective) for one in study.finished()}
        num_resumed = len(trials)
        with objective.players(study.folder, jobs, on_news) as start:
            for proposed in study.rounds(num_trials):
                # All of a round are queued before the first result is waited for.
                waiting = [_started(start, one.number, study.params(one)) for one in proposed]
                for wait in waiting:
                    trial = wait()
                    study.record(trial.number, trial.cost, trial.to_json())
                    trials[trial.number] = trial
                    if on_trial is not None:
                        on_trial(trial, len(trials), total)
    finally:
        study.close()
    return SweepResult(trials=tuple(trials[n] for n in sorted(trials)), num_resumed=num_resumed)


def _started(start: Start, number: int, params: SweepParams) -> Callable[[], SweepTrial]:
    """Begin a trial; return a function that waits for its result."""

    def failed(error: ConfigError) -> SweepTrial:
        return SweepTrial(number=number, params=params, cell=None, error=str(error))

    try:
        wait = start(number, params)
    except ConfigError as error:
        trial = failed(error)
        return lambda: trial

    def result() -> SweepTrial:
        try:
            return SweepTrial(number=number, params=params, cell=wait())
        except ConfigError as error:
            return failed(error)

    return result


def _finished(study: SweepStudy, trial: "FrozenTrial", objective: Objective) -> SweepTrial:
    """Return a trial that an earlier process has saved."""
    try:
        result = trial.user_attrs["result"]
        cell = None if result["cell"] is None else objective.measured(result["cell"])
        params = study.params(trial)
        return SweepTrial(number=trial.number, params=params, cell=cell, error=result["error"])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RunError(
            f"trial {trial.number} of {study.folder} is damaged ({type(error).__name__}: {error}). "
            "Choose another folder."
        ) from error


def _refuse_useless_values(objective: Objective, choices: Sequence[SweepChoice]) -> None:
    """Raise if a value is wrong in every combination, and not only in some."""
    useful: set[tuple[str, Any]] = set()
    first_error: dict[tuple[str, Any], ConfigError] = {}
    for params in combinations(choices):
        try:
            objective.check(params)
        except ConfigError as error:
            for entry in params.items():
                first_error.setdefault(entry, error)
        else:
            useful.update(params.items())
    for entry, error in first_error.items():
        if entry not in useful:
            name, value = entry
            raise ConfigError(f"{name}={value} fits no combination: {error}") from error
