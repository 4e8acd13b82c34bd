"""What the host actor does, whoever carries its messages: nodes join, batches come, plans go back.

Holds the one curriculum of a channel and its `ClusterHost`. A record counts as acknowledged once a
snapshot on disk holds it; until then the node keeps it and sends it again to a host that was
restarted, which begins where its last snapshot was made. Ray is in `actors` only.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from stepladder.cluster.host import ClusterHost, PlanLog
from stepladder.cluster.messages import Answer, Batch, PlanUpdate
from stepladder.cluster.node import Joined
from stepladder.curricula.base import Curriculum
from stepladder.curricula.reporting.explanation import Explanation
from stepladder.curricula.reporting.meter import CurriculumMeter
from stepladder.errors import BuildError, ConfigError, SnapshotError, shown
from stepladder.plans.record import RecordArray
from stepladder.saving.snapshot import Snapshot
from stepladder.sync.counts import EpisodeCounts, Staleness

FILE = "host.npz"
"""The last snapshot, in the folder of the channel."""

MAX_BATCHES_PER_S = 500.0
"""Batches of all nodes together that one host is asked to take; more nodes wait longer."""

SNAPSHOT_SHARE = 0.05
"""Largest share of the time that goes into snapshots, unless a node is pressed."""


@dataclass(frozen=True, kw_only=True)
class ServiceConfig:
    """How a channel works; the same for all its nodes."""

    make_curriculum: Callable[[], Curriculum]
    folder: str
    """Where the host keeps its snapshots."""

    interval_s: float = 0.02
    """Time between two batches of a node."""

    snapshot_interval_s: float = 1.0
    """Time between two snapshots of the host."""

    is_synchronous: bool = False
    """Whether records are observed, and plans published, only by `collect`."""

    max_failed_share: float = 0.5


@dataclass
class NodeEntry:
    """What the host knows of a node."""

    first_env: int
    num_rows: int
    received: int = 0
    num_staged: int = 0
    """Of these, the ones that wait for `collect`."""
    durable: int = 0
    num_envs: int = 0
    is_gone: bool = False


@dataclass
class Numbers:
    """What the host has done, for the curious and for benchmarks."""

    batches: int = 0
    records: int = 0
    repeats: int = 0
    """Records that came a second time, after a failure; they were not observed again."""
    snapshots: int = 0
    snapshot_seconds: float = 0.0
    seconds: float = 0.0
    """Time spent on batches."""
    restarts: int = 0
    nodes_lost: int = 0


@dataclass
class _Staged:
    """Batches that wait for `collect`."""

    records: list[RecordArray] = field(default_factory=list[RecordArray])
    numbers: list[Any] = field(default_factory=list[Any])
    texts: dict[int, str] = field(default_factory=dict[int, str])
    count: int = 0


class Service:
    """Owns the curriculum of a channel.

    Args:
        config: How the channel works. If its folder holds a snapshot, the service continues there.
    """

    def __init__(self, config: ServiceConfig):
        self.config = config
        curriculum = cast("object", config.make_curriculum())
        if not isinstance(curriculum, Curriculum):
            raise ConfigError(
                f"make_curriculum returned {shown(curriculum)}; expected a curriculum. Return one "
                "of your tasks, such as Auto(tasks)."
            )
        self._path = Path(config.folder) / FILE
        self.numbers = Numbers()
        self.nodes: dict[str, NodeEntry] = {}
        self._failure: BuildError | None = None
        self._staged = _Staged()
        self.incarnation = time.time_ns()
        saved = Snapshot.load(self._path) if self._path.exists() else None
        num_envs = 1 if saved is None else int(saved.part("host").part("channel").state["num_envs"])
        self.host = ClusterHost(curriculum, num_envs, max_failed_share=config.max_failed_share)
        self.meter = CurriculumMeter(curriculum)
        self._num_rows = 0
        self._next_episode = 0
        if saved is not None:
            self._continue(saved)
        self.log = PlanLog(curriculum.plan.block)
        self._save()

    @property
    def curriculum(self) -> Curriculum:
        """The one curriculum of the channel."""
        return self.host.curriculum

    # A host that was killed.

    def _save(self) -> None:
        began = time.monotonic()
        self.snapshot().save(self._path)
        for entry in self.nodes.values():
            entry.durable = entry.received - entry.num_staged
        self._saved_at = time.monotonic()
        self._save_cost = self._saved_at - began
        self.numbers.snapshots += 1
        self.numbers.snapshot_seconds += self._save_cost

    def snapshot(self) -> Snapshot:
        """Return everything that the host needs to continue exactly here."""
        # What waits for `collect` is with its node still, which sends it again.
        state = {
            "nodes": {
                name: {
                    **vars(entry),
                    "received": entry.received - entry.num_staged,
                    "num_staged": 0,
                }
                for name, entry in self.nodes.items()
            },
            "num_rows": self._num_rows,
            "next_episode": self._next_episode,
            "restarts": self.numbers.restarts,
        }
        return Snapshot.of_parts(state, host=self.host.snapshot(), meter=self.meter.snapshot())

    def _continue(self, saved: Snapshot) -> None:
        self.host.restore(saved.part("host"), in_flight=True)
        self.meter.restore(saved.part("meter"))
        self.nodes = {
            name: NodeEntry(**{**entry, "durable": entry["received"]})
            for name, entry in saved.state["nodes"].items()
        }
        self._num_rows = saved.state["num_rows"]
        self._next_episode = saved.state["next_episode"]
        self.numbers.restarts = saved.state["restarts"] + 1

    # What nodes ask for.

    def join(self, node: str, num_rows: int) -> Joined:
        """Give a node its envs, the same ones again if it had some."""
        entry = self.nodes.get(node)
        if entry is None:
            missing = self._num_rows + num_rows - self.host.num_envs
            if missing > 0:
                self.host.grow(missing)
            entry = self.nodes[node] = NodeEntry(self._num_rows, num_rows)
            self._num_rows += num_rows
            self.log.note(self.curriculum.plan.block)
        # Now, or a host that is killed next would not know the place of the node's envs.
        self._save()
        update = self.log.since(0)
        assert update is not None
        return Joined(
            self.incarnation,
            entry.first_env,
            self.host.client(0),
            update,
            entry.durable,
            self._next_episode,
        )

    def deliver(self, batch: Batch) -> Answer:
        """Take a batch of a node; return what the node needs to know."""
        began = time.monotonic()
        entry = self.nodes.get(batch.node)
        is_known = entry is not None and batch.incarnation == self.incarnation
        if entry is None or not is_known or batch.first > entry.received:
            return Answer(self.incarnation, must_join=True)
        if entry.is_gone:
            entry.is_gone = False
        self.host.note_heads(batch.heads)
        skipped = entry.received - batch.first
        self.numbers.repeats += min(skipped, len(batch.records))
        self._expect(entry, batch.num_envs)
        if len(batch.records) > skipped:
            texts = {n - skipped: text for n, text in batch.texts.items() if n >= skipped}
            self._take(batch.records[skipped:], batch.numbers[skipped:], texts)
            entry.received = batch.first + len(batch.records)
            if self.config.is_synchronous:
                entry.num_staged += len(batch.records) - skipped
        self.numbers.batches += 1
        if self._must_save(batch.is_pressed, began):
            self._save()
        answer = Answer(
            self.incarnation,
            received=entry.received,
            durable=entry.durable,
            plan=None if self.config.is_synchronous else self.log.since(batch.serial),
            delay_s=max(self.config.interval_s, len(self.nodes) / MAX_BATCHES_PER_S),
        )
        self.numbers.seconds += time.monotonic() - began
        return answer

    def _must_save(self, is_pressed: bool, now: float) -> bool:
        if is_pressed:
            self._collect_staged()
            return any(entry.durable < entry.received for entry in self.nodes.values())
        pause = max(self.config.snapshot_interval_s, self._save_cost / SNAPSHOT_SHARE)
        return now - self._saved_at > pause

    def _expect(self, entry: NodeEntry, num_envs: int) -> None:
        if entry.num_envs != num_envs:
            entry.num_envs = num_envs
            self.curriculum.expect_envs(max(1, sum(one.num_envs for one in self.nodes.values())))

    def _take(self, records: RecordArray, numbers: Any, texts: dict[int, str]) -> None:
        self.numbers.records += len(records)
        if self.config.is_synchronous:
            staged = self._staged
            staged.records.append(records)
            staged.numbers.append(numbers)
            staged.texts |= {staged.count + number: text for number, text in texts.items()}
            staged.count += len(records)
            return
        self._observe(records, numbers, texts)

    def _observe(self, records: RecordArray, numbers: Any, texts: dict[int, str]) -> None:
        try:
            self.numbers.repeats += self.host.receive(records, numbers, texts)
        except BuildError as error:
            # All records have been observed. The next call of the channel raises it.
            self._failure = error
        self.log.note(self.curriculum.plan.block)

    def plan_since(self, serial: int) -> PlanUpdate | None:
        """Return what a node lacks that has this update of the plan."""
        return self.log.since(serial)

    def lose(self, node: str) -> int:
        """Count the running episodes of a machine that is gone as aborted; return their number."""
        entry = self.nodes.get(node)
        if entry is None or entry.is_gone:
            return 0
        entry.is_gone = True
        self._expect(entry, 0)
        self.numbers.nodes_lost += 1
        return self.host.discard_envs(entry.first_env, entry.num_rows)

    # What the channel asks for.

    def collect(self) -> int:
        """Observe all that waits, in the order of nodes, envs and episodes; return how many.

        Raises:
            BuildError: Too many tasks could not be built.
        """
        count = self._collect_staged()
        self._raise_failure()
        return count

    def _collect_staged(self) -> int:
        staged, self._staged = self._staged, _Staged()
        if staged.count:
            self._observe(
                np.concatenate(staged.records), np.concatenate(staged.numbers), staged.texts
            )
        for entry in self.nodes.values():
            entry.num_staged = 0
        return staged.count

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def counts(self) -> EpisodeCounts:
        """Return what became of every draw, as far as nodes have reported."""
        return self.host.counts

    def staleness(self) -> Staleness:
        """Return how far the plans of all draws lagged behind, in collections."""
        return self.host.staleness

    def metrics(self, *, ends_epoch: bool = False) -> dict[str, float]:
        """Return the metrics of the epoch so far, by the names of docs/metrics.md.

        Args:
            ends_epoch: Whether the next call is to count from here.

        Raises:
            BuildError: Too many tasks could not be built.
        """
        self._raise_failure()
        metrics = self.meter.metrics()
        if ends_epoch:
            self.meter.end_epoch()
        return metrics

    def explain(self, slot: int | None = None) -> Any:
        """Say what the curriculum is doing and why, or why one task is (not) being drawn."""
        return cast("Explanation", self.curriculum.explain(slot))

    def saved_curriculum(self) -> Snapshot:
        """Return a snapshot that another channel can `restore`, with any nodes and envs."""
        self.curriculum.next_episode = max(
            self._next_episode, int(self.host.mails.heads["next_episode"].max())
        )
        self._collect_staged()
        return Snapshot.of_parts(
            {}, curriculum=self.curriculum.snapshot(), meter=self.meter.snapshot()
        )

    def restore_curriculum(self, snapshot: Snapshot) -> None:
        """Continue with the curriculum of another channel; envs draw from it at their next reset.

        Raises:
            SnapshotError: It was made with other tasks or settings. Then nothing has changed.
        """
        if "curriculum" not in snapshot.state:
            raise SnapshotError(
                f"{snapshot.place} holds {sorted(snapshot.state)}; expected the curriculum of a "
                "channel. Use what channel.snapshot() returned."
            )
        self.curriculum.restore(snapshot.part("curriculum"))
        self.meter.restore(snapshot.part("meter"))
        self._next_episode = self.curriculum.next_episode
        # Nodes join again, and learn from which episode on nothing was drawn.
        self.incarnation = time.time_ns()
        self.log = PlanLog(self.curriculum.plan.block)
        self._save()

    def about(self) -> dict[str, Any]:
        """Return what the host has done so far, and its nodes."""
        return {
            **vars(self.numbers),
            "nodes": {name: dict(vars(entry)) for name, entry in self.nodes.items()},
            "num_observed": self.curriculum.num_observed,
            "staleness": self.staleness(),
        }
