"""The page frozen: one HTML file that shows one run, or several, without a server.

Asks the same questions as the live page (`answers`) beforehand and writes the answers into the
page. The file needs no network and can be mailed or kept beside the run.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from stepladder.dashboard.answers import answer
from stepladder.dashboard.page import frozen_page
from stepladder.dashboard.queries.films import film_file
from stepladder.dashboard.queries.labels import LABEL_FAMILIES
from stepladder.dashboard.run_index import RunIndex
from stepladder.errors import ConfigError, StepladderError
from stepladder.files import read_bytes, replacing
from stepladder.runs import RunReader
from stepladder.visible import one_visible_line

QUESTIONS: Sequence[tuple[str, Mapping[str, str]]] = (
    *((name, {}) for name in ("axes", "labels", "marks", "story", "held-out", "timeline")),
    *((name, {}) for name in ("draws", "practice", "films", "settings")),
    ("draws", {"by": "task"}),
    ("events", {"limit": "500"}),
    *(("family", {"of": name}) for name in LABEL_FAMILIES),
)
"""What the page of a run asks for, besides its metrics."""

MOST_FILM_BYTES = 12 * 2**20
"""Films that are written into a report, all together; the rest is left out."""

MANY_CURVES, FEWER_POINTS = 400, "150"
"""From so many curves on, each has so many points, so that the file stays small."""


def write_report(
    run_folders: Sequence[Path | str],
    out: Path | str,
    *,
    metrics: Sequence[str] | None = None,
    smooth: int = 1,
) -> Path:
    """Write a report of one or several runs as a single HTML file.

    Args:
        run_folders: The runs, or folders that hold runs. They may still be running.
        out: The file to write. An existing one is replaced in one go, so that a reader sees the
            old report or the new one and nothing between.
        metrics: Which metrics to plot: names, or patterns with ``*`` and ``?``. None plots all.
        smooth: Number of logged points in the moving average of every line; 1 shows what was
            logged.

    Returns:
        The path of the file.

    Raises:
        ConfigError: There is no run, `smooth` is below 1, `out` is a folder, or a pattern matches
            no metric.
        RunError: A folder has no run, or one that cannot be read.
    """
    out = Path(out)
    if isinstance(run_folders, (str, Path)) or not run_folders:
        raise ConfigError(f"run_folders must be a list of run folders; got {run_folders!r}.")
    if smooth < 1:
        raise ConfigError(f"smooth must be at least 1 (no smoothing); got {smooth}.")
    if out.is_dir():
        raise ConfigError(f"out must be a file, but {str(out)!r} is a folder; add a file name.")
    text = render(run_folders, metrics, smooth)
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as file:
        file.write(text.encode())
    return out


def render(
    run_folders: Sequence[Path | str], metrics: Sequence[str] | None = None, smooth: int = 1
) -> str:
    """Return the report as HTML text."""
    index = RunIndex(run_folders)
    names = list(index.scan())
    for folder in index.without_runs():
        # Says what is wrong with it.
        RunReader(folder)
    named = {name: index.reader(name).metric_names() for name in names}
    chosen = set(selected((metric for found in named.values() for metric in found), metrics))
    answers = {key("overview", {}): answer(index, "overview", {})}
    num_curves = sum(len(chosen.intersection(found)) for found in named.values())
    points = {"points": FEWER_POINTS} if num_curves > MANY_CURVES else {}
    films = dict[str, str]()
    for name in names:
        run = {"run": name}
        for question, words in QUESTIONS:
            answers[key(question, {**run, **words})] = _answer(index, question, {**run, **words})
        found = [m for m in answer(index, "metrics", run) if m["name"] in chosen]
        answers[key("metrics", run)] = found
        for metric in found:
            words = {**run, "name": metric["name"]}
            answers[key("series", words)] = _answer(index, "series", {**words, **points})
        films |= _films(index, name, answers)
    title = ", ".join(names) if len(names) <= 3 else f"{len(names)} runs"
    view = {"smooth": smooth // 2} if smooth > 1 else {}
    data = {"answers": answers, "films": films, "runs": names, "view": view}
    return frozen_page(f"{title} - Stepladder", data)


def key(question: str, words: Mapping[str, str]) -> str:
    """Return under what a page finds an answer; `static/source.js` builds the same."""
    parts = [question, *([name, words[name]] for name in sorted(words))]
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def selected(names: Any, patterns: Sequence[str] | None) -> list[str]:
    """Return the names that match at least one pattern.

    Raises:
        ConfigError: A pattern matches nothing although there are metrics.
    """
    known = sorted(set(names))
    if patterns is None or not known:
        return known
    kept: set[str] = set()
    for pattern in patterns:
        found = [name for name in known if name == pattern or fnmatchcase(name, pattern)]
        if not found:
            near = get_close_matches(pattern, known, n=3, cutoff=0.3) or known[:3]
            raise ConfigError(
                f"metrics names {pattern!r}, which no run has; "
                f"expected names or patterns such as {', '.join(map(repr, near))}."
            )
        kept.update(found)
    return [name for name in known if name in kept]


def _answer(index: RunIndex, question: str, words: Mapping[str, str]) -> Any:
    try:
        return answer(index, question, words)
    except (StepladderError, OSError) as error:
        return {"problem": one_visible_line(error)}


def _films(index: RunIndex, name: str, answers: dict[str, Any]) -> dict[str, str]:
    """Return the films of a run as addresses that hold them; those too large are forgotten."""
    place = key("films", {"run": name})
    found, kept, left = dict[str, str](), list[Any](), MOST_FILM_BYTES
    listed = answers[place]
    for film in listed if isinstance(listed, list) else []:
        if film["bytes"] > left:
            continue
        path, kind = film_file(index.folder(name), film["name"])
        content = base64.b64encode(read_bytes(path, left)).decode()
        found[key("film", {"name": film["name"], "run": name})] = f"data:{kind};base64,{content}"
        left -= film["bytes"]
        kept.append(film)
    answers[place] = kept
    return found
