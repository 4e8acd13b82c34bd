"""The driver's side of a cluster: starts the actors, watches the machines, asks the host.

    with RayChannel(lambda: Auto(tasks)) as channel:
        reach = channel.reach                              # travels to any process of the cluster
        env = CurriculumEnv(make_env(), reach.client())    # there

Each machine has an agent, also one that joins later. Records are observed without anybody asking;
with ``is_synchronous`` only by `collect`, in the order of machines, envs and episodes.
"""

import os
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayActorError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from stepladder.closing import Closing
from stepladder.cluster.actors import (
    NAMESPACE,
    AgentActor,
    HostActor,
    agent_name,
    ask,
    host_name,
)
from stepladder.cluster.board import BoardClient
from stepladder.cluster.requirements import require_cluster
from stepladder.cluster.service import ServiceConfig
from stepladder.configs.checks import require_integer
from stepladder.curricula.base import Curriculum
from stepladder.errors import ChannelError, ConfigError, HostGoneError, shown
from stepladder.saving.snapshot import Snapshot
from stepladder.sync.counts import EpisodeCounts

WATCH_S = 0.25
"""Time between two looks at which machines there are."""

JOIN_S = 60.0
"""How long an env waits for the agent of its machine."""


@dataclass(frozen=True)
class Reach:
    """How a process anywhere in the cluster gets to a channel; small, and can be pickled."""

    channel: str

    def client(self, preferred: int | None = None) -> BoardClient:
        """Return a client for one env of this process.

        Args:
            preferred: The row of the machine's board to have if it is free, so that a process that
                takes another one's place continues its rows.

        Raises:
            HostGoneError: The channel is closed, or this machine has no agent.
        """
        require_cluster()
        node = ray.get_runtime_context().get_node_id()
        name, deadline = agent_name(self.channel, node), time.monotonic() + JOIN_S
        while True:
            try:
                agent = ray.get_actor(name, NAMESPACE)
                break
            except ValueError as error:
                if time.monotonic() > deadline:
                    raise HostGoneError(
                        f"the channel {self.channel} has no agent on this machine ({node[:8]}): it "
                        "was closed, or the process that started it has ended. Start it again."
                    ) from error
            time.sleep(0.05)
        return ask(
            lambda: agent.lease.remote(os.getpid(), preferred),
            patience_s=JOIN_S,
            who="the agent of this machine",
        )


class RayChannel(Closing):
    """One curriculum for all envs of a Ray cluster.

    Args:
        make_curriculum: Makes the curriculum, in the host actor.
        envs_per_node: Envs that can be played on one machine at the same time.
        interval_s: Time between two batches of a machine.
        snapshot_interval_s: Time between two snapshots of the host, which make records safe.
        is_synchronous: Whether records are observed, and plans published, only by `collect`.
        max_failed_share: Share of draws that may turn out unbuildable before the channel raises.
        patience_s: How long to wait for an actor that is being restarted.

    Raises:
        ConfigError: Ray is missing or too old, or there is no cluster. Nothing was started.
    """

    def __init__(
        self,
        make_curriculum: Callable[[], Curriculum],
        *,
        envs_per_node: int = 64,
        interval_s: float = 0.02,
        snapshot_interval_s: float = 1.0,
        is_synchronous: bool = False,
        max_failed_share: float = 0.5,
        patience_s: float = 60.0,
    ):
        if not callable(make_curriculum):
            raise ConfigError(
                f"make_curriculum must be a function that makes the curriculum in the host actor; "
                f"got {shown(make_curriculum)}. Pass, for example, lambda: Auto(tasks)."
            )
        require_integer("envs_per_node", envs_per_node, 1)
        require_cluster()
        self.name = f"stepladder-{uuid.uuid4().hex[:10]}"
        self.reach = Reach(self.name)
        self._envs_per_node, self._patience_s = envs_per_node, patience_s
        self._folder = tempfile.mkdtemp(prefix=f"{self.name}-")
        self._agents: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        config = ServiceConfig(
            make_curriculum=make_curriculum,
            folder=self._folder,
            interval_s=interval_s,
            snapshot_interval_s=snapshot_interval_s,
            is_synchronous=is_synchronous,
            max_failed_share=max_failed_share,
        )
        try:
            # On this machine, where its snapshots are; without it there is no driver either.
            self._host = HostActor.options(
                name=host_name(self.name),
                namespace=NAMESPACE,
                num_cpus=0,
                max_restarts=-1,
                scheduling_strategy=NodeAffinitySchedulingStrategy(
                    ray.get_runtime_context().get_node_id(), soft=False
                ),
            ).remote(config)
            self._ask_host("start")
            self._look()
            for agent in self._agents.values():
                ask(lambda agent=agent: agent.about.remote(), patience_s=patience_s, who="an agent")
        except BaseException:
            self._kill()
            raise
        self._thread = threading.Thread(target=self._watch, name="stepladder-watch", daemon=True)
        self._thread.start()

    # Machines that come and go.

    def _watch(self) -> None:
        while not self._is_over.wait(WATCH_S):
            try:
                self._look()
            except Exception:  # the cluster is gone; the next call of the host raises it
                return

    def _look(self) -> None:
        """Start an agent on every new machine; count the episodes of lost ones as aborted."""
        nodes = {node["NodeID"]: bool(node["Alive"]) for node in ray.nodes()}
        with self._lock:
            if self._is_over.is_set():
                return
            for node in [node for node in self._agents if not nodes.get(node, False)]:
                del self._agents[node]
                self._ask_host("lose", node)
            for node, is_alive in nodes.items():
                if is_alive and node not in self._agents:
                    self._agents[node] = self._start_agent(node)

    def _start_agent(self, node: str) -> Any:
        return AgentActor.options(
            name=agent_name(self.name, node),
            namespace=NAMESPACE,
            num_cpus=0,
            max_restarts=-1,
            max_concurrency=4,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        ).remote(self._host, self.name, node, self._envs_per_node, self._patience_s)

    # Asking.

    def _ask_host(self, method: str, *args: Any, **settings: Any) -> Any:
        if self._is_over.is_set():
            raise ChannelError("this channel is closed. Make a new one.")
        return ask(
            lambda: getattr(self._host, method).remote(*args, **settings),
            patience_s=self._patience_s,
            who="the host",
        )

    def _ask_agents(self, method: str) -> list[Any]:
        """Call a method of all agents, those that are being restarted included."""
        with self._lock:
            agents = dict(self._agents)
        calls = {node: getattr(agent, method).remote() for node, agent in agents.items()}
        answers: list[Any] = []
        for node, agent in agents.items():
            try:
                answers.append(ray.get(calls[node], timeout=self._patience_s))
            except RayActorError:
                answer = self._ask_again(node, agent, method)
                answers += [answer] if answer is not None else []
        return answers

    def _ask_again(self, node: str, agent: Any, method: str) -> Any:
        def is_gone() -> bool:
            return not any(one["NodeID"] == node and one["Alive"] for one in ray.nodes())

        try:
            return ask(
                lambda: getattr(agent, method).remote(),
                patience_s=self._patience_s,
                who=f"the agent of node {node[:8]}",
                is_over=is_gone,
            )
        except HostGoneError:
            if is_gone():
                return None
            raise

    @property
    def num_nodes(self) -> int:
        """Machines with an agent."""
        with self._lock:
            return len(self._agents)

    @property
    def nodes(self) -> list[str]:
        """Ray's ids of the machines that have an agent, in the order in which they joined."""
        with self._lock:
            return list(self._agents)

    def collect(self) -> int:
        """Observe everything reported before this call, and bring the plan to all machines.

        Returns:
            Episodes observed so far, of all machines.

        Raises:
            BuildError: Too many tasks could not be built.
        """
        self._ask_agents("flush")
        self._ask_host("collect")
        self._ask_agents("refresh")
        return self._ask_host("about")["num_observed"]

    def counts(self) -> EpisodeCounts:
        """Return what became of every draw, as far as machines have reported."""
        return self._ask_host("counts")

    def metrics(self, *, ends_epoch: bool = False) -> dict[str, float]:
        """Return the metrics of the epoch so far, by the names of docs/metrics.md."""
        return self._ask_host("metrics", ends_epoch=ends_epoch)

    def explain(self, slot: int | None = None) -> Any:
        """Say what the curriculum is doing and why, or why one task is (not) being drawn."""
        return self._ask_host("explain", slot)

    def about(self) -> dict[str, Any]:
        """Return what the host has done so far, and its nodes."""
        return self._ask_host("about")

    def boards(self) -> list[dict[str, Any]]:
        """Return what is on the board of every machine now."""
        return self._ask_agents("about")

    def snapshot(self) -> Snapshot:
        """Return the curriculum, to be restored in a channel with any machines and envs."""
        self._ask_agents("flush")
        return self._ask_host("saved_curriculum")

    def restore(self, snapshot: Snapshot) -> None:
        """Continue with a curriculum that was saved; envs draw from it at their next reset."""
        self._ask_host("restore_curriculum", snapshot)
        self._ask_agents("flush")

    # The end.

    def close(self) -> None:
        """Collect what is left, then end all actors. Envs that report later are refused."""
        if self._is_over.is_set():
            return
        try:
            self._ask_agents("close")
            self._ask_host("collect")
        finally:
            self._kill()

    def _kill(self) -> None:
        self._is_over.set()
        with self._lock:
            actors = [*self._agents.values(), *filter(None, [vars(self).get("_host")])]
            self._agents.clear()
        for actor in actors:
            ray.kill(actor)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end_block(self, error: BaseException | None) -> None:
        self.close()
