"""How fast single tasks are memorised: whether a task succeeds more often if it was played lately.

Beside `practice`. For trainings whose curriculum draws all tasks alike: then it is pure chance how
often, and how long ago, the task of an episode was played before, and harder tasks are not played
more or less often than others. So the difference in success is what was remembered of the task.

Each play gets a number per rate of `LOSSES`, its echo: the sum of the task's earlier plays, each
weighted by what is left of it if that share is lost with every update since. The learner says that
success rises in proportion to the echo at its own rate. Kept are sums of products of the echoes and
the success, less their means among plays of the label at about the same time, because skill grows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from stepladder.plans.record import RecordArray
from stepladder.records import Floats, Words

LOSSES = (0.5, 0.15, 0.05, 0.015, 0.005, 0.0)
"""Shares of a memory that may be lost with every update."""

NUM_PARTS, NUM_MOMENTS = 4, 120
"""Parts of a training that are told apart, and moments within which skill counts as constant."""


LEAST_LOSS = 0.0015
"""From here on down, nothing counts as lost."""

LEAST_NOISE = 1e-6
"""Variance of success below which there is nothing to explain."""


@dataclass(frozen=True, kw_only=True)
class Rehearsals:
    """Sums over the plays of each part of a training and each group."""

    steps: Words
    """Env steps so far at the end of each part."""
    counts: Floats
    """Plays, less one per moment; shape ``(num_parts, num_groups)``."""
    products: Floats
    """Of echoes and, as the last entry, success: ``(num_parts, num_groups, size, size)``."""

    def in_order(self, places: Sequence[int]) -> "Rehearsals":
        """Return the same with the groups of these places; -1 is a group without plays."""

        def ordered(table: Floats) -> Floats:
            empty = np.zeros_like(table[:, :1])
            return np.concatenate([table, empty], axis=1)[:, list(places)]

        return replace(self, counts=ordered(self.counts), products=ordered(self.products))

    def until(self, step: int) -> "Rehearsals":
        """Return the parts that end by an env step."""
        kept = self.steps <= step
        return Rehearsals(
            steps=self.steps[kept], counts=self.counts[kept], products=self.products[kept]
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON; of the products, the lower half row by row."""
        rows, columns = np.tril_indices(self.products.shape[-1])
        lower = self.products[:, :, rows, columns].tolist()
        return {
            "steps": self.steps.tolist(),
            "counts": self.counts.astype(int).tolist(),
            "products": [[[float(f"{x:.5g}") for x in row] for row in part] for part in lower],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Rehearsals":
        """Return what `to_json` wrote."""
        lower, size = np.array(data["products"], dtype=np.float64), len(LOSSES) + 1
        rows, columns = np.tril_indices(size)
        products = np.zeros((*lower.shape[:2], size, size))
        products[:, :, rows, columns] = lower
        products[:, :, columns, rows] = lower
        counts = np.array(data["counts"], dtype=np.float64)
        return cls(steps=np.array(data["steps"]), counts=counts, products=products)


class Evidence(NamedTuple):
    """What was seen of the slopes of success by echoes, as a quadratic form.

    A learner that says that success rises with the echoes by slopes b is surprised by
    ``b W b / 2 - w b``, up to a constant: half the squared error, in units of its variance.
    """

    squares: Floats
    """W, one block per part and group: ``(num_blocks, num_losses, num_losses)``."""
    linear: Floats
    """w, ``(num_blocks, num_losses)``."""

    @classmethod
    def of(cls, known: Sequence[Rehearsals]) -> "Evidence":
        """Return what several trainings have shown."""
        size = len(LOSSES)
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
        return 0.5 * float(np.sum(own * self._times(own))) - float(np.sum(self.linear * own))

    def pull(self, slopes: Floats) -> Floats:
        """Return how much smaller the surprise would be if each slope were larger by 1."""
        own = slopes.reshape(self.linear.shape)
        return (self.linear - self._times(own)).ravel()

    def _times(self, slopes: Floats) -> Floats:
        return (self.squares @ slopes[..., None])[..., 0]

    def information(self, changes: Floats) -> Floats:
        """Return Fisher's matrix of settings by which slopes change so; one column for each."""
        own = changes.reshape(*self.linear.shape, changes.shape[-1])
        return np.tensordot(own, self.squares @ own, axes=((0, 1), (0, 1)))


def mean_echoes(known: Rehearsals, steps: Words, plays: Floats, echo: Floats) -> Floats:
    """Return the mean of a table per epoch and group over the epochs of each part.

    Args:
        known: Its parts.
        steps: Env steps at the end of each epoch.
        plays: By which the epochs are weighted.
        echo: The table.
    """
    parts = np.minimum(np.searchsorted(known.steps, steps), len(known.steps) - 1)
    found = np.zeros((len(known.steps), plays.shape[1]))
    for part in range(len(found)):
        weights = plays[parts == part]
        total = weights.sum(axis=0)
        whole = (weights * echo[parts == part]).sum(axis=0)
        found[part] = np.divide(whole, total, out=np.zeros_like(total), where=total > 0.0)
    return found


def slopes_of(strength: Floats, loss: float) -> Floats:
    """Return how success rises with the echo of each of `LOSSES`, if a memory has another loss.

    The echo at a loss between two of them is taken to lie between their echoes, by the logarithm.

    Args:
        strength: What an earlier play adds as long as nothing is lost, per part and group.
        loss: Share of the memory that is lost with every update.
    """
    logs = np.log(np.maximum(LOSSES, LEAST_LOSS))
    place = np.interp(-math.log(max(loss, LEAST_LOSS)), -logs, np.arange(len(logs)))
    weights = np.maximum(0.0, 1.0 - np.abs(np.arange(len(logs)) - place))
    return (strength[..., None] * weights).ravel()


def rehearsals_of(
    records: RecordArray, groups: Words, num_envs: int, update_steps: int
) -> Rehearsals:
    """Measure how plays of the same tasks follow each other.

    Args:
        records: Of all episodes of a training from its beginning, in the order of their ends.
        groups: The group of each slot.
        num_envs: Envs of the training.
        update_steps: Env steps of all envs from one update of the agent to the next.
    """
    begins, ends = _times(records, num_envs)
    values = _echoes(records["slot"], begins, ends, update_steps / num_envs)
    values[:, -1] = np.nan_to_num(records["success"])
    num_groups, size, total = int(groups.max()) + 1, values.shape[1], int(ends.max()) + 1
    counts = np.zeros((NUM_PARTS, num_groups))
    products = np.zeros((NUM_PARTS, num_groups, size, size))
    moments, of_record = ends * NUM_MOMENTS // total, groups[records["slot"]]
    keys = moments * num_groups + of_record
    for key in np.unique(keys):
        some = values[keys == key]
        some = some - some.mean(axis=0)
        place = int(key) // num_groups * NUM_PARTS // NUM_MOMENTS, int(key) % num_groups
        products[place] += some.T @ some
        counts[place] += len(some) - 1
    steps = np.arange(1, NUM_PARTS + 1) * total * num_envs // NUM_PARTS
    return Rehearsals(steps=steps, counts=counts, products=products)


def _times(records: RecordArray, num_envs: int) -> tuple[Words, Words]:
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
    kept = 1.0 - np.array(LOSSES)
    values = np.zeros((len(slots), len(LOSSES) + 1))
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
