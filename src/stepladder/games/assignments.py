"""Which env plays which task, where no curriculum chooses.

Mixed into `batch.GameVectorEnv`: tasks are checked and written into arrays, which the kernels read
when an episode begins.
"""

import logging
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from stepladder.errors import ConfigError
from stepladder.games.arguments import check_rows, check_spelling, check_tasks
from stepladder.games.curriculum_link import CurriculumLink
from stepladder.games.episodes import BatchArrays
from stepladder.tasks import Task

logger = logging.getLogger("stepladder.games")


class Assignments:
    """Gives envs tasks."""

    num_envs: int
    batch: BatchArrays
    link: CurriculumLink | None
    playing: Any
    table: Any

    tasks: list[Task]
    """What each env plays; with a curriculum that is in the plan instead."""

    @abstractmethod
    def room_for_tasks(self, num_rows: int) -> Any:
        """Return room for the tasks of so many envs or slots, in the form that kernels read."""

    @abstractmethod
    def put(self, task: Task, prepared: Any, row: int) -> None:
        """Write a task into a row of prepared tasks; several threads may each write another row.

        Raises:
            TaskError: The game cannot play the task.
        """

    def give_first(self, task: Task) -> None:
        """Give all envs the task that they play until they are given another."""
        self.tasks = [task] * self.num_envs
        self.waiting: dict[int, Task] = {}
        """What some envs will play from their next reset on."""
        self._ignored: set[str] = set()
        self._set_rows(range(self.num_envs), self.tasks)

    def set_tasks(self, tasks: Sequence[Task], env_indices: Sequence[int] | None = None) -> None:
        """Give some envs, by default all, a task each; they play it from their next reset on.

        Raises:
            TaskError: The game cannot play a task. Then no env has been given one.
        """
        if self.link is not None:
            raise ConfigError(
                "a curriculum chooses the tasks of these envs. Make others without one."
            )
        rows = check_rows(env_indices, self.num_envs)
        self._set_rows(rows, check_tasks(tasks, len(rows)))

    def _set_rows(self, rows: Sequence[int], tasks: Sequence[Task]) -> None:
        # Each task once, and all before any env gets one.
        numbers = {task: number for number, task in enumerate(dict.fromkeys(tasks))}
        trial = self.room_for_tasks(len(numbers))
        for task, number in numbers.items():
            self.put(task, trial, number)
        for row, task in zip(rows, tasks, strict=True):
            _copy_row(trial, numbers[task], self.table, row)
            self.batch.known[row] = 1
            self.waiting[row] = task

    def note_params(self, params: Mapping[str, Any], known: Collection[str], name: str) -> None:
        """Refuse misspelt parameters of a task, and warn once of others that are ignored.

        Raises:
            TaskError: A parameter looks like a misspelling.
        """
        check_spelling(params, known, name)
        for key in params:
            if key not in known and key not in self._ignored:
                self._ignored.add(key)
                logger.warning(
                    "Task %r has a parameter %r, which means nothing to %s; it is ignored. Known "
                    "are %s.",
                    name,
                    key,
                    type(self).__name__,
                    ", ".join(known),
                )

    def task_of(self, env_index: int) -> Task:
        """Return the task that an env plays; with a curriculum, settings included."""
        return self.link.task_of(env_index) if self.link else self.tasks[env_index]

    def take_from_table(self, slot: int, env_index: int) -> None:
        """Let an env play the task of a slot from its next episode on."""
        _copy_row(self.table, slot, self.playing, env_index)

    def note_beginnings(self) -> None:
        """Remember which of the tasks that were waiting are played now."""
        for row in np.flatnonzero(self.batch.has_begun).tolist():
            self.tasks[row] = self.waiting.pop(row, self.tasks[row])


def _copy_row(source: Any, source_row: int, target: Any, target_row: int) -> None:
    """Copy one row of all arrays of prepared tasks."""
    for from_array, to_array in zip(source, target, strict=True):
        to_array[target_row] = from_array[source_row]
