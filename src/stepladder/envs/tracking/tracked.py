"""What the vector wrappers of all libraries have in common, on both sides of their tracker.

The wrappers of `vector` (Gymnasium) and `sb3` (Stable-Baselines3) derive from both classes here:
`tracker` reaches their envs through `EnvAccess`, and users reach the tracker through `Tracked`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from stepladder.arrays import Array
from stepladder.saving.snapshot import Snapshot
from stepladder.sync import EpisodeCounts, Host, Staleness

if TYPE_CHECKING:
    from stepladder.envs.tracking.tracker import Tracker


class EnvAccess(ABC):
    """How a tracker calls the envs of a vector env; by default they cannot be saved."""

    @abstractmethod
    def connect(self, host: Host) -> None:
        """Give each env its client of the host."""

    @abstractmethod
    def call_all(self, method: str, *args: Any) -> list[Any]:
        """Call a method on every env."""

    @abstractmethod
    def worker_processes(self) -> list[BaseProcess]:
        """Return the process of each env, or an empty list if that is not known."""

    @abstractmethod
    def drop_workers(self) -> None:
        """Close the pipes to workers that have ended, so that nothing is sent to them."""

    def reporting_rows(self) -> npt.NDArray[Any] | None:
        """Return the envs that may have reported, or a flag for each; None is any."""
        return None

    def can_save_envs(self) -> bool:
        """Whether the envs can be saved in the middle of an episode."""
        return False

    def save_envs(self, *, in_flight: bool) -> Snapshot | None:
        """Return what the envs themselves need to go on exactly; None is nothing.

        With ``in_flight`` there is a part ``games`` in it, if `can_save_envs`.
        """
        return None

    def read_envs(
        self, saved: Snapshot, *, in_flight: bool, heads: Array | None = None
    ) -> Callable[[], bool]:
        """Check what `save_envs` returned.

        Returns:
            A function that gives it to the envs once they are connected. It returns whether they
            can go on with a step.

        Raises:
            SnapshotError: It does not fit.
        """
        return lambda: False


class Tracked:
    """What a vector env with a curriculum offers its user; the tracker does it."""

    tracker: "Tracker"

    @property
    def counts(self) -> EpisodeCounts:
        """What became of every draw so far."""
        return self.tracker.host.counts

    @property
    def staleness(self) -> Staleness:
        """How far the plans of all draws lagged behind."""
        return self.tracker.host.staleness

    @property
    def total_episodes(self) -> int:
        """Episodes observed over all envs."""
        return self.counts.finished

    def check_agreement(self) -> int:
        """Return the version of the plan that every env has, or raise."""
        return self.tracker.check_agreement()

    @property
    def continues_in_flight(self) -> bool:
        """Whether ``in_flight`` has an effect: for built-in games, stepped as a batch.

        Episodes of all other envs are played again from the beginning.
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
                The last observations are in ``unwrapped.buffers.observations``.

        Returns:
            Whether the envs go on with the next step. Otherwise reset them first: each then plays
            again, from the beginning, what it was playing.

        Raises:
            SnapshotError: The snapshot does not fit. Then nothing has changed.
        """
        return self.tracker.restore(snapshot, in_flight=in_flight)
