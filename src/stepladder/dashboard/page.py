"""The HTML page around a report: escaping, style sheet, script, data.

The page loads nothing: style and script are written into it, and a content security policy
forbids every request and every script but its own.
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
    script = asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>\n{asset('report.css')}</style>\n</head>\n<body>\n{body}\n"
        f'<script type="application/json" id="stepladder-data">{embedded_json(data)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )
