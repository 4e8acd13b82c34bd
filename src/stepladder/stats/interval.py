"""How sure a success rate is.

Used by `curricula.staged` in place of the plain rate when a confidence bound is asked for.
"""

import math

from stepladder.compiled import compiled


@compiled
def wilson_lower(rate: float, count: float, z: float) -> float:
    """Return the lower end of Wilson's score interval for a rate seen over `count` trials.

    Args:
        rate: Share of successes, in [0, 1].
        count: Number of trials; 0 gives 0.
        z: Width in standard deviations; 1.645 is a one-sided 95 % bound, 0 gives the plain rate.
    """
    if count <= 0.0:
        return 0.0
    square = z * z
    centre = rate + square / (2.0 * count)
    spread = z * math.sqrt(rate * (1.0 - rate) / count + square / (4.0 * count * count))
    return max(0.0, (centre - spread) / (1.0 + square / count))
