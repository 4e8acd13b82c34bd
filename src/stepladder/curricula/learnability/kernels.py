"""Compiled rules of learnability: evidence, scores, and the shares of labels.

Called by `learnability`, which owns the arrays. A record changes its task's leaf and the share of
its label: two numbers, however many tasks the label has.
"""

from typing import Annotated, NamedTuple

from stepladder.arrays import Words
from stepladder.compiled import bare, compiled, inlined
from stepladder.curricula.batch_rule import observe_batch, settle_noted
from stepladder.curricula.learnability.config import LearnabilityConfig
from stepladder.curricula.pooled.labels import Label, LabelledTask, judge, set_share
from stepladder.curricula.pooled.pooling import Pooling
from stepladder.curricula.pooled.stuck import worth
from stepladder.curricula.ranking import Filed, RankedTotals, file_by_score
from stepladder.curricula.returns import ReturnScale, signal_of
from stepladder.plans.kernels import set_leaf
from stepladder.plans.layout import is_active
from stepladder.plans.record import RecordFields
from stepladder.records import Count, Limits, Records

LEAST_SCORE = 1e-6
"""Of an unplayed task, to which the weights of its label are relative."""

LARGEST = 0.25
"""The most that p(1 - p) can be."""


class TaskEvidence(LabelledTask):
    """What is known of a slot's task."""

    num_plays: Count
    score: Annotated[float, Limits(0.0, LARGEST + 1e-9)]
    """Expectation of p(1 - p)."""


class State(NamedTuple):
    """Everything that the method learns."""

    method: Records[RankedTotals]
    tasks: Records[TaskEvidence]
    cells: Records[Label]
    """All labels, or one for all tasks."""
    pooling: Records[Pooling]
    filed: Records[Filed]
    returns: Records[ReturnScale]


class Settings(LearnabilityConfig):
    """The config as kernels read it, with what follows from it."""

    keep: float
    """What is left of the evidence after another play."""
    eviction_share: float
    uses_return: bool
    finds_range: bool


class Constants(NamedTuple):
    """What stays the same."""

    settings: Records[Settings]
    cells: Words
    """Every slot's cell."""


@inlined
def learnability(successes: float, failures: float, alpha: float, beta: float) -> float:
    """Return the expectation of p(1 - p) under a Beta posterior; the prior is alpha and beta."""
    a, b = alpha + successes, beta + failures
    return a * b / ((a + b) * (a + b + 1.0))


@inlined
def weight_of(score: float, exponent: float) -> float:
    """Return the weight of a task by its learnability; 1 for the largest that there is."""
    share = score / LARGEST
    if exponent == 1.0:
        return share
    return share * share if exponent == 2.0 else share**exponent


@inlined
def cell_score(cell: Label, pooling: Pooling) -> float:
    """Return the learnability of a task of a label that was never played itself."""
    wins = pooling.strength * cell.rate
    return max(LEAST_SCORE, learnability(wins, pooling.strength - wins, 0.0, 0.0))


@inlined
def _set_share(block: Words, table: int, state: State, constants: Constants, index: int) -> None:
    """Give a label its share: how quickly it is learned, times what is left to learn."""
    cell, settings, unit = state.cells[index], constants.settings[0], 1.0
    if settings.pooled:
        score = cell_score(cell, state.pooling[0])
        unit = worth(cell.trial) * weight_of(score, settings.label_exponent)
        unit *= 1.0 - cell.rate
    set_share(block, table, index, unit)


@compiled
def set_shares(block: Words, table: int, state: State, constants: Constants) -> None:
    """Give every label its share. Call between begin and end."""
    for index in range(len(state.cells)):
        _set_share(block, table, state, constants, index)


@inlined
def _judge_pooled(
    task: TaskEvidence, cell: Label, pooling: Pooling, keep: float, value: float
) -> None:
    """Take in a result of a task whose label says something about it."""
    rate = judge(task, cell, pooling, keep, value)
    plays = pooling.strength + task.successes + task.failures
    task.score = worth(task.trial) * learnability(plays * rate, plays * (1.0 - rate), 0.0, 0.0)


@inlined
def observe_one(
    block: Words,
    table: int,
    state: State,
    constants: Constants,
    slot: int,
    success: float,
    episode_return: float,
) -> None:
    """Update one task's evidence and its weight from one episode. Call between begin and end."""
    task, settings, index = state.tasks[slot], constants.settings[0], int(constants.cells[slot])
    cell, pooling = state.cells[index], state.pooling[0]
    value = signal_of(settings, state.returns[0], success, episode_return)
    task.num_plays += 1
    if settings.pooled:
        _judge_pooled(task, cell, pooling, settings.keep, value)
    else:
        task.successes = settings.keep * task.successes + value
        task.failures = settings.keep * task.failures + (1.0 - value)
        alpha, beta = settings.prior_successes, settings.prior_failures
        task.score = learnability(task.successes, task.failures, alpha, beta)
    if is_active(block, slot):
        # Among the tasks of a label: relative to one that was never played.
        unit = cell_score(cell, pooling) if settings.pooled else LARGEST
        weight = weight_of(LARGEST * task.score / unit, settings.exponent)
        set_leaf(block, table, slot, weight * state.filed[slot].weight)
    _set_share(block, table, state, constants, index)
    if settings.eviction_share > 0.0 and task.num_plays >= settings.eviction_plays:
        score, share = task.score / LARGEST, settings.eviction_share
        file_by_score(slot, score, state.filed, state.method[0], share)


@bare
def observe(
    block: Words, table: int, state: State, constants: Constants, records: Records[RecordFields]
) -> int:
    """Learn from records; see `observe_batch`."""
    needs_success = not constants.settings[0].uses_return
    return observe_batch(
        observe_one, settle_noted, block, table, state, constants, records, needs_success
    )
