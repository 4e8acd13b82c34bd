"""Which curriculum needs fewer samples: curricula x scenarios x seeds, with intervals.

Above the engines: every curriculum plays every scenario with the same seeds, in compiled code where
it has such a form, and is measured against the oracle, which sees the hidden skills, with uniform
beside it.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from stepladder.configs.checks import require_integer
from stepladder.curricula.config import CurriculumConfig
from stepladder.errors import ConfigError
from stepladder.simulator.contestants import MakeConfig, build, settings_of
from stepladder.simulator.engines import EngineName, make_engine
from stepladder.simulator.oracle import OracleRun, best_oracle
from stepladder.simulator.scenarios import Scenario, scenario
from stepladder.stats.interval import mean_interval

ORACLE = "oracle"
UNIFORM = "uniform"

HORIZON = 10
"""The area under the curve of mastered tasks is taken over this many times the oracle's samples."""

OnCell = Callable[["Cell"], None]
"""Is told of every scenario x curriculum that is done."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One curriculum in one scenario, over all seeds."""

    scenario: str
    curriculum: str
    num_seeds: int
    mean_samples: float
    """Plays until every learnable task was mastered at once; the budget where that never was."""
    low: float
    """Lower end of the 95 % interval of the mean."""
    high: float
    ratio_to_oracle: float
    ratio_low: float
    ratio_high: float
    finished_share: float
    """Share of the seeds that mastered everything within the budget. Below 1 the mean is a lower
    bound."""
    area: float
    """Mean fraction of mastered tasks over 10 times as many plays as the oracle needs."""
    area_to_oracle: float
    share_mastered: float
    """Share of plays spent on tasks already mastered, until all were; likewise the others."""
    share_locked: float
    share_impossible: float
    budget: int
    is_winner: bool = False
    """Whether its interval lies below that of every other curriculum in the scenario."""

    def to_json(self) -> dict[str, Any]:
        """Return the cell as plain JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Trial:
    """One seed of a cell."""

    samples: int
    finished: bool
    area: float
    shares: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All cells, scenario by scenario in the order asked for, the oracle first in each."""

    cells: tuple[Cell, ...]

    def cell(self, scenario_name: str, curriculum: str) -> Cell:
        """Return one cell."""
        for cell in self.cells:
            if (cell.scenario, cell.curriculum) == (scenario_name, curriculum):
                return cell
        raise ConfigError(f"{curriculum!r} was not compared on {scenario_name!r}.")

    def scenarios(self) -> list[str]:
        """Return the names of the scenarios, in order."""
        return list(dict.fromkeys(cell.scenario for cell in self.cells))


def compare(
    scenarios: Iterable[str | Scenario],
    curricula: Iterable[str] | Mapping[str, CurriculumConfig | MakeConfig | str],
    *,
    num_seeds: int = 32,
    seed: int = 0,
    num_envs: int = 1,
    budget: int | None = None,
    on_cell: OnCell | None = None,
) -> Comparison:
    """Let curricula play scenarios and measure the samples they need.

    Args:
        scenarios: Names such as ``chain-10``, or scenarios of your own.
        curricula: Names such as ``frontier``, or settings of your own by a name of yours.
            Uniform is always shown as well.
        num_seeds: Seeds per cell; the same ones for every curriculum.
        seed: First of the seeds.
        num_envs: Envs that play at the same time.
        budget: Plays after which a seed is given up; by default the scenario's own.
        on_cell: Is told of every cell that is done.
    """
    for argument, value in (("scenarios", scenarios), ("curricula", curricula)):
        if isinstance(value, str):
            raise ConfigError(f"{argument} must be a list of names; got {value!r}. Wrap it.")
    for argument, number, least in (
        ("num_seeds", num_seeds, 1),
        ("seed", seed, 0),
        ("num_envs", num_envs, 1),
        ("budget", 1 if budget is None else budget, 1),
    ):
        require_integer(argument, number, least)
    places = [scenario(entry) if isinstance(entry, str) else entry for entry in scenarios]
    if not places:
        raise ConfigError("there is no scenario to compare on. Name one, such as chain-10.")
    own = curricula if isinstance(curricula, Mapping) else {name: name for name in curricula}
    entries: dict[str, CurriculumConfig | MakeConfig | str] = {UNIFORM: UNIFORM, **own}
    # All of them before the first is played: a mistake in the last costs nothing.
    methods = [
        {name: settings_of(entry, place) for name, entry in entries.items()} for place in places
    ]
    seeds = range(seed, seed + num_seeds)
    cells: list[Cell] = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for place, configs in zip(places, methods, strict=True):
            limit = place.budget if budget is None else budget
            oracle = best_oracle(place.simulator(seed, num_envs), limit)
            row = [_oracle_cell(place, oracle, limit)]
            horizon = HORIZON * max(1, oracle.samples)
            for name, config in configs.items():
                play = partial(
                    play_seed, place, config, budget=limit, horizon=horizon, num_envs=num_envs
                )
                trials = list(threads.map(play, seeds))
                row.append(summarise(place, name, trials, oracle, limit))
                if on_cell is not None:
                    on_cell(row[-1])
            cells.extend(_with_winner(row))
    return Comparison(cells=tuple(cells))


def play_seed(
    place: Scenario,
    config: CurriculumConfig,
    seed: int,
    *,
    budget: int,
    horizon: int,
    num_envs: int = 1,
) -> Trial:
    """Play one seed until everything learnable is mastered, or the budget is spent.

    Args:
        place: The scenario.
        config: Settings of the curriculum.
        seed: Seed of the learner and of the curriculum.
        budget: Plays after which it is given up.
        horizon: Plays over which the area under the curve of mastered tasks is taken.
        num_envs: Envs that play at the same time.
    """
    simulator = place.simulator(seed, num_envs)
    curriculum = build(config, place, seed)
    engine_name: EngineName = "compiled" if curriculum.compiled_rule() else "direct"
    engine = make_engine(engine_name, simulator, curriculum, num_envs=num_envs)
    engine.advance(min(horizon, budget), stops=True)
    played = min(simulator.num_plays, horizon)
    area = simulator.area_so_far + (horizon - played) * simulator.num_mastered
    engine.advance(budget, stops=True)
    # The last round of several envs may end beyond the budget.
    samples = budget + 1 if simulator.done_at is None else simulator.done_at
    return Trial(
        min(samples, budget),
        samples <= budget,
        area / (horizon * max(1, simulator.num_learnable)),
        simulator.shares(),
    )


def summarise(
    place: Scenario, name: str, trials: Sequence[Trial], oracle: OracleRun, budget: int
) -> Cell:
    """Turn the seeds of one curriculum in one scenario into its cell."""
    mean, low, high = mean_interval([float(trial.samples) for trial in trials])
    shares = np.mean([trial.shares for trial in trials], axis=0).tolist()
    area = float(np.mean([trial.area for trial in trials]))
    ratio, ratio_low, ratio_high = (
        # Where there is nothing left to learn, nobody needs more than the oracle.
        value / oracle.samples if oracle.samples else 1.0
        for value in (mean, low, high)
    )
    return Cell(
        scenario=place.name,
        curriculum=name,
        num_seeds=len(trials),
        mean_samples=mean,
        low=max(0.0, low),
        high=high,
        ratio_to_oracle=ratio,
        ratio_low=max(0.0, ratio_low),
        ratio_high=ratio_high,
        finished_share=float(np.mean([trial.finished for trial in trials])),
        area=area,
        area_to_oracle=area / max(1e-9, _oracle_area(place, oracle)),
        share_mastered=shares[0],
        share_locked=shares[1],
        share_impossible=shares[2],
        budget=budget,
    )


def _oracle_area(place: Scenario, oracle: OracleRun) -> float:
    """Return the oracle's mean fraction of mastered tasks over the horizon."""
    learnable = place.simulator().num_learnable
    horizon = HORIZON * max(1, oracle.samples)
    rest = (horizon - oracle.samples) * oracle.num_mastered
    return (oracle.area + rest) / (horizon * max(1, learnable))


def _oracle_cell(place: Scenario, oracle: OracleRun, budget: int) -> Cell:
    samples = float(oracle.samples)
    return Cell(
        scenario=place.name,
        curriculum=ORACLE,
        num_seeds=1,
        mean_samples=samples,
        low=samples,
        high=samples,
        ratio_to_oracle=1.0,
        ratio_low=1.0,
        ratio_high=1.0,
        finished_share=float(oracle.finished),
        area=_oracle_area(place, oracle),
        area_to_oracle=1.0,
        share_mastered=oracle.shares[0],
        share_locked=oracle.shares[1],
        share_impossible=oracle.shares[2],
        budget=budget,
    )


def _with_winner(row: list[Cell]) -> list[Cell]:
    """Mark the curriculum whose interval lies below all others, if there is one."""
    rivals = [cell for cell in row if cell.curriculum != ORACLE]
    best = min(rivals, key=lambda cell: cell.mean_samples)
    others = [cell for cell in rivals if cell is not best]
    # One seed says nothing about the next.
    wins = bool(others) and best.num_seeds > 1 and best.finished_share == 1.0
    wins = wins and all(best.high < cell.low for cell in others)
    return [Cell(**{**asdict(cell), "is_winner": wins and cell is best}) for cell in row]
