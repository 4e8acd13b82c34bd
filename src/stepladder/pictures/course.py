"""The picture of a run: what it practised, and how well, over its steps.

Takes one series per label; gives a figure with the share of draws above and the success below.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, PercentFormatter

from stepladder.errors import ConfigError
from stepladder.pictures.figure import FAINT, TEXT, Figure, colours_of, in_style, shown

Series = tuple[npt.ArrayLike, npt.ArrayLike]
"""Steps and values of one line; a value that is NaN is a gap."""

MOST_LABELS = 12
"""Most labels that are named; lines of the others are drawn without a name."""

MOST_CHANGES = 40
"""Most changes that are marked; more would hide the lines."""


@in_style
def course_figure(
    shares: Mapping[str, Series],
    success: Mapping[str, Series],
    *,
    title: str,
    changes: Sequence[tuple[float, str]] = (),
    unit: str = "steps",
) -> Figure:
    """Draw what was practised and what succeeded.

    Args:
        shares: The share of draws of each label, in the order of the stages; empty for no panel.
            Where the steps of labels differ, the last value holds. Parts are shown as shares of
            their sum.
        success: The success of each label; empty for no panel. A label has one colour in both.
        title: Heading.
        changes: Steps at which a stage or phase changed, and a word for each.
        unit: What is counted along the axis.

    Raises:
        ConfigError: There is neither a share nor a success.
    """
    if not shares and not success:
        raise ConfigError("there is nothing to draw: no label has a share or a success yet.")
    colours = colours_of(list(dict.fromkeys([*shares, *success])))
    num_panels = bool(shares) + bool(success)
    figure = Figure(8.6, 0.7 + 2.0 * num_panels, title)
    panels = figure.panels(num_panels, sharex=True)
    if shares:
        _draw_shares(panels[0], shares, colours)
    if success:
        _draw_lines(panels[-1], success, colours)
    for axes in panels:
        axes.margins(x=0.0)
        axes.tick_params(length=0)
        if len(changes) <= MOST_CHANGES:
            for step, _ in changes:
                axes.axvline(step, color=TEXT, linewidth=0.8, linestyle=(0, (3, 3)))
    if len(changes) <= MOST_CHANGES:
        _name_changes(panels[0], changes)
    panels[-1].xaxis.set_major_formatter(EngFormatter(sep=""))
    panels[-1].set_xlabel(unit, loc="right")
    # The first label lies at the bottom of the areas, and of the legend.
    handles, _ = panels[0].get_legend_handles_labels()
    names = [shown(label, 24) for label in (shares or success)]
    figure.legend(handles[:MOST_LABELS][::-1], names[:MOST_LABELS][::-1], loc="outside right upper")
    return figure


def _draw_shares(axes: Axes, shares: Mapping[str, Series], colours: Mapping[str, str]) -> None:
    """Draw areas on top of each other, which add up to 1."""
    steps = np.unique(np.concatenate([np.asarray(series[0], float) for series in shares.values()]))
    rows = np.array([_held(series, steps) for series in shares.values()])
    totals = rows.sum(axis=0)
    rows = rows / np.where(totals > 0, totals, 1.0)
    axes.stackplot(
        steps, rows, colors=[colours[label] for label in shares], labels=list(shares), linewidth=0
    )
    axes.set_ylim(0.0, 1.0)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_ylabel("share of draws")


def _draw_lines(axes: Axes, success: Mapping[str, Series], colours: Mapping[str, str]) -> None:
    for label, (steps, values) in success.items():
        axes.plot(np.asarray(steps), np.asarray(values), color=colours[label], label=label)
    axes.set_ylim(-0.02, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_ylabel("success")


def _held(series: Series, steps: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the last value at each of the steps; 0 before the first one, and for gaps."""
    where, values = (np.asarray(part, dtype=np.float64) for part in series)
    places = np.searchsorted(where, steps, side="right") - 1
    held = np.where(places >= 0, values[np.maximum(places, 0)] if values.size else 0.0, 0.0)
    return np.maximum(np.nan_to_num(held), 0.0)


def _name_changes(axes: Axes, changes: Sequence[tuple[float, str]]) -> None:
    """Write the word of each change above the panel, where there is room for it."""
    place: dict[str, Any] = {
        "xycoords": ("data", "axes fraction"),
        "textcoords": "offset points",
        "ha": "center",
        "fontsize": 7.5,
        "color": FAINT,
    }
    for step, words in changes:
        axes.annotate(shown(words, 16), (step, 1.0), (0, 3), **place)
