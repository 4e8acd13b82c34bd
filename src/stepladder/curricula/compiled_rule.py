"""What a method provides to be simulated in compiled code.

A method that learns in compiled kernels names them in `Curriculum.rule`; `simulator.loops` puts
them into a loop that plays whole runs without Python in between. The kernels are those that
`observe` uses too, so both take the same course. A method without a rule runs through Python.
"""

from collections.abc import Callable
from typing import NamedTuple


class CompiledRule(NamedTuple):
    """Kernels of a method; each takes first what `kernel_state` returns.

    That is block, table, state and constants. Both must be compiled functions of a module, so that
    numba can keep the loop on disk.
    """

    observe_one: Callable[..., None]
    """Learns from one valid episode, given its slot, success and return."""

    settle: Callable[..., int]
    """Ends a batch of episodes; returns `status.TO_REPLACE` if a task should make room for
    another, else `status.DONE`."""

    changes_plan: bool = True
    """Whether the kernels write to the plan; then readers are kept away during a round."""
