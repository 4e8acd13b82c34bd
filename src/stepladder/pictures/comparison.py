"""The picture of a comparison: samples needed by each curriculum, as a multiple of the oracle.

Takes the rows that a comparison of curricula produced; gives a figure with a panel per scenario.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from stepladder.errors import ConfigError
from stepladder.pictures.figure import BLUE, FAINT, ORANGE, TEXT, Figure, in_style, shown

TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, kw_only=True)
class _Result:
    scenario: str
    curriculum: str
    ratio: float
    """Mean samples as a multiple of the oracle's; NaN if no seed finished."""
    low: float
    high: float
    finished: float
    """Share of seeds that mastered everything within the budget."""

    @property
    def is_uniform(self) -> bool:
        return self.curriculum.lower() == "uniform"

    @property
    def words(self) -> str:
        if not math.isfinite(self.ratio):
            return "not mastered"
        digits = 2 if self.ratio < 9.995 else 1 if self.ratio < 99.95 else 0
        return f"{'>' if self.finished < 1 else ''}{self.ratio:,.{digits}f}{TIMES}"


@in_style
def comparison_figure(
    rows: Sequence[Mapping[str, Any] | Any], *, title: str | None = None, columns: int = 3
) -> Figure:
    """Draw how many samples each curriculum needs, one panel per scenario.

    Args:
        rows: Mappings or objects with `scenario`, `curriculum`, `ratio_to_oracle`, `ratio_low`,
            `ratio_high` (ends of the 95 % interval) and `finished_share`. The first two are
            required; a missing or non-finite ratio means that no seed finished. Scenarios and
            curricula stand in the order in which they first appear.
        title: Heading above the panels.
        columns: Most panels side by side.

    Returns:
        A figure. A share of finished seeds below 1 is drawn hollow with a ``>``.

    Raises:
        ConfigError: There are no rows, a row has no scenario or curriculum, or two rows are about
            the same pair.
    """
    if columns < 1:
        raise ConfigError(f"columns must be at least 1; got {columns}.")
    table = _table([_result(row) for row in rows])
    scenarios = list(dict.fromkeys(scenario for scenario, _ in table))
    curricula = list(dict.fromkeys(curriculum for _, curriculum in table))
    columns = min(columns, len(scenarios))
    num_rows = -(-len(scenarios) // columns)
    heading = title or "Samples until every learnable task is mastered"
    figure = Figure(9.0, 0.9 + num_rows * (0.65 + 0.22 * len(curricula)), heading)
    panels = figure.panels(num_rows, columns, sharey=True)
    for axes in panels[len(scenarios) :]:
        axes.remove()
    limits = _limits(table.values())
    for scenario, axes in zip(scenarios, panels, strict=False):
        axes.set_title(shown(scenario, 30), pad=14)
        _draw_axes(axes, limits)
        for row, curriculum in enumerate(curricula):
            result = table.get((scenario, curriculum))
            if result is not None:
                _draw_result(axes, row, result)
        axes.set_yticks(range(len(curricula)), [shown(name, 26) for name in curricula])
        axes.set_ylim(len(curricula) - 0.4, -0.6)
    note = "Multiple of the oracle's samples (log axis): mean and 95 % interval over seeds."
    if any(result.finished < 1 for result in table.values()):
        note += "\nHollow, >: not every seed mastered all within the budget; the mean is higher."
    figure.supxlabel(note, x=0.01, ha="left", fontsize=8, color=FAINT)
    return figure


def _table(results: Sequence[_Result]) -> dict[tuple[str, str], _Result]:
    """Return the results by scenario and curriculum."""
    if not results:
        raise ConfigError("rows must hold at least one result of a comparison; got none.")
    table: dict[tuple[str, str], _Result] = {}
    for result in results:
        if table.setdefault((result.scenario, result.curriculum), result) is not result:
            raise ConfigError(
                f"rows must name each pair once; got scenario {result.scenario!r} with "
                f"curriculum {result.curriculum!r} twice."
            )
    return table


def _result(row: Mapping[str, Any] | Any) -> _Result:
    names = ("scenario", "curriculum", "finished_share")
    ends = ("ratio_to_oracle", "ratio_low", "ratio_high")
    found = {
        n: row.get(n) if isinstance(row, Mapping) else getattr(row, n, None) for n in names + ends
    }
    scenario, curriculum, finished = (found[name] for name in names)
    if scenario is None or curriculum is None:
        raise ConfigError(f"each row needs a scenario and a curriculum; got {row!r}.")
    # A logarithmic axis has no place for 0 and below.
    ratio, low, high = (v if v and 0 < v < math.inf else math.nan for v in map(found.get, ends))
    return _Result(
        scenario=str(scenario),
        curriculum=str(curriculum),
        ratio=ratio,
        low=low,
        high=high,
        finished=1.0 if finished is None else finished,
    )


def _limits(results: Any) -> tuple[float, float]:
    """Return the ends of the axis that all panels share; the oracle's line is always inside."""
    ends = [v for r in results for v in (r.ratio, r.low, r.high) if math.isfinite(v)]
    return min([1.0, *ends]) / 1.3, max([2.0, *ends]) * 1.3


def _draw_axes(axes: Axes, limits: tuple[float, float]) -> None:
    decades = math.log10(limits[1] / limits[0])
    factors = (1.0, 2.0, 5.0) if decades < 1.5 else (1.0, 3.0) if decades < 2.5 else (1.0,)
    axes.set_xscale("log")
    axes.set_xlim(*limits)
    axes.xaxis.set_major_locator(LogLocator(subs=factors, numticks=7))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}{TIMES}"))
    axes.grid(visible=False, axis="y")
    axes.tick_params(length=0)
    axes.axvline(1.0, color=TEXT, linewidth=1.0)
    place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    axes.annotate("oracle", (1.0, 1.0), (0, 3), ha="center", fontsize=8, color=FAINT, **place)


def _draw_result(axes: Axes, row: int, result: _Result) -> None:
    """Draw the interval, the dot and the number of one curriculum in one scenario."""
    colour = ORANGE if result.is_uniform else BLUE
    if math.isfinite(result.low) and math.isfinite(result.high):
        axes.plot(
            (result.low, result.high), (row, row), color=colour, marker="|", markersize=5, zorder=2
        )
    if math.isfinite(result.ratio):
        axes.plot(
            result.ratio,
            row,
            color=colour,
            marker="o",
            markersize=7.5 if result.is_uniform else 5.5,
            markerfacecolor="white" if result.finished < 1 else colour,
            zorder=3,
        )
        if result.is_uniform:
            axes.axvline(result.ratio, color=colour, linestyle=":", linewidth=1.2, zorder=1)
    axes.annotate(
        result.words,
        (1.0, row),
        (4, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color=colour,
        fontweight="bold" if result.is_uniform else "normal",
    )
