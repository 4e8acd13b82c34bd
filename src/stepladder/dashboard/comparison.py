"""The picture of a comparison: samples needed by each curriculum, as a multiple of the oracle.

Takes the rows that a comparison of curricula produced; gives one standalone SVG file with a white
ground, fit for a README. Written without a chart library: uPlot needs a browser, and one picture
of dots is not worth a plotting package.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from stepladder.dashboard.page import escape, shortened
from stepladder.dashboard.svg import (
    BLUE,
    FAINT,
    GRID,
    ORANGE,
    TEXT,
    document,
    label,
    upright,
    whiskers,
)
from stepladder.errors import ConfigError

_DOT, _UNIFORM = BLUE, ORANGE
_WIDTH, _ROW, _HEAD, _FOOT, _GAP, _VALUE = 900, 22, 38, 26, 18, 46


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


@dataclass(frozen=True, kw_only=True)
class _Sheet:
    """Where things stand in the picture."""

    curricula: list[str]
    scenarios: list[str]
    columns: int
    gutter: float
    """Width kept for the names of curricula."""
    ends: tuple[float, float]
    """Ends of the logarithmic axis, the same in every panel."""

    @property
    def panel_width(self) -> float:
        return (_WIDTH - self.gutter - 12 - _GAP * (self.columns - 1)) / self.columns

    @property
    def panel_height(self) -> float:
        return _HEAD + _ROW * len(self.curricula) + _FOOT

    def corner(self, place: int) -> tuple[float, float]:
        """Return the upper left corner of a panel."""
        row, column = divmod(place, self.columns)
        return self.gutter + column * (self.panel_width + _GAP), 34 + row * (self.panel_height + 10)

    def x(self, left: float, value: float) -> float:
        """Return where a value stands in a panel; the right margin is kept for the number."""
        low, high = map(math.log, self.ends)
        width = self.panel_width - _VALUE - 8
        return left + 8 + width * (math.log(value) - low) / (high - low)

    def ticks(self) -> list[float]:
        """Return round numbers for the axis, without those whose texts would touch."""
        first, last = (math.floor(math.log10(end)) for end in self.ends)
        powers = [10.0**power for power in range(first, last + 1)]
        kept: list[float] = []
        # Powers of ten first: they are kept when there is no room for all.
        for tick in [*powers, *(factor * power for factor in (2, 5) for power in powers)]:
            far = all(abs(self.x(0, tick) - self.x(0, other)) >= 30 for other in kept)
            if self.ends[0] <= tick <= self.ends[1] and far:
                kept.append(tick)
        return sorted(kept)


def comparison_svg(
    rows: Sequence[Mapping[str, Any] | Any], *, title: str | None = None, columns: int = 3
) -> str:
    """Draw how many samples each curriculum needs, one panel per scenario.

    Args:
        rows: Mappings or objects with `scenario`, `curriculum`, `ratio_to_oracle`, `ratio_low`,
            `ratio_high` (ends of the 95 % interval) and `finished_share`. The first two are
            required; a missing or non-finite ratio means that no seed finished. Scenarios and
            curricula stand in the order in which they first appear.
        title: Heading above the panels.
        columns: Most panels side by side.

    Returns:
        An SVG document. A share of finished seeds below 1 is drawn hollow with a ``>``.

    Raises:
        ConfigError: There are no rows, a row has no scenario or curriculum, or two rows are about
            the same pair.
    """
    results = [_result(row) for row in rows]
    if not results:
        raise ConfigError("rows must hold at least one result of a comparison; got none.")
    if columns < 1:
        raise ConfigError(f"columns must be at least 1; got {columns}.")
    table: dict[tuple[str, str], _Result] = {}
    for result in results:
        if table.setdefault((result.scenario, result.curriculum), result) is not result:
            raise ConfigError(
                f"rows must name each pair once; got scenario {result.scenario!r} with "
                f"curriculum {result.curriculum!r} twice."
            )
    curricula = list(dict.fromkeys(r.curriculum for r in results))
    scenarios = list(dict.fromkeys(r.scenario for r in results))
    shown = [v for r in results for v in (r.ratio, r.low, r.high) if math.isfinite(v)]
    sheet = _Sheet(
        curricula=curricula,
        scenarios=scenarios,
        columns=min(columns, len(scenarios)),
        gutter=28 + 6.8 * min(max(map(len, curricula)), 26),
        # The oracle's line is always inside; two fifths of a doubling keep dots off the edge.
        ends=(min([1.0, *shown]) / 1.3, max([2.0, *shown]) * 1.3),
    )
    height = 34 + -(-len(scenarios) // sheet.columns) * (sheet.panel_height + 10) + 34
    heading = title or "Samples until every learnable task is mastered"
    note = "Multiple of the oracle's samples (log axis): mean and 95 % interval over seeds."
    if any(r.finished < 1 for r in results):
        note += " Hollow, >: not every seed mastered all within the budget; the mean is higher."
    return document(
        _WIDTH,
        height,
        heading,
        *(_panel(sheet, place, table) for place in range(len(scenarios))),
        label(12, height - 12, note, colour=FAINT, size=11),
    )


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


def _panel(sheet: _Sheet, place: int, table: Mapping[tuple[str, str], _Result]) -> str:
    left, top = sheet.corner(place)
    scenario = sheet.scenarios[place]
    x = partial(sheet.x, left)
    upper, lower = top + _HEAD, top + _HEAD + _ROW * len(sheet.curricula)
    parts = ['<g class="panel">', label(left + 8, top + 16, shortened(scenario, 30), weight="600")]
    for tick in sheet.ticks():
        text = f"{tick:,.10g}\N{MULTIPLICATION SIGN}"
        parts.append(upright(x(tick), upper, lower, GRID))
        parts.append(label(x(tick), lower + 14, text, "middle", colour=FAINT, size=11))
    parts.append(upright(x(1.0), upper, lower, TEXT))
    parts.append(label(x(1.0), upper - 4, "oracle", "middle", colour=FAINT))
    mine = [table.get((scenario, c)) for c in sheet.curricula]
    for uniform in (r for r in mine if r and r.is_uniform and math.isfinite(r.ratio)):
        parts.append(upright(x(uniform.ratio), upper, lower, _UNIFORM, dash="2 3"))
    for rank, (curriculum, result) in enumerate(zip(sheet.curricula, mine, strict=True)):
        y = upper + (rank + 0.5) * _ROW
        if place % sheet.columns == 0:
            weight = "600" if curriculum.lower() == "uniform" else "400"
            name = shortened(curriculum, 26)
            parts.append(label(sheet.gutter - 4, y + 4, name, "end", weight=weight))
        if result:
            parts.append(_dot(result, x, y, left + sheet.panel_width))
    return "".join(parts) + "</g>"


def _dot(result: _Result, place: Callable[[float], float], y: float, right: float) -> str:
    """Return the interval, the dot and the number of one curriculum in one scenario."""
    colour = _UNIFORM if result.is_uniform else _DOT
    size = 5.5 if result.is_uniform else 4.0
    unfinished = result.finished < 1
    parts: list[str] = []
    if math.isfinite(result.low) and math.isfinite(result.high):
        parts.append(whiskers(place(result.low), place(result.high), y, colour))
    text = "not mastered"
    if math.isfinite(result.ratio):
        x = place(result.ratio)
        text = f"{'>' if unfinished else ''}{_three_digits(result.ratio)}\N{MULTIPLICATION SIGN}"
        fill = "#ffffff" if unfinished else colour
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{fill}" '
            f'stroke="{colour}" stroke-width="1.8"/>'
        )
    weight = "600" if result.is_uniform else "400"
    parts.append(label(right, y + 4, text, "end", colour=colour, weight=weight))
    meaning = f"{result.curriculum}: {text} the oracle; {result.finished:.0%} of seeds mastered all"
    return f'<g class="result"><title>{escape(meaning)}</title>{"".join(parts)}</g>'


def _three_digits(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:.1f}" if ratio < 99.95 else f"{ratio:,.0f}"
