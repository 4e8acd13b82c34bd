"""Whole runs in compiled code: one loop, made for the rule of each curriculum that has one.

Called by `engines`. The loop plays a round, passes every result to the curriculum's own rule, then
lets the simulated learner learn: the same rules in the same order as in the engine in Python, so
both give the same results. It returns early when tasks must be replaced, which only Python can do.
"""

import inspect
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from stepladder.arrays import Words
from stepladder.compiled import bare
from stepladder.curricula.batch_rule import CompiledRule, count_record
from stepladder.curricula.uniform import observe_one, settle_nothing
from stepladder.plans.kernels import begin_write, end_write
from stepladder.plans.status import DONE, NOTHING_ACTIVE, TO_REPLACE
from stepladder.records import Records
from stepladder.simulator.learner_state import LearnerState
from stepladder.simulator.rounds import Dealt, SlotSums, deal_round, finish_round

# Placeholders for the parts of a rule in the loop below; `loop_of` replaces them.
OBSERVE_ONE, SETTLE, CHANGES_PLAN = observe_one, settle_nothing, False


def play_rounds(
    learner: LearnerState,
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
    values, totals, clock = block.view(np.float64), state.method[0].totals, learner.clock[0]
    while clock.num_plays < until and not (stops and clock.done_at >= 0):
        if not deal_round(block, values, learner, dealt):
            return NOTHING_ACTIVE
        if CHANGES_PLAN:
            begin_write(block)
        for env in range(len(dealt)):
            one = dealt[env]
            if count_record(block, table, totals, one.slot, one.generation, 1, one.success):
                OBSERVE_ONE(
                    block, table, state, constants, one.slot, one.success, one.episode_return
                )
        status = SETTLE(block, table, state, constants)
        if CHANGES_PLAN:
            end_write(block)
        finish_round(learner, dealt, sums)
        if status == TO_REPLACE:
            return TO_REPLACE
    return DONE


def loop_of(rule: CompiledRule, loop: Any = play_rounds) -> Callable[..., int]:
    """Return the compiled loop around a rule; it takes a curriculum's `kernel_state` last.

    Args:
        rule: The kernels of the curriculum.
        loop: The loop of the kind of learner, with placeholders for the parts of a rule.
    """
    return _compiled_loop(rule, loop)


@cache
def _compiled_loop(rule: CompiledRule, loop: Any) -> Callable[..., int]:
    """Compile a loop around a rule.

    The rule becomes a global of a copy of the loop. numba keeps the result on disk, which it could
    not do if the rule were an argument or in a closure. It is kept beside the file of the rule,
    and compiled again when rule, loop or anything that they import changes.
    """
    kernel: Any = rule.observe_one
    place = f"{kernel.py_func.__module__}_{kernel.py_func.__qualname__}"
    name = f"{loop.__name__}_around_{place.replace('.', '_')}"
    code = loop.__code__.replace(
        co_name=name, co_qualname=name, co_filename=inspect.getfile(kernel.py_func)
    )
    parts = {"OBSERVE_ONE": rule.observe_one, "SETTLE": rule.settle}
    scope = {**loop.__globals__, **parts, "CHANGES_PLAN": rule.changes_plan}
    return bare(FunctionType(code, scope, name), made_of=loop)
