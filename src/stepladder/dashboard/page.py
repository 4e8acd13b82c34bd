"""The HTML around the page: live, where files are loaded by name, and frozen, all in one file.

Used by the server and by the report. A frozen page loads nothing: the same modules, the style
sheet, uPlot and all answers are written into it, and a content security policy forbids every
request and every script but these.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

UPLOT = "vendor/uplot"
LIVE, FROZEN = "static/live.js", "static/frozen.js"
"""The modules that a page begins with."""

STYLES = (f"{UPLOT}/uPlot.min.css", "static/style.css")
DATA_ID = "stepladder-data"
"""Id of the element with the answers of a report."""

_IMPORT = re.compile(r'^import \{ ([^}]+) \} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|class|function|async function) (\w+))", re.MULTILINE)

# Not allowed in XML, and of no use to a reader. Lone surrogates cannot be written as UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def escape(text: object) -> str:
    """Return text for use in HTML and its attributes, whatever it holds."""
    return html.escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", str(text)), quote=True)


def embedded_json(data: Any) -> str:
    """Return JSON that can stand inside a script element without ending it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def asset(name: str) -> str:
    """Return the text of a file that is shipped beside this module."""
    return files("stepladder.dashboard").joinpath(name).read_text(encoding="utf-8")


@cache
def bundle(entry: str) -> str:
    """Return a module and all that it imports as one script.

    Modules in one HTML file cannot import each other by name. Each becomes a function that returns
    what the module exports, in the order in which they need each other.
    """
    order: dict[str, str] = {}

    def add(name: str) -> None:
        text, folder = asset(name), PurePosixPath(name).parent
        for _, path in _IMPORT.findall(text):
            if _joined(folder, path) not in order:
                add(_joined(folder, path))
        places = {module: place for place, module in enumerate(order)}

        def taken(found: "re.Match[str]") -> str:
            place = places[_joined(folder, found[2])]
            return f"const {{ {found[1].replace(' as ', ': ')} }} = modules[{place}];\n"

        exported = ", ".join(_EXPORT.findall(text))
        body = _EXPORT.sub("", _IMPORT.sub(taken, text))
        order[name] = f"modules.push((() => {{\n{body}return {{ {exported} }};\n}})());\n"

    add(entry)
    return f'(() => {{\n"use strict";\nconst modules = [];\n{"".join(order.values())}}})();\n'


def _joined(folder: PurePosixPath, path: str) -> str:
    """Return the name of the file that an import means."""
    parts: list[str] = []
    for part in (folder / path).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def live_page() -> str:
    """Return the page as the server gives it: its modules and styles are loaded by name."""
    styles = "".join(f'<link rel="stylesheet" href="/{name}">\n' for name in STYLES)
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>Stepladder</title>\n"
        f'<link rel="icon" href="/static/icon.svg">\n{styles}'
        f'<script src="/{UPLOT}/uPlot.iife.min.js"></script>\n'
        f'<script type="module" src="/{LIVE}"></script>\n'
        "</head>\n<body>\n"
        "<noscript><p>This page is drawn by JavaScript.</p></noscript>\n"
        "</body>\n</html>\n"
    )


def frozen_page(title: str, data: Mapping[str, Any]) -> str:
    """Return a page with all answers in it, which needs neither a server nor a network.

    Args:
        title: Plain text.
        data: Plain JSON: ``answers`` by question, ``films``, ``runs`` and the first ``view``.
    """
    scripts = [asset(f"{UPLOT}/uPlot.iife.min.js"), bundle(FROZEN)]
    styles = "\n".join(asset(name) for name in STYLES)
    policy = (
        f"default-src 'none'; style-src {_digest(styles)}; img-src data:; media-src data:; "
        f"script-src {' '.join(map(_digest, scripts))}; base-uri 'none'; form-action 'none'"
    )
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>{styles}</style>\n</head>\n<body>\n"
        "<noscript><p>This page is drawn by JavaScript.</p></noscript>\n"
        f'<script type="application/json" id="{DATA_ID}">{embedded_json(data)}</script>\n'
        f"<!-- Charts by uPlot.\n{asset(f'{UPLOT}/LICENSE')}-->\n"
        f"{''.join(f'<script>{script}</script>' for script in scripts)}\n</body>\n</html>\n"
    )


def _digest(text: str) -> str:
    """Return the source of a policy that allows this text and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
