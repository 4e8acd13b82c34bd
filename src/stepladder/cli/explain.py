"""``stepladder explain``: why a run practises the tasks that it practises, in words."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.text import Text

from stepladder.cli.inputs.finding import look_for
from stepladder.cli.inputs.parsing import parse
from stepladder.cli.inputs.run_curriculum import is_simulation, is_training, run_curriculum
from stepladder.cli.output import console
from stepladder.cli.output.memorising import memorised
from stepladder.configs.checks import NotNegativeInteger
from stepladder.configs.codec import Config
from stepladder.curricula.base import Curriculum
from stepladder.envs.ids import game_of, known_game
from stepladder.errors import ConfigError, SnapshotError
from stepladder.runs import RunReader
from stepladder.runs.trust import names_of_code, require_trust
from stepladder.visible import visible

CLOSING = ("explanation", "verdict")
"""Kinds of events that summarise a run; they are shown apart from the other events."""


@dataclass(frozen=True, kw_only=True)
class ExplainArguments(Config):
    """Explain why a run practises the tasks that it practises.

    For a simulation or a training, this asks the curriculum as its last checkpoint left it; for
    other runs, and without a checkpoint, it shows what the run has logged. The run may still be
    active.
    """

    run: tyro.conf.Positional[Path]
    """Folder of a run."""

    task: tuple[str, ...] = ()
    """Names of the tasks to explain. By default those with the highest probability."""

    top: NotNegativeInteger = 10
    """Number of tasks to explain if none are named."""

    events: NotNegativeInteger = 10
    """Number of events to show, the latest ones."""

    trust: bool = False
    """Allow the import of the module of the run's env, which runs its code. Only needed if the env
    has its own tasks. Use it only if you trust where the run came from."""

    json: bool = False
    """Write one line of JSON, and nothing else to standard output."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(ExplainArguments, argv, "explain")
    reader = RunReader(arguments.run)
    steps, past = reader.times()[0], reader.events()
    closing = {event.kind: event.text for event in past if event.kind in CLOSING}
    answer: dict[str, Any] = {
        "run": str(reader.folder),
        "kind": reader.kind,
        "status": reader.status,
        "step": int(steps[-1]) if len(steps) else 0,
        "verdict": closing.get("verdict"),
        "overview": closing.get("explanation"),
    }
    has_checkpoint = bool(reader.checkpoints())
    if is_simulation(reader) and has_checkpoint:
        answer |= _from_curriculum(run_curriculum(reader), arguments)
    elif is_training(reader) and has_checkpoint:
        answer |= _from_curriculum(_trained_curriculum(reader, arguments.trust), arguments)
        # The curriculum counts steps of ended episodes; a training saves between two epochs.
        answer["as_of"] = reader.checkpoint_step()
        answer["step"] = max(answer["step"], answer["as_of"])
    else:
        answer |= _from_tables(reader, arguments)
    answer["memorised"] = memorised(reader)
    # Of the events about single tasks, those of the named tasks.
    past = [
        event
        for event in past
        if event.kind not in CLOSING
        and (not arguments.task or event.data.get("task") in (None, *arguments.task))
    ]
    answer["events"] = [
        {"step": event.step, "kind": event.kind, "text": event.text}
        for event in past[max(0, len(past) - arguments.events) :]
    ]
    if arguments.json:
        console.print_json(answer)
    else:
        _print(answer, len(past), in_full=bool(arguments.task))
    return 0


def _trained_curriculum(reader: RunReader, trust: bool) -> Curriculum:
    """Return the curriculum of a training; modules that it names are imported only with trust."""
    env, tasks = reader.config["env"], reader.config["tasks"]
    if isinstance(tasks, str):
        # Without them there is nothing to explain; its env is not played.
        require_trust(reader.folder, {"tasks": tasks}, trust)
    if trust:
        look_for(*names_of_code(reader.config))
        game_of(env)
    try:
        return run_curriculum(reader)
    except SnapshotError as error:
        if tasks or known_game(env) is not None:
            raise
        raise SnapshotError(
            f"{error} If the env {env!r} has its own tasks, only its module can make them: add "
            "--trust if you trust where this run came from."
        ) from error


def _from_curriculum(curriculum: Curriculum, arguments: ExplainArguments) -> dict[str, Any]:
    """Return what the curriculum itself says."""
    pool = curriculum.pool
    names = map(pool.source.name, pool.task_ids.tolist()) if arguments.task else ()
    answers = [
        curriculum.explain(slot) for slot in _chosen(list(names), curriculum.probs, arguments)
    ]
    return {
        # Not the checkpoint's own step: an active run may have replaced the file meanwhile.
        "as_of": curriculum.num_steps,
        "overview": str(curriculum.explain()),
        "num_tasks": pool.num_slots,
        "tasks": [{**answer.to_json(), "text": str(answer)} for answer in answers],
    }


def _from_tables(reader: RunReader, arguments: ExplainArguments) -> dict[str, Any]:
    """Return what a run has logged about its tasks."""
    table = reader.tasks()
    names = [str(name) for name in table.get("task", [])]
    if not names:
        return {"as_of": None, "num_tasks": 0, "tasks": []}
    probs = np.nan_to_num(np.asarray(table.get("prob", np.zeros(len(names)))))
    rows = _chosen(names, lambda: probs, arguments)
    return {
        "as_of": reader.task_steps()[-1],
        "num_tasks": len(names),
        "tasks": [_row(table, row) for row in rows],
    }


def _chosen(names: Sequence[str], probs: Any, arguments: ExplainArguments) -> list[int]:
    """Return the positions of the named tasks, or of those with the highest probability."""
    if not arguments.task:
        return np.argsort(-probs(), kind="stable")[: arguments.top].tolist()
    for wanted in arguments.task:
        if wanted not in names:
            similar = difflib.get_close_matches(wanted, names, n=3) or names[:3]
            raise ConfigError(
                f"there is no task {wanted!r} among the {len(names)} active ones; there is "
                f"{', '.join(similar)}{', …' if len(names) > len(similar) else ''}."
            )
    return [names.index(wanted) for wanted in arguments.task]


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


def _print_tasks(tasks: Sequence[Mapping[str, Any]], in_full: bool) -> None:
    if in_full:
        for task in tasks:
            console.say(f"  {task['text']}")
        return
    table = console.plain_table("task", numbers=["prob"])
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
        console.say(f"the following is as of step {answer['as_of']:,}")
    if answer["overview"]:
        console.say(f"\n{answer['overview']}")
    for gap in answer["memorised"]:
        console.say(gap["text"])
    if answer["tasks"]:
        console.say(f"\n{len(answer['tasks'])} of {answer['num_tasks']} tasks:")
        _print_tasks(answer["tasks"], in_full)
    elif answer["num_tasks"] == 0:
        console.say("\nNothing has been logged about its tasks yet.")
    if answer["events"]:
        console.say(f"\nthe last {len(answer['events'])} of {num_events} events:")
        for event in answer["events"]:
            text = " ".join(event["text"].split())
            console.say(f"  step {event['step']:,}  {event['kind']}: {text}")
