"""Compiled rules of level replay: scores, their ranks, ages, and which tasks have been seen.

Called by `level_replay`, which owns the arrays. A task is seen when it has its first score. What
one record costs does not grow with the number of tasks: its own leaf in each layer, and the rank
of a few others whose turn it is.
"""

import math
from typing import Annotated, NamedTuple

from stepladder.compiled import bare, compiled, inlined
from stepladder.curricula.batch_rule import (
    Noted,
    Totals,
    note,
    observe_batch,
    settle_noted,
)
from stepladder.curricula.level_replay.config import LevelReplayConfig
from stepladder.curricula.level_replay.ranks import (
    NUM_BINS,
    RankTree,
    add,
    bin_of,
    count_below,
    weight_of_ranks,
)
from stepladder.curricula.returns import ReturnScale, signal_of
from stepladder.plans.kernels import begin_write, end_write, set_leaf
from stepladder.plans.layout import group_of, header_of, is_active, slot_of
from stepladder.plans.record import RecordFields
from stepladder.records import Count, Fields, Floats, Limits, Records, Share, Words
from stepladder.saving.saved_array import MAX_FLOAT

NEVER = 2**62
"""A plan version that no draw has."""

BY_RANK, PROPORTIONAL, SOFTMAX = 0, 1, 2
"""How scores become weights."""

BY_SCORE, BY_AGE, UNSEEN = 0, 1, 2
"""Layers of the weight table."""
NUM_LAYERS = 3

PRIOR_MEAN = 0.5
"""What a task's running mean starts from; it counts as one play."""

LARGEST_WEIGHT, LARGEST_EXPONENT = 1e200, 460.0
"""Where weights end, and the exponent that leads there: a million of them can still be added."""

MAX_DOUBLINGS = 500
"""Age weights are written again when the newest has become so many times smaller."""


class TaskScore(Fields):
    """What is known of a slot's task; it fills a cache line."""

    num_plays: Count
    mean: Share
    """Running mean of its results."""
    num_scores: Count
    score: Annotated[float, Limits(0.0, MAX_FLOAT)]
    bin: Annotated[int, Limits(0, NUM_BINS - 1)]
    """Of the score, among the ranks."""
    last_play: Count
    """When it was played last, in plays of all tasks."""
    best_return: Annotated[float, Limits(-math.inf, MAX_FLOAT)]
    """Minus infinity before the first play."""
    weight: float
    """What the source gives the task."""


class ScoredSlot(Fields):
    """Which slots have a score."""

    position: int
    """Of the slot in the list of seen ones; -1 is none."""
    listed: int
    """That list itself: the slot at this position."""


class SeenVersions(Fields):
    """Plan versions from which draws of a slot are replays."""

    since: Annotated[int, Limits(0, NEVER)]
    """The version with which the slot's task had a score."""
    before: Annotated[int, Limits(0, NEVER)]
    """The same for the task before it."""


class Method(Fields):
    """What is known about the whole pool."""

    totals: Totals
    noted: Noted
    num_seen: int
    next_reranked: int
    """Position in the list of seen slots up to which ranks were looked up again."""
    ages_since: Count
    """The play from which ages are counted."""
    num_orphaned_scores: Count
    ranks: RankTree


class State(NamedTuple):
    """Everything that the method learns."""

    method: Records[Method]
    tasks: Records[TaskScore]
    seen: Records[ScoredSlot]
    seen_versions: Records[SeenVersions]
    returns: Records[ReturnScale]


class Settings(LevelReplayConfig):
    """The config as kernels read it, with what follows from it."""

    uses_trainer: bool
    uses_return: bool
    finds_range: bool
    newest_weight: float  # pyright: ignore[reportIncompatibleMethodOverride]
    how: int
    """`BY_RANK`, `PROPORTIONAL` or `SOFTMAX`."""
    power: float
    has_fixed_schedule: bool
    eviction_share: float


class Constants(NamedTuple):
    """What stays the same."""

    settings: Records[Settings]


@inlined
def _write(block: Words, table: int, state: State, slot: int, weight: float, layer: int) -> None:
    """Write a slot's weight in one layer, unless it is quarantined."""
    if is_active(block, slot):
        set_leaf(block, table, slot, weight * state.tasks[slot].weight, layer)


@bare
def weight_of(task: TaskScore, method: Method, settings: Settings) -> float:
    """Return what a seen task's score is worth among all scores at this moment."""
    if settings.how == BY_RANK:
        below = count_below(method.ranks, task.bin)
        tied = count_below(method.ranks, task.bin + 1) - below
        return weight_of_ranks(method.num_seen - below - tied + 1, tied, settings.power)
    if settings.how == PROPORTIONAL:
        return min(task.score**settings.power, LARGEST_WEIGHT)
    return math.exp(min(task.score * settings.power, LARGEST_EXPONENT))


@inlined
def _write_age(block: Words, table: int, state: State, slot: int) -> None:
    """Weigh a slot by its age: twice as much for every round of as many plays as slots."""
    age = state.method[0].ages_since - state.tasks[slot].last_play
    doublings = min(age / len(state.tasks), 1.8 * MAX_DOUBLINGS)
    _write(block, table, state, slot, 2.0**doublings, BY_AGE)


@bare
def _touch(block: Words, table: int, state: State, slot: int) -> None:
    """Note that a slot was played just now."""
    method = state.method[0]
    clock = method.totals.num_observed - method.totals.num_orphaned
    state.tasks[slot].last_play = clock
    if clock - method.ages_since > MAX_DOUBLINGS * len(state.tasks):
        # Once in so many rounds: a pass over all, before the newest weights become too small.
        method.ages_since = clock
        for position in range(method.num_seen):
            _write_age(block, table, state, state.seen[position].listed)
    elif state.seen[slot].position >= 0:
        _write_age(block, table, state, slot)


@inlined
def write_shares(block: Words, table: int, state: State, constants: Constants) -> None:
    """Divide the draws between score, age and unseen tasks. Call between begin and end."""
    settings = constants.settings[0]
    seen = min(1.0, state.method[0].num_seen / max(1, header_of(block).num_active))
    replay = settings.replay_prob if settings.has_fixed_schedule else seen
    if seen < settings.min_seen:
        replay = 0.0
    group_of(block, table, BY_SCORE).share = replay * (1.0 - settings.staleness)
    group_of(block, table, BY_AGE).share = replay * settings.staleness
    group_of(block, table, UNSEEN).share = 1.0 - replay


@compiled
def write_shares_anew(block: Words, table: int, state: State, constants: Constants) -> None:
    """Call `write_shares` in a write of its own."""
    begin_write(block)
    write_shares(block, table, state, constants)
    end_write(block)


@bare
def _enter(block: Words, table: int, state: State, constants: Constants, slot: int) -> None:
    """Put a slot on the list of seen ones."""
    method = state.method[0]
    state.seen[method.num_seen].listed = slot
    state.seen[slot].position = method.num_seen
    method.num_seen += 1
    # The version that readers will see when this write has ended.
    state.seen_versions[slot].since = (header_of(block).sequence + 1) >> 1
    _write(block, table, state, slot, 0.0, UNSEEN)
    write_shares(block, table, state, constants)
    _touch(block, table, state, slot)


@inlined
def leave(state: State, slot: int) -> None:
    """Take a slot off the list of seen ones and out of the ranks, if it is there."""
    position, method = state.seen[slot].position, state.method[0]
    if position >= 0:
        add(method.ranks, state.tasks[slot].bin, -1)
        method.num_seen -= 1
        last = state.seen[method.num_seen].listed
        state.seen[position].listed = last
        state.seen[last].position = position
        state.seen[slot].position = -1


@compiled
def forget(state: State, slot: int, generation: int, last: Words) -> None:
    """Forget that a slot was seen, because it has another task now.

    `generation` is that of the new task. `last` holds slot and generation of the last call: the
    same call again changes nothing.
    """
    if last[0] == slot and last[1] == generation:
        return
    leave(state, slot)
    state.seen_versions[slot].before = state.seen_versions[slot].since
    state.seen_versions[slot].since = NEVER
    last[0] = slot
    last[1] = generation


@bare
def take_score(
    block: Words, table: int, state: State, constants: Constants, slot: int, score: float
) -> None:
    """Give an active slot a new score. Call between begin and end."""
    task, method, settings = state.tasks[slot], state.method[0], constants.settings[0]
    task.num_scores += 1
    newest = max(settings.newest_weight, 1.0 / task.num_scores)
    task.score = (1.0 - newest) * task.score + newest * max(score, 0.0)
    if state.seen[slot].position < 0:
        _enter(block, table, state, constants, slot)
    else:
        add(method.ranks, task.bin, -1)
    task.bin = bin_of(task.score)
    add(method.ranks, task.bin, 1)
    _write(block, table, state, slot, weight_of(task, method, settings), BY_SCORE)
    if settings.how == BY_RANK:
        for _ in range(min(settings.reranked_per_episode, method.num_seen)):
            method.next_reranked = (method.next_reranked + 1) % method.num_seen
            other = state.seen[method.next_reranked].listed
            weight = weight_of(state.tasks[other], method, settings)
            _write(block, table, state, other, weight, BY_SCORE)
    limit = settings.eviction_share * method.num_seen
    is_known = task.num_scores >= settings.eviction_plays
    if limit >= 1.0 and is_known and count_below(method.ranks, task.bin) < limit:
        note(method.noted, slot)


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
    """Update one task's mean and perhaps its score. Call between begin and end."""
    task, settings = state.tasks[slot], constants.settings[0]
    task.num_plays += 1
    task.best_return = max(task.best_return, episode_return)
    # A late result of a quarantined task must not bring it back among the ranks.
    if is_active(block, slot):
        _touch(block, table, state, slot)
        if not settings.uses_trainer:
            value = signal_of(settings, state.returns[0], success, episode_return)
            deviation = abs(value - task.mean)
            newest = max(settings.newest_weight, 1.0 / (task.num_plays + 1.0))
            task.mean += newest * (value - task.mean)
            take_score(block, table, state, constants, slot, deviation)


@bare
def observe(
    block: Words, table: int, state: State, constants: Constants, records: Records[RecordFields]
) -> int:
    """Learn from records; see `observe_batch`."""
    settings = constants.settings[0]
    needs_success = not settings.uses_trainer and not settings.uses_return
    return observe_batch(
        observe_one, settle_noted, block, table, state, constants, records, needs_success
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
) -> int:
    """Take valid scores from a trainer; return `DONE` or `TO_REPLACE`."""
    begin_write(block)
    for index in range(len(slots)):
        slot = slots[index]
        if generations[index] != slot_of(block, slot).generation:
            state.method[0].num_orphaned_scores += 1
        elif is_active(block, slot):
            take_score(block, table, state, constants, slot, scores[index])
    end_write(block)
    return settle_noted(block, table, state, constants)
