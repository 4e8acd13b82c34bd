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
    entries = {UNIFORM: UNIFORM, **_by_name(curricula)}
    # All configs before the first play: a mistake in the last one costs no time.
    methods = [
        {name: place.curriculum_config(entry) for name, entry in entries.items()}
        for place in places
    ]
    if with_target:
        methods = [
            _with_target(place, configs) for place, configs in zip(places, methods, strict=True)
        ]
    seeds = range(seed, seed + num_seeds)
    cells: list[ComparisonCell] = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for place, configs in zip(places, methods, strict=True):
            limit = place.budget if budget is None else budget
            oracle = place.oracle(seed, num_envs, limit)
            contest = Contest(place, oracle, seeds, limit, num_envs)
            row = [contest.oracle_cell()]
            for name, config in configs.items():
                row.append(contest.start(name, config, threads)())
                if on_cell is not None:
                    on_cell(row[-1])
            cells.extend(_with_winner(row))
    return Comparison(cells=tuple(cells))


def _places(
    scenarios: Iterable[str | Scenario], target: Mapping[str, float] | None
) -> list[Scenario]:
    """Return the scenarios that are meant, judged by a target if there is one."""
    if isinstance(scenarios, str):
        raise ConfigError(f"scenarios must be a list of names; got {scenarios!r}. Wrap it.")
    places = [scenario(entry) if isinstance(entry, str) else entry for entry in scenarios]
    if not places:
        raise ConfigError("there is no scenario to compare on. Name one, such as chain-10.")
    return places if target is None else [place.aimed_at(target) for place in places]


def _by_name(
    curricula: Iterable[str] | Mapping[str, CurriculumChoice],
) -> Mapping[str, CurriculumChoice]:
    if isinstance(curricula, str):
        raise ConfigError(f"curricula must be a list of names; got {curricula!r}. Wrap it.")
    return curricula if isinstance(curricula, Mapping) else {name: name for name in curricula}


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


@dataclass(frozen=True)
class Contest:
    """A scenario and what all curricula on it have in common."""

    place: Scenario
    oracle: OracleRun
    seeds: Sequence[int]
    """Of the learner and of the curriculum; the same ones for every curriculum."""
    budget: int
    """Most samples of a seed."""
    num_envs: int

    @property
    def horizon(self) -> int:
        """Samples over which the area under the curve of progress is taken."""
        return HORIZON * max(1, self.oracle.samples)

    def start(
        self, name: str, config: CurriculumConfig, threads: ThreadPoolExecutor
    ) -> Callable[[], ComparisonCell]:
        """Queue the seeds of one curriculum; return a function that waits for its cell."""
        played = threads.map(partial(self.play, config), self.seeds)
        return lambda: self.cell(name, list(played))

    def play(self, config: CurriculumConfig, seed: int) -> SeedResult:
        """Play one seed until everything is learned, or the budget is spent."""
        simulator = self.place.simulator(seed, self.num_envs)
        curriculum = self.place.curriculum(config, seed)
        engine_name: EngineName = "compiled" if curriculum.rule_in_force() else "direct"
        engine = make_engine(engine_name, simulator, curriculum, num_envs=self.num_envs)
        engine.advance(min(self.horizon, self.budget), stops=True)
        left = self.horizon - min(simulator.num_samples, self.horizon)
        area = simulator.progress_area + left * simulator.progress
        engine.advance(self.budget, stops=True)
        # The last round of several envs may end beyond the budget.
        samples = self.budget + 1 if simulator.done_at is None else simulator.done_at
        return SeedResult(
            samples=min(samples, self.budget),
            finished=samples <= self.budget,
            area=area / self.horizon,
            shares=simulator.shares(),
        )

    def cell(self, name: str, results: Sequence[SeedResult]) -> ComparisonCell:
        """Return the cell of one curriculum."""
        mean, low, high = mean_interval([float(result.samples) for result in results])
        mastered, locked, impossible = np.mean(
            [result.shares for result in results], axis=0
        ).tolist()
        area = float(np.mean([result.area for result in results]))
        ratio, ratio_low, ratio_high = (
            # Where nothing is left to learn, every curriculum is as good as the oracle.
            value / self.oracle.samples if self.oracle.samples else 1.0
            for value in (mean, low, high)
        )
        return ComparisonCell(
            scenario=self.place.name,
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
            area_to_oracle=area / max(1e-9, self._oracle_area()),
            share_mastered=mastered,
            share_locked=locked,
            share_impossible=impossible,
            budget=self.budget,
        )

    def oracle_cell(self) -> ComparisonCell:
        """Return the cell of the oracle."""
        oracle = self.oracle
        played = SeedResult(
            samples=oracle.samples,
            finished=oracle.finished,
            area=self._oracle_area(),
            shares=oracle.shares,
        )
        return replace(self.cell(ORACLE, [played]), area_to_oracle=1.0)

    def _oracle_area(self) -> float:
        """Return the oracle's mean progress over the horizon."""
        oracle = self.oracle
        return (oracle.area + (self.horizon - oracle.samples) * oracle.progress) / self.horizon


def _with_winner(row: list[ComparisonCell]) -> list[ComparisonCell]:
    """Mark the curriculum whose interval lies below all others, if there is one."""
    rivals = [cell for cell in row if cell.curriculum != ORACLE]
    best = min(rivals, key=lambda cell: cell.mean_samples)
    others = [cell for cell in rivals if cell is not best]
    # A single seed has no interval.
    wins = bool(others) and best.num_seeds > 1 and best.finished_share == 1.0
    wins = wins and all(best.high < cell.low for cell in others)
    return [replace(cell, is_winner=wins and cell is best) for cell in row]
