"""What a page can ask for: one table from the name of a question to the query that answers it.

The server answers `/api/NAME` from here, and the report asks the same questions beforehand and
writes the answers into the page. A query of a run gets its reader; one of all runs gets the index.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stepladder.dashboard.queries import (
    comparing,
    configs,
    curves,
    draws,
    events,
    films,
    held_out,
    labels,
    overview,
    playing,
    practice,
    story,
    sweeps,
    timeline,
)
from stepladder.dashboard.queries.damage import naming_damage
from stepladder.dashboard.run_index import RunIndex
from stepladder.errors import ConfigError
from stepladder.runs import RunReader

AskedWords = Mapping[str, str]
"""The words of a question: text as it stands in the address."""

OF_A_RUN: Mapping[str, Callable[[RunReader, AskedWords], Any]] = {
    "axes": curves.axes,
    "draws": draws.draws,
    "events": events.events,
    "family": labels.family,
    "films": films.films,
    "held-out": held_out.held_out,
    "judged": comparing.judged,
    "labels": labels.labels,
    "marks": events.marks,
    "metrics": curves.metrics,
    "practice": practice.practice,
    "series": curves.series,
    "settings": configs.settings,
    "story": story.story,
    "timeline": timeline.timeline,
}
"""Questions about the one run that ``run=NAME`` names."""

OF_ALL: Mapping[str, Callable[[RunIndex, AskedWords], Any]] = {
    "difference": comparing.difference,
    "overview": overview.overview,
    "play": playing.play,
    "playground": playing.playground,
    "played": playing.played,
    "played-seeds": playing.played_seeds,
    "sweep": sweeps.sweep,
    "sweeps": sweeps.sweeps,
}
"""Questions about several runs, or about none."""


def answer(index: RunIndex, name: str, params: AskedWords) -> Any:
    """Return the answer to a question as plain JSON.

    Raises:
        StepladderError: The question is unknown or wrong, or the run cannot be read.
    """
    if name in OF_ALL:
        return plain(OF_ALL[name](index, params))
    if name not in OF_A_RUN:
        known = ", ".join([*OF_ALL, *OF_A_RUN])
        raise ConfigError(f"there is no question {name!r}; there are {known}.")
    if "run" not in params:
        raise ConfigError(f"the question {name!r} needs the name of a run: run=NAME.")
    reader = index.reader(params["run"])
    with naming_damage(reader.folder):
        return plain(OF_A_RUN[name](reader, params))


_PLAIN = (int, str, bool, type(None))


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; what is no such value becomes None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        # Nearly all entries are numbers of curves, which need no call of their own.
        return [
            one
            if type(one) in _PLAIN or (type(one) is float and math.isfinite(one))
            else plain(one)
            for one in value
        ]
    # A damaged database may hold bytes in the place of anything.
    return value if isinstance(value, str | int | None) else None
