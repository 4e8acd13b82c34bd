"""A run as the report sees it: its reader, and what every part of the page needs of it.

The only module of `dashboard` that opens runs. Everything after it works on plain values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stepladder.dashboard.series import Steps, Values, drawable, smoothed
from stepladder.runs import RunReader

MAX_MARKERS = 40
"""Most events of one kind that are marked in the plots; more would hide the lines."""


@dataclass(frozen=True, kw_only=True)
class Happening:
    """One event of a run, as plain values."""

    step: int
    kind: str
    text: str
    data: Any


@dataclass(kw_only=True)
class RunView:
    """One run of a report."""

    index: int
    """Place in the report, which decides its colour."""

    name: str
    """Folder name, with as much of the path as tells runs of the same name apart."""

    reader: RunReader
    smooth: int
    metrics: frozenset[str]
    last_values: dict[str, float]
    last_step: int
    """Last step of any metric or event; 0 if there is none yet."""

    happenings: list[Happening]
    markers: list[Happening] = field(init=False)
    """Events to be marked in the plots: all those of the rarer kinds."""

    def __post_init__(self) -> None:
        counts: dict[str, int] = {}
        for happening in self.happenings:
            counts[happening.kind] = counts.get(happening.kind, 0) + 1
        self.markers = [h for h in self.happenings if counts[h.kind] <= MAX_MARKERS]

    def series(self, metric: str) -> tuple[Steps, Values]:
        """Return one metric, smoothed as asked; empty if the run does not have it."""
        steps, values = self.reader.metric(metric)
        # A running run may have gone on since it was opened; the axes end where they were set.
        known = int(np.searchsorted(steps, self.last_step, side="right"))
        steps, values = steps[:known], values[:known]
        return steps, smoothed(drawable(values), self.smooth)


def open_runs(folders: Sequence[Path | str], smooth: int) -> list[RunView]:
    """Open every run and give it a name of its own."""
    paths = [Path(folder) for folder in folders]
    names = distinct_names(paths)
    return [
        _open(index, name, path, smooth)
        for index, (name, path) in enumerate(zip(names, paths, strict=True))
    ]


def distinct_names(folders: Sequence[Path]) -> list[str]:
    """Return the folder names, longer by parent folders where two are alike.

    The same folder given twice is numbered.
    """
    parts = [folder.resolve().parts for folder in folders]
    names: list[str] = []
    for mine in parts:
        others = {p for p in parts if p != mine}
        depth = 1
        while depth < len(mine) and any(p[-depth:] == mine[-depth:] for p in others):
            depth += 1
        names.append("/".join(mine[-depth:]))
    return [
        f"{name} ({names[:place].count(name) + 1})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _open(index: int, name: str, path: Path, smooth: int) -> RunView:
    reader = RunReader(path)
    metrics = reader.metric_names()
    happenings = [
        Happening(step=int(e.step), kind=str(e.kind), text=str(e.text), data=e.data)
        for e in reader.events()
    ]
    lasts = [h.step for h in happenings] + reader.times()[0][-1:].tolist()
    return RunView(
        index=index,
        name=name,
        reader=reader,
        smooth=smooth,
        metrics=frozenset(metrics),
        last_values=dict(reader.last_metrics()),
        last_step=max(lasts, default=0),
        happenings=happenings,
    )
