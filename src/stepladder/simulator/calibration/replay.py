"""Repeat a training with a simulated learner: its own plays, expected outcomes instead of drawn.

Between `practice` and `fit`. The learner is that of `generalising`, with the mean over tasks in
place of single tasks: a group has one memory, which is that of a task when it is played.
"""

from typing import NamedTuple

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import compiled
from stepladder.simulator.calibration.practice import Practice
from stepladder.simulator.generalising.state import NO_SPREAD, mean_chance

STRIDES = 4
"""Parts of an epoch within which skills count as constant, if it has that many updates."""


class Rates(NamedTuple):
    """Settings of the learner that a fit may change, as kernels take them."""

    difficulty: Floats
    spread: Floats
    coupling: Floats
    eta: float
    eta_memory: float
    lambda_forget: float
    lambda_memory: float


class PlaysByEpoch(NamedTuple):
    """What was played in a training, as kernels take it; a row per epoch, a column per group."""

    plays: Floats
    tasks: Floats
    """Tasks that the plays were spread over."""
    updates: Floats
    """Of the agent, per epoch."""
    strides: Words
    """Parts of each epoch within which skills count as constant."""


class Predicted(NamedTuple):
    """Expected success per epoch and group."""

    practised: Floats
    """Of the tasks that were played."""
    held_out: Floats
    """Of unseen tasks, at the end of the epoch."""
    taught: Floats
    """What a play teaches, ``4 p (1 - p)``, of the tasks that were played; without rows where no
    repeats are known."""
    echo: Floats
    """What an earlier play adds to the success of its task, by a memory with rate 1; likewise."""


@compiled
def _chance(x: float) -> float:
    return 1.0 / (1.0 + np.exp(-x))


@compiled
def mean_taught(ahead: float, spread: float) -> float:
    """Return the mean of ``4 p (1 - p)`` over difficulties that lie evenly within `spread`."""
    if spread < NO_SPREAD:
        chance = _chance(ahead)
        return 4.0 * chance * (1.0 - chance)
    return 4.0 * (_chance(ahead + spread) - _chance(ahead - spread)) / (2.0 * spread)


@compiled
def mean_echo(ahead: float, spread: float) -> float:
    """Return the mean of ``4 p (1 - p)``, what a play teaches, times the slope ``p (1 - p)``."""
    if spread < NO_SPREAD:
        chance = _chance(ahead)
        return 4.0 * (chance * (1.0 - chance)) ** 2
    high, low = _chance(ahead + spread), _chance(ahead - spread)
    whole = high * high * (0.5 - high / 3.0) - low * low * (0.5 - low / 3.0)
    return 4.0 * whole / (2.0 * spread)


@compiled
def _replay(course: PlaysByEpoch, rates: Rates, found: Predicted) -> None:
    """Fill in the expected success of a course."""
    num_epochs, num_groups = course.plays.shape
    skills, memories = np.zeros(num_groups), np.zeros(num_groups)
    gains = np.zeros(num_groups)
    for epoch in range(num_epochs):
        parts = course.strides[epoch]
        updates = course.updates[epoch] / parts
        keep = (1.0 - rates.lambda_forget) ** updates
        keep_memory = (1.0 - rates.lambda_memory) ** updates
        for _ in range(parts):
            for group in range(num_groups):
                spread = rates.spread[group]
                ahead = skills[group] + memories[group] - rates.difficulty[group]
                found.practised[epoch, group] += mean_chance(ahead, spread) / parts
                each = mean_taught(ahead, spread)
                if len(found.echo) > 0:
                    found.taught[epoch, group] += each / parts
                    found.echo[epoch, group] += mean_echo(ahead, spread) / parts
                taught = course.plays[epoch, group] / parts * each
                gains[group] = rates.eta * taught
                memories[group] *= keep_memory
                memories[group] += rates.eta_memory * taught / course.tasks[epoch, group]
            for group in range(num_groups):
                skills[group] *= keep
                for other in range(num_groups):
                    skills[group] += rates.coupling[group, other] * gains[other]
        for group in range(num_groups):
            ahead = skills[group] - rates.difficulty[group]
            found.held_out[epoch, group] = mean_chance(ahead, rates.spread[group])


def replay(practice: Practice, rates: Rates) -> Predicted:
    """Return the success that a learner would have had with the plays of a training."""
    shape = practice.plays.shape
    updates = np.diff(practice.steps, prepend=0) / practice.update_steps
    strides = np.clip(np.ceil(updates), 1, STRIDES).astype(np.int64)
    more = shape if practice.repeats is not None else (0, shape[1])
    found = Predicted(*(np.zeros(size) for size in (shape, shape, more, more)))
    # Compiled once: every layout of an array in memory, and every kind of number, would be a type
    # of its own.
    whole = np.ascontiguousarray
    course = PlaysByEpoch(whole(practice.plays), whole(practice.spread_over), updates, strides)
    rates = rates._replace(
        difficulty=whole(rates.difficulty),
        spread=whole(rates.spread),
        coupling=whole(rates.coupling),
        eta=float(rates.eta),
        eta_memory=float(rates.eta_memory),
        lambda_forget=float(rates.lambda_forget),
        lambda_memory=float(rates.lambda_memory),
    )
    _replay(course, rates, found)
    return found


def held_out_rows(practice: Practice) -> Words:
    """Return the epoch at whose end each evaluation of a training was made."""
    steps = [one.step for one in practice.held_out]
    rows = np.searchsorted(practice.steps, steps, side="left")
    return np.minimum(rows, len(practice.steps) - 1)
