"""A run as the report sees it: its reader, and what every part of the page needs of it.

The only module of `dashboard` that opens runs. Everything after it works on plain values.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stepladder.dashboard.series import Steps, Values, drawable, smoothed
from stepladder.runs import RunReader

MAX_MARKERS = 40
"""Most events of one kind that are marked in the plots; more would hide the lines."""


class RunView:
    """One run of a report.

    Args:
        index: Place in the report, which decides its colour.
        name: Folder name, with as much of the path as tells runs of the same name apart.
        folder: Where the run is.
        smooth: Points of the moving average of every line.
    """

    def __init__(self, index: int, name: str, folder: Path, smooth: int):
        self.index, self.name, self.smooth = index, name, smooth
        self.reader = RunReader(folder)
        self.metrics = frozenset(self.reader.metric_names())
        self.last_values = dict(self.reader.last_metrics())
        self.events = self.reader.events()
        counts = Counter(event.kind for event in self.events)
        self.markers = [event for event in self.events if counts[event.kind] <= MAX_MARKERS]
        """Events to be marked in the charts: all those of the rarer kinds."""
        lasts = [event.step for event in self.events] + self.reader.times()[0][-1:].tolist()
        self.last_step = max(lasts, default=0)
        """Last step of any metric or event; 0 if there is none yet."""

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
    named = enumerate(zip(names, paths, strict=True))
    return [RunView(index, name, path, smooth) for index, (name, path) in named]


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
