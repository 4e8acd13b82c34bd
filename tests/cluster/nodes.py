"""A host and node agents without Ray: every message passes by hand, and anything can be killed."""

import itertools
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stepladder.cluster.board import BoardClient
from stepladder.cluster.messages import Answer, Batch
from stepladder.cluster.node import NodeSide
from stepladder.cluster.service import Service, ServiceConfig
from stepladder.curricula import Staged
from stepladder.curricula.base import Curriculum
from stepladder.tasks import Task

_numbers = itertools.count()


class KilledError(Exception):
    """Something was killed here."""


def make_staged() -> Staged:
    """Three stages, passed after a few dozen episodes."""
    tasks = [Task(f"{stage}/{index}", stage) for stage in ("a", "b", "c") for index in range(4)]
    return Staged(tasks, stages=("a", "b", "c"), threshold=0.5, min_episodes=20, seed=3)


class Nodes:
    """A service and some nodes.

    Args:
        folder: Where the host keeps its snapshots.
        num_nodes: How many nodes.
        num_rows: Rows on each.
    """

    def __init__(
        self,
        folder: Path,
        num_nodes: int = 2,
        num_rows: int = 3,
        make: Callable[[], Curriculum] = make_staged,
        **settings: Any,
    ):
        self.config = ServiceConfig(
            make_curriculum=make, folder=str(folder), **{"snapshot_interval_s": 0.0, **settings}
        )
        self.channel, self.num_rows = f"test{os.getpid()}-{next(_numbers)}", num_rows
        self.service = Service(self.config)
        self.lost_answers = 0
        """How many of the next answers of the host do not arrive."""
        self.nodes: list[NodeSide] = []
        self.clients: list[BoardClient] = []
        self.playing: list[Any] = []
        self.finished: Counter[int] = Counter()
        """Finished episodes by slot."""
        for _ in range(num_nodes):
            self.add_node()

    def __enter__(self) -> "Nodes":
        return self

    def __exit__(self, *error: object) -> None:
        for node in self.nodes:
            node.remove()

    def add_node(self) -> NodeSide:
        self.nodes.append(self._start(len(self.nodes)))
        return self.nodes[-1]

    def _start(self, index: int) -> NodeSide:
        return NodeSide(
            self.channel,
            f"node-{index}",
            self.num_rows,
            lambda *place: self.service.join(*place),
            self._deliver,
        )

    def _deliver(self, batch: Batch) -> Answer:
        answer = self.service.deliver(batch)
        if self.lost_answers:
            self.lost_answers -= 1
            raise KilledError
        return answer

    def lease_all(self) -> list[BoardClient]:
        """Connect an env to every row of every node."""
        self.clients += [
            node.lease(os.getpid()) for node in self.nodes for _ in range(self.num_rows)
        ]
        return self.clients

    def kill_host(self) -> None:
        self.service = Service(self.config)

    def kill_agent(self, index: int) -> None:
        self.nodes[index] = self._start(index)

    def play(self, rng: np.random.Generator, share: float = 1.0) -> None:
        """Let some envs play an episode each, of chance success."""
        for client in self.clients:
            if rng.random() < share:
                draw = client.draw()
                client.finish(success=float(rng.random() < 0.7))
                self.finished[draw.slot] += 1

    def settle(self) -> None:
        """Bring everything to the host."""
        for node in self.nodes:
            while not node.pump()[0]:
                pass
        self.service.collect()

    def observed(self) -> Counter[int]:
        """Episodes observed by slot."""
        samples = self.service.meter.slots["num_samples"]
        return Counter({slot: int(count) for slot, count in enumerate(samples) if count})
