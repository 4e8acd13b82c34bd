"""Compiled rules of the learning-progress curriculum: averages, progress, ranks.

Called by `learning_progress`, which owns the arrays.
"""

from typing import Annotated, NamedTuple

import numpy as np

from stepladder.compiled import bare, inlined
from stepladder.curricula.batch_rule import count_record, observe_batch, settle_noted, signal_of
from stepladder.curricula.learning_progress.config import LearningProgressConfig
from stepladder.curricula.ranking import Filed, RankedTotals, file_by_score
from stepladder.plans.kernels import begin_write, end_write, set_leaf
from stepladder.plans.layout import is_active
from stepladder.plans.record import RecordFields, is_bad
from stepladder.records import Count, Fields, Limits, Records, Share, Words

ROUNDING = 1e-20
"""Square of what two averages of the same results may differ by; it must not pass for progress."""

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

    fast_rate: float
    slow_rate: float
    noise_z: float
    eviction_share: float
    uses_return: bool


class Constants(NamedTuple):
    """What stays the same."""

    settings: Records[Settings]
    scales: Records[Scale]


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
    value = signal_of(settings, success, episode_return)
    task.num_plays += 1
    task.fast += settings.fast_rate * (value - task.fast)
    task.slow += settings.slow_rate * (value - task.slow)
    before = task.progress
    task.progress = progress_of(task, constants)
    if task.progress != before and is_active(block, slot):
        set_leaf(block, table, slot, task.progress * state.filed[slot].weight, BY_PROGRESS)
    if task.num_plays == settings.novice_plays:
        set_leaf(block, table, slot, 0.0, BY_NOVELTY)
    if settings.eviction_share > 0.0 and task.num_plays >= settings.eviction_plays:
        share = settings.eviction_share
        file_by_score(slot, task.progress, state.filed, state.method[0], share)


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
    if count_record(block, state.method[0].totals, slot, generation, length):
        observe_one(block, table, state, constants, slot, success, episode_return)
    end_write(block)
    return settle_noted(block, table, state, constants)
