"""Why: typed answers to "why this task" and "why has nothing advanced".

Made by `Curriculum.explain`. Data first: every field is a number, a name or a tuple of those, and
`to_json` gives plain JSON. Text second: `str()` says the same in words.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepladder.arrays import Floats
from stepladder.configs.codec import fields_to_json
from stepladder.errors import counted


class JsonDataclass:
    """A dataclass that can be written as JSON."""

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain JSON."""
        return fields_to_json(self)


@dataclass(frozen=True, kw_only=True)
class Change(JsonDataclass, ABC):
    """A decision that a method keeps in its history, such as a change of stage; `str` says why."""

    episode: int
    """Records observed when it happened."""

    step: int
    """Env steps in those records."""

    plan_version: int
    """First version of the plan that follows the decision."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """What happened, as `CurriculumEvent.kind`."""

    @property
    @abstractmethod
    def headline(self) -> str:
        """Where it has led, in a few words for the log: ``advanced to: hard``."""


@dataclass(frozen=True, kw_only=True)
class Explanation(JsonDataclass):
    """What a curriculum is doing, and why."""

    curriculum: str
    """Name of the method."""

    num_tasks: int
    """Slots in the pool."""

    num_quarantined: int
    """Slots that are never drawn because no env could build their task."""

    episodes: int
    """Records observed so far."""

    plan_version: int
    """Version of the plan this explains."""

    num_crowded: int = 0
    """Tasks that get half of all draws or more, if they are one in a hundred or fewer; else 0."""

    crowded_share: float = 0.0
    """Their share of the draws."""

    target: str = ""
    """What the agent is for, in words; empty if all tasks count alike."""

    target_success: float | None = None
    """Success on the tasks that count, of late; None if nothing is known."""

    stepping_stones: float = 0.0
    """Share of the draws that go to tasks that do not count."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        quarantined = f", {self.num_quarantined} quarantined" if self.num_quarantined else ""
        headline = (
            f"{self.curriculum}: {counted(self.num_tasks, 'task')}{quarantined}, "
            f"{counted(self.episodes, 'episode')} observed, plan version {self.plan_version}."
        )
        return [headline, *self._about_target(), *self._warnings()]

    def _about_target(self) -> Iterator[str]:
        if self.target:
            known = self.target_success is not None
            success = f"success {self.target_success:.2f}" if known else "not played yet"
            yield (
                f"Target: {self.target}; {success}; {self.stepping_stones:.0%} of the draws go to "
                "tasks that do not count."
            )

    def _warnings(self) -> Iterator[str]:
        if self.num_crowded:
            yield (
                f"Warning: {self.num_crowded} of {self.num_tasks} tasks get "
                f"{self.crowded_share:.0%} of the draws, so the agent may memorise them. "
                "Lower max_share, or raise exploration."
            )

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True, kw_only=True)
class EvictingExplanation(Explanation):
    """What a curriculum that replaces tasks is doing."""

    num_evicted: int
    """Tasks that made room for others so far."""


@dataclass(frozen=True, kw_only=True)
class TaskExplanation(JsonDataclass):
    """Why one task is, or is not, being drawn."""

    slot: int
    generation: int
    name: str
    label: str
    prob: float
    """Probability of this task at the next draw."""

    reason: str
    """Why it is that, in one clause."""

    numbers: dict[str, float]
    """What was measured for this task."""

    origin: str = ""
    """What the task was made from, if it is an edit of another, in one clause."""

    def __str__(self) -> str:
        measured = ", ".join(f"{name} {value:.4g}" for name, value in self.numbers.items())
        return (
            f"Task {self.name!r} (label {self.label!r}, slot {self.slot}, generation "
            f"{self.generation}) is drawn with probability {self.prob:.4g}: {self.reason}."
            + (f" It is {self.origin}." if self.origin else "")
            + (f" Measured: {measured}." if measured else "")
        )


def crowd(probs: Floats) -> tuple[int, float]:
    """Return how many tasks get half of all draws, and their share, if they are suspiciously few.

    Args:
        probs: Probabilities of all tasks.

    Returns:
        The smallest number of tasks with half of the draws if that is one in a hundred or fewer,
        and their share; else 0 and 0.
    """
    most = len(probs) // 100
    if most == 0:
        return 0, 0.0
    sums = np.cumsum(-np.sort(-np.partition(probs, len(probs) - most)[len(probs) - most :]))
    if sums[-1] < 0.5:
        return 0, 0.0
    count = int(np.searchsorted(sums, 0.5))
    return count + 1, float(sums[count])
