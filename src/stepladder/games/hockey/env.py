"""One game of laser hockey: what ``gymnasium.make("stepladder/Hockey-v0")`` returns.

The face of `vector_env.HockeyVectorEnv` for a single game.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from stepladder.games.hockey.actions import num_actions, write_controls
from stepladder.games.hockey.opponents import act
from stepladder.games.hockey.rink import ONE, TWO
from stepladder.games.hockey.stepping import NUM_CONTROLS
from stepladder.games.hockey.task import CALLER, STRONG_GAIN
from stepladder.games.hockey.vector_env import HockeyVectorEnv, pair
from stepladder.games.single import GameEnv, single_metadata


class HockeyEnv(GameEnv):
    """One game of hockey; takes the arguments of `HockeyVectorEnv` but those about many envs."""

    vec: HockeyVectorEnv
    metadata = single_metadata(HockeyVectorEnv)
    vector_class = HockeyVectorEnv
    """Tells `make_vec` what steps many of these at once."""
    scripts_opponents = True
    """Tells `envs.AgainstOpponent` that names of opponents mean something here."""

    def __init__(self, **settings: Any):
        super().__init__(
            HockeyVectorEnv(1, autoreset_mode=AutoresetMode.DISABLED, num_threads=1, **settings)
        )
        # Not the game's own: who asks the expert must not change what chance does in the game.
        self._expert_dice = np.zeros(1, dtype=np.uint64)

    def obs_agent_two(self) -> npt.NDArray[np.float32]:
        """Return what player two sees; needs ``players="joint"`` or ``"both"``."""
        return self.vec.obs_agent_two()[0]

    def scripted_action(self) -> Any:
        """Return what the strong scripted player would do now, for every player one controls."""
        one = self._scripted(ONE)
        if self.vec.players == "one":
            return one
        two = self._scripted(TWO)
        return pair(one, two) if self.vec.players == "both" else np.hstack([one, two])

    def _scripted(self, player: int) -> Any:
        controls = np.zeros(2 * NUM_CONTROLS)
        # On a copy: where the game plays this player itself, its swing must not be disturbed.
        world = self.vec.worlds.copy()
        act(world[0], player, STRONG_GAIN, self._expert_dice, 0, controls)
        if player == ONE or self.vec.shelf.records["opponent"][0] == CALLER:
            swing = "phase_one" if player == ONE else "phase_two"
            self.vec.worlds[swing] = world[swing]
        own = controls[NUM_CONTROLS * (player - 1) :][:NUM_CONTROLS]
        if self.vec.fineness == 0:
            return own.astype(np.float32)
        return np.int64(nearest_action(own, self.vec.fineness))


def nearest_action(controls: npt.NDArray[np.float64], fineness: int) -> int:
    """Return the discrete action that comes nearest to four numbers."""
    count = num_actions(fineness)
    options = np.zeros((count, 2 * NUM_CONTROLS))
    for action in range(count):
        write_controls(action, fineness, options[action], 0)
    distances = np.abs(options[:, :NUM_CONTROLS] - controls)
    # A shot only counts as one beyond one half, and then nothing else matters.
    distances[:, 3] *= 10.0
    return int(np.argmin((distances**2).sum(axis=1)))
