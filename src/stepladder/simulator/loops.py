"""Whole runs in compiled code: one loop per curriculum that has a compiled form.

Called by `engines`. A loop deals a round, lets the curriculum's own rule learn from every result,
then lets the simulated learner learn: the same rules in the same order as the engine that goes
through Python, so both take the same course. A loop comes back early when the curriculum wants
tasks replaced, which only Python can do.

The loop is written once and compiled into a function of its own for each rule: a function that took
the rule as an argument would have to be compiled anew in every process.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from stepladder.compiled import bare, inlined
from stepladder.curricula.base import Curriculum
from stepladder.curricula.frontier import kernels as frontier
from stepladder.curricula.frontier.frontier import Frontier
from stepladder.curricula.learnability import kernels as learnability
from stepladder.curricula.learnability.learnability import Learnability
from stepladder.curricula.learning_progress import kernels as learning_progress
from stepladder.curricula.learning_progress.learning_progress import LearningProgress
from stepladder.curricula.level_replay import kernels as level_replay
from stepladder.curricula.level_replay.level_replay import LevelReplay
from stepladder.curricula.observation import count_record, nothing_to_settle
from stepladder.curricula.uniform import State as UniformState
from stepladder.curricula.uniform import Uniform
from stepladder.plans.kernels import begin_write, end_write
from stepladder.plans.status import DONE, NOTHING_ACTIVE, TO_REPLACE
from stepladder.records import Records, Words
from stepladder.simulator.rounds import Dealt, SlotSums, deal_round, finish_round
from stepladder.simulator.world import World


@inlined
def _goes_on(world: World, until: int, stops: bool) -> bool:
    clock = world.clock[0]
    return clock.num_plays < until and not (stops and clock.done_at >= 0)


@inlined
def _run(
    observe_one: Callable[..., None],
    settle: Callable[..., None],
    world: World,
    dealt: Records[Dealt],
    sums: Records[SlotSums],
    until: int,
    stops: bool,
    block: Words,
    table: int,
    state: Any,
    constants: Any,
) -> int:
    """Play until `until` plays are done (`DONE`), or until a task should be replaced."""
    values, method = block.view(np.float64), state.method[0]
    while _goes_on(world, until, stops):
        if not deal_round(block, values, world, dealt):
            return NOTHING_ACTIVE
        begin_write(block)
        for env in range(len(dealt)):
            one = dealt[env]
            if count_record(block, method.totals, one.slot, one.generation, 1):
                observe_one(
                    block, table, state, constants, one.slot, one.success, one.episode_return
                )
        settle(block, table, state, constants)
        end_write(block)
        finish_round(world, dealt, sums)
        if method.noted.count > 0:
            return TO_REPLACE
    return DONE


@bare
def run_uniform(
    world: World,
    dealt: Records[Dealt],
    sums: Records[SlotSums],
    until: int,
    stops: bool,
    block: Words,
    state: UniformState,
) -> int:
    """Play until `until` plays are done; a plan that never changes is not written."""
    values, totals = block.view(np.float64), state.method[0].totals
    while _goes_on(world, until, stops):
        if not deal_round(block, values, world, dealt):
            return NOTHING_ACTIVE
        for env in range(len(dealt)):
            one = dealt[env]
            if count_record(block, totals, one.slot, one.generation, 1):
                state.tasks[one.slot].num_plays += 1
        finish_round(world, dealt, sums)
    return DONE


@bare
def run_frontier(
    world: World,
    dealt: Records[Dealt],
    sums: Records[SlotSums],
    until: int,
    stops: bool,
    block: Words,
    table: int,
    state: Any,
    constants: Any,
) -> int:
    """Run `Frontier`."""
    rule, settle = frontier.observe_one, frontier.settle_in
    return _run(rule, settle, world, dealt, sums, until, stops, block, table, state, constants)


@bare
def run_learning_progress(
    world: World,
    dealt: Records[Dealt],
    sums: Records[SlotSums],
    until: int,
    stops: bool,
    block: Words,
    table: int,
    state: Any,
    constants: Any,
) -> int:
    """Run `LearningProgress`."""
    rule, settle = learning_progress.observe_one, nothing_to_settle
    return _run(rule, settle, world, dealt, sums, until, stops, block, table, state, constants)


@bare
def run_learnability(
    world: World,
    dealt: Records[Dealt],
    sums: Records[SlotSums],
    until: int,
    stops: bool,
    block: Words,
    table: int,
    state: Any,
    constants: Any,
) -> int:
    """Run `Learnability`."""
    rule, settle = learnability.observe_one, nothing_to_settle
    return _run(rule, settle, world, dealt, sums, until, stops, block, table, state, constants)


@bare
def run_level_replay(
    world: World,
    dealt: Records[Dealt],
    sums: Records[SlotSums],
    until: int,
    stops: bool,
    block: Words,
    table: int,
    state: Any,
    constants: Any,
) -> int:
    """Run `LevelReplay`."""
    rule, settle = level_replay.observe_one, nothing_to_settle
    return _run(rule, settle, world, dealt, sums, until, stops, block, table, state, constants)


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
