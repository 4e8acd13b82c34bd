"""Which settings need the fewest samples: many settings of one curriculum, over seeds.

Above `compare`, whose way of measuring it uses: every trial is one choice of values, played with
the same seeds, and measured against the oracle of its scenario. Every finished trial is on disk at
once, so a sweep that was killed continues where it stopped.
"""

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import Any

from stepladder.configs.checks import require_whole
from stepladder.configs.codec import to_json
from stepladder.errors import ConfigError, RunError
from stepladder.simulator.compare import HORIZON, Cell, Trial, play_seed, summarise
from stepladder.simulator.oracle import OracleRun, best_oracle
from stepladder.simulator.scenarios import scenario
from stepladder.simulator.sweep_folder import SweepFolder
from stepladder.simulator.sweep_search import Params, Round, Told, grid_rounds, optuna_rounds
from stepladder.simulator.sweep_space import (
    Choice,
    Dimension,
    Setup,
    applied,
    no_field_twice,
    sweepable_fields,
)


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """What every trial of a sweep has in common."""

    scenario: str = "chain-10"
    """Name of a scenario, such as chain-10, tree-31 or grid-6x6, or a graph in a .json file."""

    curriculum: str = "frontier"
    """Name of a curriculum, as `compare` knows it."""

    num_seeds: int = 8
    """Seeds per trial; the same ones for every trial."""

    seed: int = 0
    """First of the seeds; also decides what a search proposes."""

    num_envs: int = 1
    """Envs that play at the same time."""

    budget: int | None = None
    """Plays after which a seed is given up; None takes the scenario's own."""

    def __post_init__(self) -> None:
        require_whole("num_seeds", self.num_seeds, 1)
        require_whole("num_envs", self.num_envs, 1)
        require_whole("seed", self.seed, 0)
        if self.budget is not None:
            require_whole("budget", self.budget, 1)

    def setup(self, params: Params) -> Setup:
        """Return what a choice of values means."""
        return applied(
            params,
            scenario_name=self.scenario,
            curriculum=self.curriculum,
            num_envs=self.num_envs,
            budget=self.budget,
        )

    def fields(self) -> dict[str, Any]:
        """Return every field that can be varied, by name, with what it holds."""
        return sweepable_fields(self.curriculum, scenario(self.scenario))


@dataclass(frozen=True, kw_only=True)
class SweepTrial:
    """One choice of values, and how it fared."""

    number: int
    params: Params
    cell: Cell | None
    """What was measured; None if the values do not go together."""

    error: str | None = None
    """Why it could not be played."""

    @property
    def cost(self) -> float | None:
        """What a sweep makes small: the mean samples as a multiple of the oracle's.

        Where some seeds do not finish, the mean says little; the smaller the area under their
        curve of mastered tasks, the more of the budget is added.
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
    """How many of them had been finished by an earlier process."""

    def ranked(self) -> list[SweepTrial]:
        """Return the trials that could be played, the best first."""
        played = [trial for trial in self.trials if trial.cost is not None]
        return sorted(played, key=lambda trial: (trial.cost, trial.number))


OnTrial = Callable[[SweepTrial, int, int], None]
"""Is told of every trial that is done, how many are, and how many there will be."""


def sweep(
    config: SweepConfig,
    dimensions: Sequence[Dimension],
    *,
    folder: Path | str,
    num_trials: int | None = None,
    jobs: int | None = None,
    on_trial: OnTrial | None = None,
) -> SweepResult:
    """Play many settings of a curriculum, or go on with it.

    Args:
        config: What all trials have in common.
        dimensions: What is varied.
        folder: Where the trials are kept. If it holds a sweep with the same settings, its finished
            trials are not played again.
        num_trials: Trials that Optuna proposes; None plays all combinations, which allows no
            ranges. May grow from one call to the next.
        jobs: Threads; as many as there are cores by default. The results do not depend on it.
        on_trial: Is told of every trial that is done.

    Raises:
        ConfigError: A setting makes no sense, or none of the combinations does.
        RunError: The folder holds something else.
    """
    if jobs is not None:
        require_whole("jobs", jobs, 1)
    no_field_twice(dimensions)
    choices = [entry for entry in dimensions if isinstance(entry, Choice)]
    if num_trials is not None:
        require_whole("num_trials", num_trials, 1)
    elif len(choices) < len(dimensions):
        name = next(entry.field for entry in dimensions if not isinstance(entry, Choice))
        raise ConfigError(f"{name} has a range, which only a search can try. Give num_trials.")
    else:
        _refuse_useless_values(config, choices)
    settings = {
        **asdict(config),
        "search": "grid" if num_trials is None else "optuna",
        "dimensions": [dimension.to_json() for dimension in dimensions],
    }
    store = SweepFolder(folder, settings)
    try:
        runner = _Runner(config, store, jobs or os.cpu_count() or 1, on_trial)
        if num_trials is None:
            (only,) = rounds = list(grid_rounds(choices))
            total = len(only)
        else:
            total = num_trials
            rounds = optuna_rounds(dimensions, num_trials, config.seed, runner.told)
        num_resumed = len(runner.trials)
        for trials in rounds:
            runner.play(trials, total)
    finally:
        store.close()
    ordered = tuple(runner.trials[number] for number in sorted(runner.trials))
    return SweepResult(trials=ordered, num_resumed=num_resumed)


class _Runner:
    """Plays trials in threads, and keeps each as soon as its last seed is done."""

    def __init__(
        self, config: SweepConfig, store: SweepFolder, jobs: int, on_trial: OnTrial | None
    ):
        self.config = config
        self._store = store
        self._jobs = jobs
        self._on_trial = on_trial
        self._oracles: dict[str, OracleRun] = {}
        self._stop = Event()
        self.trials = {trial.number: trial for trial in map(_from_json, store.entries)}
        """Finished trials by number."""

    def told(self) -> dict[int, Told]:
        """Return values and cost of all finished trials, for a search to learn from."""
        return {number: (trial.params, trial.cost) for number, trial in self.trials.items()}

    def play(self, trials: Round, total: int) -> None:
        """Play those of some trials that are not finished yet."""
        threads = ThreadPoolExecutor(self._jobs)
        try:
            waiting: dict[Future[Trial], int] = {}
            setups: dict[int, tuple[Params, Setup, OracleRun]] = {}
            for number, params in trials:
                if number in self.trials:
                    continue
                try:
                    setup = self.config.setup(params)
                    oracle = self._oracle(params, setup)
                except ConfigError as error:
                    entry = SweepTrial(number=number, params=params, cell=None, error=str(error))
                    self._keep(entry, total)
                    continue
                setups[number] = params, setup, oracle
                for seed in range(self.config.seed, self.config.seed + self.config.num_seeds):
                    waiting[threads.submit(self._play_seed, setup, oracle, seed)] = number
            self._collect(waiting, setups, total)
        finally:
            # After an interruption, the seeds that are being played end and no others begin.
            self._stop.set()
            threads.shutdown(wait=True, cancel_futures=True)
            self._stop.clear()

    def _collect(
        self,
        waiting: dict[Future[Trial], int],
        setups: dict[int, tuple[Params, Setup, OracleRun]],
        total: int,
    ) -> None:
        seeds: dict[int, list[Future[Trial]]] = {}
        for future, number in waiting.items():
            seeds.setdefault(number, []).append(future)
        for future in as_completed(waiting):
            number = waiting[future]
            if not all(entry.done() for entry in seeds[number]) or number in self.trials:
                continue
            params, setup, oracle = setups[number]
            # In the order of the seeds, so that sums come out the same every time.
            played = [entry.result() for entry in seeds[number]]
            name = self.config.curriculum
            cell = summarise(setup.place, name, played, oracle, setup.budget)
            self._keep(SweepTrial(number=number, params=params, cell=cell), total)

    def _play_seed(self, setup: Setup, oracle: OracleRun, seed: int) -> Trial:
        if self._stop.is_set():
            raise CancelledError
        return play_seed(
            setup.place,
            setup.config,
            seed,
            budget=setup.budget,
            horizon=HORIZON * max(1, oracle.samples),
            num_envs=setup.num_envs,
        )

    def _oracle(self, params: Params, setup: Setup) -> OracleRun:
        parts = {n: v for n, v in params.items() if n.startswith(("dynamics.", "simulation."))}
        key = json.dumps([to_json(parts), setup.budget], sort_keys=True)
        if key not in self._oracles:
            simulator = setup.place.simulator(self.config.seed)
            self._oracles[key] = best_oracle(simulator, setup.budget)
        return self._oracles[key]

    def _keep(self, trial: SweepTrial, total: int) -> None:
        self._store.append(trial.to_json())
        self.trials[trial.number] = trial
        if self._on_trial is not None:
            self._on_trial(trial, len(self.trials), total)


def _from_json(entry: Any) -> SweepTrial:
    try:
        cell = None if entry["cell"] is None else Cell(**entry["cell"])
        # Lists were tuples before they went through JSON.
        params = {
            str(name): tuple(value) if isinstance(value, list) else value
            for name, value in entry["params"].items()
        }
        number = int(entry["number"])
        return SweepTrial(number=number, params=params, cell=cell, error=entry["error"])
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RunError(
            f"a trial of the sweep is damaged ({type(error).__name__}: {error}). "
            "Choose another folder."
        ) from error


def _refuse_useless_values(config: SweepConfig, choices: Sequence[Choice]) -> None:
    """Raise if a value goes with nothing: it is wrong, and not only some of its combinations."""
    (combinations,) = grid_rounds(choices)
    useful: set[tuple[str, Any]] = set()
    first_error: dict[tuple[str, Any], ConfigError] = {}
    for _, params in combinations:
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
            raise ConfigError(f"{name}={value} goes with nothing here: {error}") from error
