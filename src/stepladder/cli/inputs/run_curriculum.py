"""The curriculum of a run as its last checkpoint left it, and the run's own settings.

Between `runs` and the verbs that ask a run: `explain`, `watch` and `eval`.
"""

from collections.abc import Mapping

from stepladder.cli.inputs.finding import find_function
from stepladder.curricula.base import Curriculum
from stepladder.curricula.registry import rebuilt
from stepladder.envs.ids import known_game
from stepladder.errors import RunError
from stepladder.runs import RunReader
from stepladder.runs.checkpoint_choice import LAST, checkpoint_named
from stepladder.runs.run_folder import CONFIG
from stepladder.simulator.generalising import Generalising
from stepladder.simulator.graph import TaskGraph
from stepladder.tasks import FolderSource, ListSource, Source, Task
from stepladder.training.config import TrainingConfig

TASKS_OF_LEARNER = {"graph", "generalising"}
"""Settings of a simulated learner that say what its tasks are."""

OWN_SETTINGS = {"agent", "curriculum", "evaluation", "source"}
"""Settings that the config of every training has."""


def is_training(reader: RunReader) -> bool:
    """Return whether ``stepladder train`` made a run, rather than a user's own loop."""
    return reader.kind == "training" and reader.config.keys() >= OWN_SETTINGS


def is_simulation(reader: RunReader) -> bool:
    """Return whether a run was simulated; its settings then say what the tasks are."""
    simulator = reader.config.get("simulator")
    return isinstance(simulator, Mapping) and bool(TASKS_OF_LEARNER & simulator.keys())


def training_config(reader: RunReader) -> TrainingConfig:
    """Return the config of a run for which `is_training` holds."""
    return TrainingConfig.from_json(reader.config, str(reader.folder / CONFIG))


def run_curriculum(reader: RunReader, checkpoint: str | int = LAST) -> Curriculum:
    """Return a copy of a run's curriculum as a checkpoint left it.

    Args:
        reader: The run.
        checkpoint: ``"last"``, ``"best"`` or a step.

    Raises:
        RunError: The run has no checkpoint, or its settings do not say what its tasks are.
        SnapshotError: The checkpoint is damaged, or was made with other tasks.
        ConfigError: The run's settings are damaged.
    """
    if not reader.checkpoints():
        raise RunError(
            f"the run {reader.folder} has no checkpoint yet, so there is no curriculum to draw "
            "from. Wait for its first one, or watch its env by itself."
        )
    snapshot = reader.checkpoint(
        None if checkpoint == LAST else checkpoint_named(reader, checkpoint)
    )
    if "channel" in snapshot.state:
        # Saved together with its envs.
        snapshot = snapshot.part("curriculum")
    return rebuilt(snapshot, _source(reader))


def _source(reader: RunReader) -> Source:
    if is_simulation(reader):
        simulator = reader.config["simulator"]
        if "generalising" in simulator:
            return Generalising.from_json(simulator["generalising"], "the run's learner").source()
        return TaskGraph.from_json(simulator["graph"], "the graph of the run").source()
    if is_training(reader):
        return training_config(reader).task_source()
    tasks = reader.config.get("tasks")
    if isinstance(tasks, list):
        return ListSource([Task.from_json(task) for task in tasks])
    if isinstance(tasks, str) and ":" in tasks:
        made = find_function(tasks, "makes the tasks of a run")()
        return made if isinstance(made, Source) else ListSource(made)
    if isinstance(tasks, str):
        return FolderSource(tasks)
    env, settings = reader.config.get("env"), reader.config.get("source")
    if isinstance(env, str) and isinstance(settings, Mapping):
        game = known_game(env)
        own = None if game is None else game.source(settings)
        if own is not None:
            return own
    raise RunError(
        f"the run {reader.folder} does not say what its tasks are: its config must have 'tasks', a "
        f"list of tasks, a folder or module:function; got {tasks!r}. Or 'source', what its game's "
        "own tasks are chosen by. Watch its env by itself."
    )
