"""Hockey between a player with numbered actions and one with forces.

An env takes one kind of action from both players. If theirs differ, an evaluation plays with
forces, and numbered actions are translated exactly as the env itself would do it.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.errors import ConfigError
from stepladder.games.hockey.actions import num_actions, write_controls
from stepladder.games.hockey.stepping import NUM_CONTROLS


class InForces:
    """Makes a player with numbered actions one with forces.

    Args:
        player: Chooses numbered actions, from 0.
        fineness: Of its actions, as the env calls it.
    """

    def __init__(self, player: Any, fineness: int):
        self._player = player
        self._controls = np.zeros((num_actions(fineness), 2 * NUM_CONTROLS))
        for action in range(len(self._controls)):
            write_controls(action, fineness, self._controls[action], 0)

    def act_batch(self, observations: Any, deterministic: bool = True) -> npt.NDArray[np.float64]:
        """Choose an action in every row."""
        chosen = self._player.act_batch(observations, deterministic=deterministic)
        return self._controls[chosen, :NUM_CONTROLS]

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
    fineness = 1 if num_choices == num_actions(1) else (num_choices - 2) // 6 + 1
    if fineness == 2 or fineness < 1 or num_actions(fineness) != num_choices:
        raise ConfigError(
            f"hockey has no set of {num_choices} actions; expected 8, 14, 20 and so on. Use a "
            "policy that was trained on hockey."
        )
    return fineness
