"""Functions of one env, called in the process of the env.

`worker` calls them for its envs and `env_caller` for the parent's own.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from stepladder.envs.types import GymEnv, GymSpace


class EnvDescription(NamedTuple):
    """What a vector env needs of an env before it steps it."""

    observation_space: GymSpace
    action_space: GymSpace
    metadata: dict[str, Any] | None
    render_mode: str | None

    @classmethod
    def of(cls, env: GymEnv) -> Self:
        """Describe an env."""
        return cls(env.observation_space, env.action_space, env.metadata, env.render_mode)


def apply_to(
    env: GymEnv, env_index: int, function: Callable[..., Any], arguments: Sequence[Any]
) -> Any:
    """Call a function of an env; what it raises gets the index of the env."""
    try:
        return function(env, *arguments)
    except Exception as error:  # passed on, with the index of the env
        error.env_index = env_index  # type: ignore[attr-defined]
        raise


def call_method(
    env: GymEnv, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Call a method of an env, found through its wrappers; an attribute is returned as it is."""
    found = env.get_wrapper_attr(name)
    return found(*arguments, **keywords) if callable(found) else found


def set_attribute(env: GymEnv, name: str, value: Any) -> None:
    """Set an attribute of an env, on the wrapper that has it."""
    env.set_wrapper_attr(name, value)


def name_of(function: Callable[..., Any], arguments: Sequence[Sequence[Any]]) -> str:
    """Return the name of a call in messages: of the method, the attribute or the function."""
    if function in (call_method, set_attribute) and arguments:
        return repr(arguments[0][0])
    return getattr(function, "__name__", repr(function))
