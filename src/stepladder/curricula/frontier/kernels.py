"""Compiled rules of the frontier: what a play says about where its task stands.

Called by `frontier`, which owns the arrays. A record changes one task's numbers and perhaps its
state, moves it between layers (`rounds`) and, when it becomes mastered or no longer is,
touches its few neighbours; nothing grows with the number of tasks.
"""
# pyright: reportReturnType=false, reportArgumentType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

from typing import Any

import numpy as np

from stepladder.compiled import compiled, inlined
from stepladder.curricula.compiled_rule import CompiledRule
from stepladder.curricula.eviction import ALL_DONE, SOME_TO_REPLACE, note
from stepladder.curricula.frontier.config import PRIOR
from stepladder.curricula.frontier.rounds import (
    FAILURES,
    I_NUM_EVICTIONS,
    IN_ZONE,
    LEVEL,
    MASTERED,
    N_BARREN,
    N_FAR_FINDS,
    N_NEAR_FINDS,
    ORIGIN,
    PROBED,
    S_EVICT_PLAYS,
    S_EVICTS,
    S_EVIDENCE,
    S_KEEP,
    S_LAPSE,
    S_MASTERY,
    S_PROMOTE_Z,
    S_STUCK_Z,
    S_TRIAL,
    STATE,
    SUCCESSES,
    TRIAL_PLAYS,
    TRIAL_SUCCESSES,
    Board,
    place,
    set_shares,
    turn_rounds,
)
from stepladder.plans.kernels import (
    H_ROWS,
    T_NUM_GROUPS,
    Floats,
    Words,
    begin_write,
    end_write,
)
from stepladder.plans.record import RecordArray, first_bad_record

LEAST_SUCCESSES = 0.5
"""Discounted successes below which a task has shown nothing: one success, one half-life ago."""

LEAST_VARIANCE = 0.01
"""Of a single play: no task's success is believed to be steadier than one in a hundred."""

KEEP_FINDINGS = 0.99
"""How much of what probing found is remembered with every further probe of the same queue."""


@compiled
def mean_of(row: Floats) -> float:
    """Return the discounted success rate of a task, a little towards one half."""
    return (row[SUCCESSES] + PRIOR) / (row[SUCCESSES] + row[FAILURES] + 2.0 * PRIOR)


@compiled
def looks_mastered(row: Floats, settings: Floats) -> bool:
    """Whether a task that was played nearly always succeeded, be it in a single play."""
    return row[SUCCESSES] >= settings[S_MASTERY] * (row[SUCCESSES] + row[FAILURES])


@compiled
def is_mastered(row: Floats, settings: Floats) -> bool:
    """Whether a task nearly always succeeds, over enough plays to say so."""
    enough = row[SUCCESSES] + row[FAILURES] >= settings[S_EVIDENCE]
    return enough and mean_of(row) >= settings[S_MASTERY]


@compiled
def _error(rate: float, count: float) -> float:
    """Return the standard error of a success rate over so many plays."""
    return np.sqrt(max(rate * (1.0 - rate), LEAST_VARIANCE) / count)


@compiled
def _after_probe(row: Floats, settings: Floats) -> int:
    """Return the state of a probed task after a play: it is found once it beats its old level."""
    if row[SUCCESSES] < LEAST_SUCCESSES:
        # Whatever it was stuck at before is gone.
        row[LEVEL] = 0.0
        return PROBED
    if looks_mastered(row, settings):
        # Probing goes on until that is sure; practice would be wasted on it.
        return MASTERED if is_mastered(row, settings) else PROBED
    count = row[SUCCESSES] + row[FAILURES]
    to_beat = row[LEVEL] + settings[S_PROMOTE_Z] * _error(row[LEVEL], count)
    return IN_ZONE if row[SUCCESSES] / count > to_beat else PROBED


@compiled
def _after_practice(row: Floats, settings: Floats) -> int:
    """Return the state of a task in the zone after a play: mastered, lost again, stuck, or same."""
    if is_mastered(row, settings):
        return MASTERED
    if row[SUCCESSES] < LEAST_SUCCESSES:
        row[LEVEL] = 0.0
        return PROBED
    if row[TRIAL_PLAYS] < settings[S_TRIAL]:
        return IN_ZONE
    rate = row[TRIAL_SUCCESSES] / row[TRIAL_PLAYS]
    better = rate > row[LEVEL] + settings[S_STUCK_Z] * _error(rate, row[TRIAL_PLAYS])
    row[LEVEL], row[TRIAL_PLAYS], row[TRIAL_SUCCESSES] = rate, 0.0, 0.0
    return IN_ZONE if better else PROBED


@compiled
def _after_rehearsal(row: Floats, settings: Floats) -> int:
    """Return the state of a mastered task after a play: same, or to be practised again."""
    mean = mean_of(row)
    if mean >= settings[S_LAPSE]:
        return MASTERED
    row[LEVEL] = min(row[LEVEL], mean)
    return IN_ZONE


@compiled
def _state_after(board: Board, slot: int) -> int:
    """Return the state of a slot whose row has taken in a play; count the play if it probed."""
    row, settings, findings = board.rows[slot], board.settings, board.findings
    if row[STATE] == IN_ZONE:
        return _after_practice(row, settings)
    if row[STATE] == MASTERED:
        return _after_rehearsal(row, settings)
    finds = N_NEAR_FINDS if board.near[slot] > 0 else N_FAR_FINDS
    findings[finds] *= KEEP_FINDINGS
    findings[finds + 1] = findings[finds + 1] * KEEP_FINDINGS + 1.0
    row[ORIGIN] = finds
    return _after_probe(row, settings)


@compiled
def _tell_neighbors(board: Board, slot: int, change: int) -> None:
    """Let the neighbours of a slot know that it was mastered (1) or no longer is (-1)."""
    if len(board.links) == 0:
        return
    for index in range(board.links[slot], board.links[slot + 1]):
        other = board.links[index]
        before = board.near[other]
        board.near[other] += change
        if board.rows[other, STATE] == PROBED and (before > 0) != (board.near[other] > 0):
            place(board, other, 0)


@compiled
def _enter_state(board: Board, slot: int, state: int) -> None:
    """Note that a slot has changed its state, and let others know whom it concerns."""
    row, findings = board.rows[slot], board.findings
    was_mastered = row[STATE] == MASTERED
    row[STATE], row[TRIAL_PLAYS], row[TRIAL_SUCCESSES] = state, 0.0, 0.0
    if state == MASTERED:
        # A find is what was mastered in the end: noise is found often, and never mastered. What
        # had lapsed is none either, or forgetting would keep probing for more alive for ever.
        if row[ORIGIN] > 0.0:
            findings[N_BARREN] = 0.0
            findings[int(row[ORIGIN])] += 1.0
            row[ORIGIN] = 0.0
        _tell_neighbors(board, slot, 1)
    elif was_mastered:
        _tell_neighbors(board, slot, -1)


@compiled
def may_go(row: Floats, settings: Floats) -> bool:
    """Whether a task may make room: mastered, or probed long enough without becoming learnable."""
    if row[STATE] == MASTERED:
        return True
    tried = row[STATE] == PROBED and row[TRIAL_PLAYS] >= settings[S_EVICT_PLAYS]
    return tried and not looks_mastered(row, settings)


@compiled
def absorb_one(
    block: Words,
    table: int,
    rows: Floats,
    weights: Floats,
    near: Words,
    links: Words,
    settings: Floats,
    findings: Floats,
    ints: Words,
    slot: int,
    generation: int,
    success: float,
    length: int,
) -> None:
    """Learn from one valid record. Call between begin and end, `settle` after the last.

    Takes the fields of a `Board` one by one, and changes them in place.
    """
    ints[0] += 1
    ints[1] += length
    if generation != block[block[H_ROWS] + 2 * slot + 1]:
        ints[2] += 1
        return
    board = Board(block, table, rows, weights, near, links, settings, findings, ints)
    row, keep = rows[slot], settings[S_KEEP]
    row[SUCCESSES] = row[SUCCESSES] * keep + success
    row[FAILURES] = row[FAILURES] * keep + (1.0 - success)
    row[TRIAL_PLAYS] += 1.0
    row[TRIAL_SUCCESSES] += success
    state = _state_after(board, slot)
    if state != row[STATE]:
        _enter_state(board, slot, state)
    place(board, slot, 1)
    turn_rounds(block, table, findings, ints, block[table + T_NUM_GROUPS])
    if settings[S_EVICTS] > 0.0 and may_go(row, settings):
        note(ints, I_NUM_EVICTIONS, slot)


@compiled
def settle(
    block: Words, table: int, settings: Floats, findings: Floats, ints: Words, num_layers: int
) -> None:
    """Share out the draws by what the last records showed. Call between begin and end."""
    turn_rounds(block, table, findings, ints, num_layers)
    set_shares(block, table, settings, findings, ints, num_layers)


@compiled
def settle_anew(
    block: Words, table: int, settings: Floats, findings: Floats, ints: Words, num_layers: int
) -> None:
    """Do what `settle` does, in a write of its own."""
    begin_write(block)
    settle(block, table, settings, findings, ints, num_layers)
    end_write(block)


@compiled
def absorb(
    block: Words,
    table: int,
    rows: Floats,
    weights: Floats,
    near: Words,
    links: Words,
    settings: Floats,
    findings: Floats,
    ints: Words,
    num_layers: int,
    records: RecordArray,
) -> int:
    """Learn from records, in order. Takes the fields of a `Board`, and changes them in place.

    Returns:
        `ALL_DONE`, `SOME_TO_REPLACE`, or the index of a bad record with nothing changed.
    """
    bad = first_bad_record(records, len(rows), True)
    if bad >= 0 or len(records) == 0:
        return bad
    begin_write(block)
    for index in range(len(records)):
        record = records[index]
        absorb_one(
            block,
            table,
            rows,
            weights,
            near,
            links,
            settings,
            findings,
            ints,
            record.slot,
            record.generation,
            record.success,
            record.length,
        )
    settle(block, table, settings, findings, ints, num_layers)
    end_write(block)
    return SOME_TO_REPLACE if ints[I_NUM_EVICTIONS] > 0 else ALL_DONE


@inlined
def observe_one(
    state: Any, slot: int, generation: int, success: float, episode_return: float
) -> None:
    """Learn from one valid episode of one step, inside a compiled loop."""
    block, table, rows, weights, near, links, settings, findings, ints, _ = state
    absorb_one(
        block,
        table,
        rows,
        weights,
        near,
        links,
        settings,
        findings,
        ints,
        slot,
        generation,
        success,
        1,
    )


@inlined
def settle_round(state: Any) -> int:
    """Share out the draws, and say whether a task should make room for another."""
    block, table, _, _, _, _, settings, findings, ints, num_layers = state
    settle(block, table, settings, findings, ints, num_layers)
    return SOME_TO_REPLACE if ints[I_NUM_EVICTIONS] > 0 else ALL_DONE


RULE = CompiledRule(observe_one, settle_round)
"""For the compiled simulator."""
