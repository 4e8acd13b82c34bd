"""Figures of the report: one metric over all runs, or one family of labels per run.

Takes `RunView`s and the plots that `grouping` chose; gives HTML with an empty element per panel,
and the numbers that `charts.js` draws into it with uPlot.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stepladder.dashboard.grouping import Plot
from stepladder.dashboard.page import compact, escape
from stepladder.dashboard.series import Slices, Values, cut, thin
from stepladder.dashboard.view import RunView

MAX_LINES = 12
"""Most labels drawn as lines or areas; more become a heat map."""
MAX_ROWS = 200
"""Most rows of a heat map."""
_AREA_SLICES = 160
_HEAT_SLICES = 120
_NOTHING = '<p class="nothing">no finite value yet</p>'


@dataclass(kw_only=True)
class Album:
    """Collects the numbers behind the charts while the figures are made."""

    longest: int
    """Last step of the longest run: the end of the x axis that runs share."""

    data: dict[str, Any] = field(default_factory=dict)
    """By the key of a panel: ``kind`` (lines, areas or heat), ``figure`` (its number), ``last``
    (end of the x axis in steps), ``runs`` (whose events are marked) and what the kind needs."""

    num_figures: int = 0

    def figure(self, plot: Plot, runs: Sequence[RunView]) -> str:
        """Return the figure of one plot as HTML."""
        self.num_figures += 1
        having = [run for run in runs if not run.metrics.isdisjoint(plot.metrics)]
        if not plot.is_family:
            lines = [_line(run.name, run, plot.metrics[0]) for run in having]
            if not _is_known(lines):
                return _figure(plot, [])
            axis = {"last": self.longest or 1, "runs": [run.index for run in runs]}
            chart = self._chart(plot.title, {"kind": "lines", **axis, "lines": lines})
            return _figure(plot, [(chart, None)])
        note = "share" if plot.is_divided else ""
        if len(plot.labels) > MAX_LINES:
            panels = _heat_panels(plot, having)
            left_out = len(plot.labels) - MAX_ROWS
            if left_out > 0:
                note = f"{note}{', ' if note else ''}{left_out} more labels not shown"
        else:
            panels = _area_panels(plot, having) if plot.is_divided else _line_panels(plot, having)
        drawn: list[tuple[str, RunView | None]] = []
        for run, panel in panels:
            axis = {"last": run.last_step or 1, "runs": [run.index]}
            drawn.append((self._chart(f"{plot.title}: {run.name}", {**axis, **panel}), run))
        return _figure(plot, drawn, note)

    def _chart(self, name: str, panel: dict[str, Any]) -> str:
        """Keep the numbers of one panel and return the element that it is drawn into."""
        key = f"p{len(self.data)}"
        self.data[key] = {"figure": self.num_figures, **panel}
        return f'<div class="chart" data-plot="{key}" role="img" aria-label="{escape(name)}"></div>'


def _figure(plot: Plot, drawn: Sequence[tuple[str, RunView | None]], note: str = "") -> str:
    full = f"{plot.section}/{plot.title}/..." if plot.is_family else plot.metrics[0]
    note = f' <span class="note">{escape(note)}</span>' if note else ""
    shown = _NOTHING
    if drawn:
        several = len(drawn) > 1
        panels = "".join(
            f'<div class="panel" data-run="{run.index}">'
            f"{f'<p>{escape(run.name)}</p>' if several else ''}{chart}</div>"
            if run
            else f'<div class="panel">{chart}</div>'
            for chart, run in drawn
        )
        shown = f'<div class="panels">{panels}</div>'
    kind = ("", "", "two", "many")[min(len(drawn), 3)]
    return (
        f'<figure class="{kind}"><figcaption title="{escape(full)}">{escape(plot.title)}{note}'
        f"</figcaption>{shown}</figure>"
    )


def _line(name: str, run: RunView, metric: str, **others: int) -> dict[str, Any]:
    steps, values = thin(*run.series(metric))
    return {
        "name": name,
        "run": run.index,
        **others,
        "x": steps.tolist(),
        "y": [compact(value) for value in values.tolist()],
    }


def _is_known(lines: Sequence[dict[str, Any]]) -> bool:
    return any(value is not None for line in lines for value in line["y"])


def _line_panels(plot: Plot, runs: Sequence[RunView]) -> list[tuple[RunView, dict[str, Any]]]:
    count = len(plot.labels)
    panels: list[tuple[RunView, dict[str, Any]]] = []
    for run in runs:
        lines = [
            _line(label, run, metric, rank=rank, of=count)
            for rank, (label, metric) in enumerate(zip(plot.labels, plot.metrics, strict=True))
            if metric in run.metrics
        ]
        panels.append((run, {"kind": "lines", "lines": lines}))
    return panels if any(_is_known(panel["lines"]) for _, panel in panels) else []


def _slices(
    plot: Plot, runs: Sequence[RunView], num_labels: int, limit: int
) -> Iterator[tuple[RunView, Slices]]:
    """Cut the first labels of a family, in every run that has a point of any of them."""
    nothing = (np.zeros(0, np.int64), np.zeros(0))
    for run in runs:
        metrics = plot.metrics[:num_labels]
        series = [run.series(metric) if metric in run.metrics else nothing for metric in metrics]
        if any(steps.size for steps, _ in series):
            yield run, cut(series, limit)


def _ends(slices: Slices, run: RunView) -> tuple[float, float]:
    """Return the first and the last step; a single one gets a width that can be seen."""
    if slices.first < slices.last:
        return slices.first, slices.last
    return max(0.0, slices.first - 0.01 * run.last_step), slices.first + 0.01 * (run.last_step or 1)


def _area_panels(plot: Plot, runs: Sequence[RunView]) -> list[tuple[RunView, dict[str, Any]]]:
    count = len(plot.labels)
    panels: list[tuple[RunView, dict[str, Any]]] = []
    for run, slices in _slices(plot, runs, count, _AREA_SLICES):
        shares, steps = slices.shares(), slices.centres.copy()
        if steps.size == 1:
            shares, steps = np.repeat(shares, 2, axis=1), np.zeros(2)
        # The outermost slices reach to their ends, so that the picture is as wide as the run.
        steps[0], steps[-1] = _ends(slices, run)
        rows = _rows(shares)
        lines = [
            {"name": label, "run": run.index, "rank": rank, "of": count, "y": rows[rank]}
            for rank, label in enumerate(plot.labels)
        ]
        x = [compact(step) for step in steps.tolist()]
        panels.append((run, {"kind": "areas", "x": x, "lines": lines}))
    return panels


def _heat_panels(plot: Plot, runs: Sequence[RunView]) -> list[tuple[RunView, dict[str, Any]]]:
    """Return heat maps with one colour scale."""
    grids: list[tuple[RunView, Slices, Values]] = []
    for run, slices in _slices(plot, runs, min(len(plot.labels), MAX_ROWS), _HEAT_SLICES):
        grids.append((run, slices, slices.shares() if plot.is_divided else slices.held()))
    finite = np.concatenate([grid[np.isfinite(grid)] for _, _, grid in grids] or [np.zeros(0)])
    if not finite.size:
        return []
    low, high = float(finite.min()), float(finite.max())
    if 0 <= low <= 0.3 * high:
        low = 0.0
    panels: list[tuple[RunView, dict[str, Any]]] = []
    for run, slices, grid in grids:
        first, end = _ends(slices, run)
        rows = list(plot.labels[: grid.shape[0]])
        cells = {"rows": rows, "grid": _rows(grid), "ends": [compact(low), compact(high)]}
        panels.append((run, {"kind": "heat", "first": first, "end": end, **cells}))
    return panels


def _rows(values: Values) -> list[list[float | None]]:
    return [[compact(value) for value in row] for row in values.tolist()]
