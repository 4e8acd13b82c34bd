"""Episodes that have ended: what an epoch reports of them, and totals.

Listens to a curriculum, for the training loop and for loops of the user.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stepladder.plans.record import RecordArray
from stepladder.saving.saved_array import MAX_COUNT, Part, SavedArray, copy_arrays
from stepladder.saving.saved_fields import read_count, read_numbers
from stepladder.saving.snapshot import Snapshot

NUM_LATEST = 100
"""Episodes over which the latest return is a mean."""


@dataclass
class Episodes:
    """Episodes that ended since the last report, and totals."""

    returns: list[float] = field(default_factory=list[float])
    lengths: list[int] = field(default_factory=list[int])
    successes: list[float] = field(default_factory=list[float])
    num_ended: int = 0
    """Episodes in all."""

    latest: deque[float] = field(default_factory=lambda: deque[float](maxlen=NUM_LATEST))
    """Returns of the latest ones."""

    def take(self, records: RecordArray) -> None:
        """Count what a curriculum has observed."""
        returns = records["episode_return"].tolist()
        self.returns += returns
        self.lengths += records["length"].tolist()
        successes = records["success"]
        self.successes += successes[successes == successes].tolist()
        self.num_ended += len(returns)
        self.latest.extend(returns)

    def stats(self) -> dict[str, list[float]]:
        """Return what is reported, by the names of infos, and start counting from 0."""
        stats: dict[str, list[Any]] = {
            "episode/r": self.returns,
            "episode/l": self.lengths,
            "curriculum_success": self.successes,
        }
        self.returns, self.lengths, self.successes = [], [], []
        return {name: values for name, values in stats.items() if values}

    def snapshot(self) -> Snapshot:
        """Return everything counted so far."""
        return Snapshot(
            {"num_ended": self.num_ended, "latest": list(self.latest)},
            copy_arrays(self._saved_arrays()),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Continue counting where a snapshot was made.

        Raises:
            SnapshotError: It is damaged. Then nothing has changed.
        """
        state, place = snapshot.state, snapshot.place
        num_ended = read_count(state.get("num_ended"), f"num_ended of {place}")
        latest = read_numbers(state.get("latest"), f"latest of {place}")
        read = [one.read(snapshot.arrays, place).tolist() for one in self._saved_arrays()]
        self.returns, self.lengths, self.successes = read
        self.num_ended = num_ended
        self.latest = deque(latest, maxlen=NUM_LATEST)

    def _saved_arrays(self) -> list[SavedArray]:
        lengths = np.array(self.lengths, dtype=np.int64)
        return [
            SavedArray("returns", np.array(self.returns, dtype=float), max_length=MAX_COUNT),
            SavedArray("lengths", lengths, (Part.count("length"),), max_length=MAX_COUNT),
            SavedArray(
                "successes",
                np.array(self.successes, dtype=float),
                (Part.share("success"),),
                max_length=MAX_COUNT,
            ),
        ]
