"""What became of the draws: how many ended how, and how old their plans were.

Read off the mailboxes by `host`; shown by the vector wrappers.
"""

from dataclasses import dataclass

from stepladder.arrays import Words
from stepladder.compiled import compiled
from stepladder.plans.record import RecordFields
from stepladder.records import Records


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


@compiled
def measure_staleness(
    records: Records[RecordFields], count: int, tick: int, last: Words, histogram: Words
) -> None:
    """Count by how many collections the plan of each draw lagged behind.

    An env draws after its previous episode has ended. If the records of that moment had been
    collected before the draw, the draw is fresh.

    Args:
        records: The first `count` are those just collected.
        count: How many there are.
        tick: Number of this collection.
        last: Per env the collection that took its previous record. Changed in place.
        histogram: Draws by lag; the last entry counts all larger ones. Changed in place.
    """
    for index in range(count):
        record = records[index]
        lag = max(0, last[record.env_index] - record.tick)
        histogram[min(lag, len(histogram) - 1)] += 1
        last[record.env_index] = tick
