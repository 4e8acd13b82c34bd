"""The methods through which `tracker` calls the envs of a vector env of any library.

Implemented by the vector wrappers in `vector` (Gymnasium) and `sb3` (Stable-Baselines3).
"""

from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stepladder.saving.snapshot import Snapshot
from stepladder.sync import Host


class EnvAccess(Protocol):
    """What a vector wrapper offers its tracker."""

    def connect(self, host: Host) -> None:
        """Give each env its client of the host."""
        ...

    def call_all(self, method: str, *args: Any) -> list[Any]:
        """Call a method on every env."""
        ...

    def reporting_rows(self) -> npt.NDArray[np.int64] | None:
        """Return the envs that may have reported since they were last asked; None is any."""
        ...

    def can_save_envs(self) -> bool:
        """Whether the envs can be saved in the middle of an episode."""
        ...

    def save_envs(self, *, in_flight: bool) -> Snapshot | None:
        """Return what the envs themselves need to go on exactly; None is nothing.

        With ``in_flight`` there is a part ``games`` in it, if `can_save_envs`.
        """
        ...

    def read_envs(
        self, saved: Snapshot, *, in_flight: bool, heads: npt.NDArray[Any] | None = None
    ) -> Callable[[], bool]:
        """Check what `save_envs` returned; return what gives it to the envs once connected.

        That one returns whether they can go on with a step.

        Raises:
            SnapshotError: It does not fit.
        """
        ...

    def worker_processes(self) -> list[BaseProcess]:
        """Return the process of each env, or nothing if that is not known."""
        ...

    def drop_workers(self) -> None:
        """Close the pipes to workers that are gone, so that nothing is sent to them."""
        ...
