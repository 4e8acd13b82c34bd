"""Ledge with one runner: what ``gymnasium.make("stepladder/Ledge-v0")`` returns.

The face of `vector_env.LedgeVectorEnv` for a single env.
"""

from typing import Any

from gymnasium.vector import AutoresetMode

from stepladder.errors import EnvError
from stepladder.games.ledge.level import Level
from stepladder.games.ledge.planner import solve
from stepladder.games.ledge.vector_env import LedgeVectorEnv
from stepladder.games.single import GameEnv, single_metadata


class LedgeEnv(GameEnv):
    """One game of Ledge; takes the arguments of `LedgeVectorEnv` but those about many envs."""

    vec: LedgeVectorEnv
    metadata = single_metadata(LedgeVectorEnv)
    vector_class = LedgeVectorEnv
    """Tells `make_vec` what steps many of these at once."""

    def __init__(self, **settings: Any):
        super().__init__(
            LedgeVectorEnv(1, autoreset_mode=AutoresetMode.DISABLED, num_threads=1, **settings)
        )
        self._plan: tuple[Level, Any] | None = None

    @property
    def level(self) -> Level:
        """The level being played."""
        return self.vec.level(0)

    def scripted_action(self) -> int:
        """Return what the planner would do now, if its plan was followed so far."""
        level = self.level
        if self._plan is None or self._plan[0].text != level.text:
            plan = solve(level)
            if plan is None:
                raise EnvError(
                    f"the planner found no way through level {level.name!r}. Play it by another "
                    "policy."
                )
            self._plan = (level, plan.actions)
        steps = int(self.vec.runners["steps"][0])
        actions = self._plan[1]
        return int(actions[steps]) if steps < len(actions) else 0
