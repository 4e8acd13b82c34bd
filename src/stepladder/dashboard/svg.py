"""Pieces of a plot as SVG text: frame, axes, lines, stacked areas, heat maps.

Pure functions from numbers to strings. Both versions of an axis (steps or fraction of the run,
linear or logarithmic) are drawn; the style sheet shows one of them.
"""

import base64
import math
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepladder.dashboard.colours import scale_rgb
from stepladder.dashboard.page import escape
from stepladder.dashboard.series import Values
from stepladder.dashboard.ticks import format_tick, format_ticks, log_ticks, nice_ticks

FRACTION_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
LETTER_WIDTH = 6.0
"""Average width of a letter of the 11-pixel font of the plots, generously."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The drawing area of a plot inside its SVG element, in pixels."""

    width: int = 460
    height: int = 230
    left: int = 48
    right: int = 18
    top: int = 8
    bottom: int = 34

    @property
    def inner_width(self) -> int:
        """Width of the drawing area."""
        return self.width - self.left - self.right

    @property
    def inner_height(self) -> int:
        """Height of the drawing area."""
        return self.height - self.top - self.bottom

    @property
    def box(self) -> list[int]:
        """Left, top, width and height of the drawing area."""
        return [self.left, self.top, self.inner_width, self.inner_height]


@dataclass(frozen=True)
class Scale:
    """Maps the values of an axis to pixels."""

    low: float
    high: float
    start: float
    """Pixel of `low`."""
    end: float
    """Pixel of `high`."""
    log: bool = False

    def __call__(self, values: Values) -> Values:
        """Return the pixels of values; NaN where a value has no place on the axis."""
        low, high = self.low, self.high
        if self.log:
            values = np.log(np.where(values > 0, values, np.nan))
            low, high = math.log(low), math.log(high)
        with np.errstate(all="ignore"):
            # Divided first: a span of next to nothing has no finite inverse.
            pixels = self.start + (values - low) / (high - low) * (self.end - self.start)
        return np.where(np.isfinite(pixels), pixels, np.nan)

    def one(self, value: float) -> float:
        """Return the pixel of one value."""
        return float(self(np.array([value]))[0])


def x_scale(frame: Frame, high: float) -> Scale:
    """Return the scale of the x axis from 0 to `high`."""
    return Scale(0.0, high or 1.0, frame.left, frame.left + frame.inner_width)


def y_scale(frame: Frame, ends: tuple[float, float], *, log: bool = False) -> Scale:
    """Return the scale of the y axis, which points up."""
    return Scale(ends[0], ends[1], frame.top + frame.inner_height, frame.top, log)


def number(value: float) -> str:
    """Write a pixel position with at most one decimal."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def line_path(xs: Values, ys: Values) -> str:
    """Return the path of a line through pixel positions, broken at NaN.

    A point without neighbours becomes a piece of no length, which round caps show as a dot.
    """
    pieces: list[str] = []
    for part in _unbroken(np.isfinite(xs) & np.isfinite(ys)):
        points = [f"{number(x)} {number(y)}" for x, y in zip(xs[part], ys[part], strict=True)]
        pieces.append(f"M{points[0]}" + ("L" + "L".join(points[1:]) if len(points) > 1 else "h0"))
    return "".join(pieces)


def area_path(xs: Values, lower: Values, upper: Values) -> str:
    """Return the outline of the area between two lines, in pieces where either is NaN."""
    pieces: list[str] = []
    for part in _unbroken(np.isfinite(lower) & np.isfinite(upper)):
        there = zip(xs[part], upper[part], strict=True)
        back = zip(xs[part][::-1], lower[part][::-1], strict=True)
        points = [f"{number(x)} {number(y)}" for x, y in (*there, *back)]
        pieces.append("M" + "L".join(points) + "Z")
    return "".join(pieces)


def _unbroken(good: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Return the places of each run of good points."""
    places = np.flatnonzero(good)
    if not places.size:
        return []
    return np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)


def x_axes(frame: Frame, high: float) -> str:
    """Return both x axes: agent steps up to `high`, and the fraction of the run."""
    count = max(3, frame.inner_width // 75)
    ticks = nice_ticks(0.0, high or 1.0, count)
    steps = _x_axis(frame, x_scale(frame, high), ticks, "x-steps", "agent steps")
    fraction = x_scale(frame, 1.0)
    return steps + _x_axis(frame, fraction, FRACTION_TICKS, "x-fraction", "fraction of the run")


def _x_axis(frame: Frame, scale: Scale, ticks: Sequence[float], kind: str, title: str) -> str:
    bottom = frame.top + frame.inner_height
    parts = [f'<g class="axis {kind}">']
    for tick, label in zip(ticks, format_ticks(ticks), strict=True):
        x = number(scale.one(tick))
        parts.append(f'<path class="grid" d="M{x} {frame.top}V{bottom}"/>')
        parts.append(f'<text class="tick mid" x="{x}" y="{bottom + 14}">{escape(label)}</text>')
    middle = number(frame.left + frame.inner_width / 2)
    parts.append(f'<text class="name mid" x="{middle}" y="{bottom + 28}">{title}</text></g>')
    return "".join(parts)


def y_ticks(ends: tuple[float, float], *, log: bool = False) -> tuple[list[float], list[str]]:
    """Return the ticks of a y axis and how they are written."""
    if log:
        ticks = log_ticks(*ends)
        return ticks, [format_tick(t) for t in ticks]
    ticks = nice_ticks(*ends)
    return ticks, format_ticks(ticks)


def y_axis(frame: Frame, ends: tuple[float, float], *, log: bool = False) -> str:
    """Return one y axis with its grid lines."""
    scale = y_scale(frame, ends, log=log)
    right = frame.left + frame.inner_width
    parts = [f'<g class="axis {"y-log" if log else "y-linear"}">']
    for tick, label in zip(*y_ticks(ends, log=log), strict=True):
        y = scale.one(tick)
        if math.isnan(y):
            continue
        parts.append(f'<path class="grid" d="M{frame.left} {number(y)}H{right}"/>')
        parts.append(
            f'<text class="tick end" x="{frame.left - 6}" y="{number(y + 3.5)}">'
            f"{escape(label)}</text>"
        )
    return "".join(parts) + "</g>"


def label_axis(frame: Frame, labels: Sequence[str], longest: int = 18) -> str:
    """Return the names beside the rows of a heat map; only as many as have room."""
    row = frame.inner_height / len(labels)
    every = max(1, math.ceil(11 / row))
    parts = ['<g class="axis">']
    for rank in range(0, len(labels), every):
        y = number(frame.top + (rank + 0.5) * row + 3.5)
        text = escape(shortened(labels[rank], longest))
        parts.append(f'<text class="tick end" x="{frame.left - 6}" y="{y}">{text}</text>')
    return "".join(parts) + "</g>"


def shortened(text: str, longest: int) -> str:
    """Return text of at most `longest` letters; the middle is left out of a longer one."""
    if len(text) <= longest:
        return text
    tail = longest // 2
    return f"{text[: longest - tail - 1]}\N{HORIZONTAL ELLIPSIS}{text[-tail:]}"


def element(frame: Frame, content: str, *, name: str, kind: str, plot: str) -> str:
    """Return the SVG element of a plot.

    Args:
        frame: Its measure.
        content: SVG inside it, already escaped.
        name: What it shows, for readers that cannot see it.
        kind: CSS classes.
        plot: Key of its numbers in the page's data.
    """
    left, top, width, height = frame.box
    return (
        f'<svg class="plot {kind}" data-plot="{plot}" role="img" aria-label="{escape(name)}" '
        f'viewBox="0 0 {frame.width} {frame.height}">{content}'
        f'<rect class="box" x="{left}" y="{top}" width="{width}" height="{height}"/>'
        f'<path class="cursor" d=""/></svg>'
    )


def heat_image(values: Values, ends: tuple[float, float], area: Sequence[float]) -> str:
    """Return a heat map as an embedded picture of one pixel per cell; NaN is transparent.

    Args:
        values: Shape ``(num_rows, num_columns)``; the first row is drawn on top.
        ends: Values of the two ends of the colour scale.
        area: Left, top, width and height in pixels of the plot.
    """
    low, high = ends
    span = (high - low) or 1.0
    shares = np.clip((values - low) / span, 0.0, 1.0)
    cells = np.where(np.isfinite(shares), 1 + np.round(np.nan_to_num(shares) * 254), 0)
    png = base64.b64encode(_png(cells.astype(np.uint8), lambda k: scale_rgb((k - 1) / 254)))
    left, top, width, height = map(number, area)
    return (
        f'<image class="heat" x="{left}" y="{top}" width="{width}" height="{height}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{png.decode()}"/>'
    )


def _png(cells: NDArray[np.uint8], colour: Callable[[int], tuple[int, int, int]]) -> bytes:
    """Return a PNG file with 256 colours, of which number 0 is transparent."""
    rows, columns = cells.shape
    palette = bytes([0, 0, 0]) + b"".join(bytes(colour(k)) for k in range(1, 256))
    # Each row begins with its filter; 0 means that the bytes stand as they are.
    lines = np.zeros((rows, columns + 1), np.uint8)
    lines[:, 1:] = cells

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", palette)
        + chunk(b"tRNS", b"\x00")
        + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9))
        + chunk(b"IEND", b"")
    )
