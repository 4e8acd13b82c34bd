"""``stepladder calibrate``: a simulated copy of trainings, and how well it fits."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from stepladder.cli.inputs.parsing import parse
from stepladder.cli.output import console
from stepladder.configs.checks import NotNegativeInteger, Within
from stepladder.configs.codec import Config
from stepladder.errors import counted
from stepladder.simulator.calibration import Calibration, Likelihoods, PartFit, calibrate

SCENARIO_MARK = "by stepladder calibrate"
"""Text that every scenario of this command holds; other files are not replaced."""

MANY_LABELS = 20
"""Labels from which only the end of the training is shown."""


@dataclass(frozen=True, kw_only=True)
class CalibrateArguments(Config):
    """Fit a simulated learner to trainings, and write it as a scenario.

    simulate, compare and sweep take the file: other curricula can be tried on a copy of your own
    training. Nothing of the runs is imported or changed.
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of trainings with the same labels of tasks; one with a uniform curriculum tells
    most."""

    out: Path | None = None
    """JSON file for the scenario; by default scenario.json, and none with --json."""

    goal: Annotated[float, Within(0.0, 1.0, above=True, below=True)] | None = None
    """Success on held-out tasks of the target at which the copy is done; by default what the
    fitted learner has at the end of the trainings."""

    target: tuple[str, ...] = ()
    """Labels that the agent is for; all by default."""

    seed: NotNegativeInteger = 0
    """Seed of the starts of the fit."""

    json: bool = False
    """Write one line of JSON with everything, and nothing else to standard output."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(CalibrateArguments, argv, "calibrate")
    out = arguments.out or (None if arguments.json else Path("scenario.json"))
    if out is not None:
        console.refuse_foreign(out, SCENARIO_MARK, "--out")
    with console.progress("fitting"):
        found = calibrate(
            arguments.runs,
            goal=arguments.goal,
            target=arguments.target,
            name="calibrated" if out is None else out.stem,
            seed=arguments.seed,
        )
    if out is not None:
        text = json.dumps(found.scenario.to_json(), indent=1)
        console.write_whole(out, f"{text}\n")
    if arguments.json:
        console.print_json(found.to_json())
        return 0
    _show(found)
    console.say(f"scenario: {out}")
    console.say(
        f"next: stepladder compare --scenarios {shlex.quote(str(out))} "
        f"--num-envs {found.num_envs} --num-seeds 4 --curricula staged frontier learnability"
    )
    return 0


def _show(found: Calibration) -> None:
    screen = console.results()
    is_long = len(found.labels) > MANY_LABELS
    screen.print(
        f"{counted(len(found.runs), 'run')}, {counted(found.num_plays, 'episode')}, "
        f"{counted(len(found.labels), 'label')}",
        style="bold",
    )
    headings = ("episodes", "seen", "95 % interval", "predicted")
    table = console.plain_table("label", "part", numbers=headings)
    for label in found.labels:
        for part in label.parts[-1:] if is_long else label.parts:
            table.add_row(label.label, part.part, *_part(part))
    screen.print(table)
    screen.print("*  the prediction lies outside the interval")
    screen.print()
    kinds = ("learner", "constant rate", "last value")
    table = console.plain_table("mean log likelihood", numbers=("episodes", *kinds))
    for label in () if is_long else found.labels:
        table.add_row(label.label, *_likelihoods(label.likelihoods))
    table.add_row("all labels", *_likelihoods(found.likelihoods))
    if found.forecast is not None:
        table.add_row("forecast of the last 30 %", *_likelihoods(found.forecast))
    screen.print(table)
    screen.print("nearer to 0 is better; last value: success of the epochs before")
    screen.print()
    for text in found.notes:
        console.say(f"note: {text}")
    for text in found.warnings:
        console.say(f"beware: {text}")
    goal = found.scenario.dynamics.goal
    console.say(f"goal: success {goal:g} on held-out tasks of the target")


def _part(part: PartFit) -> list[str]:
    if not part.plays:
        return ["0", "", "", ""]
    mark = " " if part.is_inside else "*"
    interval = f"{part.low:.2f} to {part.high:.2f}"
    return [str(part.plays), f"{part.seen:.2f}", interval, f"{part.predicted:.2f}{mark}"]


def _likelihoods(found: Likelihoods) -> list[str]:
    values = (found.learner, found.constant, found.last)
    return [str(found.plays), *(f"{value:.3f}" for value in values)]
