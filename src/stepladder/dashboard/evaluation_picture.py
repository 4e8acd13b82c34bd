"""The picture of an evaluation: what the policy can do in each group, beside random play.

Takes an evaluation as JSON (`Evaluation.to_json`), gives one standalone SVG file.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stepladder.dashboard.held_out import Scores, figure_of, interval_of, scores_by_way
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
from stepladder.runs.evaluation_events import WAYS

COLOURS = {"random": "#98a2b0", "drawn": BLUE, "best": ORANGE}
WIDTH, HEAD, BAR, BETWEEN, FOOT, RIGHT = 720, 72, 13, 12, 40, 56


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """From figures to places."""

    left: float
    low: float
    high: float

    def x(self, value: float) -> float:
        width = WIDTH - RIGHT - self.left
        return self.left + width * (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Return round numbers, six at most."""
        power = 10.0 ** math.floor(math.log10((self.high - self.low) / 5))
        step = next(
            factor * power
            for factor in (1.0, 2.0, 2.5, 5.0, 10.0)
            if (self.high - self.low) / (factor * power) <= 5.0 + 1e-9
        )
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [step * number for number in range(first, last + 1)]


def evaluation_svg(evaluation: Mapping[str, Any], *, title: str) -> str:
    """Draw a bar for each way of acting and group, with intervals of 95 %.

    Args:
        evaluation: As JSON.
        title: Heading of the picture.

    Returns:
        An SVG document.

    Raises:
        ConfigError: The evaluation holds nothing that can be drawn.
    """
    ways = scores_by_way(evaluation)
    if not ways:
        raise ConfigError("there is nothing to draw: the evaluation has no scores. Make it again.")
    own = next(iter(ways))
    shown = [way for way in WAYS if way in ways]
    names = list(ways[own])
    axis = _axis(ways, 24 + 7 * min(24, max(map(len, names))))
    step = BAR * len(shown) + BETWEEN
    bottom = HEAD + step * len(names)
    parts = [*_legend(shown, own), *_grid(axis, bottom)]
    for number, name in enumerate(names):
        top = HEAD + step * number + BETWEEN / 2
        middle = top + BAR * len(shown) / 2 + 4
        parts.append(label(axis.left - 8, middle, shortened(name, 24), "end", weight="600"))
        for place, way in enumerate(shown):
            score = ways[way].get(name)
            parts += _bar(axis, top + BAR * place, way, name, score) if score else ()
    note = f"{figure_of(ways[own]).capitalize()}, with intervals of 95 %."
    parts.append(label(12, bottom + FOOT - 8, note, colour=FAINT, size=11))
    return document(WIDTH, bottom + FOOT, shortened(title, 90), *parts)


def _axis(ways: Mapping[str, Scores], left: float) -> _Axis:
    """Return an axis from 0 to 1 for shares; for returns, one that holds all of them."""
    scores = [score for group in ways.values() for score in group.values()]
    if all(score.get("rate") is not None for score in scores):
        return _Axis(left=left, low=0.0, high=1.0)
    ends = [end for score in scores for end in _ends(score) if math.isfinite(end)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    return _Axis(left=left, low=low, high=high if high > low else low + 1.0)


def _ends(score: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return a figure and its interval; what is missing is NaN."""
    found = (interval_of(score).get(end) for end in ("value", "low", "high"))
    value, low, high = (float(one) if isinstance(one, int | float) else math.nan for one in found)
    return value, low, high


def _legend(shown: list[str], own: str) -> Iterator[str]:
    left = 12.0
    for way in shown:
        text = f"{way}{' (own way)' if way == own else ''}"
        yield f'<rect x="{left:.1f}" y="36" width="11" height="11" fill="{COLOURS[way]}"/>'
        yield label(left + 17, 46, text)
        left += 34 + 7 * len(text)


def _grid(axis: _Axis, bottom: float) -> Iterator[str]:
    for tick in axis.ticks():
        yield upright(axis.x(tick), HEAD, bottom, GRID)
        yield label(axis.x(tick), bottom + 14, f"{tick:.4g}", "middle", colour=FAINT, size=11)


def _bar(axis: _Axis, top: float, way: str, name: str, score: Mapping[str, Any]) -> tuple[str, ...]:
    value, low, high = _ends(score)
    if not math.isfinite(value):
        return ()
    start, end = sorted((axis.x(0.0), axis.x(value)))
    # A line is seen where nothing was solved.
    width, middle = max(1.5, end - start), top + BAR / 2
    drawn = (
        f'<rect x="{start:.1f}" y="{top + 1.5:.1f}" width="{width:.1f}" height="{BAR - 3}" '
        f'fill="{COLOURS[way]}"><title>{escape(f"{name}, {way}: {value:.2f}")}</title></rect>'
    )
    known = math.isfinite(low) and math.isfinite(high)
    interval = whiskers(axis.x(low), axis.x(high), middle, TEXT) if known else ""
    number = label(WIDTH - 12, middle + 4, f"{value:.2f}", "end", colour=COLOURS[way], size=11)
    return drawn, interval, number
