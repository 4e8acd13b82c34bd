"""Discrete actions: a number in, four controls out.

Called by the vector env before a step, for players whose actions are numbers. One control at a
time: nothing, x back and forth, y back and forth, rotation back and forth, shoot. A fineness of 3
and more divides each of the six directions into as many strengths less one.
"""

import numpy as np
import numpy.typing as npt

from stepladder.compiled import bare
from stepladder.errors import ConfigError, shown

PLAIN = 1
"""Fineness of the 8-way table."""

SMALLEST_FINE = 3

MAX_FINENESS = 1_000
"""With more, the levels are finer than the physics can tell apart."""


@bare
def write_controls(
    action: int, fineness: int, controls: npt.NDArray[np.float64], offset: int
) -> None:
    """Write the four controls that an action stands for.

    Args:
        action: From 0 to ``num_actions(fineness) - 1``; not checked.
        fineness: 1 (or 0) for the 8-way table, or at least 3.
        controls: Eight numbers, of both players.
        offset: 0 for player one, 4 for player two.
    """
    controls[offset : offset + 4] = 0.0
    if action == 0:
        return
    num_strengths = 1 if fineness < SMALLEST_FINE else fineness - 1
    direction = (action - 1) // num_strengths
    if direction == 6:
        controls[offset + 3] = 1.0
        return
    strength = ((action - 1) % num_strengths + 1) / num_strengths
    controls[offset + direction // 2] = strength if direction % 2 else -strength


def num_actions(fineness: int) -> int:
    """Return how many discrete actions a fineness makes.

    >>> num_actions(1), num_actions(3)
    (8, 14)

    Raises:
        ConfigError: If the fineness is below 1, or 2, which would only repeat the 8-way table.
    """
    if fineness == PLAIN:
        return 8
    if not SMALLEST_FINE <= fineness <= MAX_FINENESS:
        raise ConfigError(
            f"fineness must be 1 (the 8-way table) or from {SMALLEST_FINE} to {MAX_FINENESS}; got "
            f"{shown(fineness)}."
        )
    return 2 + 6 * (fineness - 1)
