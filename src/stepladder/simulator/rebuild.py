"""Build the curriculum of a simulated run again, as its last checkpoint left it.

Between `runs` and the command `explain`, for finished and running simulations: the run's settings
hold the graph of tasks, the checkpoint holds everything else.
"""

from collections.abc import Mapping

from stepladder.curricula.base import Curriculum
from stepladder.curricula.registry import rebuilt
from stepladder.runs import RunReader
from stepladder.simulator.graph import TaskGraph


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
    graph = TaskGraph.from_json(reader.config["simulator"]["graph"], "the graph of the run")
    return rebuilt(reader.checkpoint(), graph.source())
