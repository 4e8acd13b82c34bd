"""Tables of the report: runs, settings, last values, events, tasks.

Takes `RunView`s, gives HTML. Everything that comes from a run is escaped here.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stepladder.dashboard.grouping import natural_key
from stepladder.dashboard.page import MISSING, escape, format_value, shortened
from stepladder.dashboard.view import RunView
from stepladder.runs.reader import Event

MAX_EVENTS = 200
"""Events shown from either end of a run."""
MAX_TABLE_TASKS = 200
_TASK_COLUMNS = ("task", "label", "prob", "score", "samples", "success")
_MAX_COLUMNS = 12
_FEW = 20
_MAIN = (
    "evaluation/success",
    "evaluation/win_rate",
    "evaluation/return",
    "metric/epoch",
    "env_curriculum_stats/mean_lp_score",
    "env_curriculum_stats/pool_lp_gini",
    "env_curriculum_stats/pool_occupancy_gini",
    "env_curriculum_stats/sampling_gini",
)


def runs_table(runs: Sequence[RunView]) -> str:
    """Return what was run: one row per run."""
    head = "".join(
        f"<th>{name}</th>"
        for name in ("run", "kind", "status", "seed", "version", "began", "agent steps")
    )
    rows: list[str] = []
    for run in runs:
        steps = format_value(run.last_step) if run.metrics else "no metrics yet"
        reader, info = run.reader, run.reader.info
        began = info.created.replace("T", " ").replace("+00:00", " UTC")
        cells = (reader.kind, reader.status, reader.seed, info.version, began, steps)
        shown = "".join(f"<td>{escape(MISSING if c is None else c)}</td>" for c in cells)
        rows.append(f"<tr><th>{swatch(run)}{escape(run.name)}</th>{shown}</tr>")
    return _table(head, rows, "runs")


def swatch(run: RunView) -> str:
    """Return a piece of the run's line, which `report.js` colours."""
    return (
        f'<svg class="swatch" viewBox="0 0 22 8" aria-hidden="true">'
        f'<path data-swatch="{run.index}" d="M1 4H21"/></svg>'
    )


def settings_table(runs: Sequence[RunView]) -> str:
    """Return the settings; those in which runs differ stand apart and are marked."""
    flat = [flattened(run.reader.config) for run in runs]
    keys = sorted({key for settings in flat for key in settings}, key=natural_key)
    differing = [k for k in keys if len({settings.get(k) for settings in flat}) > 1]
    alike = [k for k in keys if k not in set(differing)]
    parts: list[str] = []
    if differing:
        head = "<th>setting</th>" + "".join(f"<th>{escape(run.name)}</th>" for run in runs)
        rows = [
            f'<tr class="differs"><th>{escape(k)}</th>'
            + "".join(f"<td>{_setting(s.get(k))}</td>" for s in flat)
            + "</tr>"
            for k in differing
        ]
        table = _table(head, rows, "settings")
        title = f"Settings that differ ({len(differing)})"
        parts.append(_fold(title, table, opened=len(differing) <= _FEW))
    if alike:
        rows = [f"<tr><th>{escape(k)}</th><td>{_setting(flat[0][k])}</td></tr>" for k in alike]
        title = "Settings" if len(runs) == 1 else "Settings that are the same"
        table = _table("<th>setting</th><th>value</th>", rows, "settings")
        parts.append(_fold(f"{title} ({len(alike)})", table))
    return "".join(parts)


def flattened(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested settings as dotted names with their values written as JSON."""
    flat: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            flat.update(flattened(value, f"{prefix}{key}."))
        else:
            written = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            flat[f"{prefix}{key}"] = written
    return flat


def _setting(value: str | None) -> str:
    if value is None:
        return f'<span class="note">{MISSING}</span>'
    if len(value) <= 120:
        return escape(value)
    return f'<span title="{escape(value)}">{escape(shortened(value, 120))}</span>'


def last_values_table(runs: Sequence[RunView]) -> str:
    """Return the last value of each main metric in each run."""
    present = {name for run in runs for name in run.metrics}
    names = sorted((n for n in present if n.startswith("overview/")), key=natural_key)
    names += [n for n in _MAIN if n in present]
    if not names:
        return ""
    head = "<th>last value of</th>" + "".join(f"<th>{escape(run.name)}</th>" for run in runs)
    rows = [
        f"<tr><th>{escape(n)}</th>"
        + "".join(f'<td class="num">{format_value(r.last_values.get(n))}</td>' for r in runs)
        + "</tr>"
        for n in names
    ]
    return _table(head, rows, "last")


def events_table(run: RunView) -> str:
    """Return the events of a run with their reasons: the first and the last of many."""
    total = len(run.events)
    if not total:
        return ""
    first, last, left_out = run.events, [], total - 2 * MAX_EVENTS
    if left_out > 0:
        first, last = run.events[:MAX_EVENTS], run.events[-MAX_EVENTS:]
    rows = [_event(event) for event in first]
    if left_out > 0:
        rows.append(
            f'<tr class="note"><td></td><td colspan="3">{left_out:,} events left out</td></tr>'
        )
    rows += [_event(event) for event in last]
    head = '<th class="num">agent step</th><th>event</th><th>what happened</th><th>details</th>'
    title = f"{escape(run.name)} ({total:,})"
    return _fold(title, _table(head, rows, "events"), swatch(run), opened=total <= _FEW)


def _event(event: Event) -> str:
    details = ", ".join(f"{name} {value}" for name, value in flattened(event.data).items())
    return (
        f'<tr><td class="num">{event.step:,}</td><td>{escape(event.kind)}</td>'
        f'<td>{escape(event.text)}</td><td class="details">{_setting(details)}</td></tr>'
    )


def tasks_table(run: RunView) -> str:
    """Return the latest per-task snapshot, likeliest tasks first."""
    steps = run.reader.task_steps()
    if not steps:
        return ""
    snapshot = run.reader.tasks(steps[-1])
    names = [c for c in _TASK_COLUMNS if c in snapshot]
    names += [c for c in snapshot if c not in _TASK_COLUMNS][: _MAX_COLUMNS - len(names)]
    total = len(snapshot["task"])
    order = list(range(total))
    if "prob" in snapshot:
        probs = np.nan_to_num(np.asarray(snapshot["prob"], np.float64), nan=-1.0)
        order = np.argsort(-probs, kind="stable").tolist()
    rows = [
        "<tr>" + "".join(_task_cell(snapshot[name][k]) for name in names) + "</tr>"
        for k in order[:MAX_TABLE_TASKS]
    ]
    head = "".join(
        f"<th{'' if isinstance(snapshot[n], list) else ' class=num'}>"
        f'<button type="button">{escape(n)}</button></th>'
        for n in names
    )
    note = f"{total:,} tasks at step {steps[-1]:,}"
    if total > MAX_TABLE_TASKS:
        note += f"; {total - MAX_TABLE_TASKS:,} less likely ones left out"
    title = f"{escape(run.name)} ({note})"
    return _fold(title, _table(head, rows, "tasks sortable"), swatch(run))


def _task_cell(value: Any) -> str:
    if isinstance(value, str):
        return f"<td>{escape(value)}</td>"
    number = float(value) if value is not None else math.nan
    known = f' data-value="{number!r}"' if math.isfinite(number) else ""
    return f'<td class="num"{known}>{format_value(number)}</td>'


def _table(head: str, rows: Sequence[str], kind: str) -> str:
    return (
        f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _fold(title: str, content: str, mark: str = "", *, opened: bool = False) -> str:
    """Return content that is unfolded by a click, and when the page is printed."""
    state = " open" if opened else ""
    return f"<details{state}><summary>{mark}{title}</summary>{content}</details>"
