"""Built-in games, written for batches: hockey and a platform game; and descriptions of any env.

Importing this makes ``stepladder/Hockey-v0`` and ``stepladder/Ledge-v0`` known to Gymnasium; the
games themselves are loaded when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stepladder.games.registry import register_built_in

if TYPE_CHECKING:
    from stepladder.games.game import Game, Symmetry
    from stepladder.games.hockey.env import HockeyEnv
    from stepladder.games.hockey.vector_env import HockeyVectorEnv
    from stepladder.games.ledge.env import LedgeEnv
    from stepladder.games.ledge.level import Level
    from stepladder.games.ledge.vector_env import LedgeVectorEnv
    from stepladder.games.programme import Fixture, Programme
    from stepladder.games.registry import register_game

_HOMES = {
    "Fixture": "stepladder.games.programme",
    "Game": "stepladder.games.game",
    "HockeyEnv": "stepladder.games.hockey.env",
    "HockeyVectorEnv": "stepladder.games.hockey.vector_env",
    "LedgeEnv": "stepladder.games.ledge.env",
    "LedgeVectorEnv": "stepladder.games.ledge.vector_env",
    "Level": "stepladder.games.ledge.level",
    "Programme": "stepladder.games.programme",
    "Symmetry": "stepladder.games.game",
    "register_game": "stepladder.games.registry",
}

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


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'stepladder.games' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
