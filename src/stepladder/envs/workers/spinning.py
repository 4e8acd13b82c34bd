"""Limit how long a process spins before it sleeps.

Used by both sides of a wait. Waking a process through the kernel takes about 100 µs, a value in
shared memory is seen in less than one. So a process that waits reads the value for a while, yields
its core between reads, and only then sleeps. It does not spin if there are too few cores.
"""

import os
import time

SPIN_S = 1e-3
"""Longest spin. A policy that thinks longer between two steps lets the workers sleep."""

SPINS = 400
"""Looks at a word between two looks at the clock; some 10 µs."""


class SpinLimit:
    """Decides when one who waits stops spinning.

    Args:
        may_spin: Whether there is a core for each of those who might spin.
    """

    def __init__(self, may_spin: bool):
        self.spins = SPINS if may_spin else 1
        self._spin_s = SPIN_S if may_spin else 0.0
        self._until = 0.0
        self._is_waiting = False

    def begin(self) -> None:
        """A new wait begins."""
        self._is_waiting = False

    def may_continue(self) -> bool:
        """Whether to look again; called after each look in vain."""
        now = time.perf_counter()
        if not self._is_waiting:
            self._is_waiting = True
            self._until = now + self._spin_s
        if now >= self._until:
            return False
        yield_core()
        return True


def yield_core() -> None:
    """Let another process have this core, if one wants it."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()
    else:
        time.sleep(0)
