"""Compiled rules of the bandit over advantages: windows of scores, and shares of labels.

Called by `advantage_bandit`, which owns the arrays. What one score costs does not grow with the
number of tasks, nor with that of labels: with many, shares are written once in several scores.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import bare, compiled, inlined
from stepladder.curricula.advantage_bandit.config import AdvantageBanditConfig
from stepladder.curricula.batch_rule import Totals, observe_batch
from stepladder.curricula.returns import ReturnScale, signal_of
from stepladder.curricula.trainer_scores import note_deviation, take_scores
from stepladder.plans.kernels import begin_write, end_write
from stepladder.plans.layout import group_of
from stepladder.plans.record import RecordFields
from stepladder.plans.status import DONE
from stepladder.records import Count, Fields, Limits, Records, Share

NEWEST_WEIGHT = 0.1
"""For deviations: the least weight of the newest result in a task's running mean."""

LARGEST_SCORE = 1e150
"""Where scores end, so that a window of them can be added up."""


class Method(Fields):
    """What is known about the whole pool."""

    totals: Totals
    num_scores: Count
    num_orphaned_scores: Count
    has_trainer: Annotated[int, Limits(0, 1)]
    """Whether a trainer has given scores; then deviations no longer count."""


class TaskMean(Fields):
    """What is known of a slot's task."""

    num_plays: Count
    mean: Share
    """Running mean of its results."""


class LabelScores(Fields):
    """What is known of a label."""

    num_scores: Count
    total: Annotated[float, Limits(0.0, 1e300)]
    """Sum of the scores in its window."""


class State(NamedTuple):
    """Everything that the method learns."""

    method: Records[Method]
    tasks: Records[TaskMean]
    returns: Records[ReturnScale]
    labels: Records[LabelScores]
    windows: Annotated[Floats, Limits(0.0, LARGEST_SCORE)]
    """The latest scores of every label, in a ring."""


class Settings(AdvantageBanditConfig):
    """The config as kernels read it, with what follows from it."""

    uses_return: bool
    finds_range: bool
    takes_advantages: bool
    scores_per_write: int
    """Scores after which the shares of all labels are written again."""


class Constants(NamedTuple):
    """What stays the same."""

    settings: Records[Settings]
    label_of_slot: Words


@inlined
def mean_of(label: LabelScores, window: int) -> float:
    """Return the mean score of a label's latest episodes; 0 without any."""
    return label.total / max(1, min(label.num_scores, window))


@compiled
def bonus_of(num_own: int, num_scores: int, factor: float) -> float:
    """Return what is added to a label's value for having so few of all scores."""
    return factor * math.sqrt(2.0 * math.log(num_scores + 1.0) / (num_own + 1.0))


@bare
def write_shares(block: Words, table: int, state: State, constants: Constants) -> None:
    """Divide the draws between the labels. Call between begin and end."""
    settings, method, window = constants.settings[0], state.method[0], state.windows.shape[1]
    values = block.view(np.float64)
    # Labels without a task that can be drawn do not count: the others would vanish beside them.
    largest, best = 0.0, -math.inf
    for index in range(len(state.labels)):
        if values[group_of(block, table, index).tree_at + 1] > 0.0:
            largest = max(largest, mean_of(state.labels[index], window))
    for index in range(len(state.labels)):
        group, label = group_of(block, table, index), state.labels[index]
        bonus = bonus_of(label.num_scores, method.num_scores, settings.bonus)
        group.share = mean_of(label, window) / (largest if largest > 0.0 else 1.0) + bonus
        if values[group.tree_at + 1] > 0.0:
            best = max(best, group.share)
    for index in range(len(state.labels)):
        group = group_of(block, table, index)
        group.share = math.exp(min(group.share - best, 0.0) / settings.temperature)


@compiled
def write_shares_anew(block: Words, table: int, state: State, constants: Constants) -> None:
    """Call `write_shares` in a write of its own."""
    begin_write(block)
    write_shares(block, table, state, constants)
    end_write(block)


@bare
def take_score(
    block: Words, table: int, state: State, constants: Constants, slot: int, score: float
) -> None:
    """Add a score to the window of the slot's label. Call between begin and end."""
    settings, method = constants.settings[0], state.method[0]
    index, window = int(constants.label_of_slot[slot]), state.windows.shape[1]
    label = state.labels[index]
    place = label.num_scores % window
    newest = min(max(score, 0.0), LARGEST_SCORE)
    label.total = max(label.total + newest - state.windows[index, place], 0.0)
    state.windows[index, place] = newest
    label.num_scores += 1
    if place == window - 1:
        # Once per round, so that rounding errors do not add up.
        label.total = 0.0
        for entry in range(window):
            label.total += state.windows[index, entry]
    method.num_scores += 1
    if method.num_scores % settings.scores_per_write == 0:
        write_shares(block, table, state, constants)


@bare
def forget_deviations(state: State) -> None:
    """Empty all windows: the first score of a trainer has come, in another unit."""
    method = state.method[0]
    method.has_trainer = 1
    method.num_scores = 0
    for index in range(len(state.labels)):
        state.labels[index].num_scores = 0
        state.labels[index].total = 0.0
        for entry in range(state.windows.shape[1]):
            state.windows[index, entry] = 0.0


@bare
def take_trainer_score(
    block: Words, table: int, state: State, constants: Constants, slot: int, score: float
) -> None:
    """Do what `take_score` does with a score of a trainer; the first ends the deviations."""
    if state.method[0].has_trainer == 0:
        forget_deviations(state)
        write_shares(block, table, state, constants)
    take_score(block, table, state, constants, slot, score)


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
    """Count one episode; without a trainer, score it. Call between begin and end."""
    task, settings = state.tasks[slot], constants.settings[0]
    task.num_plays += 1
    if state.method[0].has_trainer == 0:
        value = signal_of(settings, state.returns[0], success, episode_return)
        # Not a number: the env reports no success.
        if value == value:
            deviation = note_deviation(task, value, NEWEST_WEIGHT)
            take_score(block, table, state, constants, slot, deviation)


@inlined
def settle(block: Words, table: int, state: State, constants: Constants) -> int:
    """Do nothing more: no task makes room for another."""
    return DONE


@bare
def observe(
    block: Words, table: int, state: State, constants: Constants, records: Records[RecordFields]
) -> int:
    """Learn from records; see `observe_batch`."""
    settings = constants.settings[0]
    needs_success = not settings.takes_advantages and not settings.uses_return
    return observe_batch(
        observe_one, settle, block, table, state, constants, records, needs_success
    )


@compiled
def observe_scores(
    block: Words,
    table: int,
    state: State,
    constants: Constants,
    slots: Words,
    generations: Words,
    scores: Floats,
) -> None:
    """Take valid scores from a trainer."""
    take_scores(take_trainer_score, block, table, state, constants, slots, generations, scores)
