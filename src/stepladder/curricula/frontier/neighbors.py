"""Which tasks lie close to each other, by numbers that describe them.

Used by `frontier` once, when it is built: it looks at every pair of tasks.
"""
# pyright: reportReturnType=false, reportArgumentType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import compiled

MAX_COMPARED_TASKS = 20_000
"""Pairs are compared one by one: a few seconds at this number, a minute at five times it."""

MAX_TIED = 16
"""Tasks as far away as the last neighbour that count as neighbours too, at most."""

ROUNDING = 1e-9
"""Squared distances that differ by less than this share are the same."""


def link_neighbors(table: Floats, count: int) -> Words:
    """Return every slot's neighbours: where each list starts, then the lists, ascending.

    Two slots are neighbours if either is among the `count` nearest of the other. Ties with the
    last of those count too, up to `MAX_TIED`; of more than that, as in a room full of tasks at the
    same place, each slot takes those that follow it, so that no slot is a neighbour of all.

    Args:
        table: Features; shape ``(num_slots, num_features)``.
        count: Nearest slots that count, at least 1; all others, if there are fewer.
    """
    num_slots = len(table)
    count = min(count, num_slots - 1)
    chosen = np.full((num_slots, count + MAX_TIED), -1, dtype=np.int64)
    if count > 0:
        _choose_neighbors(table, count, chosen)
    slots, columns = np.nonzero(chosen >= 0)
    others = chosen[slots, columns]
    # One number per pair sorts faster than two.
    pairs = np.unique(np.concatenate([slots * num_slots + others, others * num_slots + slots]))
    counts = np.bincount(pairs // num_slots, minlength=num_slots)
    starts = num_slots + 1 + np.concatenate([[0], np.cumsum(counts)])
    return np.concatenate([starts, pairs % num_slots]).astype(np.int64)


@compiled
def _choose_neighbors(table: Floats, count: int, chosen: Words) -> None:
    """Write the nearest slots of every slot into its row of `chosen`."""
    num_slots = len(table)
    distances = np.empty(num_slots)
    for slot in range(num_slots):
        for other in range(num_slots):
            squares = 0.0
            for column in range(table.shape[1]):
                difference = table[slot, column] - table[other, column]
                squares += difference * difference
            distances[other] = squares
        distances[slot] = np.inf
        last = np.partition(distances, count - 1)[count - 1]
        nearer, tied = last * (1.0 - ROUNDING), last * (1.0 + ROUNDING)
        taken = 0
        for other in range(num_slots):
            if distances[other] < nearer:
                chosen[slot, taken] = other
                taken += 1
        for step in range(1, num_slots):
            other = (slot + step) % num_slots
            if nearer <= distances[other] <= tied and taken < chosen.shape[1]:
                chosen[slot, taken] = other
                taken += 1
