"""Numbers that describe tasks, such as a position or a difficulty, as a table.

Read once, when a method is built: `frontier` looks for neighbours in it, `cells` for kinds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from stepladder.arrays import Floats
from stepladder.configs.checks import is_number
from stepladder.errors import ConfigError, TaskError
from stepladder.tasks import Pool, Task
from stepladder.tasks.paths import read_path

MAX_FEATURE = 1e100
"""Largest feature, either way: squares of differences must stay numbers."""


def feature_table(pool: Pool, names: Sequence[str]) -> Floats:
    """Return the features of every slot's task; shape ``(num_slots, len(names))``.

    Each is measured from its mean in units of its standard deviation, so that a position in metres
    and a difficulty from 1 to 5 weigh the same. One that is the same for all tasks has no effect.

    Raises:
        ConfigError: There are too many tasks, or some are not in the pool, or a feature is missing
            or not a number.
    """
    if pool.can_replace:
        raise ConfigError(
            f"features need all tasks of the source in the pool; this one has {pool.num_slots} "
            "slots and more tasks outside. Leave features out, or the capacity."
        )
    table = np.empty((pool.num_slots, len(names)))
    for slot in range(pool.num_slots):
        task = pool.task(slot)
        table[slot] = [_feature(task, name) for name in names]
    spread = table.std(axis=0)
    return (table - table.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def _feature(task: Task, name: str) -> float:
    try:
        value: Any = read_path(task.params, name)
    except TaskError as error:
        raise ConfigError(f"task {task.name!r} lacks a feature. {error}") from error
    if not is_number(value) or not abs(value) <= MAX_FEATURE:
        raise ConfigError(
            f"feature {name!r} of task {task.name!r} is {value!r}; expected a number of at most "
            f"{MAX_FEATURE:g} either way. Correct the task, or leave the feature out."
        )
    return float(value)
