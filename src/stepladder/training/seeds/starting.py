"""Train the same config with several seeds, or resume such trainings.

Above `crew`, which runs the processes, and `runs.seeds`, which knows the folder. What came of them
is read from their runs, so that reports and sweeps say the same.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from stepladder.agents.room import checked_device
from stepladder.cluster.requirements import require_ray
from stepladder.configs.checks import require_integer
from stepladder.cores import usable_cores
from stepladder.envs.ids import give_env
from stepladder.errors import ConfigError, shown
from stepladder.runs.lock import RunLock
from stepladder.runs.run_folder import naming
from stepladder.runs.seeds import SeedsInfo, SeedsSummary, seed_folder, summarize
from stepladder.runs.seeds.folder import SEEDS_LOCK, refuse_unless_free_for, remove_runs
from stepladder.runs.trust import note_own, require_trust
from stepladder.tasks.task import MAX_SEED
from stepladder.training.config import TrainingConfig, load_config
from stepladder.training.results import Progress
from stepladder.training.seeds.child import SeedLoggers, TrainingEnd, TrainingOrder, order_of
from stepladder.training.seeds.crew import Crew, OnProgress
from stepladder.training.seeds.ray_crew import RayCrew
from stepladder.training.starting import AnyConfig, changed

Engine = Literal["local", "ray"]
"""Where trainings are carried out."""

ENGINES = get_args(Engine)

OnSeedEpoch = Callable[[int, Progress], None]
"""Called after every epoch with the seed and how its training stands."""


OnSeedEnd = Callable[[int, TrainingEnd], None]
"""Called when the training of a seed has ended, in whatever way."""


@dataclass(frozen=True, kw_only=True)
class SeedsResult:
    """What several seeds left behind."""

    folder: Path
    summary: SeedsSummary
    failures: dict[int, str]
    """Why seeds could not be trained to their end."""

    was_stopped: bool

    had_ended: bool = False
    """Whether nothing was left to do when they were resumed."""

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain JSON."""
        return {
            "folder": str(self.folder),
            **self.summary.to_json(),
            "failures": [
                {"seed": seed, "reason": reason} for seed, reason in self.failures.items()
            ],
            "was_stopped": self.was_stopped,
            "had_ended": self.had_ended,
        }


@dataclass(frozen=True, kw_only=True)
class SeedsOptions:
    """How several seeds are trained; none of it changes what they learn."""

    jobs: int | None = None
    """Trainings at once; by default one per core, on a GPU one."""

    engine: Engine = "local"
    """Where they are trained: here, or on the machines of a Ray cluster, one per CPU."""

    loggers: SeedLoggers | None = None
    """Makes further loggers of a run, given its folder and settings; of a module, as it is called
    in another process."""

    on_epoch: OnSeedEpoch | None = None
    on_end: OnSeedEnd | None = None


USUAL_OPTIONS = SeedsOptions()


def train_seeds(
    config: AnyConfig = None,
    *,
    seeds: int | Sequence[int],
    run_folder: str | PathLike[str],
    overwrite: bool = False,
    initial_weights: str | PathLike[str] | None = None,
    options: SeedsOptions = USUAL_OPTIONS,
    **changes: Any,
) -> SeedsResult:
    """Train one config with several seeds, each in a process of its own.

    Ctrl-C saves and stops all of them. A seed that fails is reported, and the others continue.

    Args:
        config: As in `train`.
        seeds: How many, from the config's own seed on; or which ones.
        run_folder: The parent folder; the run of seed 3 is ``seed-3`` in it.
        overwrite: Whether runs of the same seeds there are replaced.
        initial_weights: As in `train`.
        options: How many at once, and what is called with their progress.
        **changes: As in `train`: ``env``, ``tasks``, ``total_steps`` and all other settings.

    Raises:
        ConfigError: The config cannot work; nothing was started.
        RunError: The folder holds something else.
    """
    settings = changed(config, **changes).imported()
    require_engine(options.engine)
    chosen = _checked_seeds(seeds, settings.seed)
    parent = Path(run_folder)
    first = replace(settings, seed=chosen[0])
    weights = None if initial_weights is None else str(Path(initial_weights).absolute())
    info = SeedsInfo.of(chosen, first.to_json(), weights)
    refuse_unless_free_for(parent, chosen, overwrite)
    with _locked(parent):
        refuse_unless_free_for(parent, chosen, overwrite)
        # At once: one that does not begin any more must not pass for one of these.
        remove_runs(parent)
        info.write(parent)
        note_own(parent, info.config)
        orders = {
            seed: order_of(
                seed_folder(parent, seed),
                replace(settings, seed=seed),
                weights,
                loggers=options.loggers,
            )
            for seed in chosen
        }
        return _carried_out(parent, orders, options)


def resume_seeds(
    run_folder: str | PathLike[str],
    *,
    env: Any = None,
    trust: bool = False,
    options: SeedsOptions = USUAL_OPTIONS,
    **ends: Any,
) -> SeedsResult:
    """Continue all seeds in a folder that have not finished.

    Args:
        run_folder: The parent folder.
        env: As in `resume`.
        trust: As in `resume`.
        options: As in `train_seeds`.
        **ends: ``total_steps``, ``total_episodes`` and ``device``, as in `resume`; with one of the
            first two, seeds that have finished continue as well.

    Raises:
        RunError: The folder does not hold several seeds, or it names a module and is not trusted.
    """
    parent = Path(run_folder)
    info = SeedsInfo.read(parent)
    require_engine(options.engine)
    with _locked(parent):
        if env is not None:
            give_env(str(info.config.get("env")), env)
        named = {name: one for name, one in info.config.items() if env is None or name != "env"}
        require_trust(parent, named, trust)
        given = {name: value for name, value in ends.items() if value is not None}
        # All problems at once, before anything is started.
        settings = load_config(info.config)
        changed(settings, **given).imported()
        has_later_end = bool(given.keys() & {"total_steps", "total_episodes"})
        done = {one.seed for one in summarize(parent).finished if not has_later_end}
        if options.on_end is not None:
            for seed in sorted(done):
                options.on_end(seed, TrainingEnd(how="finished"))
        orders = {
            seed: order_of(
                seed_folder(parent, seed),
                replace(settings, seed=seed),
                info.initial_weights,
                loggers=options.loggers,
                changes=given,
            )
            for seed in info.seeds
            if seed not in done
        }
        return _carried_out(parent, orders, options)


def jobs_for(config: TrainingConfig, most: int, jobs: int | None) -> int:
    """Return how many trainings run at once.

    Args:
        config: One of them.
        most: How many there are.
        jobs: How many the user wants; None chooses one per core, on a GPU one.
    """
    if jobs is not None:
        require_integer("jobs", jobs, 1)
        return min(jobs, most)
    return min(most, usable_cores() if checked_device(config.device).type == "cpu" else 1)


def require_engine(engine: str) -> None:
    """Raise unless trainings can be carried out there; called before anything is written.

    Raises:
        ConfigError: The engine is unknown, or there is no Ray, or no cluster.
    """
    if engine not in ENGINES:
        raise ConfigError(f"engine must be 'local' or 'ray'; got {shown(engine)}.")
    if engine == "ray":
        require_ray()
        import_module("stepladder.cluster.places").connect()


def crew_for(
    config: TrainingConfig, most: int, jobs: int | None, engine: Engine, tell: OnProgress
) -> Crew:
    """Return what carries trainings out, on this machine or on a cluster.

    Args:
        config: One of the trainings.
        most: How many there are.
        jobs: How many the user wants at once; None chooses.
        engine: Where.
        tell: Told of every epoch.

    Raises:
        ConfigError: There is no Ray, or no cluster.
    """
    if engine == "local":
        return Crew(jobs_for(config, most, jobs), tell)
    if jobs is not None:
        require_integer("jobs", jobs, 1)
    num_gpus = 1.0 if str(config.device).startswith("cuda") else 0.0
    return RayCrew(jobs, tell, most=most, num_gpus=num_gpus)


def _checked_seeds(seeds: int | Sequence[int], first: int) -> tuple[int, ...]:
    if isinstance(seeds, Sequence):
        chosen = tuple(seeds)
        if not chosen or len(set(chosen)) < len(chosen):
            raise ConfigError(f"seeds must be different integers, at least one; got {seeds!r}.")
    else:
        require_integer("seeds", seeds, 1)
        chosen = tuple(range(first, first + seeds))
    for seed in chosen:
        require_integer("a seed", seed, 0, MAX_SEED)
    return chosen


@contextmanager
def _locked(parent: Path) -> Iterator[None]:
    """Keep other processes from starting the same seeds meanwhile."""
    with naming(parent):
        parent.mkdir(parents=True, exist_ok=True)
        lock = RunLock.take(parent / SEEDS_LOCK)
    try:
        yield
    finally:
        lock.release()


def _carried_out(
    parent: Path, orders: dict[int, TrainingOrder], options: SeedsOptions
) -> SeedsResult:
    if not orders:
        summary = summarize(parent)
        return SeedsResult(
            folder=parent, summary=summary, failures={}, was_stopped=False, had_ended=True
        )
    by_folder = {order.folder: seed for seed, order in orders.items()}

    def report(folder: Path, progress: Progress) -> None:
        if options.on_epoch is not None:
            options.on_epoch(by_folder[folder], progress)

    config = next(iter(orders.values())).config
    futures: dict[int, Future[TrainingEnd]] = {}
    was_stopped = False
    try:
        with crew_for(config, len(orders), options.jobs, options.engine, report) as crew:
            futures = {seed: crew.start(order) for seed, order in orders.items()}
            if options.on_end is not None:
                for seed, future in futures.items():
                    future.add_done_callback(partial(_report_end, options.on_end, seed))
            for future in futures.values():
                future.result()
    except KeyboardInterrupt:
        was_stopped = True
    outcomes = {
        seed: future.result()
        for seed, future in futures.items()
        if future.done() and not future.cancelled()
    }
    failures = {
        seed: outcome.reason
        for seed, outcome in outcomes.items()
        if outcome.how in ("failed", "died")
    }
    was_stopped = was_stopped or any(one.how == "stopped" for one in outcomes.values())
    return SeedsResult(
        folder=parent, summary=summarize(parent), failures=failures, was_stopped=was_stopped
    )


def _report_end(on_end: OnSeedEnd, seed: int, future: Future[TrainingEnd]) -> None:
    if not future.cancelled() and future.exception() is None:
        on_end(seed, future.result())
