"""Remember the tasks made last, and no more than that.

Sits inside sources whose tasks are dear to make (`folder`, `parameters`). A cache never travels:
its pickle is an empty cache of the same size.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from stepladder.errors import ConfigError
from stepladder.tasks.plain import whole_number
from stepladder.tasks.task import Task


class TaskCache:
    """The last tasks used, by id; the one unused for longest leaves first."""

    def __init__(self, cache_size: int) -> None:
        """Make an empty cache.

        Args:
            cache_size: Most tasks kept, from 0 (keep none) to 2**31 - 1.
        """
        self._cache_size = whole_number(cache_size, "cache_size", 0, 2**31 - 1, ConfigError)
        self._tasks: OrderedDict[int, Task] = OrderedDict()

    def __len__(self) -> int:
        """Return how many tasks are kept now."""
        return len(self._tasks)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the size only."""
        return TaskCache, (self._cache_size,)

    def find(self, task_id: int) -> Task | None:
        """Return the task kept under this id, now the most recent one, or None."""
        task = self._tasks.get(task_id)
        if task is not None:
            self._tasks.move_to_end(task_id)
        return task

    def keep(self, task_id: int, task: Task) -> None:
        """Keep a task, in place; drop the one unused for longest if there are too many."""
        self._tasks[task_id] = task
        if len(self._tasks) > self._cache_size:
            self._tasks.popitem(last=False)
