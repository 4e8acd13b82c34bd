"""``stepladder report``: one HTML page with plots of one run, or of several."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from stepladder.cli.inputs.parsing import parse
from stepladder.cli.output import console
from stepladder.cli.output.seeds_end import print_seeds
from stepladder.configs.checks import PositiveInteger
from stepladder.configs.codec import Config
from stepladder.dashboard import write_report
from stepladder.errors import ConfigError
from stepladder.runs.seeds import holds_seeds, summarize, with_runs_of_seeds

REPORT_MARK = 'id="stepladder-data"'
"""Text that every report holds; other files are not replaced."""


@dataclass(frozen=True, kw_only=True)
class ReportArguments(Config):
    """Make one HTML page with plots of one run, or of several runs in the same plots.

    A folder of several seeds stands for the runs of all of them, whose table over seeds is printed
    too. Simulations and trainings have the same metrics and can be plotted together. Runs may
    still be active. The page needs no network.
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of runs, or of several seeds."""

    out: Path = Path("report.html")
    """HTML file to write; an older report is replaced."""

    metrics: tuple[str, ...] = ()
    """Metrics to plot: names, or patterns with * and ? such as 'overview/*'. By default all."""

    smooth: PositiveInteger = 1
    """Number of points in the moving average of every line; 1 plots the points themselves."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(ReportArguments, argv, "report")
    if not arguments.runs:
        raise ConfigError("there is no run to report on. Name the folder of one, or of several.")
    console.refuse_foreign(arguments.out, REPORT_MARK, "--out")
    metrics = arguments.metrics or None
    runs = with_runs_of_seeds(arguments.runs)
    out = write_report(runs, arguments.out, metrics=metrics, smooth=arguments.smooth)
    for folder in filter(holds_seeds, arguments.runs):
        summary = summarize(folder)
        console.say(f"{folder}: {len(summary.finished)} of {len(summary.seeds)} seeds finished")
        print_seeds(summary)
        console.say("")
    console.say(str(out))
    return 0
