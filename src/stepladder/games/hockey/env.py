"""One game of laser hockey: what ``gymnasium.make("stepladder/Hockey-v0")`` returns."""

from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.games.hockey.actions import NUM_CONTROLS, control_table
from stepladder.games.hockey.opponents import STRONG_GAIN, act
from stepladder.games.hockey.rink import PLAYER_ONE, PLAYER_TWO
from stepladder.games.hockey.task import CALLER_OPPONENT
from stepladder.games.hockey.vector_env import HockeyVectorEnv, pair
from stepladder.games.single import GameEnv


class HockeyEnv(GameEnv):
    """One game of hockey; takes the arguments of `HockeyVectorEnv`, but those about many envs."""

    vec: HockeyVectorEnv
    vector_class = HockeyVectorEnv
    scripts_opponents = True
    """Tells `envs.AgainstOpponent` that this env has opponents of its own."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        # Not the game's own dice: `scripted_action` must not change what happens in the game.
        self._expert_dice = np.zeros(1, dtype=np.uint64)

    def obs_agent_two(self) -> npt.NDArray[np.float32]:
        """Return what player two sees; needs ``players="joint"`` or ``"both"``."""
        return self.vec.obs_agent_two()[0]

    def scripted_action(self) -> Any:
        """Return what the strong scripted player would do now, for every player of the caller."""
        one = self._scripted(PLAYER_ONE)
        if self.vec.players == "one":
            return one
        two = self._scripted(PLAYER_TWO)
        return pair(one, two) if self.vec.players == "both" else np.hstack([one, two])

    def _scripted(self, player: int) -> Any:
        controls = np.zeros(2 * NUM_CONTROLS)
        # On a copy: where the game plays this player itself, its swing must not be disturbed.
        world = self.vec.worlds.copy()
        act(world[0], player, STRONG_GAIN, self._expert_dice, 0, controls)
        if player == PLAYER_ONE or self.vec.playing.records["opponent"][0] == CALLER_OPPONENT:
            swing = "phase_one" if player == PLAYER_ONE else "phase_two"
            self.vec.worlds[swing] = world[swing]
        own = controls[NUM_CONTROLS * (player - 1) :][:NUM_CONTROLS]
        if self.vec.fineness == 0:
            return own.astype(np.float32)
        distances = np.abs(control_table(self.vec.fineness) - own)
        # A shot only counts as one beyond one half, and then nothing else matters.
        distances[:, 3] *= 10.0
        return np.argmin((distances**2).sum(axis=1))
