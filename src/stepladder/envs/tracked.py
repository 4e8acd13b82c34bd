"""What a vector env with a curriculum can be asked, whichever library it belongs to.

Mixed into the wrappers of `vector` (Gymnasium) and `sb3` (Stable-Baselines3); everything is
answered by their tracker.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.curricula.snapshot import Snapshot
from stepladder.envs.tracker import Tracker
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

    def env_arrays(self) -> dict[str, Any]:
        """Return what the envs themselves need to go on exactly; most have nothing to give."""
        return {}

    def restore_env_arrays(self, arrays: dict[str, Any]) -> None:
        """Give envs back what `env_arrays` returned."""

    def snapshot(self) -> Snapshot:
        """Return everything needed to continue exactly here."""
        return self.tracker.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Continue exactly where a snapshot was made; reset the vector env afterwards."""
        self.tracker.restore(snapshot)
