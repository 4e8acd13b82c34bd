"""Compiled rules of level replay: scores, their ranks, ages, and who has been seen.

Called by `level_replay`, which owns the arrays. A task is seen when it has its first score. What
one record costs does not grow with the number of tasks: its own leaf in each layer, and the rank
of a few others whose turn it is.
"""
# pyright: reportReturnType=false, reportArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

import math
from typing import Any

import numpy as np

from stepladder.compiled import compiled, inlined
from stepladder.curricula.compiled_rule import CompiledRule
from stepladder.curricula.eviction import ALL_DONE, MAX_EVICTIONS, SOME_TO_REPLACE, note
from stepladder.curricula.level_replay.ranks import (
    NUM_BINS,
    add,
    bin_of,
    count_below,
    weight_of_ranks,
)
from stepladder.plans.kernels import (
    H_NUM_ACTIVE,
    H_POSITIONS,
    H_ROWS,
    H_SEQUENCE,
    T_SHARES,
    Floats,
    Words,
    begin_write,
    end_write,
    set_leaf,
)
from stepladder.plans.record import RecordArray, first_bad_record

# Columns of the statistics per slot; one slot fills a cache line.
PLAYS, MEAN, SCORED, SCORE, BIN, LAST, BEST, WEIGHT = 0, 1, 2, 3, 4, 5, 6, 7
NUM_COLUMNS = 8

# Columns of whole numbers per slot: its position in the list of seen slots (-1 is none), that
# list itself, and the plan versions from which its task and the one before it had a score.
POSITION, ORDER, SINCE, BEFORE = 0, 1, 2, 3
NUM_EXTRAS = 4
NEVER = 2**62

# Settings.
S_BY_TRAINER, S_USES_RETURN, S_LOW, S_HIGH, S_NEWEST = 0, 1, 2, 3, 4
S_TRANSFORM, S_POWER, S_STALENESS, S_IS_FIXED, S_REPLAY, S_MIN_SEEN = 5, 6, 7, 8, 9, 10
S_RERANKED, S_EVICT_PLAYS, S_EVICT_SHARE = 11, 12, 13
BY_RANK, PROPORTIONAL, SOFTMAX = 0.0, 1.0, 2.0

# Whole numbers: the counters, slots to replace, then the following, then the counts by bin.
I_NUM_EVICTIONS = 3
I_NUM_SEEN = I_NUM_EVICTIONS + 1 + MAX_EVICTIONS
I_NEXT, I_START, I_ORPHANED_SCORES = I_NUM_SEEN + 1, I_NUM_SEEN + 2, I_NUM_SEEN + 3
I_TREE = I_NUM_SEEN + 4
NUM_INTS = I_TREE + NUM_BINS + 1

# Layers of the weight table.
BY_SCORE, BY_AGE, UNSEEN = 0, 1, 2
NUM_LAYERS = 3

PRIOR_MEAN = 0.5
"""What a task's running mean starts from; it counts as one play."""

LARGEST_WEIGHT, LARGEST_EXPONENT = 1e200, 460.0
"""Where weights end, and the exponent that leads there: a million of them can still be added."""

MAX_DOUBLINGS = 500
"""Age weights are written anew when the newest has become so many times smaller."""


@compiled
def _write(block: Words, table: int, rows: Floats, slot: int, weight: float, layer: int) -> None:
    """Write a slot's weight in one layer, unless it is quarantined."""
    if block[block[H_POSITIONS] + slot] >= 0:
        set_leaf(block, table, slot, weight * rows[slot, WEIGHT], layer)


@compiled
def weight_of(row: Floats, constants: Floats, ints: Words) -> float:
    """Return what a seen task's score is worth among all scores at this moment."""
    power = constants[S_POWER]
    if constants[S_TRANSFORM] == BY_RANK:
        below = count_below(ints, I_TREE, int(row[BIN]))
        tied = count_below(ints, I_TREE, int(row[BIN]) + 1) - below
        return weight_of_ranks(ints[I_NUM_SEEN] - below - tied + 1, tied, power)
    if constants[S_TRANSFORM] == PROPORTIONAL:
        return min(row[SCORE] ** power, LARGEST_WEIGHT)
    return math.exp(min(row[SCORE] * power, LARGEST_EXPONENT))


@compiled
def _write_age(block: Words, table: int, rows: Floats, ints: Words, slot: int) -> None:
    """Weigh a slot by its age: twice as much for every round of as many plays as slots."""
    doublings = min((ints[I_START] - rows[slot, LAST]) / len(rows), 1.8 * MAX_DOUBLINGS)
    _write(block, table, rows, slot, 2.0**doublings, BY_AGE)


@compiled
def _touch(block: Words, table: int, rows: Floats, extras: Words, ints: Words, slot: int) -> None:
    """Note that a slot was played just now."""
    clock = ints[0] - ints[2]
    rows[slot, LAST] = clock
    if clock - ints[I_START] > MAX_DOUBLINGS * len(rows):
        # Once in so many rounds: a pass over all, before the newest weights become too small.
        ints[I_START] = clock
        for position in range(ints[I_NUM_SEEN]):
            _write_age(block, table, rows, ints, extras[position, ORDER])
    elif extras[slot, POSITION] >= 0:
        _write_age(block, table, rows, ints, slot)


@compiled
def write_shares(block: Words, table: int, constants: Floats, ints: Words) -> None:
    """Divide the draws between score, age and unseen tasks. Call between begin and end."""
    seen = min(1.0, ints[I_NUM_SEEN] / max(1, block[H_NUM_ACTIVE]))
    replay = constants[S_REPLAY] if constants[S_IS_FIXED] > 0.0 else seen
    if seen < constants[S_MIN_SEEN]:
        replay = 0.0
    shares = block.view(np.float64)[block[table + T_SHARES] :]
    shares[BY_SCORE] = replay * (1.0 - constants[S_STALENESS])
    shares[BY_AGE] = replay * constants[S_STALENESS]
    shares[UNSEEN] = 1.0 - replay


@compiled
def write_shares_anew(block: Words, table: int, constants: Floats, ints: Words) -> None:
    """Do what `write_shares` does, in a write of its own."""
    begin_write(block)
    write_shares(block, table, constants, ints)
    end_write(block)


@compiled
def _enter(
    block: Words,
    table: int,
    rows: Floats,
    extras: Words,
    constants: Floats,
    ints: Words,
    slot: int,
) -> None:
    """Put a slot on the list of seen ones."""
    extras[ints[I_NUM_SEEN], ORDER] = slot
    extras[slot, POSITION] = ints[I_NUM_SEEN]
    ints[I_NUM_SEEN] += 1
    # The version that readers will see when this write has ended.
    extras[slot, SINCE] = (block[H_SEQUENCE] + 1) >> 1
    _write(block, table, rows, slot, 0.0, UNSEEN)
    write_shares(block, table, constants, ints)
    _touch(block, table, rows, extras, ints, slot)


@compiled
def leave(rows: Floats, extras: Words, ints: Words, slot: int) -> None:
    """Take a slot off the list of seen ones and out of the ranks, if it is there."""
    position = extras[slot, POSITION]
    if position >= 0:
        add(ints, I_TREE, int(rows[slot, BIN]), -1)
        ints[I_NUM_SEEN] -= 1
        last = extras[ints[I_NUM_SEEN], ORDER]
        extras[position, ORDER] = last
        extras[last, POSITION] = position
        extras[slot, POSITION] = -1


@compiled
def forget(
    rows: Floats, extras: Words, ints: Words, slot: int, generation: int, last: Words
) -> None:
    """Forget that a slot was seen, for another task has come into it.

    Args:
        rows: Statistics per slot.
        extras: Whole numbers per slot. Changed in place.
        ints: Whole numbers. Changed in place.
        slot: Which one.
        generation: Of the slot, with the new task in it.
        last: Slot and generation of the last call, after which the same again changes nothing.
    """
    if last[0] == slot and last[1] == generation:
        return
    leave(rows, extras, ints, slot)
    extras[slot, BEFORE] = extras[slot, SINCE]
    extras[slot, SINCE] = NEVER
    last[0] = slot
    last[1] = generation


@compiled
def take_score(
    block: Words,
    table: int,
    rows: Floats,
    extras: Words,
    constants: Floats,
    ints: Words,
    slot: int,
    score: float,
) -> None:
    """Give an active slot a new score. Call between begin and end."""
    row = rows[slot]
    row[SCORED] += 1.0
    newest = max(constants[S_NEWEST], 1.0 / row[SCORED])
    row[SCORE] = (1.0 - newest) * row[SCORE] + newest * max(score, 0.0)
    if extras[slot, POSITION] < 0:
        _enter(block, table, rows, extras, constants, ints, slot)
    else:
        add(ints, I_TREE, int(row[BIN]), -1)
    row[BIN] = bin_of(row[SCORE])
    add(ints, I_TREE, int(row[BIN]), 1)
    _write(block, table, rows, slot, weight_of(row, constants, ints), BY_SCORE)
    num_seen = ints[I_NUM_SEEN]
    if constants[S_TRANSFORM] == BY_RANK:
        for _ in range(min(int(constants[S_RERANKED]), num_seen)):
            ints[I_NEXT] = (ints[I_NEXT] + 1) % num_seen
            other = extras[ints[I_NEXT], ORDER]
            _write(block, table, rows, other, weight_of(rows[other], constants, ints), BY_SCORE)
    limit = constants[S_EVICT_SHARE] * num_seen
    is_known = row[SCORED] >= constants[S_EVICT_PLAYS]
    if limit >= 1.0 and is_known and count_below(ints, I_TREE, int(row[BIN])) < limit:
        note(ints, I_NUM_EVICTIONS, slot)


@compiled
def absorb_one(
    block: Words,
    table: int,
    rows: Floats,
    extras: Words,
    constants: Floats,
    ints: Words,
    slot: int,
    generation: int,
    success: float,
    episode_return: float,
    length: int,
) -> None:
    """Learn from one valid record. Call between begin and end."""
    ints[0] += 1
    ints[1] += length
    if generation != block[block[H_ROWS] + 2 * slot + 1]:
        ints[2] += 1
        return
    row = rows[slot]
    row[PLAYS] += 1.0
    row[BEST] = max(row[BEST], episode_return)
    if block[block[H_POSITIONS] + slot] < 0:
        # A late result of a quarantined task: it must not come back among the ranks.
        return
    _touch(block, table, rows, extras, ints, slot)
    if constants[S_BY_TRAINER] > 0.0:
        return
    value = success
    if constants[S_USES_RETURN] > 0.0:
        low = constants[S_LOW]
        value = min(1.0, max(0.0, (episode_return - low) / (constants[S_HIGH] - low)))
    deviation = abs(value - row[MEAN])
    row[MEAN] += max(constants[S_NEWEST], 1.0 / (row[PLAYS] + 1.0)) * (value - row[MEAN])
    take_score(block, table, rows, extras, constants, ints, slot, deviation)


@compiled
def absorb(
    block: Words,
    table: int,
    rows: Floats,
    extras: Words,
    constants: Floats,
    ints: Words,
    records: RecordArray,
) -> int:
    """Learn from records.

    Returns:
        `ALL_DONE`, `SOME_TO_REPLACE`, or the index of a bad record with nothing changed.
    """
    needs_success = constants[S_BY_TRAINER] == 0.0 and constants[S_USES_RETURN] == 0.0
    bad = first_bad_record(records, len(rows), needs_success)
    if bad >= 0 or len(records) == 0:
        return bad
    begin_write(block)
    for index in range(len(records)):
        record = records[index]
        absorb_one(
            block,
            table,
            rows,
            extras,
            constants,
            ints,
            record.slot,
            record.generation,
            record.success,
            record.episode_return,
            record.length,
        )
    end_write(block)
    return SOME_TO_REPLACE if ints[I_NUM_EVICTIONS] > 0 else ALL_DONE


@compiled
def absorb_scores(
    block: Words,
    table: int,
    rows: Floats,
    extras: Words,
    constants: Floats,
    ints: Words,
    slots: Words,
    generations: Words,
    scores: Floats,
) -> int:
    """Take valid scores from a trainer; return `ALL_DONE` or `SOME_TO_REPLACE`."""
    begin_write(block)
    for index in range(len(slots)):
        slot = slots[index]
        if generations[index] != block[block[H_ROWS] + 2 * slot + 1]:
            ints[I_ORPHANED_SCORES] += 1
        elif block[block[H_POSITIONS] + slot] >= 0:
            take_score(block, table, rows, extras, constants, ints, slot, scores[index])
    end_write(block)
    return SOME_TO_REPLACE if ints[I_NUM_EVICTIONS] > 0 else ALL_DONE


@inlined
def observe_one(
    state: Any, slot: int, generation: int, success: float, episode_return: float
) -> None:
    """Learn from one valid episode of one step, inside a compiled loop."""
    block, table, rows, extras, constants, ints = state
    absorb_one(
        block, table, rows, extras, constants, ints, slot, generation, success, episode_return, 1
    )


@inlined
def settle(state: Any) -> int:
    """Say whether a task should make room for another."""
    return SOME_TO_REPLACE if state[5][I_NUM_EVICTIONS] > 0 else ALL_DONE


RULE = CompiledRule(observe_one, settle)
"""For the compiled simulator."""
