"""Real trainings for `prediction`: one at a time in a process of its own, stored as they finish.

Between `prediction_worlds`, which says what is trained, and the world's file in benchmarks/data.
Every finished training is written at once and the file is replaced as a whole, so that stopping
loses only what is running. A training that is stored is not made again.
"""

import contextlib
import json
import multiprocessing
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
from prediction_worlds import EVALUATED_AT, FITTED, FORM, FORMS, NUM_BINS, WORLDS, World

import stepladder
from stepladder.simulator.calibration.repeats import repeats_of

DATA = Path(__file__).parent / "data"
Run = dict[str, Any]
"""A stored training, as plain JSON."""


@dataclass(frozen=True)
class Item:
    """A training to be made."""

    world: str
    curriculum: str
    seed: int
    share: float = 1.0
    """Of the budget; less is a try."""

    def found_in(self, runs: Sequence[Run]) -> bool:
        """Return whether a list holds this training."""
        wanted = (self.curriculum, self.seed, form_of(self.curriculum))
        return any((run["curriculum"], run["seed"], run["form"]) == wanted for run in runs)


def form_of(curriculum: str) -> int:
    """Return which form of its rules a method has now."""
    return FORMS.get(curriculum, FORM)


def read_runs(world: str, folder: Path = DATA) -> list[Run]:
    """Return the stored trainings of a world; none if there is no file."""
    path = folder / f"prediction_{world}.json"
    return json.loads(path.read_text()) if path.exists() else []


def write_runs(world: str, runs: list[Run], folder: Path = DATA) -> None:
    """Replace a world's file as a whole."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"prediction_{world}.json"
    lines = ",\n".join(json.dumps(run, separators=(",", ":")) for run in runs)
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    beside.write_text(f"[\n{lines}\n]\n")
    os.replace(beside, path)


# One training.


class Counts:
    """What a training practised: listens to the records of its curriculum.

    Args:
        world: Its labels and budget.
        trainer: Whose curriculum and steps are counted.
    """

    def __init__(self, world: World, trainer: Any):
        self._trainer, self._pool = trainer, trainer.curriculum.pool
        self._bin_steps = world.bin_steps
        self.labels = list(self._pool.label_names)
        self.practised = np.zeros((NUM_BINS, len(self.labels), 4))
        trainer.curriculum.add_listener(self._count)

    def _count(self, records: Any) -> None:
        row = self.practised[min(self._trainer.num_steps // self._bin_steps, NUM_BINS - 1)]
        success, length = np.nan_to_num(records["success"]), records["length"]
        label = self._pool.label_indices[records["slot"]]
        for column, value in enumerate((1.0, success, success * length, (1 - success) * length)):
            np.add.at(row[:, column], label, value)

    def to_json(self) -> Run:
        """Return the tables."""
        return {"labels": self.labels, "practised": self.practised.round().astype(int).tolist()}


def _examine(world: World, trainer: Any, seed: int) -> dict[str, list[float]]:
    """Return games and success per label on held-out tasks, with drawn actions."""
    from stepladder.agents.player import make_player
    from stepladder.games.programme import Programme, task_programme
    from stepladder.training.evaluation import evaluate
    from stepladder.training.evaluation.request import EvaluationRequest

    class Request(EvaluationRequest):
        """Plays the tasks that it is given, whatever the game would evaluate."""

        def programme(self, rivals: Any) -> Programme:
            return task_programme(self.env_kwargs, self.tasks, self.num_games, self.seed)

    config, tasks = world.config, world.held_out()
    kind = Request if tasks else EvaluationRequest
    asked = EvaluationRequest.of(config)
    request = kind(
        env=asked.env,
        env_kwargs=asked.env_kwargs,
        num_games=asked.num_games,
        seed=asked.seed,
        practised=asked.practised,
        tasks=tasks or asked.tasks,
        is_deterministic=False,
    )
    description, weights = trainer.agent.description(), trainer.agent.weights()
    result = evaluate(
        lambda num_rows: make_player(description, weights, num_rows, seed=seed), request
    )
    groups = {group.name: group for group in result.groups if group.rate is not None}
    labels = trainer.curriculum.pool.label_names
    found = [groups[label] for label in labels]
    return {
        # Games of one level are no independent facts.
        "levels": [len(group.parts) for group in found],
        "success": [round(group.rate.value, 4) for group in found if group.rate is not None],
    }


def _repeats(world: World, trainer: Any, records: list[Any]) -> Run:
    """Return what tells how fast tasks are memorised, of a training that draws all alike."""
    update_steps = getattr(world.config.agent, "rollout_steps", 8192)
    groups = trainer.curriculum.pool.label_indices
    found = repeats_of(np.concatenate(records), groups, world.config.num_envs, update_steps)
    return found.to_json()


def trained(item: Item) -> Run:
    """Train once; return what was practised, and success on held-out tasks on the way."""
    import torch

    from stepladder.training.loop import Trainer

    torch.set_num_threads(1)
    began = time.perf_counter()
    world = WORLDS[item.world]
    if item.share < 1.0:
        world = world.shortened(item.share)
    curriculum = world.curricula[item.curriculum]
    trainer = Trainer(replace(world.config, seed=item.seed, curriculum=curriculum))
    total = world.config.total_steps
    exams: list[dict[str, Any]] = []
    try:
        counts = Counts(world, trainer)
        records: list[Any] = []
        if item.curriculum == FITTED:
            trainer.curriculum.add_listener(lambda some: records.append(some.copy()))
        trainer.begin()
        for share in EVALUATED_AT:
            while trainer.num_steps < share * total:
                trainer.advance()
            exams.append({"step": trainer.num_steps, **_examine(world, trainer, item.seed)})
    finally:
        trainer.close()
    return {
        "curriculum": item.curriculum,
        "seed": item.seed,
        "form": form_of(item.curriculum),
        "version": stepladder.__version__,
        "commit": commit(),
        "steps": total,
        "seconds": round(time.perf_counter() - began, 1),
        **counts.to_json(),
        **({"repeats": _repeats(world, trainer, records)} if records else {}),
        "evaluations": exams,
    }


def commit() -> str:
    """Return the commit that is checked out, if that can be found out."""
    given = os.environ.get("STEPLADDER_COMMIT")
    if given:
        return given
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        found = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
        return found.stdout.strip()
    return "unknown"


# Many trainings.


def _serve(item: Item, core: int | None, answers: Connection) -> None:
    """Train in a process of its own, on one core."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    answers.send(trained(item))
    answers.close()


def train_all(
    items: Sequence[Item], jobs: int, budget_s: float, folder: Path
) -> Iterator[tuple[Item, Run | None]]:
    """Make trainings, `jobs` at a time; yield each as it is stored, None if it failed.

    Args:
        items: What is trained, in this order; what is stored is left out.
        jobs: Processes at the same time, each with one core.
        budget_s: A training that would probably not be finished by then is not begun.
        folder: Of the files; what benchmarks/data has is taken over first.
    """
    began = time.monotonic()
    stored = _taken_over({item.world for item in items}, folder)
    waiting = [item for item in items if not item.found_in(stored[item.world])]
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    free: list[int | None] = list(cores[:jobs]) if len(cores) >= jobs else [None] * jobs
    took = {item.world: WORLDS[item.world].seconds * item.share for item in waiting}
    context = multiprocessing.get_context("spawn")
    running: dict[Any, tuple[Any, Item, int | None, float]] = {}
    while waiting or running:
        left = budget_s - (time.monotonic() - began)
        waiting = [item for item in waiting if took[item.world] <= left]
        while waiting and free:
            item, core = waiting.pop(0), free.pop(0)
            answers, sender = context.Pipe(duplex=False)
            process = context.Process(target=_serve, args=(item, core, sender), daemon=True)
            process.start()
            sender.close()
            running[answers] = process, item, core, time.monotonic()
        for answers in wait(list(running), timeout=5.0):
            process, item, core, since = running.pop(answers)
            run: Run | None = None
            with contextlib.suppress(EOFError):
                run = answers.recv()  # type: ignore[union-attr]
            process.join()
            free.append(core)
            if run is not None:
                took[item.world] = max(0.5 * took[item.world], time.monotonic() - since)
                if item.share == 1.0:
                    stored[item.world].append(run)
                    write_runs(item.world, stored[item.world], folder)
            yield item, run


def _taken_over(worlds: set[str], folder: Path) -> dict[str, list[Run]]:
    """Return what is stored in a folder; it begins with what benchmarks/data has."""
    stored: dict[str, list[Run]] = {}
    for world in worlds:
        stored[world] = read_runs(world, folder)
        if folder != DATA:
            known = {(run["curriculum"], run["seed"], run["form"]) for run in stored[world]}
            stored[world] += [
                run
                for run in read_runs(world)
                if (run["curriculum"], run["seed"], run["form"]) not in known
            ]
    return stored
