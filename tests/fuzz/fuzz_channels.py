"""Changed snapshots of hosts: mailboxes, rings with records in them, counters."""

from pathlib import Path

import numpy as np

from fuzz.changed_snapshots import change_snapshot
from fuzz.harness import playing_on
from stepladder.curricula import Snapshot
from stepladder.errors import StepladderError
from stepladder.sync import Client, Host, LocalHost, SharedHost
from sync.rig import make_crowded, make_staged

NUM_ENVS = 3


class Fuzzer:
    """Restores changed channels, draws and reports."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._hosts: list[Host] = [
            LocalHost(make_staged(), NUM_ENVS),
            LocalHost(make_crowded(), NUM_ENVS),
            SharedHost(make_staged(), NUM_ENVS),
        ]
        self._clients = [host.clients() for host in self._hosts]
        self._saved: list[Snapshot] = []
        for host, clients in zip(self._hosts, self._clients, strict=True):
            for step in range(9):
                self._play(host, clients, np.random.default_rng(step))
            self._saved.append(self._with_waiting_records(host, clients))

    @staticmethod
    def _with_waiting_records(host: Host, clients: list[Client]) -> Snapshot:
        """Save a channel with whole rings: a record has come in since the last collection."""
        collect, host.collect = host.collect, lambda *_, **__: None  # type: ignore[assignment]
        clients[0].draw()
        clients[0].finish(success=1.0, episode_return=1.0, length=3, truncated=False)
        clients[1].draw()
        snapshot = host.snapshot()
        host.collect = collect  # type: ignore[method-assign]
        return snapshot

    @staticmethod
    def _play(host: Host, clients: list[Client], rng: np.random.Generator) -> None:
        for client in clients:
            draw = client.draw()
            assert 0 <= draw.slot < host.curriculum.pool.num_slots
            client.task(draw)
            client.current_stage()
            client.finish(
                success=float(rng.integers(2)), episode_return=1.0, length=2, truncated=False
            )
        host.collect()

    def run(self, rng: np.random.Generator) -> None:
        index = int(rng.integers(len(self._hosts)))
        host, saved = self._hosts[index], self._saved[index]
        clients = self._clients[index]
        try:
            host.restore(change_snapshot(saved, rng, self._folder), in_flight=rng.random() < 0.3)
            with playing_on():
                for _ in range(3):
                    self._play(host, clients, rng)
            counts = host.counts
            assert counts.started >= counts.finished >= 0, counts
            assert host.staleness.mean >= 0.0
            probs = host.curriculum.probs()
            assert abs(probs.sum() - 1.0) < 1e-9, probs
        finally:
            self._put_back(index)

    def _put_back(self, index: int) -> None:
        try:
            self._hosts[index].restore(self._saved[index])
        except StepladderError as error:
            raise AssertionError("what was saved is refused after a case") from error
