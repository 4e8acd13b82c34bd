"""Everything a batch of games needs to go on exactly where it is, in the middle of its episodes.

Mixed into `batch.GameVectorEnv`. All of a game's state is in arrays, so that a snapshot is those
arrays and the tasks by their content; it loads no pickle and can go to another process.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from stepladder.curricula.snapshot import Snapshot, difference, matching, require_snapshot
from stepladder.errors import ConfigError, SnapshotError
from stepladder.games.episodes import Batch
from stepladder.games.lessons import Lessons
from stepladder.tasks import Task

Array = npt.NDArray[Any]

KEPT = ("episodes", "dice", "seeds", "rewards", "terminated", "truncated", "has_begun", "known")
"""What is kept of a batch."""


class Saving:
    """Saves and restores envs in mid-game."""

    num_envs: int
    batch: Batch
    lessons: Lessons | None
    shelf: Any
    table: Any
    tasks: list[Task]
    waiting: dict[int, Task]

    @abstractmethod
    def game_arrays(self) -> Mapping[str, Array]:
        """Return the arrays of this game that outlive a step, as they are."""

    @abstractmethod
    def game_settings(self) -> dict[str, Any]:
        """Return the settings that a snapshot must share with the envs it is restored to."""

    def snapshot(self) -> Snapshot:
        """Return everything needed to continue exactly here, episodes in flight included.

        Raises:
            ConfigError: A curriculum chooses the tasks; its wrapper has a snapshot of its own.
        """
        self._check_alone()
        known = list(dict.fromkeys([*self.tasks, *self.waiting.values()]))
        numbers = {task: number for number, task in enumerate(known)}
        state = {
            "settings": self._settings(),
            "tasks": [task.to_json() for task in known],
            "playing": [numbers[task] for task in self.tasks],
            "waiting": {str(row): numbers[task] for row, task in self.waiting.items()},
        }
        return Snapshot(state, {name: array.copy() for name, array in self._arrays().items()})

    def restore(self, snapshot: Snapshot) -> None:
        """Continue exactly where a snapshot was made; no reset is needed.

        What the envs saw last is in ``buffers.observations``.

        Raises:
            SnapshotError: It was made with other settings, or is damaged. Then nothing has changed.
        """
        self._check_alone()
        require_snapshot(snapshot)
        found = difference(snapshot.state.get("settings"), self._settings())
        if found is not None:
            raise SnapshotError(
                f"the snapshot was made by other envs: {found}. Make the envs as they were."
            )
        arrays = {
            name: matching(snapshot.arrays, name, array) for name, array in self._arrays().items()
        }
        tasks, waiting = _tasks_of(snapshot.state, self.num_envs)
        for name, array in self._arrays().items():
            array[...] = arrays[name]
        self.tasks[:] = tasks
        self.waiting.clear()
        self.waiting.update(waiting)

    def _check_alone(self) -> None:
        if self.lessons is not None:
            raise ConfigError(
                "these envs have a curriculum. Use snapshot and restore of the CurriculumVectorEnv "
                "around them."
            )

    def _settings(self) -> dict[str, Any]:
        return {
            "game": type(self).__name__,
            "num_envs": self.num_envs,
            "settings": self.game_settings(),
        }

    def _arrays(self) -> dict[str, Array]:
        arrays = {f"batch/{name}": getattr(self.batch, name) for name in KEPT}
        for place, shelf in (("shelf", self.shelf), ("table", self.table)):
            arrays |= {f"{place}/{name}": array for name, array in shelf._asdict().items()}
        return arrays | {f"game/{name}": array for name, array in self.game_arrays().items()}


def _tasks_of(state: Mapping[str, Any], num_envs: int) -> tuple[list[Task], dict[int, Task]]:
    try:
        known = [Task.from_json(task) for task in state["tasks"]]
        playing = [known[number] for number in state["playing"]]
        waiting = {int(row): known[number] for row, number in state["waiting"].items()}
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise SnapshotError(
            f"the tasks in the snapshot are damaged ({error}). Use an older snapshot."
        ) from error
    if len(playing) != num_envs or not all(0 <= row < num_envs for row in waiting):
        raise SnapshotError(
            f"the snapshot names tasks of {len(playing)} envs; expected {num_envs}. Use an older "
            "snapshot."
        )
    return playing, waiting
