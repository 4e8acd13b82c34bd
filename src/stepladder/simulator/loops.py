"""Whole runs in compiled code: one loop, made for the rule of each curriculum that has one.

Called by `engines`. The loop deals a round, lets the curriculum's own rule learn from every result,
then lets the simulated learner learn: the same rules in the same order as the engine that goes
through Python, so both take the same course. It comes back early when the curriculum wants tasks
replaced, which only Python can do.
"""
# pyright: reportArgumentType=false, reportReturnType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

import inspect
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from stepladder import __version__
from stepladder.compiled import compiled
from stepladder.curricula import eviction
from stepladder.curricula.compiled_rule import CompiledRule
from stepladder.curricula.uniform import observe_one, settle_round
from stepladder.plans.kernels import Floats, Words, begin_write, end_write
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

# Stand for the parts of a rule in the loop below; `loop_of` puts those of a method in their place.
OBSERVE_ONE, SETTLE, CHANGES_PLAN = observe_one, settle_round, False


def _loop(
    numbers: Floats,
    words: Words,
    drawn: Words,
    results: Floats,
    sums: Floats,
    until: int,
    stops: bool,
    state: Any,
) -> int:
    """Play until `until` plays are done, or until a task should be replaced."""
    block = state[0]
    values = block.view(np.float64)
    while words[CLOCK + C_PLAYS] < until and not (stops and words[CLOCK + C_DONE_AT] >= 0):
        if not deal_round(block, values, numbers, words, drawn, results):
            return NOTHING_TO_DRAW
        if CHANGES_PLAN:
            begin_write(block)
        for env in range(len(drawn)):
            OBSERVE_ONE(
                state,
                drawn[env, D_SLOT],
                drawn[env, D_GENERATION],
                results[env, R_SUCCESS],
                results[env, R_RETURN],
            )
        status = SETTLE(state)
        if CHANGES_PLAN:
            end_write(block)
        absorb_round(numbers, words, drawn, results, sums)
        if status == SOME_TO_REPLACE:
            return SOME_TO_REPLACE
    return REACHED


@cache
def loop_of(rule: CompiledRule) -> Callable[..., int]:
    """Return the compiled loop around a rule; it takes a curriculum's `kernel_state` last.

    The rule becomes a global of a copy of the loop. numba keeps the result on disk, which it could
    not do if the rule were an argument or in a closure. It is kept beside the file of the rule,
    and compiled again when that file or the version of this library changes.
    """
    kernel: Any = rule.observe_one
    place = f"{kernel.py_func.__module__}_{kernel.py_func.__qualname__}_{__version__}"
    name = f"loop_around_{place.replace('.', '_')}"
    code = _loop.__code__.replace(
        co_name=name, co_qualname=name, co_filename=inspect.getfile(kernel.py_func)
    )
    parts = {"OBSERVE_ONE": rule.observe_one, "SETTLE": rule.settle}
    scope = {**globals(), **parts, "CHANGES_PLAN": rule.changes_plan}
    return compiled(FunctionType(code, scope, name))
