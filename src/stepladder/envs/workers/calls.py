"""A method or an attribute of one env, reached from outside through its wrappers.

Called by `worker` for its envs and by `reaching` for the parent's own.
"""

from typing import Any

import gymnasium as gym


def call_env(
    env: gym.Env[Any, Any],
    env_index: int,
    name: str,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    """Call a method of an env, found through its wrappers; an attribute is returned as it is."""
    try:
        found = env.get_wrapper_attr(name)
        return found(*arguments, **keywords) if callable(found) else found
    except Exception as error:  # goes on as it is, and says whose it is
        error.env_index = env_index  # type: ignore[attr-defined]
        raise


def set_env_attr(env: gym.Env[Any, Any], env_index: int, name: str, value: Any) -> None:
    """Set an attribute of an env, where a wrapper has it there."""
    try:
        env.set_wrapper_attr(name, value)
    except Exception as error:  # goes on as it is, and says whose it is
        error.env_index = env_index  # type: ignore[attr-defined]
        raise
