"""Compiled rules of level replay: scores, their ranks, ages, and which tasks have been seen.

Called by `level_replay`, which owns the arrays. A task is seen when it has its first score. What
one record costs does not grow with the number of tasks: its own leaf in each layer, and the rank
of a few others whose turn it is.
"""

import math
from typing import Annotated, NamedTuple

from stepladder.arrays import Floats, Words
from stepladder.compiled import bare, compiled, inlined
from stepladder.curricula.batch_rule import Noted, Totals, note, observe_batch, settle_noted
from stepladder.curricula.level_replay.config import LevelReplayConfig
from stepladder.curricula.level_replay.ranks import (
    NUM_RANK_BINS,
    RankPower,
    RankTree,
    add,
    bin_of,
    count_below,
    count_in,
    weight_of_ranks,
)
from stepladder.curricula.pooled.labels import Label, LabelledTask, sum_of
from stepladder.curricula.pooled.pooling import Pooling, learn, rate_of
from stepladder.curricula.pooled.stuck import watch, worth
from stepladder.curricula.returns import ReturnScale, note_return, signal_of
from stepladder.curricula.trainer_scores import note_deviation, take_scores
from stepladder.plans.choosing import get_leaf
from stepladder.plans.kernels import begin_write, end_write, set_leaf
from stepladder.plans.layout import group_of, header_of, is_active
from stepladder.plans.record import RecordFields
from stepladder.records import Count, Fields, Limits, Records, Share
from stepladder.saving.saved_array import MAX_FLOAT

NO_PLAN_VERSION = 2**62
"""A plan version that no draw has."""

BY_RANK, PROPORTIONAL, SOFTMAX = 0, 1, 2
"""How scores become weights."""

BY_SCORE, BY_AGE, UNSEEN = 0, 1, 2
"""Layers of the weight table; each has a group per label, if tasks are pooled."""
NUM_REPLAY_LAYERS = 3

UNSEEN_EXPONENT = 2.0
"""How keenly unseen tasks of labels with high scores are preferred, if tasks are pooled."""

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
    bin: Annotated[int, Limits(0, NUM_RANK_BINS - 1)]
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

    since: Annotated[int, Limits(0, NO_PLAN_VERSION)]
    """The version with which the slot's task had a score."""
    before: Annotated[int, Limits(0, NO_PLAN_VERSION)]
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
    evidence: Records[LabelledTask]
    """Scores instead of successes; one per slot if tasks are pooled, else one that is not used."""
    labels: Records[Label]
    """All labels, or one for all tasks; a label's rate is its mean score."""
    pooling: Records[Pooling]
    scores: Records[ReturnScale]
    """The range of a trainer's scores, if tasks are pooled."""


class Settings(LevelReplayConfig):
    """The config as kernels read it, with what follows from it."""

    pools: bool
    """Whether labels are groups of the plan."""
    keep: float
    """What is left of a task's own scores after another one."""
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
    cells: Words
    """Every slot's label, if tasks are pooled."""
    powers: Records[RankPower]
    """What each rank is worth, if scores become weights by rank."""


@inlined
def _write(block: Words, table: int, state: State, slot: int, weight: float, layer: int) -> None:
    """Write a slot's weight in one layer, unless it is quarantined."""
    if is_active(block, slot):
        weight *= state.tasks[slot].weight
        # Most ranks that are looked up again are what they were.
        if get_leaf(block, table, slot, layer) != weight:
            set_leaf(block, table, slot, weight, layer)


@inlined
def weight_of(score: float, bin_index: int, method: Method, constants: Constants) -> float:
    """Return what a score, counted in its bin, is worth among all scores at this moment."""
    settings = constants.settings[0]
    if settings.how == BY_RANK:
        below, tied = count_below(method.ranks, bin_index), count_in(method.ranks, bin_index)
        first = method.num_seen - below - tied + 1
        return weight_of_ranks(first, tied, settings.power, constants.powers)
    if settings.how == PROPORTIONAL:
        return min(score**settings.power, LARGEST_WEIGHT)
    return math.exp(min(score * settings.power, LARGEST_EXPONENT))


@inlined
def _write_age(block: Words, table: int, state: State, slot: int) -> None:
    """Weigh a slot by its age: twice as much for every round of as many plays as slots."""
    age = state.method[0].ages_since - state.tasks[slot].last_play
    doublings = min(age / len(state.tasks), 1.8 * MAX_DOUBLINGS)
    _write(block, table, state, slot, 2.0**doublings, BY_AGE)


@inlined
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


@bare
def pooled_score(state: State, constants: Constants, slot: int) -> float:
    """Return a task's score now: that of its label, moved as far as its own scores say.

    Less if its results have stopped changing: what stays a surprise is none.
    """
    own, label = state.evidence[slot], state.labels[int(constants.cells[slot])]
    unit = state.scores[0].high if constants.settings[0].uses_trainer else 1.0
    return unit * worth(own.trial) * rate_of(own, label.rate, state.pooling[0].strength)


@inlined
def learn_score(state: State, constants: Constants, slot: int, score: float) -> None:
    """Let a label learn from a score of one of its tasks."""
    value, settings = score, constants.settings[0]
    if settings.uses_trainer:
        value = note_return(state.scores[0], score)
        value = value / state.scores[0].high if state.scores[0].high > 0.0 else 0.0
    label, own = state.labels[int(constants.cells[slot])], state.evidence[slot]
    learn(label, state.pooling[0], own, settings.keep, min(1.0, value))


@inlined
def _weigh(block: Words, table: int, state: State, constants: Constants, slot: int) -> None:
    """Write the weight of a seen slot by its score at this moment."""
    task, method, settings = state.tasks[slot], state.method[0], constants.settings[0]
    score = task.score
    if settings.pools:
        score = pooled_score(state, constants, slot)
        add(method.ranks, task.bin, -1)
        task.bin = bin_of(score)
        add(method.ranks, task.bin, 1)
    _write(block, table, state, slot, weight_of(score, task.bin, method, constants), BY_SCORE)


@bare
def _divide(block: Words, table: int, state: State, layer: int, share: float) -> None:
    """Divide the share of a layer between its labels: by their weights, unseen ones by score."""
    count, total = len(state.labels), 0.0
    for index in range(count):
        group = layer * count + index
        part = sum_of(block, table, group)
        if layer == UNSEEN:
            part *= state.labels[index].rate ** UNSEEN_EXPONENT
        group_of(block, table, group).share = part
        total += part
    for index in range(count):
        own = group_of(block, table, layer * count + index)
        own.share = share * (own.share / total if total > 0.0 else 1.0 / count)


@inlined
def write_shares(block: Words, table: int, state: State, constants: Constants) -> None:
    """Divide the draws between score, age and unseen tasks. Call between begin and end."""
    settings = constants.settings[0]
    seen = min(1.0, state.method[0].num_seen / max(1, header_of(block).num_active))
    replay = settings.replay_prob if settings.has_fixed_schedule else seen
    if seen < settings.min_seen:
        replay = 0.0
    _divide(block, table, state, BY_SCORE, replay * (1.0 - settings.staleness))
    _divide(block, table, state, BY_AGE, replay * settings.staleness)
    _divide(block, table, state, UNSEEN, 1.0 - replay)


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
    state.seen_versions[slot].since = NO_PLAN_VERSION
    last[0] = slot
    last[1] = generation


@inlined
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
    if settings.pools:
        learn_score(state, constants, slot, max(score, 0.0))
    task.bin = bin_of(task.score)
    add(method.ranks, task.bin, 1)
    _weigh(block, table, state, constants, slot)
    if settings.pools or settings.how == BY_RANK:
        for _ in range(min(settings.reranked_per_episode, method.num_seen)):
            method.next_reranked = (method.next_reranked + 1) % method.num_seen
            other = state.seen[method.next_reranked].listed
            _weigh(block, table, state, constants, other)
    if settings.pools:
        write_shares(block, table, state, constants)
    limit = settings.eviction_share * method.num_seen
    is_known = task.num_scores >= settings.eviction_plays
    if limit >= 1.0 and is_known and count_below(method.ranks, task.bin) < limit:
        note(method.noted, slot)


@bare
def take_active(
    block: Words, table: int, state: State, constants: Constants, slot: int, score: float
) -> None:
    """Give a slot a new score, unless it is quarantined."""
    if is_active(block, slot):
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
    """Update one task's mean and perhaps its score. Call between begin and end."""
    task, settings = state.tasks[slot], constants.settings[0]
    task.num_plays += 1
    task.best_return = max(task.best_return, episode_return)
    # A late result of a quarantined task must not bring it back among the ranks.
    if is_active(block, slot):
        _touch(block, table, state, slot)
        if settings.uses_trainer and not settings.pools:
            return
        value = signal_of(settings, state.returns[0], success, episode_return)
        # Not a number: the env reports no success.
        if settings.pools and value == value:
            watch(state.evidence[slot].trial, value)
        if not settings.uses_trainer:
            deviation = note_deviation(task, value, settings.newest_weight)
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
    take_scores(take_active, block, table, state, constants, slots, generations, scores)
    return settle_noted(block, table, state, constants)
