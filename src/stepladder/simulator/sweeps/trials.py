"""Which settings need the fewest samples: plays the trials of a sweep and saves their results.

Above `compare`, which measures them: every trial is one choice of values, played with the same
seeds, and measured against the oracle of its scenario. `study` proposes the trials and saves each
result at once, so a sweep that was killed can be resumed.
"""

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepladder.configs.checks import require_integer
from stepladder.configs.codec import to_json
from stepladder.errors import ConfigError, RunError
from stepladder.simulator.compare import ComparisonCell, start_cell
from stepladder.simulator.policies import OracleRun
from stepladder.simulator.sweeps.space import (
    Dimension,
    Params,
    SweepChoice,
    SweepConfig,
    combinations,
    no_field_twice,
)
from stepladder.simulator.sweeps.study import SweepStudy

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


@dataclass(frozen=True, kw_only=True)
class SweepTrial:
    """One choice of values, and its result."""

    number: int
    params: Params
    cell: ComparisonCell | None
    """The measurement; None if the values contradict each other."""

    error: str | None = None
    """Reason why it could not be played."""

    @property
    def cost(self) -> float | None:
        """What a sweep minimises: the mean samples as a multiple of the oracle's.

        If some seeds do not finish, part of the budget is added: the more, the smaller the area
        under their curve of mastered tasks.
        """
        cell = self.cell
        if cell is None:
            return None
        added = (1.0 - cell.finished_share) * (1.0 - cell.area) * cell.budget
        return cell.ratio_to_oracle * (cell.mean_samples + added) / max(1.0, cell.mean_samples)

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
    config: SweepConfig,
    dimensions: Sequence[Dimension],
    *,
    folder: Path | str,
    num_trials: int | None = None,
    jobs: int | None = None,
    on_trial: OnTrial | None = None,
) -> SweepResult:
    """Play many settings of a curriculum, or resume such a sweep.

    Args:
        config: What all trials have in common.
        dimensions: What is varied.
        folder: Where the trials are kept. If it holds a sweep with the same settings, its finished
            trials are not played again.
        num_trials: Trials that Optuna proposes, of any kind of dimension; may grow from call to
            call. None plays all combinations of choices.
        jobs: Threads; as many as there are cores by default. The results do not depend on it.
        on_trial: Called after every trial.

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
        _refuse_useless_values(config, choices)
    settings = {
        **asdict(config),
        "search": "grid" if num_trials is None else "optuna",
        "dimensions": [dimension.to_json() for dimension in dimensions],
    }
    total = len(combinations(choices)) if num_trials is None else num_trials
    study = SweepStudy(folder, settings, dimensions, config.seed)
    threads = ThreadPoolExecutor(jobs or os.cpu_count() or 1)
    try:
        trials = {trial.number: _finished(study, trial) for trial in study.finished()}
        num_resumed = len(trials)
        oracles: dict[str, OracleRun] = {}
        for proposed in study.rounds(num_trials):
            # All seeds of a round are queued before the first result is waited for.
            for result in [
                _started(trial.number, study.params(trial), config, threads, oracles)
                for trial in proposed
            ]:
                trial = result()
                study.tell(trial.number, trial.cost, trial.to_json())
                trials[trial.number] = trial
                if on_trial is not None:
                    on_trial(trial, len(trials), total)
    finally:
        # After an interruption, the seeds that are being played end and no others begin.
        threads.shutdown(wait=True, cancel_futures=True)
        study.close()
    return SweepResult(trials=tuple(trials[n] for n in sorted(trials)), num_resumed=num_resumed)


def _started(
    number: int,
    params: Params,
    config: SweepConfig,
    threads: ThreadPoolExecutor,
    oracles: dict[str, OracleRun],
) -> Callable[[], SweepTrial]:
    """Queue the seeds of a trial; return a function that waits for its result."""
    try:
        setup = config.setup(params)
        # The oracle depends on these only.
        parts = {n: v for n, v in params.items() if n.startswith(("dynamics.", "simulation."))}
        key = json.dumps([to_json(parts), setup.budget], sort_keys=True)
        if key not in oracles:
            oracles[key] = setup.place.oracle(config.seed, setup.num_envs, setup.budget)
    except ConfigError as error:
        failed = SweepTrial(number=number, params=params, cell=None, error=str(error))
        return lambda: failed
    seeds = range(config.seed, config.seed + config.num_seeds)
    wait = start_cell(
        *(setup.place, config.curriculum, setup.config, oracles[key], seeds, threads),
        budget=setup.budget,
        num_envs=setup.num_envs,
    )
    return lambda: SweepTrial(number=number, params=params, cell=wait())


def _finished(study: SweepStudy, trial: "FrozenTrial") -> SweepTrial:
    """Return a trial that an earlier process has saved."""
    try:
        result = trial.user_attrs["result"]
        cell = None if result["cell"] is None else ComparisonCell(**result["cell"])
        params = study.params(trial)
        return SweepTrial(number=trial.number, params=params, cell=cell, error=result["error"])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RunError(
            f"trial {trial.number} of {study.folder} is damaged ({type(error).__name__}: {error}). "
            "Choose another folder."
        ) from error


def _refuse_useless_values(config: SweepConfig, choices: Sequence[SweepChoice]) -> None:
    """Raise if a value is wrong in every combination, and not only in some."""
    useful: set[tuple[str, Any]] = set()
    first_error: dict[tuple[str, Any], ConfigError] = {}
    for params in combinations(choices):
        try:
            config.setup(params)
        except ConfigError as error:
            for entry in params.items():
                first_error.setdefault(entry, error)
        else:
            useful.update(params.items())
    for entry, error in first_error.items():
        if entry not in useful:
            name, value = entry
            raise ConfigError(f"{name}={value} fits no combination: {error}") from error
