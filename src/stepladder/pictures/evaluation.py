"""The picture of an evaluation: what a policy can do in each group, beside random play.

Takes figures with their intervals, by way of acting and group; gives a figure with bars.
"""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from stepladder.errors import ConfigError
from stepladder.pictures.figure import BLUE, FAINT, GREY, ORANGE, TEXT, Figure, in_style, shown

Interval = tuple[float, float, float]
"""A figure and the ends of its interval; NaN where it is not known."""

COLOURS = (GREY, BLUE, ORANGE)
"""Of the ways of acting, in their order."""

GAP = 0.8
"""Between groups, in bars."""


@in_style
def evaluation_figure(
    ways: Mapping[str, Mapping[str, Interval]],
    *,
    title: str,
    own: str | None = None,
    note: str = "",
    is_share: bool = True,
) -> Figure:
    """Draw a bar for each way of acting and group.

    Args:
        ways: By way of acting and name of the group: the figure and its interval of 95 %. Ways
            and groups stand in the order of the mappings.
        title: Heading.
        own: The policy's own way of acting; None if there is no policy.
        note: What the figures are.
        is_share: Whether they lie between 0 and 1.

    Raises:
        ConfigError: No figure is finite.
    """
    found = [one for groups in ways.values() for one in groups.values() if math.isfinite(one[0])]
    if not found:
        raise ConfigError("there is nothing to draw: the evaluation has no scores. Make it again.")
    names = list(dict.fromkeys(name for groups in ways.values() for name in groups))
    figure = Figure(7.2, 1.2 + 0.17 * len(names) * (len(ways) + GAP), title)
    (axes,) = figure.panels(1)
    for place, (way, groups) in enumerate(ways.items()):
        words = f"{way} (own way)" if way == own else way
        _draw_way(axes, place, len(ways), words, [groups.get(name) for name in names])
    axes.set_yticks(range(len(names)), [shown(name, 24) for name in names], fontweight="bold")
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(*(0.0, 1.0) if is_share else _ends(found))
    axes.grid(visible=False, axis="y")
    axes.tick_params(length=0)
    axes.axvline(0.0, color=FAINT, linewidth=0.8)
    axes.set_xlabel(note, loc="left")
    axes.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(ways), borderaxespad=0.2, borderpad=0
    )
    return figure


def _draw_way(
    axes: Axes, place: int, num_ways: int, words: str, scores: Sequence[Interval | None]
) -> None:
    """Draw the bars of one way of acting, with their intervals and figures."""
    colour, thickness = COLOURS[place % len(COLOURS)], 1.0 / (num_ways + GAP)
    offset = (place - (num_ways - 1) / 2) * thickness
    rows = [row + offset for row in range(len(scores))]
    known = [(y, one) for y, one in zip(rows, scores, strict=True) if one and math.isfinite(one[0])]
    # A line is seen where nothing was solved.
    axes.barh(
        [y for y, _ in known],
        [one[0] for _, one in known],
        0.8 * thickness,
        color=colour,
        edgecolor=colour,
        label=words,
    )
    beside = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    for y, (value, low, high) in known:
        axes.plot((low, high), (y, y), color=TEXT, linewidth=1.0, marker="|", markersize=4)
        axes.annotate(f"{value:.2f}", (1.0, y), (5, 0), va="center", color=colour, **beside)


def _ends(scores: Sequence[Interval]) -> tuple[float, float]:
    """Return the ends of an axis that holds all intervals and 0."""
    every = [0.0, *(end for one in scores for end in one if math.isfinite(end))]
    low, high = min(every), max(every)
    room = 0.05 * (high - low) or 1.0
    return low - room * (low < 0), high + room * (high > 0 or low == 0)
