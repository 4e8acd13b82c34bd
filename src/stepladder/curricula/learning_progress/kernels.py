"""Compiled rules of the learning-progress curriculum: averages, progress, ranks.

Called by `learning_progress`, which owns the arrays.
"""

from typing import Annotated, NamedTuple

import numpy as np

from stepladder.arrays import Words
from stepladder.compiled import bare, compiled, inlined
from stepladder.curricula.batch_rule import count_record, observe_batch, settle_noted
from stepladder.curricula.learning_progress.config import LearningProgressConfig
from stepladder.curricula.learning_progress.label_progress import (
    ChangingLabel,
    UsualChange,
    move_labels,
    note_change,
    note_variance,
    slope_of,
)
from stepladder.curricula.pooled.labels import LabelledTask, judge, set_share
from stepladder.curricula.pooled.pooling import Pooling
from stepladder.curricula.pooled.stuck import worth
from stepladder.curricula.ranking import Filed, RankedTotals, file_by_score
from stepladder.curricula.returns import (
    ReturnScale,
    ReturnVariance,
    note_moments,
    note_return,
    update_spread,
)
from stepladder.plans.kernels import begin_write, end_write, set_leaf
from stepladder.plans.layout import is_active
from stepladder.plans.record import RecordFields, is_bad
from stepladder.records import Count, Fields, Limits, Records, Share

ROUNDING = 1e-20
"""Square of what two averages of the same results may differ by; it must not pass for progress."""

PRIOR_COUNT = 2.0
"""Returns that the variance of all tasks counts for in that of one."""

BY_PROGRESS, BY_NOVELTY = 0, 1
"""Layers of the weight table."""


class TaskProgress(Fields):
    """What is known of a slot's task; two slots fill a cache line."""

    num_plays: Count
    fast: Share
    """Average that follows the present; begins at 0, so `Scale.fast` corrects it."""
    slow: Share
    """Average that remembers the past; `Scale.slow` corrects it."""
    progress: Annotated[float, Limits(0.0, 1.0 + 1e-6)]


class State(NamedTuple):
    """Everything that the method learns."""

    method: Records[RankedTotals]
    tasks: Records[TaskProgress]
    filed: Records[Filed]
    returns: Records[ReturnScale]
    spreads: Records[ReturnVariance]
    """One per slot if the signal is the return, else a single one that is not used."""
    evidence: Records[LabelledTask]
    """One per slot if tasks are pooled by label, else a single one that is not used."""
    labels: Records[ChangingLabel]
    pooling: Records[Pooling]
    usual: Records[UsualChange]


class Scale(Fields):
    """Numbers that depend on how often a task was played."""

    fast: float
    """Factor that corrects the fast average's start at 0."""
    slow: float
    noise: float
    """Variance of fast minus slow, of results of variance one."""
    count: float
    """Results that the slow average is worth."""
    per_count: float
    """One over `count` + 2."""


class Settings(LearningProgressConfig):
    """The config as kernels read it, with what follows from it."""

    pools: bool
    """Whether labels are groups of the plan."""
    keep: float
    """What is left of a task's own results after another play of it."""
    fast_rate: float
    slow_rate: float
    noise_z: float
    eviction_share: float
    uses_return: bool
    finds_range: bool
    return_low: float
    return_high: float


class Constants(NamedTuple):
    """What stays the same."""

    settings: Records[Settings]
    scales: Records[Scale]
    cells: Words
    """Every slot's label, if tasks are pooled by label."""


@inlined
def progress_of(task: TaskProgress, constants: Constants) -> float:
    """Return how far the averages lie apart beyond what chance explains, in [0, 1]."""
    if task.num_plays < 2:
        return 0.0
    scale = constants.scales[min(task.num_plays, len(constants.scales) - 1)]
    slow = task.slow * scale.slow
    apart = abs(task.fast * scale.fast - slow)
    # One success and one failure more than were seen: no rate is ever certain to be 0 or 1.
    rate = (slow * scale.count + 1.0) * scale.per_count
    noise_z = constants.settings[0].noise_z
    variance = noise_z * noise_z * rate * (1.0 - rate) * scale.noise
    if apart * apart <= variance + ROUNDING:
        return 0.0
    return apart - np.sqrt(variance)


@bare
def return_signal(
    task: TaskProgress, state: State, constants: Constants, slot: int, episode_return: float
) -> float:
    """Return what an episode's return adds to the averages, and note how far it lies from them.

    If its range is given, it is scaled to [0, 1]. Otherwise averages hold returns as they are, so
    that they stay true when the range that was found changes.
    """
    settings, scales = constants.settings[0], constants.scales
    if settings.finds_range:
        value = note_return(state.returns[0], episode_return)
    else:
        span = settings.return_high - settings.return_low
        value = min(1.0, max(0.0, (episode_return - settings.return_low) / span))
        note_moments(state.returns[0], value)
    if task.num_plays > 0:
        mean = task.slow * scales[min(task.num_plays, len(scales) - 1)].slow
        rate = max(settings.slow_rate, 1.0 / (task.num_plays + 1.0))
        spread = state.spreads[slot]
        spread.variance = update_spread(spread.variance, value - mean, rate)
    return value


@bare
def progress_of_returns(
    task: TaskProgress, spread: ReturnVariance, returns: ReturnScale, constants: Constants
) -> float:
    """Do what `progress_of` does, with the measured variance of returns as the noise."""
    settings = constants.settings[0]
    span = returns.high - returns.low if settings.finds_range else 1.0
    if task.num_plays < 2 or span <= 0.0:
        return 0.0
    scale = constants.scales[min(task.num_plays, len(constants.scales) - 1)]
    apart = abs(task.fast * scale.fast - task.slow * scale.slow)
    # Returns that were alike by chance are not without noise: those of all tasks count a little.
    own = (spread.variance * scale.count + PRIOR_COUNT * returns.variance) * scale.per_count
    variance = settings.noise_z * settings.noise_z * own * scale.noise
    if apart * apart <= variance + ROUNDING * span * span:
        return 0.0
    return min(1.0, (apart - np.sqrt(variance)) / span)


@inlined
def observe_pooled(
    block: Words, table: int, state: State, constants: Constants, slot: int, value: float
) -> float:
    """Let a label learn from a result, given in [0, 1].

    Returns:
        How quickly the task changes, relative to one of its label that was never played; less if
        its own results have stopped changing.
    """
    settings, index = constants.settings[0], int(constants.cells[slot])
    label, pooling, own = state.labels[index], state.pooling[0], state.evidence[slot]
    note_variance(label, value)
    rate = judge(own, label, pooling, settings.keep, value)
    label.num_plays += 1
    note_change(label, state.usual[0], settings.noise_z)
    # What all tasks of a label learn moves their log odds alike.
    part = worth(own.trial) * slope_of(rate) / slope_of(label.rate)
    if is_active(block, slot):
        set_leaf(block, table, slot, part * state.filed[slot].weight)
    set_share(block, table, index, label.progress)
    return part


@compiled
def set_shares(block: Words, table: int, state: State) -> None:
    """Give every label its share. Call between begin and end."""
    for index in range(len(state.labels)):
        set_share(block, table, index, state.labels[index].progress)


@inlined
def _unit_value(settings: Settings, returns: ReturnScale, value: float) -> float:
    """Return a result of `return_signal` in [0, 1]."""
    if not (settings.uses_return and settings.finds_range):
        return value
    span = returns.high - returns.low
    return min(1.0, max(0.0, (value - returns.low) / span)) if span > 0.0 else 0.0


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
    """Update one task's averages and its weight from one episode. Call between begin and end."""
    task, settings = state.tasks[slot], constants.settings[0]
    value = success
    if settings.uses_return:
        low, high = state.returns[0].low, state.returns[0].high
        value = return_signal(task, state, constants, slot, episode_return)
        if settings.pools and settings.finds_range:
            move_labels(state.labels, low, high, state.returns[0])
    task.num_plays += 1
    task.fast += settings.fast_rate * (value - task.fast)
    task.slow += settings.slow_rate * (value - task.slow)
    before, score = task.progress, 0.0
    if settings.uses_return:
        spread, returns = state.spreads[slot], state.returns[0]
        task.progress = progress_of_returns(task, spread, returns, constants)
    else:
        task.progress = progress_of(task, constants)
    if settings.pools:
        result = _unit_value(settings, state.returns[0], value)
        part = observe_pooled(block, table, state, constants, slot, result)
        score = part / (1.0 + part)
    else:
        score = task.progress
        if task.progress != before and is_active(block, slot):
            set_leaf(block, table, slot, task.progress * state.filed[slot].weight, BY_PROGRESS)
        if task.num_plays == settings.novice_plays:
            set_leaf(block, table, slot, 0.0, BY_NOVELTY)
    if settings.eviction_share > 0.0 and task.num_plays >= settings.eviction_plays:
        file_by_score(slot, score, state.filed, state.method[0], settings.eviction_share)


@bare
def observe(
    block: Words, table: int, state: State, constants: Constants, records: Records[RecordFields]
) -> int:
    """Learn from records; see `observe_batch`."""
    # Read once beforehand: these reads do not wait for each other, as those below would.
    num_plays = 0
    for index in range(len(records)):
        slot = records[index].slot
        if 0 <= slot < len(state.tasks):
            num_plays += state.tasks[slot].num_plays
    if num_plays < 0:
        return 0
    needs_success = not constants.settings[0].uses_return
    return observe_batch(
        observe_one, settle_noted, block, table, state, constants, records, needs_success
    )


@bare
def observe_single(
    block: Words,
    table: int,
    state: State,
    constants: Constants,
    slot: int,
    generation: int,
    success: float,
    episode_return: float,
    length: int,
) -> int:
    """Learn from one record given by its numbers; return 0, with nothing changed, if it is bad."""
    needs_success = not constants.settings[0].uses_return
    if is_bad(slot, len(state.tasks), success, episode_return, length, needs_success):
        return 0
    begin_write(block)
    if count_record(block, table, state.method[0].totals, slot, generation, length, success):
        observe_one(block, table, state, constants, slot, success, episode_return)
    end_write(block)
    return settle_noted(block, table, state, constants)
