"""Texts, lines and colours of the pictures that are written as SVG, without a chart library.

Used by `comparison` and `evaluation_picture`: standalone files with a white ground,
fit for a README.
"""

from stepladder.dashboard.page import escape

TEXT, FAINT, GRID = "#1d2129", "#667080", "#e4e8ed"
BLUE, ORANGE = "#0068a8", "#d55e00"
FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif"


def document(width: float, height: float, heading: str, *parts: str) -> str:
    """Return a whole picture with a heading."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.1f}" '
        f'viewBox="0 0 {width} {height:.1f}" role="img" font-family="{FONT}">'
        f'<title>{escape(heading)}</title><rect width="100%" height="100%" fill="#ffffff"/>'
        f"{label(12, 22, heading, weight='600', size=15)}{''.join(parts)}</svg>\n"
    )


def upright(x: float, upper: float, lower: float, colour: str, dash: str = "") -> str:
    """Return a line from top to bottom."""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="M{x:.1f} {upper:.1f}V{lower:.1f}" stroke="{colour}" fill="none"{dashes}/>'


def whiskers(start: float, end: float, y: float, colour: str) -> str:
    """Return an interval: a line with a stroke at either end."""
    return (
        f'<path d="M{start:.1f} {y:.1f}H{end:.1f}M{start:.1f} {y - 3:.1f}v6M{end:.1f} '
        f'{y - 3:.1f}v6" stroke="{colour}" stroke-width="1.5" fill="none"/>'
    )


def label(
    x: float,
    y: float,
    text: str,
    anchor: str = "start",
    *,
    colour: str = TEXT,
    weight: str = "400",
    size: int = 12,
) -> str:
    """Return a text; what it holds is escaped."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'font-weight="{weight}" font-size="{size}">{escape(text)}</text>'
    )
