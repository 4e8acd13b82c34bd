"""Discrete actions: each stands for four controls.

Called by the vector env before a step, for players with discrete actions. One control at a time:
nothing, x back and forth, y back and forth, rotation back and forth, shoot. A fineness of 3 and
more divides each of the six directions into as many strengths less one.

An env takes one kind of action from both players. If theirs differ, an evaluation plays with
forces, and `InForces` translates discrete actions as the env itself would.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.errors import ConfigError, shown

NUM_CONTROLS = 4
"""Numbers that one player gives: forces along x and y, torque, shoot."""

MAX_FINENESS = 1_000
"""With more, the levels are finer than the physics can tell apart."""


def num_actions(fineness: int) -> int:
    """Return how many discrete actions a fineness makes.

    >>> num_actions(1), num_actions(3)
    (8, 14)

    Raises:
        ConfigError: If the fineness is below 1, or 2, which would only repeat the 8-way table.
    """
    if fineness == 1:
        return 8
    if not 3 <= fineness <= MAX_FINENESS:
        raise ConfigError(
            f"fineness must be 1 (the 8-way table) or from 3 to {MAX_FINENESS}; got "
            f"{shown(fineness)}."
        )
    return 2 + 6 * (fineness - 1)


def control_table(fineness: int) -> npt.NDArray[np.float64]:
    """Return the controls of every discrete action, shape ``(num_actions, NUM_CONTROLS)``."""
    table = np.zeros((num_actions(fineness), NUM_CONTROLS))
    num_strengths = max(1, fineness - 1)
    strengths = np.arange(1, num_strengths + 1) / num_strengths
    for direction in range(6):
        first = 1 + direction * num_strengths
        signed = strengths if direction % 2 else -strengths
        table[first : first + num_strengths, direction // 2] = signed
    table[-1, 3] = 1.0
    return table


class InForces:
    """Turns a player of discrete actions into one of forces.

    Args:
        player: Chooses discrete actions.
        fineness: Of its actions.
    """

    def __init__(self, player: Any, fineness: int):
        self._player = player
        self._controls = control_table(fineness)

    def act_batch(self, observations: Any, deterministic: bool = True) -> npt.NDArray[np.float64]:
        """Choose an action in every row."""
        chosen = self._player.act_batch(observations, deterministic=deterministic)
        return self._controls[chosen]

    def begin(self, rows: npt.NDArray[np.bool_] | None = None) -> None:
        """Begin a new episode in some rows, by default in all."""
        self._player.begin(rows)


def fineness_of(num_choices: int) -> int:
    """Return the fineness that makes so many actions.

    Example:
        >>> fineness_of(8), fineness_of(14)
        (1, 3)

    Raises:
        ConfigError: There is none.
    """
    fineness = 1 if num_choices == 8 else (num_choices - 2) // 6 + 1
    if fineness == 2 or fineness < 1 or num_actions(fineness) != num_choices:
        raise ConfigError(
            f"hockey has no set of {num_choices} actions; expected 8, 14, 20 and so on. Use a "
            "policy that was trained on hockey."
        )
    return fineness
