"""The picture of a race: env steps per second of each library, as a multiple of a plain loop.

Takes the rows of a benchmark of vector envs; gives one standalone SVG file, fit for a README in
light and in dark mode.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepladder.dashboard.colours import Colour, run_colour
from stepladder.dashboard.page import escape
from stepladder.dashboard.svg import Scale, line_path, number, shortened
from stepladder.dashboard.ticks import format_ticks, nice_ticks
from stepladder.errors import ConfigError

TIMES = "\N{MULTIPLICATION SIGN}"
_WIDTH, _GUTTER, _TOP, _HEAD, _PLOT, _FOOT, _LEGEND_ROW = 900, 42, 38, 26, 190, 34, 21
_FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif"

# Of the page, with the shades of a dark one.
_GROUND, _TEXT = Colour("#ffffff", "#0d1117"), Colour("#1d2129", "#e6edf3")
_FAINT, _GRID = Colour("#667080", "#9aa4b2"), Colour("#e4e8ed", "#2a313c")


@dataclass(frozen=True, kw_only=True)
class _Rate:
    world: str
    library: str
    num_envs: int
    steps_per_s: float
    """NaN if there is none."""
    speedup: float
    """As a multiple of the reference with as many envs."""


@dataclass(frozen=True, kw_only=True)
class _Look:
    """How a library's line is drawn."""

    place: int
    """Number of its colour's class in the style sheet."""
    colour: Colour
    dash: str = ""
    width: float = 1.6

    def path(self, d: str) -> str:
        dashes = f' stroke-dasharray="{self.dash}"' if self.dash else ""
        return (
            f'<path class="c{self.place}" d="{d}" stroke="{self.colour.light}" '
            f'stroke-width="{self.width}" stroke-linecap="round" stroke-linejoin="round" '
            f'fill="none"{dashes}/>'
        )


@dataclass(frozen=True, kw_only=True)
class _Sheet:
    """What is drawn, and where it stands."""

    rates: list[_Rate]
    worlds: list[str]
    looks: dict[str, _Look]
    reference: str
    num_cores: int
    columns: int
    env_counts: list[int]

    @property
    def panel_width(self) -> float:
        return (_WIDTH - 12) / self.columns - _GUTTER

    @property
    def panel_height(self) -> float:
        # The legend takes the place of a panel, and there may be many lines.
        return max(_HEAD + _PLOT + _FOOT, _HEAD + _LEGEND_ROW * len(self.looks))

    @property
    def height(self) -> float:
        rows = -(-(len(self.worlds) + 1) // self.columns)
        return _TOP + rows * (self.panel_height + 8) + 24

    def corner(self, place: int) -> tuple[float, float]:
        """Return the upper left corner of a panel; numbers stand to the left of it."""
        row, column = divmod(place, self.columns)
        left = _GUTTER + column * (self.panel_width + _GUTTER)
        return left, _TOP + row * (self.panel_height + 8)

    def scales(self, place: int) -> tuple[Scale, Scale]:
        """Return both axes of a panel; the y axis starts at 0, so that heights can be compared."""
        left, top = self.corner(place)
        low, high = self.env_counts[0] / 1.15, self.env_counts[-1] * 1.15
        x = Scale(low, high, left, left + self.panel_width, log=True)
        shown = [rate.speedup for rate in self.rates if rate.world == self.worlds[place]]
        highest = max([self.num_cores, *(value for value in shown if math.isfinite(value))])
        return x, Scale(0.0, 1.15 * highest, top + _HEAD + _PLOT, top + _HEAD)


def throughput_svg(
    rows: Sequence[Mapping[str, Any]],
    *,
    num_cores: int,
    ours: str = "Stepladder",
    reference: str = "plain loop",
    title: str | None = None,
    columns: int = 3,
) -> str:
    """Draw how fast each library runs many envs, one panel per world.

    Args:
        rows: Each has `world`, `library`, `num_envs` and `steps_per_s`; a rate that is not a
            positive number leaves a gap. Worlds and libraries stand in the order in which they
            first appear. Libraries whose names begin with the same word share a colour; the first
            of them is solid, the others are dashed.
        num_cores: Cores of the machine; a line shows that multiple, which is all that they can do.
        ours: The library that is drawn bold.
        reference: The library that all are compared with, in each world and number of envs.
        title: Heading above the panels.
        columns: Most panels side by side.

    Raises:
        ConfigError: There is nothing to draw, a row lacks something, two rows are about the same
            thing, or there is nothing to compare one with.
    """
    if columns < 1:
        raise ConfigError(f"columns must be at least 1; got {columns}. Give such a number.")
    rates = _rates(rows, reference)
    sheet = _sheet(rates, num_cores, columns, ours, reference)
    heading = title or f"Env steps per second on {num_cores} cores, by number of envs"
    height = number(sheet.height)
    panels = "".join(_panel(sheet, place) for place in range(len(sheet.worlds)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" font-family="{_FONT}" font-size="12">'
        f"<title>{escape(heading)}</title>{_style(sheet)}"
        f'<rect class="ground" width="100%" height="100%" fill="{_GROUND.light}"/>'
        f"{_label(12, 22, heading, size=15, weight=600)}{panels}{_legend(sheet)}"
        f"{_notes(sheet)}</svg>\n"
    )


def _rates(rows: Sequence[Mapping[str, Any]], reference: str) -> list[_Rate]:
    """Check the rows and compare each with the reference in its cell."""
    table: dict[tuple[str, str, int], float] = {}
    for row in rows:
        missing = [key for key in ("world", "library", "num_envs", "steps_per_s") if key not in row]
        if missing:
            raise ConfigError(f"each row needs {missing[0]}; got {dict(row)!r}. Add it.")
        key = (str(row["world"]), str(row["library"]), int(row["num_envs"]))
        if key in table:
            raise ConfigError(f"rows must name each cell once; got {key} twice. Leave one out.")
        rate = float(row["steps_per_s"] or math.nan)
        table[key] = rate if rate > 0 and math.isfinite(rate) else math.nan
    if not table:
        raise ConfigError("rows must hold at least one rate; got none. Measure something.")
    rates: list[_Rate] = []
    for (world, library, num_envs), rate in table.items():
        unit = table.get((world, reference, num_envs), math.nan)
        if math.isnan(unit):
            raise ConfigError(
                f"{world!r} with {num_envs} envs needs a rate of {reference!r}, with which the "
                "others are compared. Measure it too."
            )
        rates.append(
            _Rate(
                world=world,
                library=library,
                num_envs=num_envs,
                steps_per_s=rate,
                speedup=rate / unit,
            )
        )
    return rates


def _sheet(rates: list[_Rate], num_cores: int, columns: int, ours: str, reference: str) -> _Sheet:
    worlds = list(dict.fromkeys(rate.world for rate in rates))
    return _Sheet(
        rates=rates,
        worlds=worlds,
        looks=_looks(list(dict.fromkeys(rate.library for rate in rates)), ours, reference),
        reference=reference,
        num_cores=num_cores,
        columns=min(columns, len(worlds) + 1),
        env_counts=sorted({rate.num_envs for rate in rates}),
    )


def _looks(libraries: Sequence[str], ours: str, reference: str) -> dict[str, _Look]:
    looks: dict[str, _Look] = {}
    families: dict[str, int] = {}
    for library in sorted(libraries, key=lambda name: (name != ours, name != reference)):
        if library == ours:
            looks[library] = _Look(place=0, colour=run_colour(0), width=3.4)
        elif library == reference:
            looks[library] = _Look(place=1, colour=_FAINT, width=2.2)
        else:
            word = library.split()[0]
            is_first = word not in families
            place = families.setdefault(word, len(families) + 2)
            colour = run_colour(place - 1)
            looks[library] = _Look(place=place, colour=colour, dash="" if is_first else "5 4")
    return looks


def _panel(sheet: _Sheet, place: int) -> str:
    left, top = sheet.corner(place)
    world = sheet.worlds[place]
    x, y = sheet.scales(place)
    unit = statistics.median(
        rate.steps_per_s
        for rate in sheet.rates
        if rate.world == world and rate.library == sheet.reference
    )
    right = left + sheet.panel_width
    parts = [
        '<g class="panel">',
        _label(left, top + 16, shortened(world, 24), weight=600),
        _label(right, top + 16, f"1{TIMES} = {unit:,.0f}/s", anchor="end", ink="faint", size=11),
        _axes(sheet, x, y),
    ]
    # Ours is drawn last, over the others.
    for library in sorted(sheet.looks, key=lambda name: sheet.looks[name].width):
        parts.append(_line(sheet, world, library, x, y))
    return "".join(parts) + "</g>"


def _axes(sheet: _Sheet, x: Scale, y: Scale) -> str:
    parts: list[str] = []
    ticks = nice_ticks(0.0, y.high, 4)
    for tick, text in zip(ticks, format_ticks(ticks), strict=True):
        height = y.one(tick)
        parts.append(_rule(f"M{number(x.start)} {number(height)}H{number(x.end)}", "grid"))
        parts.append(_label(x.start - 6, height + 4, f"{text}{TIMES}", anchor="end", ink="faint"))
    last = -math.inf
    for count in sheet.env_counts:
        if x.one(count) - last >= 26:
            last = x.one(count)
            parts.append(_label(last, y.start + 16, str(count), anchor="middle", ink="faint"))
    cores = number(y.one(sheet.num_cores))
    parts.append(_rule(f"M{number(x.start)} {cores}H{number(x.end)}", "text", dash="2 3"))
    name = f"{sheet.num_cores} cores"
    parts.append(_label(x.start + 4, y.one(sheet.num_cores) - 5, name, size=11))
    return "".join(parts)


def _line(sheet: _Sheet, world: str, library: str, x: Scale, y: Scale) -> str:
    mine = sorted(
        (r for r in sheet.rates if r.world == world and r.library == library),
        key=lambda rate: rate.num_envs,
    )
    look = sheet.looks[library]
    xs = x(np.array([rate.num_envs for rate in mine], dtype=np.float64))
    ys = y(np.array([rate.speedup for rate in mine], dtype=np.float64))
    meaning = "; ".join(
        f"{rate.num_envs} envs {rate.steps_per_s:,.0f}/s ({rate.speedup:.2f}{TIMES})"
        for rate in mine
        if math.isfinite(rate.speedup)
    )
    if not meaning:
        return ""
    title = f"<title>{escape(f'{library}: {meaning}')}</title>"
    return f'<g class="line">{title}{look.path(line_path(xs, ys))}</g>'


def _legend(sheet: _Sheet) -> str:
    """Return the names of all lines, in the place after the last panel."""
    left, top = sheet.corner(len(sheet.worlds))
    parts = ['<g class="legend">']
    for rank, (library, look) in enumerate(sheet.looks.items()):
        y = top + _HEAD + (rank + 0.5) * _LEGEND_ROW
        parts.append(look.path(f"M{number(left + 12)} {number(y)}h34"))
        weight = 600 if look.place == 0 else 400
        parts.append(_label(left + 56, y + 4, shortened(library, 28), weight=weight))
    return "".join(parts) + "</g>"


def _notes(sheet: _Sheet) -> str:
    text = f"1{TIMES} is the {sheet.reference} over as many envs."
    return _label(12, sheet.height - 10, text, ink="faint", size=11)


_INKS = {"text": _TEXT, "faint": _FAINT, "grid": _GRID}


def _rule(d: str, ink: str, dash: str = "") -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path class="{ink}" d="{d}" stroke="{_INKS[ink].light}" fill="none"{dashes}/>'


def _label(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    ink: str = "text",
    weight: int = 400,
    size: int = 12,
) -> str:
    return (
        f'<text class="{ink}" x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" '
        f'fill="{_INKS[ink].light}" font-weight="{weight}" font-size="{size}">{escape(text)}</text>'
    )


def _style(sheet: _Sheet) -> str:
    """Return the shades of a dark page; those of a light one stand at each element."""
    rules = [f".ground{{fill:{_GROUND.dark}}}"]
    rules += [f"text.{name}{{fill:{ink.dark}}}" for name, ink in _INKS.items()]
    rules += [f"path.{name}{{stroke:{ink.dark}}}" for name, ink in _INKS.items()]
    looks = {look.place: look.colour for look in sheet.looks.values()}
    rules += [f".c{place}{{stroke:{colour.dark}}}" for place, colour in looks.items()]
    return f"<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>"
