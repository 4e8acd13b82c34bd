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

from stepladder.arrays import Floats
from stepladder.compiled import inlined
from stepladder.records import Fields, Limits, Shape, Share
from stepladder.saving.saved_array import MAX_COUNT

NUM_CLOCKS = 6
FIRST_HALFLIFE, CLOCK_RATIO = 16.0, 4.0
"""Half-lives of a cell's results, in plays of the cell: 16, 64, ... 16,384."""

KEEP_PLAYS = tuple(
    0.5 ** (1.0 / (FIRST_HALFLIFE * CLOCK_RATIO**clock)) for clock in range(NUM_CLOCKS)
)
"""What another play leaves of a cell's earlier results, by clock."""

NUM_STRENGTHS = 4
FIRST_STRENGTH, STRENGTH_RATIO = 1.0, 4.0
"""Plays of a task that its cell's rate is worth: 1, 4, 16, 64."""

PRIOR_STRENGTH = 4.0
"""What a cell's rate is worth before any result says otherwise."""

MIX_EVERY = 8
"""Results after which predictions are weighed again: a logarithm and an exponential take longer
than all the rest of a result."""

KEEP_LOSS = 0.998**MIX_EVERY
"""What is left of a prediction's past loss after so many results."""

LEAST_RATE = 1e-4
"""No result is predicted with less probability than this."""


class Cell(Fields):
    """What is known of all tasks with one label."""

    successes: Annotated[Floats, Shape(NUM_CLOCKS), Limits(0.0, MAX_COUNT)]
    """Discounted sums, by clock; likewise the plays."""
    plays: Annotated[Floats, Shape(NUM_CLOCKS), Limits(0.0, MAX_COUNT)]
    chances: Annotated[Floats, Shape(NUM_CLOCKS), Limits(0.0, 1.0)]
    """Probability that each clock gave to the results that are not in its loss yet."""
    losses: Annotated[Floats, Shape(NUM_CLOCKS), Limits(0.0, MAX_COUNT)]
    """How badly each clock has predicted the results before, in nats; discounted."""
    doubts: Annotated[Floats, Shape(NUM_CLOCKS), Limits(0.0, 1.0)]
    """1 less the weight of each clock, which follows from its loss; 0 for the best."""
    num_unmixed: Annotated[int, Limits(0, MIX_EVERY - 1)]
    """Results that are not in the losses yet."""
    rate: Share
    """Success rate, the clocks mixed by their weights."""


class Pooling(Fields):
    """How much a cell says about its tasks."""

    chances: Annotated[Floats, Shape(NUM_STRENGTHS), Limits(0.0, 1.0)]
    losses: Annotated[Floats, Shape(NUM_STRENGTHS), Limits(0.0, MAX_COUNT)]
    num_unmixed: Annotated[int, Limits(0, MIX_EVERY - 1)]
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
def _chance(rate: float, value: float) -> float:
    """Return the probability of a result, given a success rate."""
    seen = min(1.0 - LEAST_RATE, max(LEAST_RATE, rate))
    # One test for 0 and 1, and no other for which of them: a processor could not guess the answer.
    if value * (1.0 - value) == 0.0:
        return value * seen + (1.0 - value) * (1.0 - seen)
    return seen**value * (1.0 - seen) ** (1.0 - value)


@inlined
def _add_losses(losses: Floats, chances: Floats) -> float:
    """Add what predictions have lost by the last results; return the least of their losses."""
    least = np.inf
    for index in range(len(losses)):
        losses[index] = KEEP_LOSS * losses[index] - np.log(chances[index])
        chances[index] = 1.0
        least = min(least, losses[index])
    return least


@inlined
def _clock_rate(cell: Cell, clock: int) -> float:
    return (cell.successes[clock] + 0.5) / (cell.plays[clock] + 1.0)


@inlined
def clock_weight(cell: Cell, clock: int) -> float:
    """Return how much a clock is believed, relative to the best."""
    return 1.0 - cell.doubts[clock]


@inlined
def rate_of(task: Evidence, cell_rate: float, strength: float) -> float:
    """Return a task's success rate now: its cell's, moved as far as its own results say.

    What a task's results were expected to be at the time is compared with what they were; the
    odds of its cell change by that factor.
    """
    wins, losses = strength * cell_rate, strength * (1.0 - cell_rate)
    plays = task.successes + task.failures
    # The odds, as two products: one division instead of three.
    success = cell_rate * (task.successes + wins) * (plays - task.expected + losses)
    failure = (1.0 - cell_rate) * (task.failures + losses) * (task.expected + wins)
    return success / (success + failure)


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
    strength, is_first = FIRST_STRENGTH, pooling.num_unmixed == 0
    for index in range(NUM_STRENGTHS):
        chance = _chance(rate_of(task, cell_rate, strength), value)
        pooling.chances[index] = chance if is_first else pooling.chances[index] * chance
        strength *= STRENGTH_RATIO
    pooling.num_unmixed += 1
    if pooling.num_unmixed < MIX_EVERY:
        return
    pooling.num_unmixed = 0
    least = _add_losses(pooling.losses, pooling.chances)
    total, weights = 0.0, 0.0
    for index in range(NUM_STRENGTHS):
        weight = np.exp(least - pooling.losses[index])
        total += weight * index
        weights += weight
    pooling.strength = FIRST_STRENGTH * STRENGTH_RATIO ** (total / weights)


@inlined
def follow(cell: Cell, value: float) -> None:
    """Let every clock predict a result and take it in; mix them by how well they have done so."""
    is_first = cell.num_unmixed == 0
    for clock in range(NUM_CLOCKS):
        chance = _chance(_clock_rate(cell, clock), value)
        cell.chances[clock] = chance if is_first else cell.chances[clock] * chance
        cell.successes[clock] = KEEP_PLAYS[clock] * cell.successes[clock] + value
        cell.plays[clock] = KEEP_PLAYS[clock] * cell.plays[clock] + 1.0
    cell.num_unmixed += 1
    if cell.num_unmixed == MIX_EVERY:
        cell.num_unmixed = 0
        least = _add_losses(cell.losses, cell.chances)
        for clock in range(NUM_CLOCKS):
            cell.doubts[clock] = 1.0 - np.exp(least - cell.losses[clock])
    total, weights = 0.0, 0.0
    for clock in range(NUM_CLOCKS):
        weight = clock_weight(cell, clock)
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
