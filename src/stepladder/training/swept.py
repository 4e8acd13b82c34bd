"""Trainings as what a sweep measures: the last value of a metric, over seeds.

Used by `sweeps`; `seeds` trains them. Every trial has a folder of seeds in the folder of the sweep,
so that what was stopped continues exactly.
"""

import statistics
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from stepladder.configs.checks import Name, NotNegativeInteger, PositiveInteger
from stepladder.configs.codec import Config
from stepladder.configs.problems import Problems
from stepladder.curricula.config import CurriculumConfig, TaskKnowledge
from stepladder.curricula.registry import curriculum_variants
from stepladder.envs.ids import game_of
from stepladder.errors import ConfigError, RunError, nearest
from stepladder.runs import RunReader
from stepladder.runs.seeds import SeedsInfo, seed_folder, summarize
from stepladder.runs.seeds.folder import runs_of
from stepladder.runs.seeds.summary import STEPS_PER_SECOND, over_seeds, values_to_json
from stepladder.sweeps.objective import OnNews, Start, Wait
from stepladder.sweeps.space import SweepParams, fields_of, with_params
from stepladder.training.config import TrainingConfig
from stepladder.training.results import Progress
from stepladder.training.seeds.child import TrainingEnd, order_of
from stepladder.training.seeds.crew import Crew
from stepladder.training.seeds.starting import Engine, crew_for

HELD_OUT = ("evaluation/success", "evaluation/win_rate", "evaluation/return")
"""What counts unless another metric is named: the first of these that the trainings have."""

SHARES = ("evaluation/success", "evaluation/win_rate")
"""Metrics whose values, and those of their parts, are shares."""

BY_SEED = ("seed",)
"""Settings that cannot be varied, as the seeds of each trial are."""

CURRICULUM = "curriculum"
"""Stands for the kind of curriculum; its settings have names such as ``curriculum.threshold``."""


@dataclass(frozen=True, kw_only=True)
class TrainingCell:
    """What was measured of one choice of values."""

    objective: str
    """Metric whose last value counts; more is better."""

    mean: float
    low: float | None
    """End of Student's interval of 95 %; None with one seed, or where all are alike."""

    high: float | None
    values: tuple[tuple[int, float], ...]
    """Seed and value."""

    steps_per_second: float

    @property
    def cost(self) -> float:
        """What a sweep minimises."""
        return -self.mean

    @property
    def ends(self) -> tuple[float, float]:
        """The interval, of the cost."""
        low, high = self.low, self.high
        return -self.mean if high is None else -high, -self.mean if low is None else -low

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {**asdict(self), "values": values_to_json(dict(self.values))}


@dataclass(frozen=True, kw_only=True)
class TrainingSweep(Config):
    """What all trials of a sweep over trainings have in common."""

    training: TrainingConfig
    """Settings that trials change."""

    objective: Name | None = None
    """Metric of the trainings whose last value is maximised, such as evaluation/success/medium. By
    default held-out success, games won, or the return, whichever they have."""

    num_seeds: PositiveInteger = 3
    """Seeds per trial; the same ones for every trial."""

    seed: NotNegativeInteger = 0
    """First of the seeds; a search also depends on it."""

    engine: Engine = "local"
    """Where trainings run: here, or on the machines of a Ray cluster. No result depends on it."""

    def fields(self) -> dict[str, Any]:
        """Return every setting that can be varied, by dotted name, with its annotation."""
        found = fields_of(self.training)
        for name in BY_SEED:
            found.pop(name)
        return {CURRICULUM: str, **found}

    def settings(self) -> dict[str, Any]:
        """Return what a sweep that is resumed must share with this one."""
        own = {"objective": self.objective, "num_seeds": self.num_seeds, "seed": self.seed}
        return {"training": self.training.to_json(), **own}

    def check(self, params: SweepParams) -> None:
        """Raise unless a choice of values can be played."""
        self.setup(params)

    def setup(self, params: SweepParams) -> TrainingConfig:
        """Return the config of the trainings with these values.

        Raises:
            ConfigError: A value is wrong, or values contradict each other.
        """
        base, rest = replace(self.training, seed=self.seed), dict(params)
        kind = rest.pop(CURRICULUM, None)
        if kind is not None:
            base = replace(base, curriculum=_curriculum(kind, base))
        for name in rest:
            owner: Any = base
            for part in name.split(".")[:-1]:
                owner = getattr(owner, part, None)
            if not hasattr(owner, name.rpartition(".")[2]):
                raise ConfigError(f"{name} is no setting of {base.curriculum.kind}.")
        problems = Problems()
        config = with_params(base, rest, "", problems)
        problems.raise_if_any()
        return config.imported()

    def measured(self, data: Mapping[str, Any]) -> TrainingCell:
        """Return what was written of a trial."""
        values = tuple((one["seed"], one["value"]) for one in data["values"])
        return TrainingCell(**{**data, "values": values})

    @contextmanager
    def players(self, folder: Path, jobs: int | None, on_news: OnNews | None) -> Iterator[Start]:
        """Open the processes that train; after an exception, all of them save and stop.

        Args:
            folder: Of the sweep; every trial gets a folder in it.
            jobs: Trainings at once; by default one per core, on a GPU one.
            on_news: Called after every epoch with which trainings run and how far they are.
        """
        news = _News(on_news)
        with crew_for(self.training, 2**16, jobs, self.engine, news.update) as crew:
            yield lambda number, params: self._started(folder, number, params, crew, news)

    def _started(
        self, folder: Path, number: int, params: SweepParams, crew: Crew, news: "_News"
    ) -> Wait:
        parent = trial_folder(folder, number)
        config = self.setup(params)
        seeds = range(self.seed, self.seed + self.num_seeds)
        if not (parent / "seeds.json").exists():
            parent.mkdir(parents=True, exist_ok=True)
            SeedsInfo.of(seeds, config.to_json()).write(parent)
        done = {one.seed for one in summarize(parent).finished}
        ends: dict[int, Future[TrainingEnd]] = {}
        for seed in seeds:
            if seed not in done:
                order = order_of(seed_folder(parent, seed), replace(config, seed=seed), None)
                ends[seed] = crew.start(order)
                ends[seed].add_done_callback(partial(news.forget, order.folder))
        return partial(self._result, parent, ends)

    def _result(self, parent: Path, ends: Mapping[int, Future[TrainingEnd]]) -> TrainingCell:
        """Wait for the seeds of a trial, and measure them."""
        results = {seed: end.result() for seed, end in ends.items()}
        for seed, end in results.items():
            if end.how == "died":
                # That says nothing about the values; the same command tries it again.
                raise RunError(
                    f"seed {seed} of {parent} has died: {end.reason}. Give the same command again "
                    "to continue the sweep."
                )
            if end.how == "failed":
                raise ConfigError(f"seed {seed}: {end.reason}")
            if end.how == "stopped":
                raise KeyboardInterrupt
        runs = {seed: RunReader(folder) for seed, folder in runs_of(parent).items()}
        name = self._metric(next(iter(runs.values())))
        values = {seed: float(run.metric(name)[1][-1]) for seed, run in runs.items()}
        row = over_seeds(name, values, is_share=name.startswith(SHARES))
        if not statistics.fmean(values.values()) < float("inf"):
            raise ConfigError(f"{name} is not finite in {parent}.")
        speeds = [one.mean for one in summarize(parent).rows if one.name == STEPS_PER_SECOND]
        return TrainingCell(
            objective=name,
            mean=row.mean,
            low=row.low,
            high=row.high,
            values=tuple(values.items()),
            steps_per_second=speeds[0] if speeds else 0.0,
        )

    def _metric(self, run: RunReader) -> str:
        known = run.metric_names()
        if self.objective is None:
            return next(name for name in HELD_OUT if name in known)
        if self.objective not in known:
            # Says which ones are similar.
            run.metric(self.objective)
        return self.objective


def trial_folder(folder: Path, number: int) -> Path:
    """Return the folder of the seeds of a trial."""
    return folder / f"trial-{number}"


def _curriculum(kind: str, base: TrainingConfig) -> CurriculumConfig:
    """Return the default settings of a kind of curriculum over the tasks of a training."""
    labels, variants = tuple(base.task_source().labels()), curriculum_variants()
    own = game_of(base.env).curriculum(labels)
    if kind == own.kind and not base.tasks:
        return own
    if kind not in variants:
        raise ConfigError(
            f"curriculum must be one of {', '.join(variants)}; got {kind!r}."
            f"{nearest(kind, variants)}"
        )
    return variants[kind].make(TaskKnowledge(order=labels))


class _News:
    """How the trainings stand that run now, in words."""

    def __init__(self, on_news: OnNews | None):
        self._on_news = on_news
        self._running: dict[Path, str] = {}

    def update(self, folder: Path, progress: Progress) -> None:
        """Note an epoch of a training."""
        share = min(1.0, progress.num_steps / progress.total_steps)
        self._running[folder] = f"{folder.parent.name}/{folder.name} {share:.0%}"
        if self._on_news is not None:
            self._on_news(", ".join(self._running.values()))

    def forget(self, folder: Path, end: Future[TrainingEnd]) -> None:
        """Note that a training runs no more."""
        self._running.pop(folder, None)
