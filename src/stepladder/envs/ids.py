"""Which env a text means: a registered id or a function that makes an env, perhaps in a module.

The one place that reads ids: `make_vec`, trainings, evaluations and all commands ask here. The
module in front of a colon is imported, which runs its code. That is right for what the user has
typed; check `module_of` first where the text comes from a file.
"""

import logging
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from stepladder.errors import ConfigError
from stepladder.registration import NAMESPACE, register_games

logger = logging.getLogger("stepladder.envs")


class UnknownEnvError(ConfigError, gym.error.UnregisteredEnv):
    """No env is registered under an id; Gymnasium's own error as well."""


def module_of(text: str) -> str | None:
    """Return the module that is imported to find an env; None if the text names none.

    Example:
        >>> module_of("minigrid:MiniGrid-Empty-5x5-v0"), module_of("CartPole-v1")
        ('minigrid', None)
    """
    module, colon, _ = text.partition(":")
    return module if colon else None


def find_env(text: str) -> EnvSpec | Callable[..., Any]:
    """Return what makes an env, given its name.

    Args:
        text: An id (``CartPole-v1``), an id that a module registers when it is imported
            (``minigrid:MiniGrid-Empty-5x5-v0``), or a function in a module
            (``package.module:make_env``).

    Returns:
        What is registered under the id, or the function.

    Raises:
        ConfigError: The module cannot be imported, or there is no such id or function.
    """
    module = module_of(text)
    name = text if module is None else text.partition(":")[2]
    found = None if module is None else _imported(module)
    if name.startswith(NAMESPACE):
        register_games()
    if name in gym.registry:
        return gym.registry[name]
    function: Any = getattr(found, name, None)
    if callable(function):
        return function
    newest = _newest(name)
    if newest is not None:
        return newest
    if found is not None and name.isidentifier():
        raise UnknownEnvError(
            f"{module} has no function {name!r}, nor does it register an env of this name. Name a "
            "function in it that makes an env, or an id."
        )
    raise _unknown(text, name)


def _imported(module: str) -> ModuleType:
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(
            f"{module!r} is not the name of a module. Write it as in an import: package.module."
        )
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"the module {module!r} cannot be imported: {error}. Correct its name, or start "
            "where it lies."
        ) from error


def _newest(name: str) -> EnvSpec | None:
    """Return the newest version of an env that was named without one, as Gymnasium does."""
    versions = [
        spec
        for spec in gym.registry.values()
        if spec.version is not None and spec.id == f"{name}-v{spec.version}"
    ]
    if not versions:
        return None
    newest = max(versions, key=lambda spec: spec.version or 0)
    logger.warning("%r has no version; %r is used.", name, newest.id)
    return newest


def _unknown(text: str, name: str) -> UnknownEnvError:
    """Return the error for an id that is not registered."""
    try:
        gym.spec(name)
    except gym.error.Error as error:
        reason = str(error)
        reason += "" if reason.endswith((".", "?")) else "."
        return UnknownEnvError(
            f"the env {text!r} cannot be found: {reason} Correct the id, or write module:id if "
            "importing a module registers it."
        )
    raise AssertionError(f"{name!r} is registered")
