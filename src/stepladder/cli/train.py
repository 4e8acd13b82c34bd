"""``stepladder train``: train an agent, watch it learn, stop, and go on."""

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from stepladder.cli import console
from stepladder.cli.finding import look_for, needing_torch
from stepladder.cli.kept_scores import evaluation_from_json
from stepladder.cli.scoreboard import scoreboard
from stepladder.cli.train_arguments import TrainArguments, given_flags, read_arguments
from stepladder.cli.training_view import TrainingView, duration
from stepladder.runs.run_folder import RunInfo
from stepladder.runs.trust import names_of_code, require_trust
from stepladder.training.config import TrainingConfig, load_config
from stepladder.training.presets import PRESETS

if TYPE_CHECKING:
    from stepladder.training.results import TrainingResult

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

NEXT = (("watch", "watch it"), ("eval", "test it"), ("explain", "ask it why"), ("report", "plots"))
"""Verbs that make something of a run."""

WITH_TRUST = ("watch", "eval")
"""Those of them that play the run's env, and import it."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments, config = read_arguments(argv)
    if arguments.list_presets:
        console.results().print(_presets())
        return 0
    if arguments.resume is not None:
        changes: dict[str, Any] = {
            name: getattr(arguments, name)
            for name in ("total_steps", "device")
            if f"--{name.replace('_', '-')}" in given_flags(argv)
        }
        folder: Path | None = arguments.resume
        result = _resumed(arguments, folder, changes)
    else:
        changes, folder = {}, arguments.folder(arguments.run_name)
        result = _trained(arguments, config, folder)
    # Another end or device is not kept, and has to be said again.
    can_resume = result.was_stopped and folder is not None
    changes["trust"] = folder is not None and bool(names_of_code(RunInfo.read(folder).config))
    again = _command("train", "--resume", folder, **changes) if can_resume else ""
    if arguments.json:
        told = {"run": None if folder is None else str(folder), **result.to_json()}
        del told["run_folder"]
        console.print_json({**told, "resume": again or None})
    else:
        _tell(result, folder, again, needs_trust=changes["trust"])
    return INTERRUPTED if result.was_stopped else 0


def _trained(
    arguments: TrainArguments, config: TrainingConfig, folder: Path | None
) -> "TrainingResult":
    title = (
        f"{config.agent.kind} on {config.env}, {config.num_envs} envs, seed {config.seed}, "
        f"{config.device}"
    )
    look_for(config.env)
    with TrainingView(title, config.to_json(), _shown(arguments)) as view:
        starting = needing_torch("stepladder.training.starting", "trainings")
        return starting.train(
            config,
            run_folder=folder,
            overwrite=arguments.overwrite,
            initial_weights=arguments.initial_weights,
            loggers=() if folder is None else partial(arguments.loggers, folder),
            on_epoch=view,
        )


def _resumed(arguments: TrainArguments, folder: Path, changes: dict[str, Any]) -> "TrainingResult":
    info = RunInfo.read(folder)
    require_trust(folder, info.config, arguments.trust)
    look_for(str(info.config.get("env")))
    about = load_config(info.config).to_json() if info.kind == "training" else {}
    with TrainingView(f"{folder} goes on", about, _shown(arguments)) as view:
        starting = needing_torch("stepladder.training.starting", "trainings")
        return starting.resume(
            folder,
            trust=arguments.trust,
            loggers=partial(arguments.loggers, folder),
            on_epoch=view,
            **changes,
        )


def _shown(arguments: TrainArguments) -> Any:
    return console.asides() if arguments.json else console.results()


def _tell(result: "TrainingResult", folder: Path | None, again: str, *, needs_trust: bool) -> None:
    """Say what came of it, and how to go on or what to do with it."""
    for text in result.refused_checkpoints:
        console.say(f"a checkpoint could not be used: {text}")
    examined = f" and {result.evaluation_steps:,} in evaluations" * bool(result.evaluation_steps)
    console.say(
        f"\n{'stopped' if result.was_stopped else 'finished'} after {result.total_steps:,} steps"
        f"{examined}, {result.total_episodes:,} episodes, {result.total_gradient_steps:,} updates "
        f"in {duration(result.seconds)}"
    )
    if result.evaluation_results:
        latest = result.evaluation_results[-1]
        table = scoreboard(evaluation_from_json(latest))
        console.say(f"\nheld out, at {latest['step']:,} steps:")
        console.results().print(table)
    if folder is None:
        console.say("\nnothing was kept")
    elif again:
        console.say(f"\neverything is saved in {folder}; go on with:\n  {again}")
    else:
        commands = {
            _command(verb, folder, trust=needs_trust and verb in WITH_TRUST): text
            for verb, text in NEXT
        }
        width = max(map(len, commands))
        console.say(f"\nkept in {folder}:")
        for command, text in commands.items():
            console.say(f"  {command:<{width}}  # {text}")


def _command(verb: str, *words: object, **flags: object) -> str:
    """Return a command line of ours as it can be typed."""
    parts = ["stepladder", verb, *map(str, words)]
    for name, value in flags.items():
        flag = f"--{name.replace('_', '-')}"
        if value is not False:
            parts += [flag] if value is True else [flag, str(value)]
    return shlex.join(parts)


def _presets() -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("preset", "env", "agent", "curriculum"):
        table.add_column(column, no_wrap=True)
    for column in ("envs", "steps"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, preset in PRESETS.items():
        curriculum = preset.curriculum.kind
        sizes = f"{preset.num_envs:,}", f"{preset.total_steps:,}"
        table.add_row(name, preset.env, preset.agent.kind, curriculum, *sizes)
    return table
