"""A Ray cluster of several nodes on this machine, started once for the tests of a module."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Read when ray is imported, which tests do. No telemetry; all servers on the loopback interface.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"

HANDLED = (signal.SIGINT, signal.SIGTERM)
"""Signals that Ray handles from its first connection on, also in what is forked later."""


@dataclass
class RayCluster:
    """A cluster with a head and some more nodes, each with its own processes."""

    cluster: Any
    ray: Any

    def add_node(self, num_cpus: int = 1) -> Any:
        return self.cluster.add_node(
            num_cpus=num_cpus,
            object_store_memory=80 * 2**20,
            include_dashboard=False,
            node_ip_address="127.0.0.1",
        )

    def remove_node(self, node: Any) -> None:
        self.cluster.remove_node(node, allow_graceful=False)

    def wait_until(self, is_so: Callable[[], bool], what: str, timeout_s: float = 40.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_so():
            assert time.monotonic() < deadline, f"{what} has not come about in {timeout_s} s"
            time.sleep(0.02)


@pytest.fixture(scope="module")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    """Give a head with three CPUs and one more node with one, gone at the end."""
    patch, handlers = pytest.MonkeyPatch(), {each: signal.getsignal(each) for each in HANDLED}
    tests = Path(__file__).parents[1]
    paths = [str(tests.parent / "src"), str(tests), os.environ.get("PYTHONPATH", "")]
    patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    # No token in the user's home; one of ours, as long as the cluster lives.
    token = tmp_path_factory.mktemp("ray") / "token"
    token.write_text(os.urandom(32).hex())
    patch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    import ray
    from ray.cluster_utils import Cluster

    cluster = RayCluster(Cluster(shutdown_at_exit=True), ray)
    try:
        cluster.add_node(3)
        cluster.add_node(1)
        ray.init(address=cluster.cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster
    finally:
        ray.shutdown()
        cluster.cluster.shutdown()
        patch.undo()
        for each, handler in handlers.items():
            signal.signal(each, handler)
