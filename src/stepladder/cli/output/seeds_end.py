"""What ``stepladder train --seeds`` says at the end: a table over seeds, and what can be done next.

`report` shows the same table for a folder of seeds.
"""

import math
from typing import TYPE_CHECKING

from rich.table import Table

from stepladder.cli.inputs.parsing import command_line
from stepladder.cli.output import console
from stepladder.runs.evaluation_events import WAYS
from stepladder.runs.seeds import OverSeeds, SeedsSummary
from stepladder.runs.seeds.summary import STEPS_PER_SECOND
from stepladder.training.evaluation.scores import WAYS_IN_WORDS

if TYPE_CHECKING:
    from stepladder.training.seeds import SeedsResult

MOST_SHOWN = 5
"""Seeds that have a column of their own; with more, the lowest and the highest value are shown."""

NOTE = "mean over seeds with Student's interval of 95 %; none where all are alike"


def tell_seeds_end(result: "SeedsResult", again: str) -> None:
    """Print the table, what failed, and the commands that use or continue the runs.

    Args:
        result: Of all seeds.
        again: The command that continues those that have not finished, or all of them.
    """
    seeds = result.summary.seeds
    how = "stopped" if result.was_stopped else "finished"
    if result.had_ended:
        how = "nothing is left to do"
    console.say(f"\n{how}: {len(result.summary.finished)} of {len(seeds)} seeds have finished")
    print_seeds(result.summary)
    for seed, reason in result.failures.items():
        console.say(f"seed {seed} failed: {reason}")
    if result.had_ended:
        console.say(f"\ncontinue them with a later end, such as:\n  {again}")
    elif again:
        console.say(f"\neverything is saved in {result.folder}; continue what is left with:")
        console.say(f"  {again}")
    else:
        first = result.summary.seeds[0].folder.name
        console.say(f"\nkept in {result.folder}, a run for each seed:")
        console.say(f"  {command_line('report', result.folder)}  # plots and this table")
        console.say(f"  {command_line('eval', result.folder / first)}  # test one of them")


def print_seeds(summary: SeedsSummary) -> None:
    """Print what the seeds came to; nothing as long as none has finished."""
    if not summary.rows:
        return
    first = summary.finished[0]
    steps = sorted({one.step for one in summary.finished})
    at = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
    way = WAYS_IN_WORDS.get(first.way, "")  # pyright: ignore[reportArgumentType, reportCallIssue]
    console.say(f"\n{first.measures}, at {at} steps ({way}):")
    console.results().print(_table(summary))
    console.say(NOTE)


def _table(summary: SeedsSummary) -> Table:
    seeds = [one.seed for one in summary.finished]
    is_short = len(seeds) > MOST_SHOWN
    has_random = any(row.at_random is not None for row in summary.rows)
    shown = ["lowest", "highest"] if is_short else [f"seed {seed}" for seed in seeds]
    heads = ["mean", "95 % interval", *([WAYS[0]] if has_random else []), *shown]
    table = console.plain_table("", numbers=heads)
    for row in summary.rows:
        interval = "" if row.low is None else f"{_text(row, row.low)} to {_text(row, row.high)}"
        random = [_text(row, row.at_random)] if has_random else []
        values = list(row.values.values())
        each = [min(values), max(values)] if is_short else [row.values.get(s) for s in seeds]
        cells = [_text(row, value) for value in each]
        table.add_row(row.name, _text(row, row.mean), interval, *random, *cells)
    return table


def _text(row: OverSeeds, value: float | None) -> str:
    if value is None:
        return ""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if row.name == STEPS_PER_SECOND else f"{value:.2f}"
