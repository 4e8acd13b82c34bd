"""``stepladder explain``: why the tasks and stages of a run stand where they do, in words."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.table import Table
from rich.text import Text

from stepladder.cli import console
from stepladder.cli.finding import look_for
from stepladder.cli.parsing import parse
from stepladder.cli.playable import curriculum_of, is_training
from stepladder.configs.checks import CountOrZero
from stepladder.configs.codec import Config
from stepladder.curricula.base import Curriculum
from stepladder.curricula.explanation import TaskExplanation
from stepladder.envs.ids import game_of, known_game
from stepladder.errors import ConfigError, SnapshotError
from stepladder.runs import Event, RunReader
from stepladder.simulator.rebuild import can_rebuild, rebuilt_curriculum
from stepladder.visible import visible

CLOSING = ("explanation", "verdict")
"""Kinds of events that sum a run up; they are shown apart from what happened."""


@dataclass(frozen=True, kw_only=True)
class ExplainArguments(Config):
    """Say why the tasks and stages of a run stand where they do.

    A simulated run or a training is asked itself, as its last checkpoint left it; of any other run,
    and of one without a checkpoint yet, what it has written is shown. It may still be going on.
    """

    run: tyro.conf.Positional[Path]
    """Folder of a run."""

    task: tuple[str, ...] = ()
    """Names of the tasks to explain. By default those with the highest probability."""

    top: CountOrZero = 10
    """Tasks to explain where none are named."""

    events: CountOrZero = 10
    """How many of the last events to show."""

    trust: bool = False
    """Whether the module of the run's env may be imported, which runs its code. Only needed if the
    env has tasks of its own, and only if you trust where the run came from."""

    json: bool = False
    """Whether to write one line of JSON, and nothing else to standard output."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(ExplainArguments, argv, "explain")
    reader = RunReader(arguments.run)
    about = _about(reader)
    if can_rebuild(reader):
        told = _from_curriculum(rebuilt_curriculum(reader), arguments)
    elif is_training(reader) and reader.checkpoints():
        told = _from_curriculum(_trained_curriculum(reader, arguments.trust), arguments)
        # It counts the steps of episodes that have ended, and a training saves between two epochs.
        told["as_of"] = reader.checkpoint_step()
        told["step"] = max(about["step"], told["as_of"])
    else:
        told = _from_tables(reader, arguments)
    answer = {**about, **told}
    past = [event for event in reader.events() if event.kind not in CLOSING]
    if arguments.task:
        # Of the events about single tasks, those of the tasks that were asked for.
        asked = (None, *arguments.task)
        past = [event for event in past if event.data.get("task") in asked]
    answer["events"] = [_plain(event) for event in past[max(0, len(past) - arguments.events) :]]
    if arguments.json:
        console.print_json(answer)
    else:
        _print(answer, len(past), in_full=bool(arguments.task))
    return 0


def _trained_curriculum(reader: RunReader, trust: bool) -> Curriculum:
    """Return the curriculum of a training; the module of its env is imported only with trust."""
    env = reader.config["env"]
    if trust:
        look_for(env)
        game_of(env)
    try:
        return curriculum_of(reader)
    except SnapshotError as error:
        if reader.config["tasks"] or known_game(env) is not None:
            raise
        raise SnapshotError(
            f"{error} If the env {env!r} has tasks of its own, only its module knows them: add "
            "--trust if you trust where this run came from."
        ) from error


def _about(reader: RunReader) -> dict[str, Any]:
    """Say what run this is and how it ended."""
    steps = reader.times()[0]
    closing = {event.kind: event.text for event in reader.events() if event.kind in CLOSING}
    return {
        "run": str(reader.folder),
        "kind": reader.kind,
        "status": reader.status,
        "step": int(steps[-1]) if len(steps) else 0,
        "verdict": closing.get("verdict"),
        "overview": closing.get("explanation"),
    }


def _from_curriculum(curriculum: Curriculum, arguments: ExplainArguments) -> dict[str, Any]:
    """Ask the curriculum itself."""
    answers = [curriculum.explain(slot) for slot in _slots(curriculum, arguments)]
    return {
        # Not the checkpoint's own step: a run that goes on may have replaced it meanwhile.
        "as_of": curriculum.num_steps,
        "overview": str(curriculum.explain()),
        "num_tasks": curriculum.pool.num_slots,
        "tasks": [
            {**answer.to_json(), "text": str(answer)}
            for answer in answers
            if isinstance(answer, TaskExplanation)
        ],
    }


def _slots(curriculum: Curriculum, arguments: ExplainArguments) -> list[int]:
    if not arguments.task:
        probs = curriculum.probs()
        return np.argsort(-probs, kind="stable")[: arguments.top].tolist()
    source = curriculum.pool.source
    names = [source.name(task_id) for task_id in curriculum.pool.task_ids.tolist()]
    return [_position(wanted, names) for wanted in arguments.task]


def _from_tables(reader: RunReader, arguments: ExplainArguments) -> dict[str, Any]:
    """Show what a run has written about its tasks."""
    table = reader.tasks()
    names = [str(name) for name in table.get("task", [])]
    if not names:
        return {"as_of": None, "num_tasks": 0, "tasks": []}
    if arguments.task:
        rows = [_position(wanted, names) for wanted in arguments.task]
    else:
        probs = np.nan_to_num(np.asarray(table.get("prob", np.zeros(len(names)))))
        rows = np.argsort(-probs, kind="stable")[: arguments.top].tolist()
    return {
        "as_of": reader.task_steps()[-1],
        "num_tasks": len(names),
        "tasks": [_row(table, row) for row in rows],
    }


def _row(table: Mapping[str, Any], row: int) -> dict[str, Any]:
    numbers = {
        name: float(values[row])
        for name, values in table.items()
        if not isinstance(values, list) and np.isfinite(values[row])
    }
    prob = numbers.pop("prob", None)
    measured = ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())
    reason = str(table["reason"][row]) if "reason" in table else ""
    measured = reason or measured or "nothing was measured"
    name, label = str(table["task"][row]), str(table["label"][row])
    drawn = "" if prob is None else f" is drawn with probability {prob:.4g}"
    return {
        "name": name,
        "label": label,
        "prob": prob,
        "reason": measured,
        "numbers": numbers,
        "text": f"Task {name!r} (label {label!r}){drawn}: {measured}.",
    }


def _position(wanted: str, names: Sequence[str]) -> int:
    if wanted in names:
        return names.index(wanted)
    similar = difflib.get_close_matches(wanted, names, n=3) or names[:3]
    raise ConfigError(
        f"there is no task {wanted!r} among the {len(names)} active ones; there is "
        f"{', '.join(similar)}{', …' if len(names) > len(similar) else ''}."
    )


def _plain(event: Event) -> dict[str, Any]:
    return {"step": event.step, "kind": event.kind, "text": event.text}


def _print_tasks(tasks: Sequence[Mapping[str, Any]], in_full: bool) -> None:
    if in_full:
        for task in tasks:
            console.say(f"  {task['text']}")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("task", overflow="fold")
    table.add_column("prob", justify="right", no_wrap=True)
    table.add_column("why")
    for task in tasks:
        prob = f"{task['prob']:.4f}" if task["prob"] is not None else ""
        table.add_row(Text(visible(task["name"])), prob, Text(visible(task["reason"])))
    console.results().print(table)


def _print(answer: Mapping[str, Any], num_events: int, in_full: bool) -> None:
    name = Path(answer["run"]).name
    console.say(f"{name}: {answer['kind']}, {answer['status']}, {answer['step']:,} steps")
    if answer["verdict"]:
        console.say(f"verdict: {answer['verdict']}")
    if answer["as_of"] not in (None, answer["step"]):
        console.say(f"what follows is as of step {answer['as_of']:,}")
    if answer["overview"]:
        console.say(f"\n{answer['overview']}")
    if answer["tasks"]:
        console.say(f"\n{len(answer['tasks'])} of {answer['num_tasks']} tasks:")
        _print_tasks(answer["tasks"], in_full)
    elif answer["num_tasks"] == 0:
        console.say("\nNothing has been written about its tasks yet.")
    if answer["events"]:
        console.say(f"\nthe last {len(answer['events'])} of {num_events} events:")
        for event in answer["events"]:
            text = " ".join(event["text"].split())
            console.say(f"  step {event['step']:,}  {event['kind']}: {text}")
