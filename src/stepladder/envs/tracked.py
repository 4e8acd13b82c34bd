"""What a vector env with a curriculum can be asked, whichever library it belongs to.

Mixed into the wrappers of `vector` (Gymnasium) and `sb3` (Stable-Baselines3); everything is
answered by their tracker.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.envs.tracker import Tracker
from stepladder.saving.snapshot import Snapshot
from stepladder.sync import EpisodeCounts, Staleness


class Tracked:
    """Forwards to the tracker."""

    tracker: Tracker

    @property
    def counts(self) -> EpisodeCounts:
        """What became of every draw so far."""
        return self.tracker.host.counts

    @property
    def staleness(self) -> Staleness:
        """How far the plans of all draws lagged behind."""
        return self.tracker.host.staleness

    def check_agreement(self) -> int:
        """Return the version of the plan that every env has, or raise."""
        return self.tracker.check_agreement()

    def reporting_rows(self) -> npt.NDArray[np.int64] | None:
        """Return the envs that may have reported since they were last asked; None is any."""
        return None

    def can_save_envs(self) -> bool:
        """Whether the envs can be saved in the middle of an episode; most cannot."""
        return False

    def save_envs(self, *, in_flight: bool) -> Snapshot | None:
        """Return what the envs themselves need to go on exactly; most have nothing to give."""
        return None

    def read_envs(
        self, saved: Snapshot, *, in_flight: bool, heads: npt.NDArray[Any] | None = None
    ) -> Callable[[], bool]:
        """Check what `save_envs` returned; return what gives it to the envs."""
        return lambda: False

    @property
    def continues_in_flight(self) -> bool:
        """Whether `snapshot` and `restore` know ``in_flight``: built-in games, stepped as a batch.

        With all other envs it changes nothing: their episodes are played again from the beginning.
        """
        return self.tracker.continues_in_flight

    def snapshot(self, *, in_flight: bool = False) -> Snapshot:
        """Return everything needed to continue exactly here.

        Args:
            in_flight: Whether to save the games in flight as they are now, where
                `continues_in_flight`; otherwise only what was drawn for them.
        """
        return self.tracker.snapshot(in_flight=in_flight)

    def restore(self, snapshot: Snapshot, *, in_flight: bool = False) -> bool:
        """Continue exactly where a snapshot was made.

        Args:
            snapshot: Of the same tasks, settings and number of envs.
            in_flight: Whether to go on in the middle of the games, if the snapshot was made so.
                What the envs saw last is in ``unwrapped.buffers.observations``.

        Returns:
            Whether the envs go on with the next step. Otherwise reset them first: each then plays
            again, from the beginning, what it was playing.

        Raises:
            SnapshotError: The snapshot does not fit. Then nothing has changed.
        """
        return self.tracker.restore(snapshot, in_flight=in_flight)
