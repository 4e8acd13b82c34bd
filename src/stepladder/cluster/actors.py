"""The two actors of a channel: the host, and an agent on every machine.

Thin: what they do is in `service` and `node`. Here is only what Ray brings with it: names, calls,
restarts. An agent has a thread that sends batches; a call of Ray is paid per batch.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from stepladder.cluster.board import BoardClient
from stepladder.cluster.messages import Answer, Batch
from stepladder.cluster.node import Joined, NodeSide
from stepladder.cluster.service import FILE, Service, ServiceConfig
from stepladder.errors import ChannelError, HostGoneError

NAMESPACE = "stepladder"
"""Ray's namespace of all actors of ours, so that any process finds them by name."""

CALL_S = 30.0
"""How long a call may take before it is made again."""

PAUSE_S = 0.05
"""Time before a call is made again to an actor that is being restarted."""

T = TypeVar("T")


def host_name(channel: str) -> str:
    """Return the name of a channel's host actor."""
    return f"{channel}-host"


def agent_name(channel: str, node: str) -> str:
    """Return the name of a channel's agent on a node."""
    return f"{channel}-agent-{node}"


def ask(
    call: Callable[[], "ray.ObjectRef[T]"],
    *,
    patience_s: float,
    who: str,
    is_over: Callable[[], bool] = lambda: False,
) -> T:
    """Return the answer to a call of an actor, which is repeated while that actor is restarted.

    Args:
        call: Makes the call. It must be harmless to make it twice.
        patience_s: How long to go on.
        who: The actor, for messages.
        is_over: Asked between two calls; nothing is repeated once it says so.

    Raises:
        HostGoneError: The actor did not come back.
        Exception: What the actor itself has raised.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return ray.get(call(), timeout=min(CALL_S, patience_s))
        except RayTaskError as error:
            cause = error.cause
            if isinstance(cause, Exception):
                raise cause from None
            raise
        except (RayActorError, GetTimeoutError) as error:
            if time.monotonic() > deadline or is_over():
                raise HostGoneError(
                    f"{who} does not answer ({type(error).__name__}) and has not come back within "
                    f"{patience_s:.0f} s. Start the channel again from its last snapshot."
                ) from error
        time.sleep(PAUSE_S)


class RestartedHost(Service):
    """The host: a service that is made by `start`, so that what is wrong with it can be reported.

    Restarted by Ray, it continues where its last snapshot was made.
    """

    def __init__(self, config: ServiceConfig):
        self._config = config
        if (Path(config.folder) / FILE).exists():
            self.start()

    def start(self) -> None:
        """Make the curriculum and begin."""
        super().__init__(self._config)


class NodeAgent:
    """The agent of one machine.

    Args:
        host: The host actor.
        channel: Name of the channel.
        node: Ray's id of the machine.
        num_rows: Envs that can be played here at the same time.
        patience_s: How long to wait for a host that is being restarted.
    """

    def __init__(self, host: Any, channel: str, node: str, num_rows: int, patience_s: float):
        self._host, self._patience_s = host, patience_s
        self._lock = threading.RLock()
        self._is_over = threading.Event()
        self._trouble: Exception | None = None
        self._node = NodeSide(channel, node, num_rows, self._join, self._deliver)
        self._thread = threading.Thread(target=self._work, name="stepladder-agent", daemon=True)
        self._thread.start()

    def _join(self, node: str, num_rows: int) -> Joined:
        return self._ask(lambda: self._host.join.remote(node, num_rows))

    def _deliver(self, batch: Batch) -> Answer:
        return self._ask(lambda: self._host.deliver.remote(batch))

    def _ask(self, call: Callable[[], Any]) -> Any:
        return ask(call, patience_s=self._patience_s, who="the host", is_over=self._is_over.is_set)

    def _work(self) -> None:
        """Send batches until the channel is closed, or the host is gone for good."""
        while not self._is_over.is_set():
            try:
                with self._lock:
                    _, pause = self._node.pump()
            except Exception as error:  # raised for all who ask; envs see it in their mailboxes
                if not self._is_over.is_set():
                    self._trouble = error
                    self._node.close()
                return
            self._is_over.wait(pause)

    def _check(self) -> None:
        if self._trouble is not None:
            raise ChannelError(
                f"the agent of this node has stopped: {self._trouble}"
            ) from self._trouble

    def lease(self, pid: int, preferred: int | None = None) -> BoardClient:
        """Return a client for an env that a process of this machine plays."""
        with self._lock:
            self._check()
            return self._node.lease(pid, preferred)

    def flush(self) -> None:
        """Send all that was reported before this call."""
        with self._lock:
            self._check()
            while not self._node.pump()[0]:
                pass

    def refresh(self) -> int:
        """Write the plan as it is now to the board; return its version."""
        with self._lock:
            self._check()
            return self._node.refresh(
                lambda serial: self._ask(lambda: self._host.plan_since.remote(serial))
            )

    def about(self) -> dict[str, Any]:
        """Return what is on the board."""
        return self._node.about()

    def close(self) -> None:
        """Refuse records from now on, send those that are left, and take the board away."""
        self._node.close()
        with self._lock:
            if self._trouble is None:
                while not self._node.pump()[0]:
                    pass
            self._is_over.set()
            self._node.remove()


HostActor = ray.remote(RestartedHost)
AgentActor = ray.remote(NodeAgent)
