"""The HTML page around a report: escaping, numbers as text, style sheets, scripts, data.

Used by every other module of `dashboard`. The page loads nothing: styles and scripts, uPlot's
among them, are written into it, and a content security policy forbids every request and every
script but these.
"""

import base64
import hashlib
import html
import json
import math
import re
from functools import cache
from importlib.resources import files
from typing import Any

MISSING = "\N{EN DASH}"
"""Shown for a missing number."""

UPLOT = "vendor/uplot"
SCRIPTS = (f"{UPLOT}/uPlot.iife.min.js", "old_charts.js", "report.js")
STYLES = (f"{UPLOT}/uPlot.min.css", "report.css")

# Not allowed in XML, and of no use to a reader. Lone surrogates cannot be written as UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def escape(text: object) -> str:
    """Return text for use in HTML, SVG and their attributes, whatever it holds."""
    return html.escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", str(text)), quote=True)


def embedded_json(data: Any) -> str:
    """Return JSON that can stand inside a script element without ending it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def compact(value: float) -> float | None:
    """Return a number with six digits for embedding; a gap is None."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def format_value(value: float | None) -> str:
    """Write a number for a table; a missing or non-finite one is a dash."""
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    is_long = abs(value) < 1e15 and (float(value).is_integer() or abs(value) >= 1e4)
    return (f"{value:,.0f}" if is_long else f"{value:.4g}").replace("-", "\N{MINUS SIGN}")


def shortened(text: str, longest: int) -> str:
    """Return text of at most `longest` letters; the middle is left out of a longer one."""
    if len(text) <= longest:
        return text
    tail = longest // 2
    return f"{text[: longest - tail - 1]}\N{HORIZONTAL ELLIPSIS}{text[-tail:]}"


@cache
def asset(name: str) -> str:
    """Return the text of a file that is shipped beside this module."""
    return files("stepladder.dashboard").joinpath(name).read_text(encoding="utf-8")


def page(title: str, body: str, data: Any) -> str:
    """Return the whole page.

    Args:
        title: Plain text.
        body: HTML, already escaped.
        data: Plain JSON for the script: the numbers behind the plots.
    """
    scripts = [asset(name) for name in SCRIPTS]
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src {hashes}; base-uri 'none'; form-action 'none'"
    )
    styles = "\n".join(asset(name) for name in STYLES)
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>\n{styles}</style>\n</head>\n<body>\n{body}\n"
        "<noscript><p>The charts of this page are drawn by JavaScript.</p></noscript>\n"
        f'<script type="application/json" id="stepladder-data">{embedded_json(data)}</script>\n'
        f"<!-- Charts by uPlot.\n{asset(f'{UPLOT}/LICENSE')}-->\n"
        f"{''.join(f'<script>{script}</script>' for script in scripts)}\n</body>\n</html>\n"
    )


def live_page() -> str:
    """Return the page as the server gives it: its modules and styles are loaded by name."""
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>Stepladder</title>\n"
        '<link rel="icon" href="/static/icon.svg">\n'
        '<link rel="stylesheet" href="/vendor/uplot/uPlot.min.css">\n'
        '<link rel="stylesheet" href="/static/style.css">\n'
        '<script src="/vendor/uplot/uPlot.iife.min.js"></script>\n'
        '<script type="module" src="/static/live.js"></script>\n'
        "</head>\n<body>\n"
        "<noscript><p>This page is drawn by JavaScript.</p></noscript>\n"
        "</body>\n</html>\n"
    )
