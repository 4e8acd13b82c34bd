"""Work on any machine of a Ray cluster: a function there, news of it here.

For `training.seeds.ray_crew`, whose trainings know nothing of Ray. A place is an actor with a share
of some machine; it runs one function, which reports news and looks whether it is to stop.
"""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle
import ray
from ray.exceptions import RayActorError, RayTaskError

from stepladder.cluster.requirements import require_cpus, require_ray
from stepladder.errors import ConfigError

LOOK_EVERY_S = 0.5
"""How often a place is asked for news."""

ANSWER_S = 5.0
"""How long a cluster may take to accept a connection."""

Tell = Callable[[Any], None]
Work = Callable[[Tell, threading.Event], Any]
"""What a place runs: it is given what takes news, and what says that it is to stop."""


def connect() -> int:
    """Connect to the cluster that runs here or that RAY_ADDRESS names, else to one of this machine.

    Returns:
        The CPUs it has.

    Raises:
        ConfigError: Ray is missing or too old, or the cluster does not answer or has no CPU.
    """
    require_ray()
    if not ray.is_initialized():
        _require_answer(os.environ.get("RAY_ADDRESS", ""))
        try:
            ray.init(log_to_driver=False, logging_level="ERROR")  # type: ignore[arg-type]
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise ConfigError(
                f"the Ray cluster does not answer ({reason}). Start it again, or unset RAY_ADDRESS "
                "for one on this machine."
            ) from error
    require_cpus(1, "a training")
    return int(ray.cluster_resources().get("CPU", 0))


def _require_answer(address: str) -> None:
    """Raise unless somebody listens at an address; Ray itself tries for minutes.

    Raises:
        ConfigError: Nobody does.
    """
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()) or "://" in address:
        return
    try:
        socket.create_connection((host, int(port)), ANSWER_S).close()
    except OSError as error:
        raise ConfigError(
            f"the Ray cluster at {address}, which RAY_ADDRESS names, does not answer ({error}). "
            "Start it again, or unset RAY_ADDRESS for one on this machine."
        ) from error


class Place:
    """A share of some machine, which runs one function."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._news: list[Any] = []
        self._stop = threading.Event()

    def run(self, work: bytes) -> Any:
        """Run a function; return what it returns."""
        return cloudpickle.loads(work)(self._tell, self._stop)

    def _tell(self, news: Any) -> None:
        with self._lock:
            self._news.append(news)

    def news(self) -> list[Any]:
        """Return what was reported since the last call."""
        with self._lock:
            news, self._news = self._news, []
        return news

    def stop(self) -> None:
        """Ask the function to stop."""
        self._stop.set()


class RunningWork:
    """A function at its place.

    Args:
        work: The function; must be known there, or is sent by value.
        num_gpus: GPUs that it needs beside one CPU.
    """

    def __init__(self, work: Work, num_gpus: float = 0.0):
        actor: Any = ray.remote(Place)
        self._place = actor.options(num_cpus=1, num_gpus=num_gpus, max_concurrency=4).remote()
        self._end = self._place.run.remote(cloudpickle.dumps(work))

    def news(self) -> Iterator[Any]:
        """Yield news until the function has ended, in whatever way."""
        while True:
            ended, _ = ray.wait([self._end], timeout=LOOK_EVERY_S)
            try:
                # Waits while there is no room for the place in the cluster.
                ready, _ = ray.wait([asked := self._place.news.remote()], timeout=LOOK_EVERY_S)
                yield from ray.get(asked) if ready or ended else ()
            except RayActorError:
                return
            if ended:
                return

    def result(self) -> Any:
        """Return what the function has returned; None if its process or machine is gone."""
        try:
            return ray.get(self._end)
        except RayActorError:
            return None
        except RayTaskError as error:
            raise error.cause from None

    def stop(self) -> None:
        """Ask the function to stop."""
        self._place.stop.remote()

    def kill(self) -> None:
        """End the process, with all that it has started."""
        ray.kill(self._place)
