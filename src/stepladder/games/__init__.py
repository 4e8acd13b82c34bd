"""Built-in games, written for batches: hockey and a platform game; and descriptions of any env.

Importing this makes ``stepladder/Hockey-v0`` and ``stepladder/Ledge-v0`` known to Gymnasium; the
games themselves are loaded when first used.
"""

from typing import TYPE_CHECKING

from stepladder.games.registry import register_built_in
from stepladder.lazy import lazy_names

if TYPE_CHECKING:
    from stepladder.games.game import Game, Symmetry
    from stepladder.games.hockey.env import HockeyEnv
    from stepladder.games.hockey.vector_env import HockeyVectorEnv
    from stepladder.games.ledge.env import LedgeEnv
    from stepladder.games.ledge.level import Level
    from stepladder.games.ledge.vector_env import LedgeVectorEnv
    from stepladder.games.programme import Fixture, Programme
    from stepladder.games.registry import register_game

__all__ = [
    "Fixture",
    "Game",
    "HockeyEnv",
    "HockeyVectorEnv",
    "LedgeEnv",
    "LedgeVectorEnv",
    "Level",
    "Programme",
    "Symmetry",
    "register_game",
]

register_built_in()

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "stepladder.games.registry": "register_game",
        "stepladder.games.game": "Game Symmetry",
        "stepladder.games.hockey.env": "HockeyEnv",
        "stepladder.games.hockey.vector_env": "HockeyVectorEnv",
        "stepladder.games.ledge.env": "LedgeEnv",
        "stepladder.games.ledge.level": "Level",
        "stepladder.games.ledge.vector_env": "LedgeVectorEnv",
        "stepladder.games.programme": "Fixture Programme",
    },
)
