"""One curriculum over a Ray cluster: episodes per second, delay of plans, and what RLlib pays.

A real cluster of several nodes on this machine, on the loopback interface. Every node has one
process that plays envs of no duration, so all of them share this machine's cores. Beside it stands
the same loop over `sync.shared`, and RLlib without a curriculum.

    python benchmarks/ray_cluster.py
    python benchmarks/ray_cluster.py --quick --json
"""

import os

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# All servers on the loopback interface.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"

import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import harness
import numpy as np
import ray
from ray.cluster_utils import Cluster
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from stepladder.cluster import RayChannel, Reach
from stepladder.cluster.messages import Batch
from stepladder.cluster.service import Service, ServiceConfig
from stepladder.curricula import Learnability
from stepladder.plans.record import RECORD_DTYPE
from stepladder.sync import SharedHost
from stepladder.tasks import ListSource

NUM_TASKS = 1_000
NUM_ENVS = 16
"""Envs of one process, which takes turns among them."""


BAR = 50_000
"""Episodes per second over all nodes."""


def make_curriculum() -> Learnability:
    """Make a curriculum whose plan every record changes."""
    return Learnability(ListSource.numbered(NUM_TASKS), seed=1)


def play(clients: Sequence[Any], seconds: float) -> tuple[int, float]:
    """Play episodes of no duration for some time; return how many, and the time."""
    for client in clients:
        client.draw()
        client.finish(success=1.0)
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        for client in clients:
            client.draw()
            client.finish(success=float(count % 3 == 0))
        count += len(clients)
    return count, time.perf_counter() - began


class Player:
    """The envs of one node."""

    def __init__(self, reach: Reach):
        self.clients = [reach.client() for _ in range(NUM_ENVS)]

    def play(self, seconds: float) -> tuple[int, float]:
        """Play for some time."""
        return play(self.clients, seconds)

    def finish(self) -> float:
        """Play an episode; return when it ended."""
        self.clients[0].draw()
        self.clients[0].finish(success=1.0)
        return time.time()

    def wait_for(self, version: int) -> float:
        """Return when a plan newer than this one is here."""
        deadline = time.time() + 10.0
        while self.clients[1].plan_version() <= version and time.time() < deadline:
            time.sleep(2e-4)
        return time.time()

    def version(self) -> int:
        """Return the version of the plan here."""
        return self.clients[1].plan_version()


def play_over_shared(clients: Sequence[Any], seconds: float, pipe: Any) -> None:
    """Play in a process of its own."""
    pipe.send(play(clients, seconds))


def over_shared(seconds: float) -> float:
    """Return microseconds per episode of one process over shared memory, while it is collected."""
    context = multiprocessing.get_context("fork")
    with SharedHost(make_curriculum(), NUM_ENVS) as host:
        here, there = context.Pipe()
        process = context.Process(target=play_over_shared, args=(host.clients(), seconds, there))
        process.start()
        while not here.poll(0.02):
            host.collect()
        count, took = here.recv()
        process.join()
    return 1e6 * took / count


def players_of(channel: RayChannel) -> list[Any]:
    """Start a player on every node."""
    actor: Any = ray.remote(Player)
    return [
        actor.options(
            num_cpus=0,
            # One call waits for a plan while another one ends an episode.
            max_concurrency=2,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        ).remote(channel.reach)
        for node in channel.nodes
    ]


def measure_nodes(report: harness.Report, num_nodes: int, seconds: float, shared: float) -> None:
    """Measure rate, delay and staleness over so many nodes."""
    with RayChannel(make_curriculum, envs_per_node=NUM_ENVS) as channel:
        players = players_of(channel)
        ray.get([player.version.remote() for player in players])
        began, before = time.perf_counter(), channel.collect()
        outcomes = ray.get([player.play.remote(seconds) for player in players])
        # Until the host has observed them all: players on few cores may play one after the other.
        rate = (channel.collect() - before) / (time.perf_counter() - began)
        of_nodes = f"{num_nodes} node{'s' if num_nodes > 1 else ''}"
        report.add(
            f"{of_nodes}: episodes, all observed",
            rate,
            "/s",
            at_least=50_000 if num_nodes == 4 else None,
        )
        if num_nodes == 1:
            own = 1e6 * outcomes[0][1] / outcomes[0][0]
            report.add("1 node: an episode, beside sync/shared", own, "us", peer=shared)
        staleness = channel.about()["staleness"]
        report.add(f"{of_nodes}: staleness, in collections of all nodes", staleness.mean, "")
        delays: list[float] = []
        for _ in range(20):
            time.sleep(0.1)
            version = ray.get(players[-1].version.remote())
            seen = players[-1].wait_for.remote(version)
            time.sleep(0.02)
            ended: Any = ray.get(players[0].finish.remote())
            arrived: Any = ray.get(seen)
            delays.append(1e3 * (arrived - ended))
        report.add(f"{of_nodes}: from an episode's end to the plan", float(np.median(delays)), "ms")


class NoEnv(gym.Env[Any, Any]):
    """Ten steps that cost nothing."""

    observation_space = gym.spaces.Box(0.0, 1.0, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, config: Any = None):
        self.seen = np.zeros(4, np.float32)

    def set_task(self, task: Any) -> None:
        """Every task is alike."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Begin."""
        self.left = 10
        return self.seen, {}

    def step(self, action: Any) -> Any:
        """Go on."""
        self.left -= 1
        return self.seen, 0.0, self.left == 0, False, {"is_success": True}


def rllib_rate(with_curriculum: bool, num_iterations: int) -> float:
    """Return env steps per second of RLlib's sampling, which is what a curriculum can slow down."""
    from ray.rllib.algorithms.ppo import PPOConfig

    from stepladder.cluster.rllib import add_curriculum

    config: Any = PPOConfig()
    config = (
        config.environment(NoEnv)
        .env_runners(num_env_runners=1, num_envs_per_env_runner=8)
        .training(train_batch_size_per_learner=4_000, num_epochs=1)
        .debugging(log_level="ERROR")
    )
    if with_curriculum:
        add_curriculum(config, make_curriculum)
    algorithm = config.build_algo()
    try:
        algorithm.train()
        best = 0.0
        for _ in range(num_iterations):
            algorithm.env_runner_group.foreach_env_runner(
                lambda runner: None, local_env_runner=False
            )
            began = time.perf_counter()
            episodes = algorithm.env_runner_group.foreach_env_runner(
                lambda runner: sum(len(one) for one in runner.sample(num_timesteps=4_000)),
                local_env_runner=False,
            )
            best = max(best, sum(episodes) / (time.perf_counter() - began))
    finally:
        algorithm.stop()
    return best


def measure_host(report: harness.Report) -> None:
    """Measure the host's own work, without Ray: what a host of many nodes is made of."""
    for num_envs in (1_000, 10_000):
        with tempfile.TemporaryDirectory() as folder:
            config = ServiceConfig(
                make_curriculum=make_curriculum, folder=folder, snapshot_interval_s=1e9
            )
            service = Service(config)
            joined = service.join("node", num_envs)
            took: dict[int, float] = {}
            posted = np.zeros(num_envs, dtype=np.int64)
            first, rng = 0, np.random.default_rng(0)
            for size in (1, 1, 500, 500, 500, 1):
                envs = np.sort(rng.choice(num_envs, size, replace=False))
                records = np.zeros(size, RECORD_DTYPE)
                records["env_index"], records["slot"] = envs, rng.integers(0, NUM_TASKS, size)
                records["length"], records["success"] = 10, rng.random(size) < 0.5
                posted[envs] += 1
                heads = np.stack([envs, posted[envs] + 1, 0 * envs, posted[envs] + 1], axis=1)
                batch = Batch(
                    "node", joined.incarnation, first, records, posted[envs] - 1, {}, heads
                )
                began = time.perf_counter()
                service.deliver(batch)
                took[size] = time.perf_counter() - began
                first += size
            began = time.perf_counter()
            service._save()
            saved = time.perf_counter() - began
            size_mb = Path(folder, "host.npz").stat().st_size / 1e6
            words = service.host.mails.words.nbytes + service.host._records.nbytes
        name = f"host, {num_envs:,} envs"
        report.add(f"{name}: a batch of one record", 1e6 * took[1], "us")
        each = 1e6 * (took[500] - took[1]) / 499
        report.add(f"{name}: each further record", each, "us")
        report.add(f"{name}: a snapshot of {size_mb:.1f} MB", 1e3 * saved, "ms")
        report.add(f"{name}: memory", words / 1e6, "MB")


def main() -> None:
    """Measure, then say."""
    title = (__doc__ or "").splitlines()[0]
    options = harness.parser(title)
    arguments = options.parse_args()
    report = harness.Report(title, as_json=arguments.json)
    seconds = 1.0 if arguments.quick else 4.0
    measure_host(report)
    shared = over_shared(seconds)
    cluster = Cluster()
    try:
        for num_nodes in (1, 2, 4):
            while len(cluster.list_all_nodes()) < num_nodes:
                cluster.add_node(
                    num_cpus=2,
                    object_store_memory=80 * 2**20,
                    include_dashboard=False,
                    node_ip_address="127.0.0.1",
                )
            if num_nodes == 1:
                ray.init(address=cluster.address, log_to_driver=False)
            measure_nodes(report, num_nodes, seconds, shared)
        plain = rllib_rate(False, 2 if arguments.quick else 6)
        ours = rllib_rate(True, 2 if arguments.quick else 6)
        report.add("RLlib, sampling episodes of 10 steps", ours, "steps/s", peer=plain)
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main()
