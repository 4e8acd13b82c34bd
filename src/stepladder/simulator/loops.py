"""Whole runs in compiled code: one loop per curriculum that has a compiled form.

Called by `engines`. Each loop deals a round, lets the curriculum's own kernel learn from the
records, then lets the simulated learner learn: the same kernels in the same order as the engine
that goes through Python, so both take the same course. A loop comes back early when the curriculum
wants tasks replaced, which only Python can do.
"""
# pyright: reportArgumentType=false, reportReturnType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

from collections.abc import Callable
from typing import Any

from stepladder.compiled import compiled
from stepladder.curricula import frontier_kernels, learnability_kernels
from stepladder.curricula import learning_progress_kernels as progress_kernels
from stepladder.curricula import level_replay_kernels as replay_kernels
from stepladder.curricula.base import Curriculum
from stepladder.curricula.frontier import Frontier
from stepladder.curricula.kernels import Floats, Words
from stepladder.curricula.learnability import Learnability
from stepladder.curricula.learning_progress import LearningProgress
from stepladder.curricula.level_replay import LevelReplay
from stepladder.curricula.record import RecordArray
from stepladder.curricula.uniform import Uniform, count_plays
from stepladder.simulator.world import C_DONE_AT, C_PLAYS, World, absorb, deal, tally

REACHED, NOTHING_TO_DRAW, SOME_TO_REPLACE = 0, 1, -2
"""Why a loop came back: the plays are done or all is mastered, or Python has to step in."""


@compiled
def _goes_on(clock: Words, until: int, stops: bool) -> bool:
    return clock[C_PLAYS] < until and not (stops and clock[C_DONE_AT] >= 0)


@compiled
def run_uniform(
    world: World,
    clock: Words,
    records: RecordArray,
    nodes: Words,
    levels: Floats,
    sums: Floats,
    num_learnable: int,
    until: int,
    stops: bool,
    block: Words,
    plays: Words,
    counters: Words,
) -> int:
    """Play until `until` plays are done."""
    while _goes_on(clock, until, stops):
        if not deal(block, world, clock, records, nodes, levels):
            return NOTHING_TO_DRAW
        count_plays(block, records, plays, counters)
        tally(records, levels, sums)
        absorb(world, clock, nodes, num_learnable)
    return REACHED


@compiled
def run_frontier(
    world: World,
    clock: Words,
    records: RecordArray,
    nodes: Words,
    levels: Floats,
    sums: Floats,
    num_learnable: int,
    until: int,
    stops: bool,
    block: Words,
    table: int,
    rows: Floats,
    weights: Floats,
    near: Words,
    links: Words,
    settings: Floats,
    numbers: Floats,
    ints: Words,
    num_layers: int,
) -> int:
    """Play until `until` plays are done, or until a task should be replaced."""
    while _goes_on(clock, until, stops):
        if not deal(block, world, clock, records, nodes, levels):
            return NOTHING_TO_DRAW
        status = frontier_kernels.absorb(
            block, table, rows, weights, near, links, settings, numbers, ints, num_layers, records
        )
        tally(records, levels, sums)
        absorb(world, clock, nodes, num_learnable)
        if status == SOME_TO_REPLACE:
            return SOME_TO_REPLACE
    return REACHED


@compiled
def run_learning_progress(
    world: World,
    clock: Words,
    records: RecordArray,
    nodes: Words,
    levels: Floats,
    sums: Floats,
    num_learnable: int,
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
    while _goes_on(clock, until, stops):
        if not deal(block, world, clock, records, nodes, levels):
            return NOTHING_TO_DRAW
        status = progress_kernels.absorb(block, table, rows, extras, constants, ints, records)
        tally(records, levels, sums)
        absorb(world, clock, nodes, num_learnable)
        if status == SOME_TO_REPLACE:
            return SOME_TO_REPLACE
    return REACHED


@compiled
def run_learnability(
    world: World,
    clock: Words,
    records: RecordArray,
    nodes: Words,
    levels: Floats,
    sums: Floats,
    num_learnable: int,
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
    while _goes_on(clock, until, stops):
        if not deal(block, world, clock, records, nodes, levels):
            return NOTHING_TO_DRAW
        status = learnability_kernels.absorb(block, table, rows, extras, constants, ints, records)
        tally(records, levels, sums)
        absorb(world, clock, nodes, num_learnable)
        if status == SOME_TO_REPLACE:
            return SOME_TO_REPLACE
    return REACHED


@compiled
def run_level_replay(
    world: World,
    clock: Words,
    records: RecordArray,
    nodes: Words,
    levels: Floats,
    sums: Floats,
    num_learnable: int,
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
    while _goes_on(clock, until, stops):
        if not deal(block, world, clock, records, nodes, levels):
            return NOTHING_TO_DRAW
        status = replay_kernels.absorb(block, table, rows, extras, constants, ints, records)
        tally(records, levels, sums)
        absorb(world, clock, nodes, num_learnable)
        if status == SOME_TO_REPLACE:
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
