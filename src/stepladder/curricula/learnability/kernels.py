"""Compiled rules of the learnability curriculum: discounted evidence and what it is worth.

Called by `learnability`, which owns the arrays.
"""
# pyright: reportReturnType=false, reportArgumentType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

from typing import Any

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
from stepladder.plans.record import RecordArray, first_bad_record

# Columns of the statistics per slot; two slots fill a cache line.
PLAYS, SUCCESSES, FAILURES, SCORE = 0, 1, 2, 3
NUM_COLUMNS = 4

# Settings.
S_KEEP, S_ALPHA, S_BETA, S_EXPONENT, S_EVICT_PLAYS, S_EVICT_SHARE = 0, 1, 2, 3, 4, 5
S_USES_RETURN, S_LOW, S_HIGH = 6, 7, 8

LARGEST = 0.25
"""The most that p(1 - p) can be."""


@compiled
def learnability(successes: float, failures: float, alpha: float, beta: float) -> float:
    """Return the expectation of p(1 - p) under a Beta posterior.

    Args:
        successes: Discounted sum of successes.
        failures: Discounted sum of failures.
        alpha: Successes that the prior counts as.
        beta: Failures that the prior counts as.
    """
    a, b = alpha + successes, beta + failures
    return a * b / ((a + b) * (a + b + 1.0))


@compiled
def weight_of(score: float, exponent: float) -> float:
    """Return the weight of a task by its learnability, at most 1."""
    share = score / LARGEST
    return share if exponent == 1.0 else share**exponent


@compiled
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
    if constants[S_USES_RETURN] > 0.0:
        low = constants[S_LOW]
        value = min(1.0, max(0.0, (episode_return - low) / (constants[S_HIGH] - low)))
    row, keep = rows[slot], constants[S_KEEP]
    row[PLAYS] += 1.0
    row[SUCCESSES] = keep * row[SUCCESSES] + value
    row[FAILURES] = keep * row[FAILURES] + (1.0 - value)
    row[SCORE] = learnability(row[SUCCESSES], row[FAILURES], constants[S_ALPHA], constants[S_BETA])
    if block[block[H_POSITIONS] + slot] >= 0:
        weight = weight_of(row[SCORE], constants[S_EXPONENT])
        set_leaf(block, table, slot, weight * extras[slot, WEIGHT])
    share = constants[S_EVICT_SHARE]
    if share > 0.0 and row[PLAYS] >= constants[S_EVICT_PLAYS]:
        file_by_score(slot, row[SCORE] / LARGEST, extras, ints, share)


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
    bad = first_bad_record(records, len(rows), constants[S_USES_RETURN] == 0.0)
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
