"""Compiled rules of the learning-progress curriculum: averages, progress, ranks.

Called by `learning_progress`, which owns the arrays.
"""
# pyright: reportReturnType=false, reportArgumentType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

from typing import Any

import numpy as np

from stepladder.compiled import compiled, inlined
from stepladder.curricula.compiled_rule import CompiledRule
from stepladder.curricula.eviction import (
    ALL_DONE,
    I_NUM_EVICTIONS,
    SOME_TO_REPLACE,
    WEIGHT,
    file_by_score,
)
from stepladder.plans.kernels import (
    H_POSITIONS,
    H_ROWS,
    Floats,
    Words,
    begin_write,
    end_write,
    set_leaf,
)
from stepladder.plans.record import RecordArray, first_bad_record, is_bad

# Columns of the statistics per slot; two slots fill a cache line.
PLAYS, FAST, SLOW, PROGRESS = 0, 1, 2, 3
NUM_COLUMNS = 4

# Rows of the constants: tables by number of plays, then the settings.
C_FAST_SCALE, C_SLOW_SCALE, C_NOISE, C_COUNT, C_PER_COUNT, C_SETTINGS = 0, 1, 2, 3, 4, 5
S_FAST_RATE, S_SLOW_RATE, S_NOISE_Z, S_NOVICE, S_EVICT_PLAYS, S_EVICT_SHARE = 0, 1, 2, 3, 4, 5
S_USES_RETURN, S_LOW, S_HIGH = 6, 7, 8
NUM_SETTINGS = 9

ROUNDING = 1e-20
"""Square of what two averages of the same results may differ by; it must not pass for progress."""

# Layers of the weight table.
BY_PROGRESS, BY_NOVELTY = 0, 1


@inlined
def progress_of(row: Floats, constants: Floats) -> float:
    """Return how far the averages lie apart beyond what chance explains, in [0, 1]."""
    if row[PLAYS] < 2.0:
        return 0.0
    entry = min(int(row[PLAYS]), constants.shape[1] - 1)
    slow = row[SLOW] * constants[C_SLOW_SCALE, entry]
    apart = abs(row[FAST] * constants[C_FAST_SCALE, entry] - slow)
    # One success and one failure more than were seen: no rate is ever certain to be 0 or 1.
    rate = (slow * constants[C_COUNT, entry] + 1.0) * constants[C_PER_COUNT, entry]
    noise_z = constants[C_SETTINGS, S_NOISE_Z]
    variance = noise_z * noise_z * rate * (1.0 - rate) * constants[C_NOISE, entry]
    if apart * apart <= variance + ROUNDING:
        return 0.0
    return apart - np.sqrt(variance)


@inlined
def absorb_one(
    block: Words,
    table: int,
    rows: Floats,
    extras: Floats,
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
    value = success
    if constants[C_SETTINGS, S_USES_RETURN] > 0.0:
        low = constants[C_SETTINGS, S_LOW]
        span = constants[C_SETTINGS, S_HIGH] - low
        value = min(1.0, max(0.0, (episode_return - low) / span))
    row = rows[slot]
    row[PLAYS] += 1.0
    row[FAST] += constants[C_SETTINGS, S_FAST_RATE] * (value - row[FAST])
    row[SLOW] += constants[C_SETTINGS, S_SLOW_RATE] * (value - row[SLOW])
    before = row[PROGRESS]
    row[PROGRESS] = progress_of(row, constants)
    if row[PROGRESS] != before and block[block[H_POSITIONS] + slot] >= 0:
        set_leaf(block, table, slot, row[PROGRESS] * extras[slot, WEIGHT], BY_PROGRESS)
    if row[PLAYS] == constants[C_SETTINGS, S_NOVICE]:
        set_leaf(block, table, slot, 0.0, BY_NOVELTY)
    share = constants[C_SETTINGS, S_EVICT_SHARE]
    if share > 0.0 and row[PLAYS] >= constants[C_SETTINGS, S_EVICT_PLAYS]:
        file_by_score(slot, row[PROGRESS], extras, ints, share)


@compiled
def absorb(
    block: Words,
    table: int,
    rows: Floats,
    extras: Floats,
    constants: Floats,
    ints: Words,
    records: RecordArray,
) -> int:
    """Learn from records.

    Returns:
        `ALL_DONE`, `SOME_TO_REPLACE`, or the index of a bad record with nothing changed.
    """
    bad = first_bad_record(records, len(rows), constants[C_SETTINGS, S_USES_RETURN] == 0.0)
    if bad >= 0 or len(records) == 0:
        return bad
    # Looked at once beforehand: these reads do not wait for each other, as those below would.
    num_plays = 0.0
    for index in range(len(records)):
        num_plays += rows[records[index].slot, PLAYS]
    if num_plays < 0.0:
        return 0
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
def absorb_single(
    block: Words,
    table: int,
    rows: Floats,
    extras: Floats,
    constants: Floats,
    ints: Words,
    slot: int,
    generation: int,
    success: float,
    episode_return: float,
    length: int,
) -> int:
    """Learn from one record given by its numbers; return 0, with nothing changed, if it is bad."""
    needs_success = constants[C_SETTINGS, S_USES_RETURN] == 0.0
    if is_bad(slot, len(rows), success, episode_return, length, needs_success):
        return 0
    begin_write(block)
    absorb_one(
        block,
        table,
        rows,
        extras,
        constants,
        ints,
        slot,
        generation,
        success,
        episode_return,
        length,
    )
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
