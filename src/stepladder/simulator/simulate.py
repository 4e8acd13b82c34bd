"""Try a curriculum on a simulated learner, epoch by epoch, and keep the run.

Top of the simulator: combines scenario, curriculum and engine, reports every epoch through the same
`EpochReporter` as training, and ends with a verdict.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from stepladder.configs.checks import NotNegativeInteger, PositiveInteger, require_kind
from stepladder.configs.codec import Config
from stepladder.curricula.base import Curriculum
from stepladder.curricula.config import CurriculumConfig, resolve_config
from stepladder.errors import ConfigError
from stepladder.runs import Run, RunWriter
from stepladder.runs.loggers import Logger
from stepladder.runs.reporter import EpochReporter
from stepladder.simulator.base import Scenario, Simulator
from stepladder.simulator.engines import (
    EngineName,
    make_engine,
    require_compiled_form,
)
from stepladder.simulator.scenarios import scenario
from stepladder.simulator.verdict import Verdict, judge, share_metrics

OnSimulatedEpoch = Callable[[int, dict[str, float]], bool | None]
"""Called after every epoch with its number and its metrics; True ends the simulation."""

MakeLoggers = Callable[[dict[str, Any]], Sequence[Logger]]
"""Makes loggers from the settings of a run."""


@dataclass(frozen=True, kw_only=True)
class SimulationConfig(Config):
    """What is simulated, and how long."""

    scenario: str = "chain-10"
    """Name of a scenario, such as chain-10, tree-31 or grid-6x6, or a .json or .yaml file."""

    num_envs: PositiveInteger = 8
    """Envs that play at the same time."""

    num_epochs: PositiveInteger = 100
    """Number of epochs; metrics are logged at the end of each."""

    samples_per_epoch: PositiveInteger | None = None
    """Plays per env and epoch, 25 by default; where plays have several steps, env steps, by default
    a thousandth of the scenario's budget."""

    engine: EngineName = "envs"
    """envs plays through real envs, as in training; direct plays without envs; compiled is fastest.
    All three give the same results."""

    num_workers: NotNegativeInteger = 0
    """Processes beside this one that step envs, with the plan in shared memory; 0 steps all envs in
    this process."""

    stop_when_mastered: bool = False
    """Stop after the epoch in which everything learnable was mastered."""

    seed: NotNegativeInteger = 0
    """Seed of the learner and of the curriculum."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield workers for an engine without envs."""
        if self.num_workers and self.engine != "envs":
            why = f"engine {self.engine!r} has no envs to put into workers"
            yield "engine", f"must be 'envs' with workers; {why}. Use engine='envs'."


@dataclass
class SimulationResult:
    """The result of a simulation."""

    simulator: Simulator
    curriculum: Curriculum
    verdict: Verdict
    history: list[dict[str, float]] = field(default_factory=list[dict[str, float]])
    """Metrics of each epoch, in order."""

    run_folder: Path | None = None

    was_stopped: bool = False
    """Whether `on_epoch` ended it early."""

    def metric(self, name: str) -> list[float]:
        """Return one metric over the epochs in which it was logged."""
        return [logged[name] for logged in self.history if name in logged]


def simulate(
    config: SimulationConfig | None = None,
    curriculum: CurriculumConfig | str | None = None,
    *,
    place: Scenario | None = None,
    run_folder: Path | str | None = None,
    overwrite: bool = False,
    loggers: Sequence[Logger] | MakeLoggers = (),
    keep_records: bool = False,
    on_epoch: OnSimulatedEpoch | None = None,
    **settings: Any,
) -> SimulationResult:
    """Practise a curriculum on a simulated learner.

    Args:
        config: What is simulated; or give its fields as keywords.
        curriculum: Config of the curriculum, or its name; ``learning-progress`` by default.
        place: Your own scenario, instead of the one that the config names.
        run_folder: Folder for the run; None keeps nothing.
        overwrite: Whether an existing run is replaced.
        loggers: Further loggers: TensorBoard, Weights & Biases, the console. Or a function that
            makes them from the run's settings, called when everything has been checked.
        keep_records: Whether the record of every episode is kept too.
        on_epoch: Called after every epoch; the simulation ends if it returns True.
        **settings: Fields of `SimulationConfig`.
    """
    config = resolve_config(SimulationConfig, config, settings)
    if place is None:
        place = scenario(config.scenario)
    else:
        require_kind("place", place, Scenario, fix="Make one with scenario('chain-10').")
        config = replace(config, scenario=place.name)
    if config.samples_per_epoch is None:
        config = replace(config, samples_per_epoch=place.epoch_samples(config.num_envs))
    method = place.curriculum_config("learning-progress" if curriculum is None else curriculum)
    if method.target is not None and not place.aim:
        # A curriculum with a target is judged by that target.
        place = place.aimed_at(method.target.weights)
    simulator = place.simulator(config.seed, config.num_envs)
    chosen = place.curriculum(method, config.seed)
    # Before there is a folder: a mistake leaves nothing behind.
    if config.engine == "compiled":
        require_compiled_form(chosen)
    _check_kept(config, run_folder, keep_records, loggers)
    made = _Made(config, place, simulator, chosen)
    if run_folder is None:
        return _play(made, None, keep_records, on_epoch)
    about = {"simulation": asdict(config), "curriculum": method.to_json()}
    about["simulator"] = simulator.describe()
    with Run.create(
        run_folder,
        kind="simulation",
        config=about,
        seed=config.seed,
        overwrite=overwrite,
        loggers=list(loggers(about) if callable(loggers) else loggers),
    ) as run:
        result = _play(made, run, keep_records, on_epoch)
    return replace(result, run_folder=Path(run_folder))


def _check_kept(
    config: SimulationConfig, run_folder: Path | str | None, keep_records: bool, loggers: Any
) -> None:
    """Raise if something is to be kept that this simulation does not have, or has no place for."""
    if keep_records and (run_folder is None or config.engine == "compiled"):
        raise ConfigError(
            "keep_records needs a run folder and an engine that sees every episode. "
            "Give run_folder, and engine='direct' or 'envs'."
        )
    if run_folder is None and loggers:
        raise ConfigError("loggers need a run, and none is kept. Give run_folder.")


@dataclass(frozen=True)
class _Made:
    """What a simulation consists of, checked."""

    config: SimulationConfig
    place: Scenario
    simulator: Simulator
    curriculum: Curriculum


def _play(
    made: _Made, run: RunWriter | None, keep_records: bool, on_epoch: OnSimulatedEpoch | None
) -> SimulationResult:
    config, simulator, curriculum = made.config, made.simulator, made.curriculum
    reporter = EpochReporter(curriculum, run)
    if keep_records and run is not None:
        curriculum.add_listener(run.log_records)
    engine = make_engine(
        config.engine,
        simulator,
        curriculum,
        num_envs=config.num_envs,
        meter=reporter.meter,
        num_workers=config.num_workers,
    )
    history: list[dict[str, float]] = []
    was_stopped = False
    samples_per_epoch = (config.samples_per_epoch or 1) * config.num_envs
    try:
        for epoch in range(config.num_epochs):
            before = simulator.spent()
            engine.advance((epoch + 1) * samples_per_epoch)
            simulator.end_epoch()
            extra = {**simulator.metrics(), **share_metrics(simulator, before)}
            extra |= simulator.label_metrics()
            samples = simulator.num_samples
            history.append(reporter.end_epoch(samples, engine.take_stats(), extra=extra))
            if run is not None and reporter.num_epochs % reporter.table_epochs == 0:
                # As often as the table of tasks, so that `explain` can ask a run that is active.
                run.save_checkpoint("last", curriculum.snapshot(), samples)
            was_stopped = on_epoch is not None and on_epoch(epoch, history[-1]) is True
            if was_stopped:
                break
            if config.stop_when_mastered and simulator.done_at is not None:
                break
    finally:
        engine.close()
    reporter.close()
    verdict = judge(simulator, made.place, config.num_envs)
    result = SimulationResult(simulator, curriculum, verdict, history, None, was_stopped)
    if run is not None:
        run.save_checkpoint("last", curriculum.snapshot(), simulator.num_samples)
        if keep_records:
            curriculum.remove_listener(run.log_records)
        run.event(simulator.num_samples, "verdict", result.verdict.text, None)
        if was_stopped:
            run.close("interrupted")
    return result
