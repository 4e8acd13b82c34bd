"""A worker that finds itself on its parent's core moves to a free one.

Used by `worker`. A scheduler that packs processes which sleep often onto few cores puts a worker
where its parent runs; both then share one core while others are idle, and a step with a worker
takes longer than without. The worker moves over once and may be moved again by the scheduler: it is
not bound to its new core.
"""

import os
import time

PAUSE_S = 0.002
LONGEST_PAUSE_S = 1.0
"""Time between two moves; longer and longer where moving does not help."""


class CpuAffinity:
    """Moves this process to a free core, with a limit on how often."""

    def __init__(self) -> None:
        self._pause_s = PAUSE_S
        self._last = -LONGEST_PAUSE_S

    def move_to_free_core(self, in_use: set[int]) -> None:
        """Move to a free core, if there is one and the last move was long enough ago."""
        now = time.monotonic()
        since = now - self._last
        if since < self._pause_s or not hasattr(os, "sched_setaffinity"):
            return
        # Crowded again so soon: other processes use the cores, and moving does not help.
        is_soon = since < 4 * self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S) if is_soon else PAUSE_S
        self._last = now
        allowed = os.sched_getaffinity(0)
        if free := allowed - in_use:
            os.sched_setaffinity(0, free)
            os.sched_setaffinity(0, allowed)
