"""What ``stepladder train`` says at the end: how it went, and what can be done with the run.

Called by `cli.train` with the result of a training.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.cli.inputs.parsing import command_line
from stepladder.cli.output import console
from stepladder.cli.output.scoreboard import scoreboard
from stepladder.cli.output.views import duration
from stepladder.training.evaluation.scores import WAYS_IN_WORDS
from stepladder.training.evaluation.stored import evaluation_from_json

if TYPE_CHECKING:
    from stepladder.training.results import TrainingResult

NEXT = (("watch", "watch it"), ("eval", "test it"), ("explain", "ask it why"), ("report", "plots"))
"""Verbs that use a finished run."""

WITH_TRUST = ("watch", "eval")
"""Those of them that play the run's env, and import it."""


def tell_end(
    result: "TrainingResult", folder: Path | None, again: str, *, needs_trust: bool
) -> None:
    """Print the result, and the commands that resume or use the run.

    Args:
        result: Of the training.
        folder: Where its run is kept, if it is.
        again: The command that resumes it, if it can be resumed.
        needs_trust: Whether its env is imported from a module that the run names.
    """
    for text in result.refused_checkpoints:
        console.say(f"a checkpoint could not be used: {text}")
    examined = f" ({result.evaluation_steps:,} more in evaluations)"
    examined *= bool(result.evaluation_steps)
    how = "stopped" if result.was_stopped else "finished"
    if result.had_ended:
        how = f"nothing is left to do: {folder} has finished"
    console.say(
        f"\n{how} after {result.total_steps:,} steps"
        f"{examined}, {result.total_episodes:,} episodes, {result.total_gradient_steps:,} updates "
        f"in {duration(result.seconds)}"
    )
    if result.evaluation_results:
        latest = result.evaluation_results[-1]
        evaluation = evaluation_from_json(latest)
        console.say(f"\nheld out, at {latest['step']:,} steps ({WAYS_IN_WORDS[evaluation.way]}):")
        console.results().print(scoreboard(evaluation))
        if folder is not None and result.best_step not in (None, latest["step"]):
            best = command_line("eval", folder, checkpoint="best")
            console.say(f"the best evaluation was at {result.best_step:,} steps: {best}")
    if folder is None:
        console.say("\nnothing was kept")
    elif result.had_ended:
        console.say(f"\ncontinue it with a later end, such as:\n  {again}")
    elif again:
        console.say(f"\neverything is saved in {folder}; resume with:\n  {again}")
    else:
        commands = {
            command_line(verb, folder, trust=needs_trust and verb in WITH_TRUST): text
            for verb, text in NEXT
        }
        width = max(map(len, commands))
        console.say(f"\nkept in {folder}:")
        for command, text in commands.items():
            console.say(f"  {command:<{width}}  # {text}")
