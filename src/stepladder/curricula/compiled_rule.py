"""What a method provides to be simulated in compiled code.

A method that learns in compiled kernels names them in `Curriculum.rule`; `simulator.loops` puts
them into a loop that plays whole runs without Python in between. The kernels are those that
`observe` uses too, so both take the same course. A method without a rule runs through Python.
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class CompiledRule(NamedTuple):
    """Kernels of a method; the first argument of each is the tuple that `kernel_state` returns.

    Both must be compiled functions of a module, so that numba can keep the loop on disk.
    """

    observe_one: Callable[[Any, int, int, float, float], None]
    """Learns from one valid episode of one step: ``(state, slot, generation, success, return)``."""

    settle: Callable[[Any], int]
    """Ends a round of episodes: ``(state)``. Returns `eviction.SOME_TO_REPLACE` if a task should
    make room for another, else `eviction.ALL_DONE`."""

    changes_plan: bool = True
    """Whether the kernels write to the plan; then readers are kept away during a round."""
