"""Which games there are: built in, of installed packages, or registered at run time.

Used by `envs.ids` to find the game of an env and to register ids with Gymnasium. A package
adds a game through the entry-point group ``stepladder.games``; its name is the env's id.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import gymnasium as gym

from stepladder.errors import ConfigError, shown
from stepladder.registry import Registry

if TYPE_CHECKING:
    from stepladder.games.game import Game

AnyGame = TypeVar("AnyGame")

BUILT_IN = {
    "stepladder/Hockey-v0": "stepladder.games.hockey.game:HOCKEY",
    "stepladder/Ledge-v0": "stepladder.games.ledge.game:LEDGE",
}
"""Where each built-in game is, by the id of its env."""

DEFAULT_ENV = "stepladder/Ledge-v0"
"""The env of a training that names none."""


def _require_game(name: str, entry: Any) -> None:
    # Loaded here and below: naming the games must not load what they are made of.
    from stepladder.games.game import Game

    if not isinstance(entry, Game):
        raise ConfigError(
            f"the game {name!r} must be an instance of Game; got {shown(entry)}. Register "
            "Game(env=...) or an instance of a subclass."
        )


GAMES: "Registry[Game]" = Registry("games", _require_game, BUILT_IN)
"""Every game by the id of its env."""


def register_game(name: str, game: "Game | None" = None) -> Callable[[AnyGame], AnyGame]:
    """Register the env that is decorated, so that it can be named in configs and commands.

    Args:
        name: The id, such as ``"my-package/Maze-v0"``.
        game: What is known about the env; by default the attribute ``game`` of its class.

    Raises:
        ConfigError: The name is taken.

    Example:
        >>> import gymnasium as gym
        >>> @register_game("doctest/Corridor-v0")
        ... class Corridor(gym.Env):
        ...     pass
        >>> GAMES["doctest/Corridor-v0"].env is Corridor
        True
    """
    from stepladder.games.game import Game

    def add(env: AnyGame) -> AnyGame:
        described = game or getattr(env, "game", None)
        found = described if isinstance(described, Game) else Game()
        if found.env is None:
            found.env = env  # pyright: ignore[reportAttributeAccessIssue]
        # A notebook cell that runs again defines the same env once more.
        vars(found).update(
            {name: getattr(env, name, None) for name in ("__module__", "__qualname__")}
        )
        GAMES.register(name)(found)
        gym.registry.pop(name, None)
        return env

    return add


def register_built_in() -> None:
    """Make the built-in games known to Gymnasium without loading them; may be called again."""
    for name, place in BUILT_IN.items():
        folder = place.partition(".game:")[0]
        kind = name.partition("/")[2].partition("-")[0]
        if name not in gym.registry:
            gym.register(
                id=name,
                entry_point=f"{folder}.env:{kind}Env",
                vector_entry_point=f"{folder}.vector_env:{kind}VectorEnv",
            )


def register_id(name: str) -> None:
    """Make one game known to Gymnasium, if there is a game of this name and it names its env.

    Raises:
        ConfigError: Gymnasium does not accept the name, or nothing says what its env is.
    """
    if name in BUILT_IN:
        register_built_in()
    elif name not in gym.registry and name in GAMES:
        game = GAMES[name]
        if name in gym.registry:
            return  # by the module that was imported
        if game.env is None:
            raise ConfigError(
                f"the game {name!r} names no env, and Gymnasium does not know the id. Make the "
                f"game as {type(game).__name__}(env=...), or register the id where it is defined."
            )
        try:
            gym.register(id=name, entry_point=game.env, vector_entry_point=game.vector_env)  # pyright: ignore[reportArgumentType]
        except gym.error.Error as error:
            raise ConfigError(
                f"Gymnasium refuses the id {name!r} of a game: {error} Rename it, as in "
                "my-package/Maze-v0."
            ) from error
