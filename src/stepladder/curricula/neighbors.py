"""Which tasks lie close to each other, by numbers that describe them.

Used by `frontier` once, when it is built: it looks at every pair of tasks.
"""
# pyright: reportReturnType=false, reportArgumentType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

from collections.abc import Sequence

import numpy as np

from stepladder.compiled import compiled
from stepladder.curricula.kernels import Floats, Words
from stepladder.errors import ConfigError
from stepladder.tasks import Pool
from stepladder.tasks.paths import read_path

MAX_TASKS = 20_000
"""Pairs are compared one by one: a second or two at this number, a minute at five times it."""

MAX_TIED = 16
"""Tasks at the same distance as the last neighbour that count as neighbours too, at most."""


def feature_table(pool: Pool, names: Sequence[str]) -> Floats:
    """Return the features of every slot's task, each in units of its standard deviation.

    So that a position in metres and a difficulty from 1 to 5 weigh alike.

    Raises:
        ConfigError: There are too many tasks, or some are not in the pool, or a feature is no
            finite number.
    """
    if pool.can_replace or pool.num_slots > MAX_TASKS:
        raise ConfigError(
            f"features need a pool that holds all tasks of its source, at most {MAX_TASKS}; this "
            f"one has {pool.num_slots} slots. Leave features out, or take fewer tasks."
        )
    table = np.empty((pool.num_slots, len(names)))
    for slot in range(pool.num_slots):
        params = pool.task(slot).params
        for column, name in enumerate(names):
            value = read_path(params, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not np.isfinite(value):
                raise ConfigError(
                    f"feature {name!r} of task {pool.task(slot).name!r} is {value!r}; expected a "
                    "finite number. Correct the task, or leave the feature out."
                )
            table[slot, column] = value
    spread = table.std(axis=0)
    return table / np.where(spread > 0.0, spread, 1.0)


def link_neighbors(table: Floats, count: int) -> Words:
    """Return every slot's neighbours: where each list starts, then the lists.

    Two slots are neighbours if either is among the `count` nearest of the other; ties count.
    """
    num_slots = len(table)
    pairs = np.zeros((num_slots * 2 * (count + MAX_TIED), 2), dtype=np.int64)
    found = int(_find_pairs(table, min(count, num_slots - 1), pairs))
    linked = np.unique(pairs[:found], axis=0)
    counts = np.bincount(linked[:, 0], minlength=num_slots)
    starts = num_slots + 1 + np.concatenate([[0], np.cumsum(counts)])
    return np.concatenate([starts, linked[:, 1]]).astype(np.int64)


@compiled
def _find_pairs(table: Floats, count: int, pairs: Words) -> int:
    """Write both directions of every pair of neighbours; return how many."""
    num_slots, found = len(table), 0
    distances = np.empty(num_slots)
    for slot in range(num_slots):
        for other in range(num_slots):
            gap = 0.0
            for column in range(table.shape[1]):
                difference = table[slot, column] - table[other, column]
                gap += difference * difference
            distances[other] = gap
        distances[slot] = np.inf
        if count == 0:
            continue
        limit = np.partition(distances, count - 1)[count - 1] * (1.0 + 1e-9)
        taken = 0
        for other in range(num_slots):
            if distances[other] <= limit and taken < count + MAX_TIED:
                taken += 1
                pairs[found, 0], pairs[found, 1] = slot, other
                pairs[found + 1, 0], pairs[found + 1, 1] = other, slot
                found += 2
    return found
