"""The ids under which Gymnasium finds the built-in worlds.

At the bottom of the house, because `games` and `envs.make_vec` both need it; it names the worlds
and loads none of them.
"""

import gymnasium as gym

NAMESPACE = "stepladder/"


def register_games() -> None:
    """Make the built-in worlds known to Gymnasium; may be called again."""
    for name in ("Hockey", "Ledge"):
        home = f"stepladder.games.{name.lower()}"
        if f"{NAMESPACE}{name}-v0" not in gym.registry:
            gym.register(
                id=f"{NAMESPACE}{name}-v0",
                entry_point=f"{home}.env:{name}Env",
                vector_entry_point=f"{home}.vector_env:{name}VectorEnv",
            )
