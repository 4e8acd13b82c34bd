"""The protocol of a cluster, simulated: how busy the host is, and how old plans are, by size.

A host serves the batches of all nodes one after the other; a node sends its next batch some time
after the answer to the last one. That is between two snapshots; how long one of these stops the
host is said beside it. What a record and a snapshot cost was measured by
``benchmarks/ray_cluster.py``; a call and a batch are assumed. All are given here, so that other
figures can be tried. No Ray is needed.

    python benchmarks/ray_scale.py
    python benchmarks/ray_scale.py --nodes 1000 --episode-seconds 1 --batch-us 400
"""

import argparse
import heapq
from dataclasses import dataclass

import harness
import numpy as np

from stepladder.cluster.service import MAX_BATCHES_PER_S, SNAPSHOT_SHARE


@dataclass(frozen=True)
class Costs:
    """What the parts of the protocol cost, in seconds and bytes."""

    call: float
    """From sending a batch to the beginning of its work, and as long on the way back."""
    batch: float
    record: float
    snapshot: float
    """Per env."""
    memory: float
    """Of the host, per env."""


@dataclass(frozen=True)
class Outcome:
    """How a cluster of some size does."""

    busy: float
    """Share of the time that the host works."""
    own_ms: float
    """From an episode's end to a plan that knows of it on its own node, mean."""
    all_ms: float
    """The same until every node has such a plan, mean of the worst."""
    records: float
    """Observed per second."""
    offered: float
    """Ended per second."""
    memory_gb: float


def simulate(
    num_nodes: int, envs_per_node: int, episode_s: float, costs: Costs, seconds: float
) -> Outcome:
    """Play the protocol for some simulated time."""
    rng = np.random.default_rng(0)
    rate = envs_per_node / episode_s
    delay = max(0.02, num_nodes / MAX_BATCHES_PER_S)
    events = [(float(rng.random() * delay), node) for node in range(num_nodes)]
    heapq.heapify(events)
    since, free_at, worked = np.zeros(num_nodes), 0.0, 0.0
    observed, waits, gaps = 0.0, [], []
    while events[0][0] < seconds:
        sent, node = heapq.heappop(events)
        count = rng.poisson(rate * (sent - since[node]))
        begins = max(free_at, sent + costs.call)
        work = costs.batch + costs.record * count
        free_at = begins + work
        answered = free_at + costs.call
        worked += work
        observed += count
        if sent > seconds / 4:
            # Episodes ended evenly since the last batch; the plan is back with the answer.
            waits.append((sent - since[node]) / 2 + answered - sent)
            gaps.append(answered - sent + delay)
        since[node] = sent
        heapq.heappush(events, (answered + delay, node))
    own = float(np.mean(waits))
    return Outcome(
        min(1.0, worked / seconds),
        1e3 * own,
        1e3 * (own + float(np.max(gaps))),
        observed / seconds,
        num_nodes * rate,
        costs.memory * num_nodes * envs_per_node / 1e9,
    )


def main() -> None:
    """Simulate, then say."""
    title = (__doc__ or "").splitlines()[0]
    options: argparse.ArgumentParser = harness.parser(title)
    options.add_argument("--nodes", type=int, nargs="+", default=[4, 32, 100, 300, 1_000])
    options.add_argument("--envs", type=int, default=1_000, help="on each node")
    options.add_argument("--episode-seconds", type=float, default=10.0)
    options.add_argument("--call-us", type=float, default=750.0)
    options.add_argument("--batch-us", type=float, default=500.0)
    options.add_argument("--record-us", type=float, default=0.34)
    options.add_argument("--snapshot-us", type=float, default=2.6, help="per env")
    options.add_argument("--memory-kb", type=float, default=26.8, help="of the host, per env")
    arguments = options.parse_args()
    costs = Costs(
        arguments.call_us / 1e6,
        arguments.batch_us / 1e6,
        arguments.record_us / 1e6,
        arguments.snapshot_us / 1e6,
        arguments.memory_kb * 1e3,
    )
    report = harness.Report(title, as_json=arguments.json)
    seconds = 20.0 if arguments.quick else 60.0
    for num_nodes in arguments.nodes:
        outcome = simulate(num_nodes, arguments.envs, arguments.episode_seconds, costs, seconds)
        name = f"{num_nodes:,} nodes of {arguments.envs:,} envs"
        report.add(f"{name}: the host works", 100 * outcome.busy, "%")
        report.add(f"{name}: episodes", outcome.records, "/s", peer=outcome.offered)
        report.add(f"{name}: to the plan of the own node", outcome.own_ms, "ms")
        report.add(f"{name}: to the plans of all nodes", outcome.all_ms, "ms")
        snapshot = costs.snapshot * num_nodes * arguments.envs
        report.add(f"{name}: a snapshot", snapshot, "s")
        pause = max(1.0, snapshot / SNAPSHOT_SHARE)
        report.add(f"{name}: from one snapshot to the next", pause, "s")
        report.add(f"{name}: memory of the host", outcome.memory_gb, "GB")


if __name__ == "__main__":
    main()
