"""Limit how long a process spins before it sleeps.

Used by both sides of a wait. Waking a process through the kernel takes about 100 µs, a value in
shared memory is seen in less than one. So a process that waits reads the value for a while, yields
its core between reads, and only then sleeps. It does not spin if there are too few cores.
"""

import os
import time

SPIN_S = 1e-3
"""Longest spin. If a policy takes longer between two steps, the workers sleep."""

SPINS = 400
"""Reads of a value between two reads of the clock; about 10 µs."""


class SpinLimit:
    """Decides when a process that waits stops spinning.

    Args:
        may_spin: Whether there is a core for every process that may spin.
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
        """Whether to read again; called after every read that found nothing new."""
        now = time.perf_counter()
        if not self._is_waiting:
            self._is_waiting = True
            self._until = now + self._spin_s
        if now >= self._until:
            return False
        if hasattr(os, "sched_yield"):
            os.sched_yield()
        else:
            time.sleep(0)
        return True
