"""The picture of `vector_env.py`: env steps per second of each library, beside a plain loop.

Takes the rows of that benchmark; gives a figure with a panel per world.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from stepladder.pictures.figure import BLUE, FAINT, GREY, TEXT, Figure, in_style, shown

OURS, LOOP = "Stepladder", "plain loop"
TIMES = "\N{MULTIPLICATION SIGN}"
COLUMNS = 3
COLOURS = ("#d55e00", "#00876a", "#b5468b", "#c98a00", "#3c3c46", "#4fa6d8", "#7a2e1d")
"""One for each family of libraries."""

Rates = dict[tuple[str, str, int], float]
"""Steps per second by world, library and number of envs; NaN if there are none."""


@in_style
def throughput_figure(
    rows: Sequence[Mapping[str, Any]], *, num_cores: int, title: str | None = None
) -> Figure:
    """Draw how fast each library runs many envs, one panel per world.

    Args:
        rows: Each has `world`, `library`, `num_envs` and `steps_per_s`; a rate that is not a
            positive number leaves a gap. Libraries whose names begin with the same word share a
            colour; the first of them is solid, the others are dashed.
        num_cores: Cores of the machine; a line shows that multiple of the plain loop.
        title: Heading above the panels.

    Raises:
        ValueError: There are no rows, two rows have the same world, library and number of envs, or
            a row has no plain loop to be compared with.
    """
    rates = _rates(rows)
    worlds = list(dict.fromkeys(world for world, _, _ in rates))
    looks = _looks(list(dict.fromkeys(library for _, library, _ in rates)))
    # The legend takes the place of a panel.
    columns = min(COLUMNS, len(worlds) + 1)
    num_rows = -(-(len(worlds) + 1) // columns)
    heading = title or f"Env steps per second on {num_cores} cores, by number of envs"
    figure = Figure(9.0, 0.6 + 2.4 * num_rows, heading)
    panels = figure.panels(num_rows, columns)
    for world, axes in zip(worlds, panels, strict=False):
        _draw_world(axes, world, rates, looks, num_cores)
    for axes in panels[len(worlds) :]:
        axes.set_axis_off()
    drawn = {line.get_label(): line for axes in panels for line in axes.lines}
    named = {shown(name, 28): drawn[name] for name in looks if name in drawn}
    panels[len(worlds)].legend(
        list(named.values()), list(named), loc="upper left", handlelength=3.2
    )
    note = f"1{TIMES} is the {LOOP} over as many envs."
    figure.supxlabel(note, x=0.01, ha="left", fontsize=8, color=FAINT)
    return figure


def _rates(rows: Sequence[Mapping[str, Any]]) -> Rates:
    rates: Rates = {}
    for row in rows:
        key = (str(row["world"]), str(row["library"]), int(row["num_envs"]))
        if key in rates:
            raise ValueError(f"rows must name each cell once; got {key} twice. Leave one out.")
        rate = float(row["steps_per_s"] or math.nan)
        rates[key] = rate if 0 < rate < math.inf else math.nan
    if not rates:
        raise ValueError("rows must hold at least one rate; got none. Measure something.")
    for world, _, num_envs in rates:
        if math.isnan(rates.get((world, LOOP, num_envs), math.nan)):
            raise ValueError(f"{world!r} with {num_envs} envs needs a rate of {LOOP!r}.")
    return rates


def _looks(libraries: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return how the line of each library is drawn; ours and the loop come first."""
    looks: dict[str, dict[str, Any]] = {}
    families: dict[str, str] = {}
    for library in sorted(libraries, key=lambda name: (name != OURS, name != LOOP)):
        if library in (OURS, LOOP):
            is_ours = library == OURS
            # Ours is drawn last, over the others.
            looks[library] = (
                {"color": BLUE, "linewidth": 2.6, "zorder": 4}
                if is_ours
                else {"color": GREY, "linewidth": 1.8, "zorder": 3}
            )
            continue
        word = library.split()[0]
        style = "--" if word in families else "-"
        colour = families.setdefault(word, COLOURS[len(families) % len(COLOURS)])
        looks[library] = {"color": colour, "linewidth": 1.2, "linestyle": style}
    return looks


def _draw_world(
    axes: Axes, world: str, rates: Rates, looks: Mapping[str, Mapping[str, Any]], num_cores: int
) -> None:
    """Draw one panel: multiples of the plain loop, from 0, so that heights can be compared."""
    loop = {n: rate for (w, name, n), rate in rates.items() if (w, name) == (world, LOOP)}
    counts = sorted(loop)
    for library, look in looks.items():
        mine = [
            rates.get((world, library, count), math.nan) / loop[count]
            for count in counts
            if (world, library, count) in rates
        ]
        where = [count for count in counts if (world, library, count) in rates]
        if any(map(math.isfinite, mine)):
            axes.plot(where, mine, label=library, **look)
    axes.axhline(num_cores, color=TEXT, linestyle=":", linewidth=1.0)
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    axes.annotate(f"{num_cores} cores", (0.0, num_cores), (3, 3), fontsize=8, **place)
    axes.set_title(shown(world, 24))
    unit = f"1{TIMES} = {statistics.median(loop.values()):,.0f}/s"
    axes.set_title(unit, loc="right", fontsize=8, fontweight="normal", color=FAINT)
    axes.set_ylim(0.0, 1.1 * max(num_cores, axes.dataLim.y1))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}{TIMES}"))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.tick_params(length=0)
