"""The course of one player: what it reached, what it practised, and when it was done.

Between a learner that is being played and the chart of its course. Groups are joined until they
can be distinguished in a chart.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.configs.codec import to_json
from stepladder.simulator.base import Scenario, Simulator

MOST_GROUPS = 12
"""Groups in a course; more are joined, neighbours in the order of learning."""


@dataclass(frozen=True, kw_only=True)
class PlayedCourse:
    """What one player did."""

    name: str
    """The curriculum, ``uniform``, or the oracle's policy."""

    groups: tuple[str, ...]
    """Names of the groups of tasks, those learned first in front."""

    samples: list[int] = field(default_factory=list[int])
    """Samples at each point; the first is 0."""

    progress: list[float] = field(default_factory=list[float])
    """How much of what counts is learned, in [0, 1]."""

    success: list[list[float]] = field(default_factory=list[list[float]])
    """Success per group and point; on held-out tasks, where the learner knows such."""

    draws: list[list[float]] = field(default_factory=list[list[float]])
    """Share of the plays since the point before, per group and point."""

    done_at: int | None = None
    """Samples until all that counts was learned; None if it never was."""

    verdict: str = ""
    """How it ended, in words."""

    reasons: tuple[str, ...] = ()
    """What the curriculum says of itself at the end."""

    engine: str = "compiled"
    is_cut: bool = False
    """Whether the time for an answer was over before the last point."""

    def to_json(self) -> dict[str, Any]:
        """Return the course as plain JSON."""
        return {name: to_json(value) for name, value in vars(self).items()}


class Recorder:
    """Notes the course of a learner while it is played."""

    def __init__(self, place: Scenario, simulator: Simulator):
        names, groups = place.groups
        self.names, self._groups = _joined(names, groups)
        self._simulator = simulator
        self._sizes = np.bincount(self._groups, minlength=len(self.names))
        self._plays = np.zeros(len(self.names))
        self.samples: list[int] = []
        self.progress: list[float] = []
        self._success: list[Floats] = []
        self._draws: list[Floats] = []

    def note(self) -> None:
        """Note where the learner is now."""
        learner, count = self._simulator, len(self.names)
        played = learner.plays_by_task().astype(np.float64)
        plays = np.bincount(self._groups, played, minlength=count)
        new = plays - self._plays
        self._plays = plays
        self.samples.append(learner.num_samples)
        self.progress.append(learner.progress)
        success = np.bincount(self._groups, learner.judged_success(), minlength=count)
        self._success.append(success / self._sizes)
        self._draws.append(new / max(1.0, new.sum()))

    def course(self, name: str, **others: Any) -> PlayedCourse:
        """Return what was noted."""
        learner = self._simulator
        return PlayedCourse(
            name=name,
            groups=self.names,
            samples=self.samples,
            progress=_short(np.array(self.progress)),
            success=[_short(row) for row in np.array(self._success).T],
            draws=[_short(row) for row in np.array(self._draws).T],
            done_at=learner.done_at,
            **others,
        )


def _joined(names: tuple[str, ...], groups: Words) -> tuple[tuple[str, ...], Words]:
    """Return groups joined to at most `MOST_GROUPS`, and the group of each task."""
    count = len(names)
    if count <= MOST_GROUPS:
        return names, groups
    parts = np.array_split(np.arange(count), MOST_GROUPS)
    joined = tuple(
        names[part[0]] if len(part) == 1 else f"{names[part[0]]} to {names[part[-1]]}"
        for part in parts
    )
    which = np.repeat(np.arange(MOST_GROUPS), [len(part) for part in parts])
    return joined, which[groups]


def _short(values: Floats) -> list[float]:
    """Return numbers with six digits after the point: a chart shows no more."""
    return np.round(values, 6).tolist()
