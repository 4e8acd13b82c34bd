"""Which curriculum needs fewer samples: curricula x scenarios x seeds, with intervals.

Above the engines: every curriculum plays every scenario with the same seeds, in compiled code where
it has a compiled form, and is measured against the oracle, which sees the hidden skills. Uniform is
always measured too.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from stepladder.configs.checks import require_integer
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.target import Target
from stepladder.errors import ConfigError
from stepladder.simulator.base import CurriculumChoice, Scenario
from stepladder.simulator.engines import EngineName, make_engine
from stepladder.simulator.policies import OracleRun
from stepladder.simulator.scenarios import scenario
from stepladder.stats.interval import mean_interval

ORACLE = "oracle"
UNIFORM = "uniform"

WITH_TARGET = "+target"
"""Ends the name of a curriculum with the target as its own."""

HORIZON = 10
"""The area under the curve of progress is taken over this many times the oracle's samples."""

OnCell = Callable[["ComparisonCell"], None]
"""Called with every cell that is done."""


@dataclass(frozen=True, kw_only=True)
class ComparisonCell:
    """One curriculum in one scenario, over all seeds."""

    scenario: str
    curriculum: str
    num_seeds: int
    mean_samples: float
    """Samples until everything was learned (`Scenario.measure`), at most the budget."""
    low: float
    """Lower end of the 95 % interval of the mean."""
    high: float
    ratio_to_oracle: float
    ratio_low: float
    ratio_high: float
    finished_share: float
    """Share of the seeds that learned everything within the budget; below 1, the mean is a lower
    bound."""
    area: float
    """Mean progress over 10 times as many samples as the oracle needs: the fraction of mastered
    tasks, or success on held-out tasks."""
    area_to_oracle: float
    share_mastered: float
    """Share of samples on tasks already mastered, until all were; the others likewise."""
    share_locked: float
    share_impossible: float
    budget: int
    is_winner: bool = False
    """Whether its interval lies below that of every other curriculum in the scenario."""

    @property
    def cost(self) -> float:
        """What a sweep minimises: the mean samples as a multiple of the oracle's.

        If some seeds do not finish, part of the budget is added: the more, the smaller the area
        under their curve of mastered tasks.
        """
        added = (1.0 - self.finished_share) * (1.0 - self.area) * self.budget
        return self.ratio_to_oracle * (self.mean_samples + added) / max(1.0, self.mean_samples)

    @property
    def ends(self) -> tuple[float, float]:
        """The interval of the multiple."""
        return self.ratio_low, self.ratio_high

    def to_json(self) -> dict[str, Any]:
        """Return the cell as plain JSON."""
        return asdict(self)


@dataclass(frozen=True)
class SeedResult:
    """One seed of a cell."""

    samples: int
    finished: bool
    area: float
    shares: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All cells, scenario by scenario in the given order, the oracle first in each."""

    cells: tuple[ComparisonCell, ...]

    def cell(self, scenario_name: str, curriculum: str) -> ComparisonCell:
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
    curricula: Iterable[str] | Mapping[str, CurriculumChoice],
    *,
    num_seeds: int = 32,
    seed: int = 0,
    num_envs: int = 1,
    budget: int | None = None,
    target: Mapping[str, float] | None = None,
    with_target: bool = False,
    on_cell: OnCell | None = None,
) -> Comparison:
    """Measure the samples that curricula need on scenarios.

    Args:
        scenarios: Names such as ``chain-10``, or your own scenarios.
        curricula: Names such as ``frontier``, or your own configs by name. Uniform is always
            measured too.
        num_seeds: Seeds per cell; the same ones for every curriculum.
        seed: First of the seeds.
        num_envs: Envs that play at the same time.
        budget: Samples after which a seed ends unfinished; by default the scenario's own.
        target: Labels that count, with their weights; by default the scenario's own.
        with_target: Whether every curriculum is also measured with the target as its own, under its
            name and ``+target``; those that take none are left out.
        on_cell: Called with every cell that is done.
    """
    for argument, number, least in (
        ("num_seeds", num_seeds, 1),
        ("seed", seed, 0),
        ("num_envs", num_envs, 1),
        ("budget", 1 if budget is None else budget, 1),
    ):
        require_integer(argument, number, least)
    places = _places(scenarios, target)
    # All configs before the first play: a mistake in the last one costs no time.
    entries = _entries(curricula)
    methods = [_methods(place, entries, with_target) for place in places]
    seeds = range(seed, seed + num_seeds)
    cells: list[ComparisonCell] = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for place, configs in zip(places, methods, strict=True):
            limit = place.budget if budget is None else budget
            oracle = place.oracle(seed, num_envs, limit)
            measured = SeedResult(
                oracle.samples, oracle.finished, _oracle_area(oracle), oracle.shares
            )
            cell = summarise(place, ORACLE, [measured], oracle, limit)
            row = [replace(cell, area_to_oracle=1.0)]
            for name, config in configs.items():
                cell = start_cell(
                    *(place, name, config, oracle, seeds, threads), budget=limit, num_envs=num_envs
                )()
                row.append(cell)
                if on_cell is not None:
                    on_cell(cell)
            cells.extend(_with_winner(row))
    return Comparison(cells=tuple(cells))


def _places(
    scenarios: Iterable[str | Scenario], target: Mapping[str, float] | None
) -> list[Scenario]:
    """Return the scenarios, with the target if there is one."""
    _refuse_text("scenarios", scenarios)
    places = [scenario(entry) if isinstance(entry, str) else entry for entry in scenarios]
    if not places:
        raise ConfigError("there is no scenario to compare on. Name one, such as chain-10.")
    return places if target is None else [place.aimed_at(target) for place in places]


def _entries(
    curricula: Iterable[str] | Mapping[str, CurriculumChoice],
) -> dict[str, CurriculumChoice]:
    """Return what is compared, by name, with uniform."""
    _refuse_text("curricula", curricula)
    own = curricula if isinstance(curricula, Mapping) else {name: name for name in curricula}
    return {UNIFORM: UNIFORM, **own}


def _methods(
    place: Scenario, entries: Mapping[str, CurriculumChoice], with_target: bool
) -> dict[str, CurriculumConfig]:
    """Return the configs of all curricula that are measured on a scenario, by name."""
    configs = {name: place.curriculum_config(entry) for name, entry in entries.items()}
    return _with_target(place, configs) if with_target else configs


def _refuse_text(argument: str, value: object) -> None:
    if isinstance(value, str):
        raise ConfigError(f"{argument} must be a list of names; got {value!r}. Wrap it.")


def _with_target(
    place: Scenario, configs: Mapping[str, CurriculumConfig]
) -> dict[str, CurriculumConfig]:
    """Return the configs, and beside each one with the target as its own."""
    if not place.aim:
        raise ConfigError(
            f"all tasks of {place.name} count alike, so there is no target. Name labels that count."
        )
    aim = Target(weights=dict(place.aim))
    both: dict[str, CurriculumConfig] = {}
    for name, config in configs.items():
        both[name] = config
        if config.takes_target:
            both[f"{name}{WITH_TARGET}"] = replace(config, target=aim)
    return both


def start_cell(
    place: Scenario,
    name: str,
    config: CurriculumConfig,
    oracle: OracleRun,
    seeds: Iterable[int],
    threads: ThreadPoolExecutor,
    *,
    budget: int,
    num_envs: int,
) -> Callable[[], ComparisonCell]:
    """Queue the seeds of one curriculum; return a function that waits for its cell."""
    horizon = HORIZON * max(1, oracle.samples)
    play = partial(play_seed, place, config, budget=budget, horizon=horizon, num_envs=num_envs)
    played = threads.map(play, seeds)
    return lambda: summarise(place, name, list(played), oracle, budget)


def play_seed(
    place: Scenario,
    config: CurriculumConfig,
    seed: int,
    *,
    budget: int,
    horizon: int,
    num_envs: int = 1,
) -> SeedResult:
    """Play one seed until everything is learned, or the budget is spent.

    Args:
        place: The scenario.
        config: Config of the curriculum.
        seed: Seed of the learner and of the curriculum.
        budget: Most samples.
        horizon: Samples over which the area under the curve of progress is taken.
        num_envs: Envs that play at the same time.
    """
    simulator = place.simulator(seed, num_envs)
    curriculum = place.curriculum(config, seed)
    engine_name: EngineName = "compiled" if curriculum.rule_in_force() else "direct"
    engine = make_engine(engine_name, simulator, curriculum, num_envs=num_envs)
    engine.advance(min(horizon, budget), stops=True)
    played = min(simulator.num_samples, horizon)
    area = simulator.progress_area + (horizon - played) * simulator.progress
    engine.advance(budget, stops=True)
    # The last round of several envs may end beyond the budget.
    samples = budget + 1 if simulator.done_at is None else simulator.done_at
    return SeedResult(
        min(samples, budget),
        samples <= budget,
        area / horizon,
        simulator.shares(),
    )


def summarise(
    place: Scenario, name: str, results: Sequence[SeedResult], oracle: OracleRun, budget: int
) -> ComparisonCell:
    """Return the cell of one curriculum in one scenario."""
    mean, low, high = mean_interval([float(result.samples) for result in results])
    shares = np.mean([result.shares for result in results], axis=0).tolist()
    area = float(np.mean([result.area for result in results]))
    ratio, ratio_low, ratio_high = (
        # Where nothing is left to learn, every curriculum is as good as the oracle.
        value / oracle.samples if oracle.samples else 1.0
        for value in (mean, low, high)
    )
    return ComparisonCell(
        scenario=place.name,
        curriculum=name,
        num_seeds=len(results),
        mean_samples=mean,
        low=max(0.0, low),
        high=high,
        ratio_to_oracle=ratio,
        ratio_low=max(0.0, ratio_low),
        ratio_high=ratio_high,
        finished_share=float(np.mean([result.finished for result in results])),
        area=area,
        area_to_oracle=area / max(1e-9, _oracle_area(oracle)),
        share_mastered=shares[0],
        share_locked=shares[1],
        share_impossible=shares[2],
        budget=budget,
    )


def _oracle_area(oracle: OracleRun) -> float:
    """Return the oracle's mean progress over the horizon."""
    horizon = HORIZON * max(1, oracle.samples)
    return (oracle.area + (horizon - oracle.samples) * oracle.progress) / horizon


def _with_winner(row: list[ComparisonCell]) -> list[ComparisonCell]:
    """Mark the curriculum whose interval lies below all others, if there is one."""
    rivals = [cell for cell in row if cell.curriculum != ORACLE]
    best = min(rivals, key=lambda cell: cell.mean_samples)
    others = [cell for cell in rivals if cell is not best]
    # A single seed has no interval.
    wins = bool(others) and best.num_seeds > 1 and best.finished_share == 1.0
    wins = wins and all(best.high < cell.low for cell in others)
    return [replace(cell, is_winner=wins and cell is best) for cell in row]
