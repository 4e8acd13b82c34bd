"""The last results of something, in the order in which they came.

Used by the kernels of `curricula`. A window is a row of a float array plus two numbers, fill and
head, kept by the caller: so that many windows lie in one array, in memory of the caller's choice.
Every reading is chronological, also after the ring has wrapped around.
"""

from stepladder.arrays import Floats
from stepladder.compiled import compiled


@compiled
def push(window: Floats, fill: int, head: int, value: float) -> tuple[int, int]:
    """Add a result, dropping the oldest when full; return the new fill and head."""
    window[head] = value
    return min(fill + 1, len(window)), (head + 1) % len(window)


@compiled
def mean(window: Floats, fill: int) -> float:
    """Return the mean of the results held, 0 when there are none."""
    if fill == 0:
        return 0.0
    total = 0.0
    for index in range(fill):
        total += window[index]
    return total / fill


@compiled
def trend(window: Floats, fill: int, head: int, least: int) -> float:
    """Return the mean of the newer half minus the mean of the older half.

    With an odd number of results the newer half is the larger one. 0 with fewer than `least`.
    """
    if fill < least or fill < 2:
        return 0.0
    half = fill // 2
    oldest = (head - fill) % len(window)
    older, newer = 0.0, 0.0
    for index in range(fill):
        value = window[(oldest + index) % len(window)]
        if index < half:
            older += value
        else:
            newer += value
    return newer / (fill - half) - older / half
