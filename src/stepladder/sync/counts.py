"""What became of the draws: how many ended how, and how old their plans were.

Read off the mailboxes by `host`; shown by the vector wrappers.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class EpisodeCounts:
    """What became of every draw. ``started == finished + aborted + failed + in_flight``."""

    started: int
    finished: int
    """Observed by the curriculum, each exactly once."""

    aborted: int
    """Given up: the env was reset too early, or its worker died."""

    failed: int
    """Not played: the env could not build the task."""

    in_flight: int
    """Being played, or played and not yet collected."""


@dataclass(frozen=True)
class Staleness:
    """How many collections the plan of a draw lagged behind; 0 is fresh."""

    mean: float
    largest: int
    draws_by_lag: tuple[int, ...]
