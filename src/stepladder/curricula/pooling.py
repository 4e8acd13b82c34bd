"""What tasks of a kind say about each other: a rate per cell, and with it a prior for every task.

Between `batch_rule` and the methods that judge tasks by success. A *cell* holds the tasks of a kind
(`cells`): with the same label, with similar features, or both. Its rate follows the results of all
its tasks; a task's own results say how far it lies from that rate. So a task that was never played,
or long ago, is judged by what the learner can do now with tasks of its kind.

Two things are not set but found, each by how well it predicts the next result: how soon a cell's
results are forgotten (its clocks), and how much a cell says about a task (the strengths). Labels
that say nothing about the tasks lose that comparison, and every task stands for itself.

This is empirical Bayes (Efron & Morris 1973) with predictions mixed by their past likelihood
(Vovk 1990). A learner that changes within some hundred plays of a cell is followed late: so few
results do not tell the clocks apart. Tasks are independent given their cell: nothing is learned
from neighbouring cells.
"""

from typing import Annotated, Any

import numpy as np

from stepladder.compiled import inlined
from stepladder.records import Fields, Floats, Limits, Shape, Share
from stepladder.saving.saved_array import MAX_COUNT

NUM_CLOCKS = 6
FIRST_HALFLIFE, CLOCK_RATIO = 16.0, 4.0
"""Half-lives of a cell's results, in plays of the cell: 16, 64, ... 16,384."""

NUM_STRENGTHS = 4
FIRST_STRENGTH, STRENGTH_RATIO = 1.0, 4.0
"""Plays of a task that its cell's rate is worth: 1, 4, 16, 64."""

PRIOR_STRENGTH = 4.0
"""What a cell's rate is worth before any result says otherwise."""

KEEP_LOSS = 0.998
"""What is left of a prediction's past loss after another one."""

LEAST_RATE = 1e-4
"""No result is predicted with less probability than this."""


class Cell(Fields):
    """What is known of all tasks with one label."""

    successes: Annotated[Floats, Shape(NUM_CLOCKS), Limits(0.0, MAX_COUNT)]
    """Discounted sums, by clock; likewise the plays."""
    plays: Annotated[Floats, Shape(NUM_CLOCKS), Limits(0.0, MAX_COUNT)]
    losses: Annotated[Floats, Shape(NUM_CLOCKS), Limits(0.0, MAX_COUNT)]
    """How badly each clock has predicted the results, in nats; discounted."""
    rate: Share
    """Success rate, the clocks mixed by their losses."""


class Pooling(Fields):
    """How much a cell says about its tasks."""

    losses: Annotated[Floats, Shape(NUM_STRENGTHS), Limits(0.0, MAX_COUNT)]
    strength: Annotated[float, Limits(0.0, MAX_COUNT)]
    """Plays that a cell's rate is worth, the strengths mixed by their losses."""


class Evidence(Fields):
    """What is known of one task beyond its cell."""

    successes: Annotated[float, Limits(0.0, MAX_COUNT)]
    """Discounted per play of the task, like the rest."""
    failures: Annotated[float, Limits(0.0, MAX_COUNT)]
    expected: Annotated[float, Limits(0.0, MAX_COUNT)]
    """Successes that its cell's rate predicted for the same plays."""


@inlined
def _loss(rate: float, value: float) -> float:
    """Return how badly a rate predicted a result, in nats."""
    seen = min(1.0 - LEAST_RATE, max(LEAST_RATE, rate))
    return -value * np.log(seen) - (1.0 - value) * np.log(1.0 - seen)


@inlined
def _clock_rate(cell: Cell, clock: int) -> float:
    return (cell.successes[clock] + 0.5) / (cell.plays[clock] + 1.0)


@inlined
def rate_of(task: Evidence, cell_rate: float, strength: float) -> float:
    """Return a task's success rate now: its cell's, moved as far as its own results say.

    What a task's results were expected to be at the time is compared with what they were; the
    odds of its cell change by that factor.
    """
    wins, losses = strength * cell_rate, strength * (1.0 - cell_rate)
    plays = task.successes + task.failures
    up = (task.successes + wins) / (task.expected + wins)
    down = (task.failures + losses) / (plays - task.expected + losses)
    success = cell_rate * up
    return success / (success + (1.0 - cell_rate) * down)


def rates_of(tasks: Any, cell_rates: Floats, strength: float | Floats) -> Floats:
    """Return every task's success rate now, as `rate_of` does for one.

    Args:
        tasks: Records with the fields of `Evidence`.
        cell_rates: The rate of each task's cell.
        strength: Plays that a cell's rate is worth.
    """
    wins, losses = strength * cell_rates, strength * (1.0 - cell_rates)
    successes, failures, expected = tasks["successes"], tasks["failures"], tasks["expected"]
    up = cell_rates * (successes + wins) / (expected + wins)
    down = (1.0 - cell_rates) * (failures + losses) / (successes + failures - expected + losses)
    return up / (up + down)


@inlined
def _score_strengths(pooling: Pooling, task: Evidence, cell_rate: float, value: float) -> None:
    """Let every strength predict a result; mix them by how well they have done so."""
    strength, least = FIRST_STRENGTH, np.inf
    for index in range(NUM_STRENGTHS):
        loss = _loss(rate_of(task, cell_rate, strength), value)
        pooling.losses[index] = KEEP_LOSS * pooling.losses[index] + loss
        least = min(least, pooling.losses[index])
        strength *= STRENGTH_RATIO
    total, weights = 0.0, 0.0
    for index in range(NUM_STRENGTHS):
        weight = np.exp(least - pooling.losses[index])
        total += weight * index
        weights += weight
    pooling.strength = FIRST_STRENGTH * STRENGTH_RATIO ** (total / weights)


@inlined
def follow(cell: Cell, value: float) -> None:
    """Let every clock predict a result and take it in; mix them by how well they have done so."""
    halflife, least = FIRST_HALFLIFE, np.inf
    for clock in range(NUM_CLOCKS):
        cell.losses[clock] = KEEP_LOSS * cell.losses[clock] + _loss(_clock_rate(cell, clock), value)
        least = min(least, cell.losses[clock])
        keep = 0.5 ** (1.0 / halflife)
        cell.successes[clock] = keep * cell.successes[clock] + value
        cell.plays[clock] = keep * cell.plays[clock] + 1.0
        halflife *= CLOCK_RATIO
    total, weights = 0.0, 0.0
    for clock in range(NUM_CLOCKS):
        weight = np.exp(least - cell.losses[clock])
        total += weight * _clock_rate(cell, clock)
        weights += weight
    cell.rate = total / weights


@inlined
def learn(cell: Cell, pooling: Pooling, task: Evidence, keep: float, value: float) -> None:
    """Take in one result of a task: score all predictions, then update the task and its cell.

    Args:
        cell: The task's cell.
        pooling: How much cells say about tasks.
        task: The task.
        keep: What is left of the task's own results after another play of it.
        value: The result, in [0, 1].
    """
    _score_strengths(pooling, task, cell.rate, value)
    task.successes = keep * task.successes + value
    task.failures = keep * task.failures + (1.0 - value)
    task.expected = keep * task.expected + cell.rate
    follow(cell, value)
