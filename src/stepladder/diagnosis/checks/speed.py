"""Checks of speed: what a step costs, what workers cost, and whether they fit together."""

import math
from collections.abc import Iterator

from stepladder.diagnosis.evidence import ComparedRows, EnvEvidence
from stepladder.diagnosis.finding import Told, check, error, note, warning
from stepladder.diagnosis.settings import SettingsEvidence

CLEARLY = 1.5
"""Factor from which a difference in speed is told; other programs may use the cores meanwhile."""

LONG_HOURS = 24.0
"""Hours of stepping envs from which a training is called long."""


@check("steps-and-workers", "env")
def steps_and_workers(env: EnvEvidence) -> Iterator[Told]:
    """The steps are too quick or too slow for the number of workers that is set."""
    rows, play, asked = env.rows, env.play, env.config.num_workers
    if rows is None or play is None or env.num_cores < 2:
        return
    gain = rows.plain_seconds / rows.worker_seconds
    measured = _measured(rows, play.step_seconds)
    if asked and gain < 1.0 / CLEARLY:
        yield warning(
            f"steps are too quick for workers: {measured}; num_workers is {asked}",
            "Set num_workers to 0, or leave it out: a training then chooses the faster way.",
        )
    elif asked == 0 and gain > CLEARLY:
        yield warning(
            f"steps are slow enough for workers: {measured}; num_workers is 0",
            f"Set num_workers to {env.num_cores - 1}, or leave it out.",
        )
    else:
        way = "the first way" if gain < 1.0 else "the second way"
        yield note(f"{measured}: {way} is faster", "Nothing: a training chooses it by itself.")


def _measured(rows: ComparedRows, step_seconds: float) -> str:
    ideal = rows.plain_seconds / (rows.num_workers + 1)
    overhead = max(0.0, rows.worker_seconds - ideal)
    workers = f"{rows.num_workers} worker{'s'[: rows.num_workers != 1]}"
    return (
        f"a step takes {_time(step_seconds)}; {rows.num_envs} envs with their curriculum take "
        f"{_time(rows.plain_seconds)} in process and {_time(rows.worker_seconds)} with {workers}, "
        f"of which about {_time(overhead)} for the processes"
    )


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


@check("long-training", "env")
def long_training(env: EnvEvidence) -> Iterator[Told]:
    """Stepping the envs alone takes more than a day."""
    if env.play is None or math.isnan(env.play.step_seconds):
        return
    cores = 1 if env.config.num_workers == 0 else env.num_cores
    hours = env.play.step_seconds * env.config.total_steps / cores / 3600.0
    if hours > LONG_HOURS and (env.made is None or not env.made.is_batched):
        yield warning(
            f"a step takes {_time(env.play.step_seconds)}: {env.config.total_steps:,} steps take "
            f"{hours:.0f} hours on {cores} cores; expected at most {LONG_HOURS:.0f}",
            "Profile the env's step, lower total_steps, or use more cores.",
        )


@check("workers-unfit", "config")
def workers_unfit(settings: SettingsEvidence) -> Iterator[Told]:
    """The number of workers does not fit this machine or the number of envs."""
    training = settings.training
    if training is None or not training.num_workers:
        return
    workers, cores = training.num_workers, settings.num_cores
    if workers >= training.num_envs:
        yield error(
            f"num_workers is {workers}, and there are {training.num_envs} envs; expected at most "
            f"{training.num_envs - 1}, because this process steps envs too",
            "Lower num_workers, or leave it out.",
        )
    elif workers > cores - 1:
        yield warning(
            f"num_workers is {workers}; expected at most {cores - 1} on this machine, whose "
            f"{cores} cores this process shares with them",
            f"Set num_workers to {cores - 1}, or leave it out.",
        )


CHECKS = (steps_and_workers, long_training, workers_unfit)
