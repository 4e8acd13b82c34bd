"""Simulated learners as what a sweep measures: samples as a multiple of the oracle's.

Used by `sweeps`; `compare` measures every trial, so that its figures are those of a comparison.
"""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from stepladder.configs.checks import NotNegativeInteger, PositiveInteger
from stepladder.configs.codec import Config, to_json
from stepladder.configs.problems import Problems
from stepladder.cores import usable_cores
from stepladder.curricula.config import CurriculumConfig
from stepladder.simulator.base import Scenario
from stepladder.simulator.compare import ComparisonCell, Contest
from stepladder.simulator.policies import OracleRun
from stepladder.simulator.scenarios import scenario
from stepladder.sweeps.objective import OnNews, Start, Wait
from stepladder.sweeps.space import SweepParams, fields_of, with_params

SIMULATION = ("scenario", "num_envs", "budget")
"""Fields of a sweep itself that can be varied."""

GROUPS = ("dynamics.", "noise.", "simulation.")
"""Prefixes of fields; those without a prefix belong to the curriculum."""


@dataclass(frozen=True, kw_only=True)
class SimulationSetup:
    """One choice of values, ready to be played."""

    place: Scenario
    config: CurriculumConfig
    num_envs: int
    budget: int


@dataclass(frozen=True, kw_only=True)
class SweepConfig(Config):
    """What every trial of a sweep has in common."""

    scenario: str = "chain-10"
    """Name of a scenario, such as chain-10, tree-31 or grid-6x6, or a .json or .yaml file."""

    curriculum: str = "frontier"
    """Name of a curriculum, as in stepladder compare."""

    num_seeds: PositiveInteger = 8
    """Seeds per trial; the same ones for every trial."""

    seed: NotNegativeInteger = 0
    """First of the seeds; a search also depends on it."""

    num_envs: PositiveInteger = 1
    """Envs that play at the same time."""

    budget: PositiveInteger | None = None
    """Samples after which a seed ends unfinished; by default the scenario's own budget."""

    def fields(self) -> dict[str, Any]:
        """Return every field that can be varied, by name, with its annotation.

        Fields of the curriculum's config have their own names, nested ones with a dot; those of the
        learner names such as ``dynamics.eta`` or ``noise.reward``; those of the sweep names such as
        ``simulation.num_envs``.
        """
        place = scenario(self.scenario)
        found = fields_of(place.curriculum_config(self.curriculum))
        for part in place.varied:
            found |= fields_of(getattr(place, part), f"{part}.")
        hints = get_type_hints(SweepConfig)
        return found | {f"simulation.{name}": hints[name] for name in SIMULATION}

    def setup(self, params: SweepParams) -> SimulationSetup:
        """Return what a choice of values stands for.

        Raises:
            ConfigError: A value is wrong, or values contradict each other.
        """
        problems = Problems()
        common = with_params(self, params, "simulation.", problems)
        problems.raise_if_any()
        place = scenario(common.scenario)
        parts: dict[str, Any] = {
            part: with_params(getattr(place, part), params, f"{part}.", problems)
            for part in place.varied
        }
        place = replace(place, **parts)
        own = {name: value for name, value in params.items() if not name.startswith(GROUPS)}
        config = with_params(place.curriculum_config(common.curriculum), own, "", problems)
        problems.raise_if_any()
        budget = place.budget if common.budget is None else common.budget
        return SimulationSetup(place=place, config=config, num_envs=common.num_envs, budget=budget)

    def settings(self) -> dict[str, Any]:
        """Return what a sweep that is resumed must share with this one."""
        return asdict(self)

    def check(self, params: SweepParams) -> None:
        """Raise unless a choice of values can be played."""
        self.setup(params)

    def measured(self, data: Mapping[str, Any]) -> ComparisonCell:
        """Return what was written of a trial."""
        return ComparisonCell(**data)

    @contextmanager
    def players(self, folder: Path, jobs: int | None, on_news: OnNews | None) -> Iterator[Start]:
        """Open the threads that play; after an exception, the seeds in play end, no others begin.

        Args:
            folder: Of the sweep; nothing is written there.
            jobs: Threads; as many as there are cores by default.
            on_news: Not called: a trial takes a moment.
        """
        threads, oracles = ThreadPoolExecutor(jobs or usable_cores()), dict[str, OracleRun]()
        try:
            yield lambda number, params: self._started(params, threads, oracles)
        finally:
            threads.shutdown(wait=True, cancel_futures=True)

    def _started(
        self, params: SweepParams, threads: ThreadPoolExecutor, oracles: dict[str, OracleRun]
    ) -> Wait:
        setup = self.setup(params)
        # The oracle depends on these only.
        parts = {n: v for n, v in params.items() if n.startswith(("dynamics.", "simulation."))}
        key = json.dumps([to_json(parts), setup.budget], sort_keys=True)
        if key not in oracles:
            oracles[key] = setup.place.oracle(self.seed, setup.num_envs, setup.budget)
        seeds = range(self.seed, self.seed + self.num_seeds)
        contest = Contest(setup.place, oracles[key], seeds, setup.budget, setup.num_envs)
        return contest.start(self.curriculum, setup.config, threads)
