"""Whole runs in compiled code: one loop per curriculum that has a compiled form.

Called by `engines`. Each loop deals a round, lets the curriculum's own rule learn from every
result, then lets the simulated learner learn: the same rules in the same order as the engine that
goes through Python, so both take the same course. A loop comes back early when the curriculum wants
tasks replaced, which only Python can do.

The loops look alike and yet are written out: a loop that took the rule as an argument would have to
be compiled anew in every process.
"""
# pyright: reportArgumentType=false, reportReturnType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

from collections.abc import Callable
from typing import Any

import numpy as np

from stepladder.compiled import compiled, inlined
from stepladder.curricula import eviction
from stepladder.curricula.base import Curriculum
from stepladder.curricula.frontier import kernels as frontier_kernels
from stepladder.curricula.frontier.frontier import Frontier
from stepladder.curricula.learnability import kernels as learnability_kernels
from stepladder.curricula.learnability.learnability import Learnability
from stepladder.curricula.learning_progress import kernels as progress_kernels
from stepladder.curricula.learning_progress.learning_progress import LearningProgress
from stepladder.curricula.level_replay import kernels as replay_kernels
from stepladder.curricula.level_replay.level_replay import LevelReplay
from stepladder.curricula.uniform import Uniform
from stepladder.plans.kernels import H_ROWS, Floats, Words, begin_write, end_write
from stepladder.simulator.rounds import (
    D_GENERATION,
    D_SLOT,
    R_RETURN,
    R_SUCCESS,
    absorb_round,
    deal_round,
)
from stepladder.simulator.world import C_DONE_AT, C_PLAYS, CLOCK

REACHED, NOTHING_TO_DRAW, SOME_TO_REPLACE = 0, 1, eviction.SOME_TO_REPLACE
"""Why a loop came back: the plays are done or all is mastered, or Python has to step in."""


@inlined
def _goes_on(words: Words, until: int, stops: bool) -> bool:
    return words[CLOCK + C_PLAYS] < until and not (stops and words[CLOCK + C_DONE_AT] >= 0)


@compiled
def run_uniform(
    numbers: Floats,
    words: Words,
    drawn: Words,
    results: Floats,
    sums: Floats,
    until: int,
    stops: bool,
    block: Words,
    plays: Words,
    counters: Words,
) -> int:
    """Play until `until` plays are done."""
    values = block.view(np.float64)
    while _goes_on(words, until, stops):
        if not deal_round(block, values, numbers, words, drawn, results):
            return NOTHING_TO_DRAW
        for env in range(len(drawn)):
            slot = drawn[env, D_SLOT]
            counters[0] += 1
            counters[1] += 1
            if drawn[env, D_GENERATION] == block[block[H_ROWS] + 2 * slot + 1]:
                plays[slot] += 1
        absorb_round(numbers, words, drawn, results, sums)
    return REACHED


@compiled
def run_frontier(
    numbers: Floats,
    words: Words,
    drawn: Words,
    results: Floats,
    sums: Floats,
    until: int,
    stops: bool,
    block: Words,
    table: int,
    rows: Floats,
    weights: Floats,
    near: Words,
    links: Words,
    settings: Floats,
    yields: Floats,
    ints: Words,
    num_layers: int,
) -> int:
    """Play until `until` plays are done, or until a task should be replaced."""
    values = block.view(np.float64)
    while _goes_on(words, until, stops):
        if not deal_round(block, values, numbers, words, drawn, results):
            return NOTHING_TO_DRAW
        begin_write(block)
        for env in range(len(drawn)):
            frontier_kernels.absorb_one(
                block,
                table,
                rows,
                weights,
                near,
                links,
                settings,
                yields,
                ints,
                drawn[env, D_SLOT],
                drawn[env, D_GENERATION],
                results[env, R_SUCCESS],
                1,
            )
        frontier_kernels.settle(block, table, settings, yields, ints, num_layers)
        end_write(block)
        absorb_round(numbers, words, drawn, results, sums)
        if ints[frontier_kernels.I_NUM_EVICTIONS] > 0:
            return SOME_TO_REPLACE
    return REACHED


@compiled
def run_learning_progress(
    numbers: Floats,
    words: Words,
    drawn: Words,
    results: Floats,
    sums: Floats,
    until: int,
    stops: bool,
    block: Words,
    table: int,
    rows: Floats,
    extras: Floats,
    constants: Floats,
    ints: Words,
) -> int:
    """Play until `until` plays are done, or until a task should be replaced."""
    values = block.view(np.float64)
    while _goes_on(words, until, stops):
        if not deal_round(block, values, numbers, words, drawn, results):
            return NOTHING_TO_DRAW
        begin_write(block)
        for env in range(len(drawn)):
            progress_kernels.absorb_one(
                block,
                table,
                rows,
                extras,
                constants,
                ints,
                drawn[env, D_SLOT],
                drawn[env, D_GENERATION],
                results[env, R_SUCCESS],
                results[env, R_RETURN],
                1,
            )
        end_write(block)
        absorb_round(numbers, words, drawn, results, sums)
        if ints[eviction.I_NUM_EVICTIONS] > 0:
            return SOME_TO_REPLACE
    return REACHED


@compiled
def run_learnability(
    numbers: Floats,
    words: Words,
    drawn: Words,
    results: Floats,
    sums: Floats,
    until: int,
    stops: bool,
    block: Words,
    table: int,
    rows: Floats,
    extras: Floats,
    constants: Floats,
    ints: Words,
) -> int:
    """Play until `until` plays are done, or until a task should be replaced."""
    values = block.view(np.float64)
    while _goes_on(words, until, stops):
        if not deal_round(block, values, numbers, words, drawn, results):
            return NOTHING_TO_DRAW
        begin_write(block)
        for env in range(len(drawn)):
            learnability_kernels.absorb_one(
                block,
                table,
                rows,
                extras,
                constants,
                ints,
                drawn[env, D_SLOT],
                drawn[env, D_GENERATION],
                results[env, R_SUCCESS],
                results[env, R_RETURN],
                1,
            )
        end_write(block)
        absorb_round(numbers, words, drawn, results, sums)
        if ints[eviction.I_NUM_EVICTIONS] > 0:
            return SOME_TO_REPLACE
    return REACHED


@compiled
def run_level_replay(
    numbers: Floats,
    words: Words,
    drawn: Words,
    results: Floats,
    sums: Floats,
    until: int,
    stops: bool,
    block: Words,
    table: int,
    rows: Floats,
    extras: Words,
    constants: Floats,
    ints: Words,
) -> int:
    """Play until `until` plays are done, or until a task should be replaced."""
    values = block.view(np.float64)
    while _goes_on(words, until, stops):
        if not deal_round(block, values, numbers, words, drawn, results):
            return NOTHING_TO_DRAW
        begin_write(block)
        for env in range(len(drawn)):
            replay_kernels.absorb_one(
                block,
                table,
                rows,
                extras,
                constants,
                ints,
                drawn[env, D_SLOT],
                drawn[env, D_GENERATION],
                results[env, R_SUCCESS],
                results[env, R_RETURN],
                1,
            )
        end_write(block)
        absorb_round(numbers, words, drawn, results, sums)
        if ints[replay_kernels.I_NUM_EVICTIONS] > 0:
            return SOME_TO_REPLACE
    return REACHED


LOOPS: dict[type[Curriculum], Callable[..., int]] = {
    Uniform: run_uniform,
    Frontier: run_frontier,
    LearningProgress: run_learning_progress,
    Learnability: run_learnability,
    LevelReplay: run_level_replay,
}
"""The loop of every curriculum that has one; each takes the curriculum's `kernel_state` last."""


def has_compiled_form(curriculum: Curriculum | type[Curriculum]) -> bool:
    """Whether a curriculum can run inside a compiled loop."""
    kind: Any = curriculum if isinstance(curriculum, type) else type(curriculum)
    return kind in LOOPS
