"""Colours: one per run, an ordered scale for labels and heat maps.

Each colour has a shade for paper and light screens and one for dark screens. The page picks by
style sheet, so a picture carries both.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Colour:
    """One ink in its two shades."""

    light: str
    """Shade on a light ground, as ``#rrggbb``."""

    dark: str
    """Shade on a dark ground."""

    @property
    def style(self) -> str:
        """Custom properties that `report.css` reads."""
        return f"--c:{self.light};--d:{self.dark}"


# Told apart with the common colour vision deficiencies: neighbours differ in lightness as well.
_RUNS = (
    Colour("#0068a8", "#4aa8e8"),
    Colour("#d55e00", "#ff8a3d"),
    Colour("#00876a", "#2fc99f"),
    Colour("#b5468b", "#e48bc0"),
    Colour("#c98a00", "#f0b93a"),
    Colour("#3c3c46", "#d6d6de"),
    Colour("#4fa6d8", "#9ad6ff"),
    Colour("#7a2e1d", "#d98f78"),
    Colour("#6a4fb3", "#ab97f0"),
    Colour("#7d8a1c", "#c3d24e"),
)
_DASHES = ("", "6 3", "2 3", "9 3 2 3")

# Lightness rises along the scale, so it stays ordered in grey print.
_SCALE = ((27, 32, 98), (36, 92, 146), (38, 146, 148), (112, 190, 112), (228, 216, 82))


def run_colour(index: int) -> Colour:
    """Return the colour of a run; after ten runs the colours start again."""
    return _RUNS[index % len(_RUNS)]


def run_dash(index: int) -> str:
    """Return the dash pattern of a run: none for the first ten, then one per round."""
    return _DASHES[index // len(_RUNS) % len(_DASHES)]


def scale_rgb(position: float) -> tuple[int, int, int]:
    """Return the colour at a position in [0, 1] of the ordered scale."""
    place = min(max(position, 0.0), 1.0) * (len(_SCALE) - 1)
    left = min(int(place), len(_SCALE) - 2)
    part = place - left
    low, high = _SCALE[left], _SCALE[left + 1]
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(low, high, strict=True))
    return red, green, blue


def label_colour(rank: int, num_labels: int) -> Colour:
    """Return the colour of the label with this rank.

    The palest part of the scale is left out on light ground, the darkest on dark ground.
    """
    place = rank / (num_labels - 1) if num_labels > 1 else 0.0
    return Colour(_hex(scale_rgb(0.02 + 0.86 * place)), _hex(scale_rgb(0.28 + 0.72 * place)))


def scale_gradient(stops: int = 9) -> str:
    """Return the ordered scale as a CSS gradient from left to right."""
    shades: Sequence[str] = [_hex(scale_rgb(k / (stops - 1))) for k in range(stops)]
    return f"linear-gradient(to right,{','.join(shades)})"


def _hex(rgb: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*rgb)
