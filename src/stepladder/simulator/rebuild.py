"""Build the curriculum of a simulated run again, as its last checkpoint left it.

Between `runs` and whoever wants to ask a finished or running simulation why: the run's settings
hold the graph of tasks, the checkpoint holds everything else.
"""

from collections.abc import Mapping
from typing import Any

from stepladder.curricula.base import Curriculum
from stepladder.curricula.config_registry import config_from_json
from stepladder.errors import SnapshotError
from stepladder.runs import RunReader
from stepladder.simulator.graph import TaskGraph
from stepladder.tasks import Pool
from stepladder.tasks.plain import whole_number
from stepladder.tasks.task import MAX_SEED


def can_rebuild(reader: RunReader) -> bool:
    """Whether a run was simulated and has a checkpoint by now."""
    simulator = reader.config.get("simulator")
    return isinstance(simulator, Mapping) and "graph" in simulator and bool(reader.checkpoints())


def rebuilt_curriculum(reader: RunReader) -> Curriculum:
    """Return the curriculum of a run for which `can_rebuild` holds.

    Raises:
        SnapshotError: The checkpoint is damaged.
        ConfigError: The run's settings are.
    """
    snapshot = reader.checkpoint()
    config = config_from_json(snapshot.state.get("config"), "the curriculum of the checkpoint")
    seed = _number(snapshot.state.get("seed"), "seed")
    capacity = _number(snapshot.part("pool").state.get("num_slots"), "num_slots")
    graph = TaskGraph.from_json(reader.config["simulator"]["graph"])
    curriculum = config.make(Pool(graph.source(), capacity, seed), seed=seed)
    curriculum.restore(snapshot)
    return curriculum


def _number(value: Any, name: str) -> int:
    return whole_number(value, f"The checkpoint's {name}", 0, MAX_SEED, SnapshotError)
