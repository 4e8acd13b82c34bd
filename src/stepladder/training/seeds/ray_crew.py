"""Trainings on the machines of a Ray cluster, several at a time; otherwise as in `crew`.

Each has one CPU of some machine, and a process there like those of `crew`. Runs are written where
they would be written here, so all machines must see the folder.
"""

import signal
import threading
from concurrent.futures import wait
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepladder.cluster.requirements import require_ray
from stepladder.training.seeds.child import TrainingEnd
from stepladder.training.seeds.crew import Crew, OnProgress

if TYPE_CHECKING:
    from stepladder.cluster.places import RunningWork

STOP_LOOK_S = 0.2
"""How often a training's machine looks whether it is to stop."""


class RayCrew(Crew):
    """Processes that train, on any machine of the cluster; use it as a context manager.

    Args:
        jobs: Trainings at once; by default one per CPU of the cluster.
        on_progress: Told of every epoch.
        most: More are never needed at once.
        num_gpus: GPUs of each.

    Raises:
        ConfigError: There is no Ray, or no cluster.
    """

    def __init__(
        self,
        jobs: int | None,
        on_progress: OnProgress | None = None,
        *,
        most: int = 2**16,
        num_gpus: float = 0.0,
    ):
        require_ray()
        from stepladder.cluster.places import connect

        num_cpus = connect()
        super().__init__(min(most, jobs or num_cpus), on_progress)
        self._num_gpus = num_gpus
        self._works: set[RunningWork] = set()

    def _end(self, number: signal.Signals) -> None:
        with self._lock:
            self._is_stopping = True
            for work in self._works:
                work.stop() if number == signal.SIGTERM else work.kill()

    def _supervise(self, folder: Path, order: bytes) -> TrainingEnd:
        from stepladder.cluster.places import RunningWork

        with self._lock:
            if self._is_stopping:
                return TrainingEnd(how="stopped")
            work = RunningWork(partial(carry_out, folder, order), self._num_gpus)
            self._works.add(work)
        try:
            for progress in work.news():
                self._report(folder, progress)
            end: TrainingEnd | None = work.result()
        finally:
            with self._lock:
                self._works.discard(work)
            work.kill()
        return end or TrainingEnd(how="died", reason="its machine in the cluster is gone")


def carry_out(folder: Path, order: bytes, tell: Any, stop: threading.Event) -> TrainingEnd:
    """Carry out an order, on the machine where it is to be done.

    Args:
        folder: Of its run.
        order: As `Crew` sends it to a process.
        tell: Takes news.
        stop: Says that the training is to be saved and to stop.
    """
    if not folder.parent.is_dir():
        return TrainingEnd(
            how="failed",
            reason=f"a machine of the cluster does not see {folder.parent}: put runs into a folder "
            "that all machines share",
        )
    with Crew(1, lambda _, progress: tell(progress), num_cores=1) as crew:
        end = crew.start_dumped(folder, order)
        while not wait([end], STOP_LOOK_S).done:
            if stop.is_set():
                crew.stop()
        return end.result()
