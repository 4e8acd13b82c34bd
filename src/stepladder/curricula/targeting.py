"""How the plan leans to tasks that count, and to stepping stones while these cannot be done.

Below `owner`. The plan has a number t in [0, 1] per slot: how much its task counts. What a method
would draw with probability w, it draws in proportion to w (r + (1 - r) t). The worth r of tasks
that do not count follows the success s on tasks that do. A play teaches in proportion to s (1 - s),
the variance of its result, most at one half: r = 1 - 4 s (1 - s) up to there is what the target
cannot teach yet, and stepping stones must. Beyond, it is learned best by itself, and r is
`LEAST_OTHER`. Nothing is known of the target at first, so the method is left alone.

`count_record` in `batch_rule` follows s, with every record of every method. Its clock is found as
that of a cell in `pooling`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import compiled
from stepladder.curricula.pooled.pooling import Cell, follow
from stepladder.curricula.target import Target
from stepladder.errors import ConfigError, nearest, shown
from stepladder.plans import kernels
from stepladder.plans.choosing import counts_of
from stepladder.plans.layout import header_of, table_of
from stepladder.tasks import Pool

if TYPE_CHECKING:
    from stepladder.plans.plan import Plan

LEAST_OTHER = 0.05
"""What a task that does not count is worth when the target is done: it is not forgotten."""

MOST_NAMED = 8
"""Names of tasks in a message."""


@compiled
def other_share(success: float) -> float:
    """Return what tasks that do not count are worth, given the success on those that do."""
    # The same as 1 - 4 s (1 - s).
    left = max(0.0, 1.0 - 2.0 * success)
    return max(LEAST_OTHER, left * left)


@compiled
def follow_target(block: Words, table: int, cell: Cell, slot: int, success: float) -> None:
    """Take in a result, if it is one of a task that counts."""
    own = table_of(block, table)
    if counts_of(block, block.view(np.float64), table, slot) <= 0.0:
        return
    follow(cell, success)
    # Methods whose weights never change do not keep readers away.
    is_closed = header_of(block).sequence & 1 == 0
    if is_closed:
        kernels.begin_write(block)
    own.other_share = other_share(cell.rate)
    if is_closed:
        kernels.end_write(block)


def check_target(target: Target, pool: Pool, name_of: Callable[[int], str]) -> None:
    """Raise `ConfigError` if a name of the target is neither a label nor the name of a task."""
    missing = [name for name in target.weights if name not in pool.label_names]
    if not missing:
        return
    names = {name_of(slot) for slot in range(pool.num_slots)}
    for name in missing:
        if name not in names:
            some = sorted(names)[:MOST_NAMED]
            more = ", …" if len(names) > len(some) else ""
            raise ConfigError(
                f"target names {shown(name)}, and no task has that label or name. Labels: "
                f"{', '.join(pool.label_names[:100])}. Tasks: {', '.join(some)}{more}. Correct the "
                f"name.{nearest(name, [*pool.label_names, *names])}"
            )


class Targeted:
    """The part of a `PlanOwner` that leans its table to tasks that count."""

    # Nothing of its own: after a fork an owner becomes a `ForeignCurriculum`, which must fit.
    __slots__ = ()

    config: Any
    pool: Pool
    totals: Any
    _plan: "Plan | None"
    _table: int

    def _publish_target(self) -> None:
        """Write how much every active slot counts; called inside a write."""
        if self.config.target is not None:
            assert self._plan is not None
            kernels.fill_targets(self._plan.block, self._table, self.counts())
            rate = float(self.totals["target"]["rate"][0])
            self._plan.table(self._table)["other_share"] = other_share(rate)

    def _renew_target(self, slot: int) -> None:
        """Write how much the task counts that came into a slot; called inside a write."""
        if self.config.target is not None:
            assert self._plan is not None
            kernels.set_target(self._plan.block, self._table, slot, self._counts_of(slot))

    def counts(self) -> Floats:
        """Return how much the task of every slot counts, in [0, 1]; 1 without a target."""
        if self.config.target is None:
            return np.ones(self.pool.num_slots)
        weights: dict[str, float] = self.config.target.relative
        labels = self.pool.label_names
        counts = np.array([weights.get(label, 0.0) for label in labels])[self.pool.label_indices]
        if not set(weights) <= set(labels):
            for slot in range(self.pool.num_slots):
                counts[slot] = self._counts_of(slot)
        return counts

    def _counts_of(self, slot: int) -> float:
        weights: dict[str, float] = self.config.target.relative
        label = self.pool.label_names[int(self.pool.label_indices[slot])]
        name = self.pool.source.name(int(self.pool.task_ids[slot]))
        return weights.get(name, weights.get(label, 0.0))

    @property
    def target_success(self) -> float:
        """Success on the tasks that count, of late; NaN before the first of them was played."""
        cell = self.totals["target"][0]
        return float(cell["rate"]) if cell["plays"].any() else float("nan")
