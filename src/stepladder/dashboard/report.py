"""One HTML file that shows one run, or several laid over each other.

Reads runs through `runs.RunReader` alone, so a simulated run and a real one look alike. The file
needs no network and can be mailed, printed or kept beside the run.
"""

from collections.abc import Sequence
from pathlib import Path

from stepladder.dashboard.charts import Album
from stepladder.dashboard.grouping import Section, group_metrics, select_metrics
from stepladder.dashboard.held_out import held_out_table
from stepladder.dashboard.page import escape, page
from stepladder.dashboard.tables import (
    events_table,
    last_values_table,
    runs_table,
    settings_table,
    swatch,
    tasks_table,
)
from stepladder.dashboard.view import MAX_MARKERS, RunView, open_runs
from stepladder.errors import ConfigError
from stepladder.files import replacing

_UNLIKE = 8


def write_report(
    run_folders: Sequence[Path | str],
    out: Path | str,
    *,
    metrics: Sequence[str] | None = None,
    smooth: int = 1,
) -> Path:
    """Write a report of one or several runs as a single HTML file.

    Args:
        run_folders: The runs. They may still be running.
        out: The file to write. An existing one is replaced in one go, so that a reader sees the
            old report or the new one and nothing between.
        metrics: Which metrics to plot: names, or patterns with ``*`` and ``?``. None plots all.
        smooth: Number of logged points in the moving average of every line; 1 shows what was
            logged.

    Returns:
        The path of the file.

    Raises:
        ConfigError: There is no run, `smooth` is below 1, `out` is a folder, or a pattern matches
            no metric.
    """
    out = Path(out)
    if isinstance(run_folders, (str, Path)) or not run_folders:
        raise ConfigError(f"run_folders must be a list of run folders; got {run_folders!r}.")
    if smooth < 1:
        raise ConfigError(f"smooth must be at least 1 (no smoothing); got {smooth}.")
    if out.is_dir():
        raise ConfigError(f"out must be a file, but {str(out)!r} is a folder; add a file name.")
    text = render(open_runs(run_folders, smooth), metrics)
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as file:
        file.write(text.encode())
    return out


def render(runs: Sequence[RunView], metrics: Sequence[str] | None = None) -> str:
    """Return the report as HTML text."""
    names = select_metrics((n for run in runs for n in run.metrics), metrics)
    sections = group_metrics(names)
    album = Album(longest=max(run.last_step for run in runs))
    plots = "".join(_section(section, runs, album) for section in sections)
    if not plots:
        plots = '<p class="nothing">No metrics yet: nothing has been logged in any run.</p>'
    title = ", ".join(run.name for run in runs) if len(runs) <= 3 else f"{len(runs)} runs"
    body = (
        f"<header><h1>{escape(title)}</h1>{runs_table(runs)}{settings_table(runs)}</header>\n"
        f"{_controls(runs)}\n<main>\n"
        f"{_titled('Held out', ''.join(held_out_table(run) for run in runs))}\n"
        f"{_titled('Last values', last_values_table(runs))}\n"
        f'<div class="plots">\n{plots}</div>\n'
        f"{_titled('Events', _events(runs))}\n"
        f"{_titled('Tasks', ''.join(tasks_table(run) for run in runs))}\n</main>"
    )
    data = {
        "x": _first_axis(runs),
        "runs": [
            {
                "name": run.name,
                "last": run.last_step or 1,
                "events": [[m.step, m.kind, m.text] for m in run.markers],
            }
            for run in runs
        ],
        "plots": album.data,
    }
    return page(f"{title} - Stepladder", body, data)


def _first_axis(runs: Sequence[RunView]) -> str:
    """Return the x axis to begin with: beside a far longer run, steps would hide a short one."""
    lengths = [run.last_step for run in runs if run.last_step]
    unlike = bool(lengths) and max(lengths) > _UNLIKE * min(lengths)
    return "fraction" if unlike else "steps"


def _section(section: Section, runs: Sequence[RunView], album: Album) -> str:
    figures = "\n".join(album.figure(plot, runs) for plot in section.plots)
    return (
        f'<section><h2>{escape(section.name)}</h2>\n<div class="figures">\n{figures}\n'
        f"</div></section>\n"
    )


def _controls(runs: Sequence[RunView]) -> str:
    """Return the bar with the runs and the switches; it stays in view."""
    legend = "".join(
        f'<button type="button" class="run" data-toggle="{run.index}" aria-pressed="true">'
        f"{swatch(run)}{escape(run.name)}</button>"
        for run in runs
    )
    smooth = f'<span class="note">moving average of {runs[0].smooth} points</span>'
    return (
        f'<nav><div class="legend">{legend}</div><div class="switches">'
        f"{_switch('x', (('steps', 'agent steps'), ('fraction', 'fraction of the run')))}"
        f"{_switch('y', (('linear', 'linear'), ('log', 'log')))}"
        f'<button type="button" data-events aria-pressed="true">events</button>'
        f"{smooth if runs[0].smooth > 1 else ''}</div></nav>"
    )


def _switch(axis: str, choices: Sequence[tuple[str, str]]) -> str:
    buttons = "".join(
        f'<button type="button" data-axis="{axis}" data-choice="{choice}" '
        f'aria-pressed="false">{text}</button>'
        for choice, text in choices
    )
    return f'<span class="switch"><span class="note">{axis}</span>{buttons}</span>'


def _events(runs: Sequence[RunView]) -> str:
    tables = "".join(events_table(run) for run in runs)
    if any(len(run.markers) < len(run.events) for run in runs):
        tables += (
            f'<p class="note">Kinds with more than {MAX_MARKERS} events in a run '
            f"are listed here but not marked in the plots.</p>"
        )
    return tables


def _titled(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>" if content else ""
