"""Ledge with one runner: what ``gymnasium.make("stepladder/Ledge-v0")`` returns."""

from typing import Any

from stepladder.errors import EnvError
from stepladder.games.ledge.level import Level
from stepladder.games.ledge.planner import solve
from stepladder.games.ledge.vector_env import LedgeVectorEnv
from stepladder.games.single import GameEnv


class LedgeEnv(GameEnv):
    """One game of Ledge; takes the arguments of `LedgeVectorEnv`, but those about many envs."""

    vec: LedgeVectorEnv
    vector_class = LedgeVectorEnv
    _solved: tuple[str, Any] = ("", ())
    """Text of a level, and the actions that solve it."""

    @property
    def level(self) -> Level:
        """The level being played."""
        return self.vec.level(0)

    def scripted_action(self) -> int:
        """Return the planner's action for this step, if its solution was followed so far."""
        level = self.level
        if self._solved[0] != level.text:
            solution = solve(level)
            if solution is None:
                raise EnvError(
                    f"the planner found no way through level {level.name!r}. Use another policy."
                )
            self._solved = (level.text, solution.actions)
        steps, actions = int(self.vec.runners["steps"][0]), self._solved[1]
        return int(actions[steps]) if steps < len(actions) else 0
