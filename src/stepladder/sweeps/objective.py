"""What a sweep measures: simulated learners (`simulator.swept`) or trainings (`training.swept`).

Between `space`, whose values it is given, and `trials`, which keeps what it measures.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from stepladder.sweeps.space import SweepParams


class Measured(Protocol):
    """What was measured of one choice of values, over all seeds."""

    @property
    def cost(self) -> float:
        """What a sweep minimises."""
        ...

    @property
    def ends(self) -> tuple[float, float]:
        """The interval that decides whether two choices differ."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        ...


Wait = Callable[[], Measured]
"""Waits for a trial; raises `ConfigError` if its values cannot be played."""

Start = Callable[[int, SweepParams], Wait]
"""Begins the trial of a number with these values; raises as `Wait` does."""

OnNews = Callable[[str], None]
"""Called with one line about the trials that are being played."""


class Objective(Protocol):
    """What all trials have in common, and how one is measured."""

    @property
    def seed(self) -> int:
        """First of the seeds; a search also depends on it."""
        ...

    def fields(self) -> dict[str, Any]:
        """Return every field that can be varied, by name, with its annotation."""
        ...

    def settings(self) -> dict[str, Any]:
        """Return what a sweep that is resumed must share with this one, as plain JSON."""
        ...

    def check(self, params: SweepParams) -> None:
        """Raise unless a choice of values can be played.

        Raises:
            ConfigError: A value is wrong, or values contradict each other.
        """
        ...

    def players(
        self, folder: Path, jobs: int | None, on_news: OnNews | None
    ) -> AbstractContextManager[Start]:
        """Open what plays trials; leaving it by an exception ends what is being played.

        Args:
            folder: Of the sweep.
            jobs: How much is played at once; None is as much as pays off.
            on_news: Called with one line about the trials, where they take long.
        """
        ...

    def measured(self, data: Mapping[str, Any]) -> Measured:
        """Return what `Measured.to_json` has written."""
        ...
