"""A figure with the look of this library, and how it is written.

Used by the other modules of `pictures`. The same values give the same bytes: no date, no random
ids. An SVG keeps its text as text, so that it can be searched, and so that a page shows letters
that matplotlib's own font does not have.
"""

import io
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as PlainFigure

from stepladder.errors import ConfigError
from stepladder.files import replacing
from stepladder.pictures import SUFFIXES, check_picture
from stepladder.visible import one_visible_line

TEXT, FAINT, GRID = "#1d2129", "#667080", "#e4e8ed"
BLUE, ORANGE, GREY = "#0068a8", "#d55e00", "#98a2b0"

MARK = "made by stepladder"
"""Stands in the metadata of every picture of this library."""

STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "font.family": "sans-serif",
    # Alike in width, so that a page without the first one has room for the texts.
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "text.color": TEXT,
    # Names come from outside: a $ in them does not begin a formula.
    "text.parse_math": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.edgecolor": GRID,
    "axes.labelcolor": FAINT,
    "axes.labelsize": 8.5,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.unicode_minus": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": FAINT,
    "ytick.labelcolor": TEXT,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "none",
    "svg.hashsalt": "stepladder",
}

LABEL_COLOURS = (
    *("#2f6f8f", "#3f8f8a", "#5fa777", "#9ab85c", "#d9b44a", "#e08a4b", "#cf5b5b"),
    *("#a8527f", "#76569c", "#4f62a8", "#5b8fc4", "#7d8793"),
)
"""Of labels in their order: neighbours differ, and the first seven also in grey."""


in_style = mpl.rc_context(STYLE)
"""Decorator of a function that draws: matplotlib reads its settings when a thing is made."""


class Figure(PlainFigure):
    """A matplotlib figure in our style; a notebook shows it by itself.

    Args:
        width: In inches of 100 pixels.
        height: The same.
        title: Heading; empty for none.
    """

    def __init__(self, width: float, height: float, title: str = "") -> None:
        super().__init__(figsize=(width, height), dpi=100, layout="constrained")
        if title:
            self.suptitle(shown(title, 100), x=0.01, ha="left", fontsize=11, fontweight="bold")

    def panels(self, rows: int, columns: int = 1, **options: Any) -> list[Axes]:
        """Return that many axes, row by row; options are those of ``Figure.subplots``."""
        return list(self.subplots(rows, columns, squeeze=False, **options).flat)

    def encoded(self, suffix: str, mark: str = MARK) -> bytes:
        """Return the whole file.

        Args:
            suffix: ``.svg`` or ``.png``.
            mark: What stands in its metadata.

        Raises:
            ConfigError: There is no such kind of picture.
        """
        kind = suffix.lower()
        if kind not in SUFFIXES:
            raise ConfigError(f"a picture is one of {', '.join(SUFFIXES)}; got {suffix!r}.")
        metadata = {"Creator": mark, "Date": None} if kind == ".svg" else {"Software": mark}
        file = io.BytesIO()
        with mpl.rc_context(STYLE), warnings.catch_warnings():
            # Letters that the font lacks: an SVG leaves them to the page, a PNG shows a box.
            warnings.filterwarnings("ignore", message="Glyph ", category=UserWarning)
            dpi = 100 if kind == ".svg" else 200
            self.savefig(file, format=kind[1:], metadata=metadata, dpi=dpi)
        return file.getvalue()

    def save(self, path: str | os.PathLike[str], mark: str = MARK) -> None:
        """Write the picture, as SVG or PNG by its suffix, replacing an older file as a whole.

        Raises:
            ConfigError: The suffix is neither.
        """
        check_picture(path)
        target = Path(path)
        content = self.encoded(target.suffix, mark)
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as file:
            file.write(content)

    def _repr_svg_(self) -> str:
        """Return what a notebook shows."""
        return self.encoded(".svg").decode()


def shown(text: object, longest: int = 40) -> str:
    """Return a text from outside on one line, the middle of a long one left out."""
    line = one_visible_line(text)
    if len(line) <= longest:
        return line
    tail = longest // 2
    return f"{line[: longest - tail - 1]}\N{HORIZONTAL ELLIPSIS}{line[-tail:]}"


def colours_of(labels: Sequence[str]) -> dict[str, str]:
    """Return a colour for each label, by its place."""
    return {label: LABEL_COLOURS[place % len(LABEL_COLOURS)] for place, label in enumerate(labels)}
