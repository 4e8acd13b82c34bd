"""Figures of the report: one metric over all runs, or one family of labels per run.

Takes `RunView`s and the plots that `grouping` chose; gives HTML with SVG inside, and the numbers
behind it for the page's script.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stepladder.dashboard import svg
from stepladder.dashboard.colours import Colour, label_colour, scale_gradient
from stepladder.dashboard.grouping import Plot
from stepladder.dashboard.page import compact, escape
from stepladder.dashboard.series import Slices, Steps, Values, cut, thin
from stepladder.dashboard.ticks import format_value, log_range, value_range
from stepladder.dashboard.view import RunView

MAX_LINES = 12
"""Most labels drawn as lines or areas; more become a heat map."""
MAX_ROWS = 200
"""Most rows of a heat map."""
_AREA_SLICES = 160
_HEAT_SLICES = 120
_NOTHING = '<p class="nothing">no finite value yet</p>'


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a plot."""

    name: str
    run: RunView
    colour: Colour
    dash: str = ""
    steps: Steps
    values: Values


@dataclass(frozen=True)
class Axes:
    """What the axes of a plot with lines cover."""

    last: int
    """End of the x axis, which begins at step 0."""

    linear: tuple[float, float]

    log: tuple[float, float] | None
    """Ends of the logarithmic y axis; None if there is nothing above 0."""

    @classmethod
    def over(cls, lines: Sequence[Line], last: int) -> "Axes | None":
        """Return axes on which all lines have room, or None if they hold no finite value."""
        linear = value_range(line.values for line in lines)
        return linear and cls(last, linear, log_range(line.values for line in lines))


@dataclass(kw_only=True)
class Album:
    """Collects the numbers behind the plots while the figures are made."""

    longest: int
    """Last step of the longest run: the end of the x axis that runs share."""

    data: dict[str, Any] = field(default_factory=dict)

    def add(self, numbers: dict[str, Any]) -> str:
        """Keep the numbers of one plot and return their key."""
        key = f"p{len(self.data)}"
        self.data[key] = numbers
        return key


def figure(plot: Plot, runs: Sequence[RunView], album: Album) -> str:
    """Return the figure of one plot; empty if no run has anything to show in it."""
    having = [run for run in runs if not run.metrics.isdisjoint(plot.metrics)]
    if plot.is_family:
        return _family(plot, having, album)
    lines: list[Line] = []
    for run in having:
        steps, values = thin(*run.series(plot.metrics[0]))
        lines.append(
            Line(
                name=run.name,
                run=run,
                colour=run.colour,
                dash=run.dash,
                steps=steps,
                values=values,
            )
        )
    axes = Axes.over(lines, album.longest)
    if axes is None:
        return _figure(plot, _NOTHING)
    return _figure(plot, _lines(plot.title, lines, axes, runs, album))


def _figure(plot: Plot, content: str, *, kind: str = "", note: str = "") -> str:
    full = plot.metrics[0] if not plot.is_family else f"{plot.section}/{plot.title}/..."
    note = f' <span class="note">{escape(note)}</span>' if note else ""
    return (
        f'<figure class="{kind}"><figcaption title="{escape(full)}">{escape(plot.title)}{note}'
        f"</figcaption>{content}</figure>"
    )


def _lines(
    title: str, lines: Sequence[Line], axes: Axes, marked: Sequence[RunView], album: Album
) -> str:
    """Return one SVG element with lines, and with the events of the marked runs."""
    written = svg.y_ticks(axes.linear)[1] + (svg.y_ticks(axes.log, log=True)[1] if axes.log else [])
    frame = svg.Frame(left=max(40, 12 + round(svg.LETTER_WIDTH * max(map(len, written)))))
    xs, ys = svg.x_scale(frame, axes.last), svg.y_scale(frame, axes.linear)
    parts = [svg.x_axes(frame, axes.last), svg.y_axis(frame, axes.linear)]
    if axes.log:
        parts.append(svg.y_axis(frame, axes.log, log=True))
    parts.append(_markers(frame, axes.last, marked))
    for place, line in enumerate(lines):
        path = svg.line_path(xs(line.steps.astype(np.float64)), ys(line.values))
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        parts.append(
            f'<path class="line" data-run="{line.run.index}" data-line="{place}" '
            f'style="{line.colour.style}"{dash} d="{path}"/>'
        )
    key = album.add(
        {
            "kind": "lines",
            "box": frame.box,
            "last": axes.last or 1,
            "y": list(axes.linear),
            "log": list(axes.log) if axes.log else None,
            "lines": [_numbers(line) for line in lines],
        }
    )
    kind = "has-log" if axes.log else ""
    return svg.element(frame, "".join(parts), name=title, kind=kind, plot=key)


def _numbers(line: Line) -> dict[str, Any]:
    return {
        "name": line.name,
        "run": line.run.index,
        "style": line.colour.style,
        "x": line.steps.tolist(),
        "y": [compact(v) for v in line.values.tolist()],
    }


def _markers(frame: svg.Frame, last: int, runs: Sequence[RunView]) -> str:
    scale = svg.x_scale(frame, last)
    parts: list[str] = []
    for run in runs:
        for place, marker in enumerate(run.markers):
            x = svg.number(scale.one(marker.step))
            parts.append(
                f'<line class="event" data-run="{run.index}" data-event="{place}" x1="{x}" '
                f'x2="{x}" y1="{frame.top}" y2="{frame.top + frame.inner_height}" '
                f'style="{run.colour.style}"/>'
            )
    return "".join(parts)


def _family(plot: Plot, runs: Sequence[RunView], album: Album) -> str:
    """Return a family as one panel per run, all with the same scale and key."""
    note = "share" if plot.is_divided else ""
    if len(plot.labels) > MAX_LINES:
        panels, key, left_out = _heat_panels(plot, runs, album)
        if left_out:
            note = f"{note}{', ' if note else ''}{left_out} more labels not shown"
    elif plot.is_divided:
        panels, key = _area_panels(plot, runs, album), _label_key(plot.labels)
    else:
        panels, key = _line_panels(plot, runs, album), _label_key(plot.labels)
    if not panels:
        return _figure(plot, _NOTHING)
    several = len(panels) > 1
    shown = "".join(
        f'<div class="panel" data-run="{run.index}">'
        + (f'<p class="run" style="{run.colour.style}">{escape(run.name)}</p>' if several else "")
        + f"{panel}</div>"
        for run, panel in panels
    )
    kind = ("family", "family two", "family many")[min(len(panels), 3) - 1]
    return _figure(plot, f'<div class="panels">{shown}</div>{key}', kind=kind, note=note)


def _label_key(labels: Sequence[str]) -> str:
    entries = "".join(
        f'<li><i style="{label_colour(rank, len(labels)).style}"></i>'
        f'<span title="{escape(label)}">{escape(svg.shortened(label, 28))}</span></li>'
        for rank, label in enumerate(labels)
    )
    return f'<ul class="key">{entries}</ul>'


def _line_panels(plot: Plot, runs: Sequence[RunView], album: Album) -> list[tuple[RunView, str]]:
    drawn: list[tuple[RunView, list[Line]]] = []
    for run in runs:
        lines: list[Line] = []
        for rank, (label, metric) in enumerate(zip(plot.labels, plot.metrics, strict=True)):
            if metric in run.metrics:
                steps, values = thin(*run.series(metric))
                colour = label_colour(rank, len(plot.labels))
                lines.append(Line(name=label, run=run, colour=colour, steps=steps, values=values))
        drawn.append((run, lines))
    everything = [line for _, lines in drawn for line in lines]
    panels: list[tuple[RunView, str]] = []
    for run, lines in drawn:
        # The y axis covers all runs, so that panels can be compared; the x axis is the run's own.
        axes = Axes.over(everything, run.last_step)
        if axes is not None:
            name = f"{plot.title}: {run.name}"
            panels.append((run, _lines(name, lines, axes, [run], album)))
    return panels


def _slices(plot: Plot, run: RunView, labels: int, limit: int) -> Slices | None:
    """Cut the first `labels` members of a family; None if the run has no point of any."""
    nothing = (np.zeros(0, np.int64), np.zeros(0))
    series = [run.series(m) if m in run.metrics else nothing for m in plot.metrics[:labels]]
    return cut(series, limit) if any(steps.size for steps, _ in series) else None


def _area_panels(plot: Plot, runs: Sequence[RunView], album: Album) -> list[tuple[RunView, str]]:
    panels: list[tuple[RunView, str]] = []
    for run in runs:
        slices = _slices(plot, run, len(plot.labels), _AREA_SLICES)
        if slices is not None:
            panels.append((run, _areas(plot, run, slices, album)))
    return panels


def _areas(plot: Plot, run: RunView, slices: Slices, album: Album) -> str:
    """Return one SVG element with the shares of all labels stacked, the first label on top."""
    frame = svg.Frame(left=40)
    scale, ys = svg.x_scale(frame, run.last_step), svg.y_scale(frame, (0.0, 1.0))
    shares, centres = slices.shares(), slices.centres.copy()
    # The outermost slices reach to their ends, so that the picture is as wide as the run.
    centres[0], centres[-1] = slices.first, slices.last
    xs = scale(centres)
    if xs.size == 1:
        xs, shares = np.array([xs[0] - 4, xs[0] + 4]), np.repeat(shares, 2, axis=1)
    tops = 1.0 - np.vstack([np.zeros(shares.shape[1]), np.cumsum(shares, axis=0)])
    parts = [svg.x_axes(frame, run.last_step), svg.y_axis(frame, (0.0, 1.0))]
    for rank in range(len(plot.labels)):
        path = svg.area_path(xs, ys(tops[rank + 1]), ys(tops[rank]))
        style = label_colour(rank, len(plot.labels)).style
        parts.append(f'<path class="area" style="{style}" d="{path}"/>')
    parts.append(_markers(frame, run.last_step, [run]))
    lines = [
        {
            "name": label,
            "run": run.index,
            "style": label_colour(rank, len(plot.labels)).style,
            "x": [compact(x) for x in slices.centres.tolist()],
            "y": [compact(v) for v in slices.shares()[rank].tolist()],
        }
        for rank, label in enumerate(plot.labels)
    ]
    numbers = {"kind": "areas", "box": frame.box, "last": run.last_step or 1, "lines": lines}
    name = f"{plot.title}: {run.name}"
    return svg.element(frame, "".join(parts), name=name, kind="areas", plot=album.add(numbers))


def _heat_panels(
    plot: Plot, runs: Sequence[RunView], album: Album
) -> tuple[list[tuple[RunView, str]], str, int]:
    """Return heat maps with one colour scale, their key, and how many labels have no row."""
    rows = min(len(plot.labels), MAX_ROWS)
    grids: list[tuple[RunView, Slices, Values]] = []
    for run in runs:
        slices = _slices(plot, run, rows, _HEAT_SLICES)
        if slices is not None:
            grids.append((run, slices, slices.shares() if plot.is_divided else slices.held()))
    finite = [g[np.isfinite(g)] for _, _, g in grids]
    finite = [g for g in finite if g.size]
    if not finite:
        return [], "", 0
    ends = float(min(g.min() for g in finite)), float(max(g.max() for g in finite))
    if 0 <= ends[0] <= 0.3 * ends[1]:
        ends = 0.0, ends[1]
    panels = [(run, _heat(plot, run, slices, grid, ends, album)) for run, slices, grid in grids]
    key = (
        f'<p class="scale"><span>{format_value(ends[0])}</span>'
        f'<i style="background:{scale_gradient()}"></i><span>{format_value(ends[1])}</span></p>'
    )
    return panels, key, len(plot.labels) - rows


def _heat(
    plot: Plot, run: RunView, slices: Slices, grid: Values, ends: tuple[float, float], album: Album
) -> str:
    labels = plot.labels[: grid.shape[0]]
    letters = min(max(map(len, labels)), 18)
    height = 42 + min(max(190, 8 * len(labels)), 520)
    frame = svg.Frame(left=12 + round(svg.LETTER_WIDTH * letters), height=height)
    scale = svg.x_scale(frame, run.last_step)
    start, end = scale.one(slices.first), scale.one(slices.last)
    if end - start < 1:
        start, end = max(start - 4, frame.left), max(start - 4, frame.left) + 8
    area = (start, frame.top, end - start, frame.inner_height)
    content = (
        svg.heat_image(grid, ends, area)
        + svg.x_axes(frame, run.last_step)
        + svg.label_axis(frame, labels)
        + _markers(frame, run.last_step, [run])
    )
    numbers = {
        "kind": "heat",
        "box": frame.box,
        "last": run.last_step or 1,
        "first": slices.first,
        "end": slices.last,
        "rows": list(labels),
        "run": run.index,
        "grid": [[compact(v) for v in row] for row in grid.tolist()],
    }
    name = f"{plot.title}: {run.name}"
    return svg.element(frame, content, name=name, kind="heatmap", plot=album.add(numbers))
