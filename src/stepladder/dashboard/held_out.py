"""The table of the report that says what was learnt: random play and the policy, side by side.

Takes the events of evaluations that a training has written; gives HTML. Everything that comes from
a run is escaped here, and what is damaged is left out.
"""

import math
from collections.abc import Mapping
from typing import Any

from stepladder.dashboard.page import MISSING, escape
from stepladder.dashboard.view import RunView
from stepladder.runs.evaluation_events import (
    WAYS,
    Scores,
    figure_of,
    interval_of,
    scores_by_way,
)

RANDOM = WAYS[0]


def held_out_table(run: RunView) -> str:
    """Return the last evaluation of a run, random play beside it; empty if there was none."""
    own, step, measured = "", 0, dict[str, Scores]()
    for event in run.events:
        found = scores_by_way(event.data) if event.kind in ("baseline", "evaluation") else {}
        if event.kind == "evaluation" and found:
            own, step = next(iter(found)), event.step
            # Of an earlier evaluation nothing stays; random play is always the same.
            measured = {way: measured[way] for way in measured if way == RANDOM}
        measured |= found
    if not own:
        return ""
    ways = [way for way in WAYS if way in measured]
    heads = "".join(
        f'<th class="num">{way}{" (own way)" if way == own else ""}</th>' for way in ways
    )
    rows = [
        f"<tr><th>{escape(name)}</th>"
        + "".join(f'<td class="num">{_cell(measured[way].get(name, {}))}</td>' for way in ways)
        + "</tr>"
        for name in measured[own]
    ]
    caption = f"{escape(run.name)}, at step {step:,}: {figure_of(measured[own])}"
    return (
        f'<div class="wide"><table class="held"><caption>{caption}</caption>'
        f"<thead><tr><th></th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(score: Mapping[str, Any]) -> str:
    """Return a figure with its interval of 95 %."""
    measured = interval_of(score) or {}
    value, low, high = (_number(measured.get(end)) for end in ("value", "low", "high"))
    interval = "" if MISSING in (low, high) else f' <span class="note">{low} to {high}</span>'
    return f"{value}{interval}"


def _number(value: Any) -> str:
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return f"{value:.2f}" if is_number else MISSING
