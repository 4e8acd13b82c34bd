"""Which tasks are of a kind: cells, by labels, by bins of features, or by both.

Read once, when a method is built that judges tasks of a kind together (`pooling`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.curricula.pooled.features import feature_table
from stepladder.tasks import Pool

MAX_CELLS = 256
"""A draw looks at every cell."""

TASKS_PER_CELL = 4
"""Tasks that a bin of features has on average, at least: fewer say little about each other."""


class Cells(NamedTuple):
    """The cell of every slot."""

    of_slot: Words
    num_cells: int

    @property
    def split(self) -> bool:
        """Whether there is more than one kind of task."""
        return self.num_cells > 1

    def members(self) -> Words:
        """Return where every cell's list of slots begins, then the lists, ascending."""
        counts = np.bincount(self.of_slot, minlength=self.num_cells)
        starts = self.num_cells + 1 + np.concatenate([[0], np.cumsum(counts)])
        order = np.argsort(self.of_slot, kind="stable")
        return np.concatenate([starts, order]).astype(np.int64)


def splits_by_label(pool: Pool) -> bool:
    """Whether labels stand for kinds of tasks: at least two tasks each, and few enough labels."""
    return 1 < len(pool.label_names) <= min(MAX_CELLS, pool.num_slots // 2)


def one_cell(pool: Pool) -> Cells:
    """Return a single cell for all tasks of a pool."""
    return Cells(np.zeros(pool.num_slots, dtype=np.int64), 1)


def find_cells(pool: Pool, features: Sequence[str] = ()) -> Cells:
    """Return the cells of a pool: its labels, cut into bins if features are named.

    Without labels that stand for kinds, bins alone; without features either, one cell for all.
    There are as many bins as `MAX_CELLS` and `TASKS_PER_CELL` allow, alike for each feature.

    Raises:
        ConfigError: A feature is missing or not a number, or some tasks are not in the pool.
    """
    cells, num_labels = one_cell(pool)
    if splits_by_label(pool):
        cells, num_labels = pool.label_indices.copy(), len(pool.label_names)
    if not features:
        return Cells(cells, num_labels)
    most = min(MAX_CELLS, pool.num_slots // TASKS_PER_CELL) / num_labels
    num_bins = max(1, int(most ** (1.0 / len(features)) + 1e-9))
    for column in feature_table(pool, features).T:
        cells = cells * num_bins + _bins(column, num_bins)
    # Without the cells that no task is in.
    _, found = np.unique(cells, return_inverse=True)
    return Cells(found.astype(np.int64), int(found.max()) + 1)


def _bins(values: Floats, num_bins: int) -> Words:
    """Return the bin of each value: about as many values in each, equal values in the same."""
    levels = np.unique(values)
    if len(levels) <= num_bins:
        return np.searchsorted(levels, values).astype(np.int64)
    edges = np.quantile(values, np.arange(1, num_bins) / num_bins)
    return np.searchsorted(edges, values, side="right").astype(np.int64)
