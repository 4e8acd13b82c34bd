"""What plays of the same task say about each other: how mixed labels are, how fast is memorised.

Beside `practice`. For trainings whose curriculum draws all tasks alike: then it is pure chance how
often, and how long ago, the task of an episode was played before, and harder tasks are not played
more or less often than others.

- Two plays of a task soon after each other differ in success with probability ``2 p (1 - p)``. In
  a label of tasks that are all alike that is twice the product of its rates; in a mix of easy and
  impossible tasks they never differ. The rate of a label alone does not tell the two apart.
- A task that was played lately succeeds more often if it was memorised. Each play gets a number per
  rate of `MEMORY_LOSSES`, its echo: the sum of the task's earlier plays, each weighted by what is
  left of it if that share is lost with every update since. The learner says that success rises in
  proportion to the echo at its own rate. Kept are sums of products of the echoes and the success,
  less the means of the label at about the same time, because skill grows, and less the means of the
  task, because a few tasks that happen to be easy must not count as often as they are played.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.plans.record import RecordArray

MEMORY_LOSSES = (0.5, 0.15, 0.05, 0.015, 0.005, 0.0)
"""Shares of a memory that may be lost with every update."""

NUM_PARTS, NUM_MOMENTS = 4, 120
"""Separate parts of a training, and moments within which skill counts as constant."""

NEAR_MOMENTS = 3
"""Moments within which two plays of a task make a pair."""

MEAN_ROUNDS = 8
"""How often two kinds of means are taken off in turn, until neither is left."""

TABLES = ("counts", "pairs", "discords", "products")

LEAST_LOSS = 0.0015
"""From here on down, nothing counts as lost."""

LEAST_NOISE = 1e-6
"""Variance of success below which there is nothing to explain."""


@dataclass(frozen=True, kw_only=True)
class RepeatedPlays:
    """Sums over the plays of each part of a training and each group."""

    steps: Words
    """Env steps so far at the end of each part."""
    counts: Floats
    """Plays, less one per mean that was taken off; shape ``(num_parts, num_groups)``."""
    pairs: Floats
    """Plays whose task was played shortly before; the same shape."""
    discords: Floats
    """Those of them whose success differs from that of the play before."""
    products: Floats
    """Of echoes and, as the last entry, success: ``(num_parts, num_groups, size, size)``."""

    def in_order(self, places: Sequence[int]) -> "RepeatedPlays":
        """Return the same with the groups of these places; -1 is a group without plays."""

        def ordered(table: Floats) -> Floats:
            empty = np.zeros_like(table[:, :1])
            return np.concatenate([table, empty], axis=1)[:, list(places)]

        return replace(self, **{name: ordered(getattr(self, name)) for name in TABLES})

    def until(self, step: int) -> "RepeatedPlays":
        """Return the parts that end by an env step."""
        kept = self.steps <= step
        tables = {name: getattr(self, name)[kept] for name in TABLES}
        return replace(self, steps=self.steps[kept], **tables)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON; of the products, the lower half row by row."""
        rows, columns = np.tril_indices(self.products.shape[-1])
        lower = self.products[:, :, rows, columns].tolist()
        return {
            "steps": self.steps.tolist(),
            **{name: getattr(self, name).round(1).tolist() for name in TABLES[:-1]},
            "products": [[[float(f"{x:.5g}") for x in row] for row in part] for part in lower],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "RepeatedPlays":
        """Return what `to_json` wrote."""
        lower, size = np.array(data["products"], dtype=np.float64), len(MEMORY_LOSSES) + 1
        rows, columns = np.tril_indices(size)
        products = np.zeros((*lower.shape[:2], size, size))
        products[:, :, rows, columns] = lower
        products[:, :, columns, rows] = lower
        tables = {name: np.array(data[name], dtype=np.float64) for name in TABLES[:-1]}
        return cls(steps=np.array(data["steps"]), products=products, **tables)


# From records.


def repeats_of(
    records: RecordArray, groups: Words, num_envs: int, update_steps: int
) -> RepeatedPlays:
    """Measure how plays of the same tasks follow each other.

    Args:
        records: Of all episodes of a training from its beginning, in the order of their ends.
        groups: The group of each slot.
        num_envs: Envs of the training.
        update_steps: Env steps of all envs from one update of the agent to the next.
    """
    begins, ends = _begins_and_ends(records, num_envs)
    slots, success = records["slot"], np.nan_to_num(records["success"])
    values = _echoes(slots, begins, ends, update_steps / num_envs)
    values[:, -1] = success
    num_groups, total = int(groups.max()) + 1, int(ends.max()) + 1
    # By the beginning: of plays that end together, the longer ones, which fail more often, began
    # earlier, with fewer plays before them.
    moments = begins * NUM_MOMENTS // total
    parts = moments * NUM_PARTS // NUM_MOMENTS
    keys = parts * num_groups + groups[slots]
    of_moment, of_task = moments * num_groups + groups[slots], parts * len(groups) + slots
    values, free = _less_means(values, (of_moment, of_task))
    before, differs = _against_the_last(slots, success, ends, total * NEAR_MOMENTS / NUM_MOMENTS)
    tables = np.zeros((3, NUM_PARTS * num_groups))
    products = np.zeros((NUM_PARTS * num_groups, values.shape[1], values.shape[1]))
    for key in np.unique(keys).tolist():
        some = keys == key
        products[key] = values[some].T @ values[some]
        tables[:, key] = free[some].sum(), before[some].sum(), differs[some].sum()
    shape = NUM_PARTS, num_groups
    counts, pairs, discords = tables.reshape(3, *shape)
    return RepeatedPlays(
        steps=np.arange(1, NUM_PARTS + 1) * total * num_envs // NUM_PARTS,
        counts=counts,
        pairs=pairs,
        discords=discords,
        products=products.reshape(*shape, *products.shape[1:]),
    )


def _begins_and_ends(records: RecordArray, num_envs: int) -> tuple[Words, Words]:
    """Return the vector steps at which each episode began and ended."""
    clocks = np.zeros(num_envs, dtype=np.int64)
    begins, ends = (np.zeros(len(records), dtype=np.int64) for _ in range(2))
    pairs = zip(records["env_index"].tolist(), records["length"].tolist(), strict=True)
    for index, (env, length) in enumerate(pairs):
        begins[index] = clocks[env]
        ends[index] = clocks[env] + length
        # The step after an ending only resets the env.
        clocks[env] = ends[index] + 1
    return begins, ends


def _echoes(slots: Words, begins: Words, ends: Words, rollout_steps: float) -> Floats:
    """Return the echoes of each play, and an empty column."""
    kept = 1.0 - np.array(MEMORY_LOSSES)
    values = np.zeros((len(slots), len(MEMORY_LOSSES) + 1))
    learnt: dict[int, list[int]] = {}
    for index in np.argsort(ends, kind="stable").tolist():
        earlier = learnt.setdefault(int(slots[index]), [])
        # A play succeeds as the agent was when it began, and teaches with the first update after
        # its end.
        num_updates = math.floor(max(0, begins[index] - 1) / rollout_steps)
        ages = num_updates - np.array(earlier, dtype=np.float64)
        values[index, :-1] = (kept[:, None] ** ages[ages >= 0.0]).sum(axis=1)
        earlier.append(math.ceil(ends[index] / rollout_steps))
    return values


def _less_means(values: Floats, keys: tuple[Words, ...]) -> tuple[Floats, Floats]:
    """Take off the means of plays with the same key, for several keys at once.

    Returns:
        What is left, and for each play its share of what is left to vary: one less per mean.
    """
    left, free = values.copy(), np.ones(len(values))
    sizes: list[tuple[Words, Floats]] = []
    for key in keys:
        places = np.unique(key, return_inverse=True)[1]
        size = np.bincount(places).astype(np.float64)
        free -= 1.0 / size[places]
        sizes.append((places, size))
    for _ in range(MEAN_ROUNDS):
        for places, size in sizes:
            for column in range(left.shape[1]):
                left[:, column] -= (np.bincount(places, left[:, column]) / size)[places]
    return left, np.maximum(0.0, free)


def _against_the_last(
    slots: Words, success: Floats, ends: Words, near: float
) -> tuple[Floats, Floats]:
    """Return for each play whether its task was played shortly before, and went otherwise.

    After longer than `near` vector steps, it may go otherwise because the agent has learnt.
    """
    order = np.lexsort((ends, slots))
    is_same = np.diff(slots[order], prepend=-1) == 0
    is_same &= np.diff(ends[order], prepend=0) <= near
    before, differs = np.zeros(len(slots)), np.zeros(len(slots))
    before[order] = is_same
    differs[order] = is_same & (np.diff(success[order], prepend=0.0) != 0.0)
    return before, differs


# For a fit.


class SlopeEvidence(NamedTuple):
    """What was seen of the slopes of success by echoes, as a quadratic form.

    A learner that says that success rises with the echoes by slopes b is surprised by
    ``b W b / 2 - w b``, up to a constant: half the squared error, in units of its variance.
    """

    squares: Floats
    """W, one block per part and group: ``(num_blocks, num_losses, num_losses)``."""
    linear: Floats
    """w, ``(num_blocks, num_losses)``."""

    @classmethod
    def of(cls, known: Sequence[RepeatedPlays]) -> "SlopeEvidence":
        """Return what several trainings have shown."""
        size = len(MEMORY_LOSSES)
        squares, linear = [np.zeros((0, size, size))], [np.zeros((0, size))]
        for one in known:
            noise = one.products[:, :, -1, -1] / np.maximum(1.0, one.counts)
            scale = np.divide(1.0, noise, out=np.zeros_like(noise), where=noise > LEAST_NOISE)
            whole = one.products[:, :, :-1, :-1] * scale[..., None, None]
            squares.append(whole.reshape(-1, size, size))
            linear.append((one.products[:, :, -1, :-1] * scale[..., None]).reshape(-1, size))
        return cls(np.concatenate(squares), np.concatenate(linear))

    def cost(self, slopes: Floats) -> float:
        """Return the surprise."""
        own = slopes.reshape(self.linear.shape)
        return 0.5 * float(np.sum(own * self._weighted(own))) - float(np.sum(self.linear * own))

    def pull(self, slopes: Floats) -> Floats:
        """Return how much smaller the surprise would be if each slope were larger by 1."""
        own = slopes.reshape(self.linear.shape)
        return (self.linear - self._weighted(own)).ravel()

    def information(self, changes: Floats) -> Floats:
        """Return Fisher's matrix of settings by which slopes change so; one column for each."""
        own = changes.reshape(*self.linear.shape, changes.shape[-1])
        found: Floats = np.tensordot(own, self.squares @ own, axes=((0, 1), (0, 1)))
        return found

    def _weighted(self, slopes: Floats) -> Floats:
        return (self.squares @ slopes[..., None])[..., 0]


def mean_by_part(known: RepeatedPlays, steps: Words, plays: Floats, table: Floats) -> Floats:
    """Return the mean of a table per epoch and group over the epochs of each part.

    Args:
        known: Its parts.
        steps: Env steps at the end of each epoch.
        plays: By which the epochs are weighted.
        table: What is averaged.
    """
    parts = np.searchsorted(known.steps, steps)
    found = np.zeros((len(known.steps), plays.shape[1]))
    for part in range(len(found)):
        weights = plays[parts == part]
        total = weights.sum(axis=0)
        whole = (weights * table[parts == part]).sum(axis=0)
        found[part] = np.divide(whole, total, out=np.zeros_like(total), where=total > 0.0)
    return found


def slopes_of(strength: Floats, loss: float) -> Floats:
    """Return how success rises with the echo of each of `MEMORY_LOSSES`, of a memory with another.

    The echo at a loss between two of them is taken to lie between their echoes, by the logarithm.

    Args:
        strength: What an earlier play adds as long as nothing is lost, per part and group.
        loss: Share of the memory that is lost with every update.
    """
    logs = np.log(np.maximum(MEMORY_LOSSES, LEAST_LOSS))
    place = np.interp(-math.log(max(loss, LEAST_LOSS)), -logs, np.arange(len(logs)))
    weights = np.maximum(0.0, 1.0 - np.abs(np.arange(len(logs)) - place))
    return (strength[..., None] * weights).ravel()
