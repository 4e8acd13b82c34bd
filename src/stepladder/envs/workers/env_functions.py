"""Functions of one env, called where the env lives.

By `worker` for its envs and by `env_caller` for the parent's own.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from stepladder.envs.types import GymEnv, GymSpace
from stepladder.errors import ConfigError, WorkerDiedError


class EnvDescription(NamedTuple):
    """What a vector env must know about an env."""

    observation_space: GymSpace
    action_space: GymSpace
    metadata: dict[str, Any] | None
    render_mode: str | None

    @classmethod
    def of(cls, env: GymEnv) -> Self:
        """Describe an env."""
        return cls(env.observation_space, env.action_space, env.metadata, env.render_mode)


NOT_CALLABLE = ("close", "reset", "step")
"""Methods of an env that only the vector env itself may call."""


def apply_to(
    env: GymEnv, env_index: int, function: Callable[..., Any], arguments: Sequence[Any]
) -> Any:
    """Call a function of an env; say on what it raises which env it was."""
    try:
        return function(env, *arguments)
    except Exception as error:  # goes on as it is, and says whose it is
        error.env_index = env_index  # type: ignore[attr-defined]
        raise


def call_method(
    env: GymEnv, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Call a method of an env, found through its wrappers; an attribute is returned as it is."""
    found = env.get_wrapper_attr(name)
    return found(*arguments, **keywords) if callable(found) else found


def set_attribute(env: GymEnv, name: str, value: Any) -> None:
    """Set an attribute of an env, where a wrapper has it there."""
    env.set_wrapper_attr(name, value)


def check_callable(name: str) -> None:
    """Raise if a method of single envs is not for others to call."""
    if name in NOT_CALLABLE:
        raise ConfigError(
            f"{name!r} of single envs cannot be called from outside; call it on the vector env."
        )


def died_in_call(
    worker: int, function: Callable[..., Any], arguments: Sequence[Sequence[Any]]
) -> WorkerDiedError:
    """Say that a worker has died over a call, and has been replaced."""
    error = WorkerDiedError(
        f"worker {worker} died over a call of {name_of(function, arguments)}. Its error "
        "output shows the cause. It has been restarted, and its unfinished episodes end as "
        "truncated."
    )
    error.was_restarted = True
    return error


def name_of(function: Callable[..., Any], arguments: Sequence[Sequence[Any]]) -> str:
    """Return what a call is called in a message: the method or attribute, or the function."""
    if function in (call_method, set_attribute) and arguments:
        return repr(arguments[0][0])
    return getattr(function, "__name__", repr(function))
