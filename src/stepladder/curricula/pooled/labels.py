"""Draws by kind of task: what the methods that judge tasks of a kind together do alike.

Between `pooling` and `stuck`, which measure, and the kernels of `Learnability`, `LearningProgress`,
`LevelReplay` and `Frontier`, which decide what a kind is worth. A kind is a label, or a bin of
features (`cells`). In the first three, kinds are groups of the plan, so a kind's share is one
number: what a few of its tasks have shown counts for all at once, and a record costs the same
however many tasks there are.
"""

from collections.abc import Mapping

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import inlined
from stepladder.curricula.config import PooledConfig
from stepladder.curricula.owner import PlanOwner
from stepladder.curricula.pooled.cells import Cells, find_cells, one_cell, splits_by_label
from stepladder.curricula.pooled.pooling import (
    PRIOR_STRENGTH,
    Cell,
    Evidence,
    Pooling,
    learn,
    rate_of,
)
from stepladder.curricula.pooled.stuck import Trial, watch
from stepladder.plans.layout import group_of
from stepladder.records import Records


class Label(Cell):
    """What is known of all tasks with one label."""

    trial: Trial


class LabelledTask(Evidence):
    """What is known of a task beyond its label."""

    trial: Trial


@inlined
def judge(task: LabelledTask, label: Label, pooling: Pooling, keep: float, value: float) -> float:
    """Take in a result of a task whose label says something about it; return the task's rate.

    Args:
        task: The task.
        label: Its label.
        pooling: How much labels say about tasks.
        keep: What is left of the task's own results after another play of it.
        value: The result, in [0, 1].
    """
    learn(label, pooling, task, keep, value)
    watch(task.trial, value)
    watch(label.trial, value)
    return rate_of(task, label.rate, pooling.strength)


@inlined
def sum_of(block: Words, table: int, group: int) -> float:
    """Return the sum of the weights in a group."""
    return block.view(np.float64)[group_of(block, table, group).tree_at + 1]


@inlined
def set_share(block: Words, table: int, group: int, worth: float) -> None:
    """Give a group its share: what a task of it that was never played is worth, times all weights.

    Weights in the group are relative to that task's. Call between begin and end.
    """
    group_of(block, table, group).share = worth * sum_of(block, table, group)


class LabelPooling(PlanOwner):
    """A method that judges tasks of a kind together: kinds are groups of its plan."""

    config: PooledConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def groups_by_label(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether labels are groups of the plan: if tasks are pooled and labels have several."""
        return self.config.pooled and splits_by_label(self.pool)

    def _find_cells(self) -> Cells:
        """Return the cell of every slot: its kind, or one for all if every task stands alone."""
        config = self.config
        self._cells = (
            find_cells(self.pool, config.features) if config.pooled else one_cell(self.pool)
        )
        return self._cells

    @property
    def pools(self) -> bool:
        """Whether there are kinds of tasks that are judged together."""
        return self.config.pooled and self._cells.split

    def _kind_names(self) -> list[str]:
        """Return a name of every kind: its label, and where features cut it, the first task."""
        if not self.config.features:
            return list(self.pool.label_names)
        _, first = np.unique(self._cells.of_slot, return_index=True)
        return [f"tasks like {self.task_name(slot)}" for slot in first.tolist()]


def know_nothing(labels: Records[Label], pooling: Records[Pooling]) -> None:
    """Set labels to what they are before the first result."""
    labels["rate"] = 0.5
    pooling["strength"] = PRIOR_STRENGTH


def best_labels(
    scores: Mapping[str, float], cells: Words, probs: Floats
) -> tuple[tuple[str, float, float], ...]:
    """Return the labels with the highest scores, at most ten: name, score, share of the draws.

    Args:
        scores: By label, in the order of the cells; empty if tasks are not pooled.
        cells: The cell of every slot.
        probs: The probability of every slot.
    """
    shares = np.bincount(cells, probs, minlength=len(scores)).tolist()
    found = [(name, score, shares[index]) for index, (name, score) in enumerate(scores.items())]
    return tuple(sorted(found, key=lambda one: -one[1])[:10])
