"""Which env a user means: a registered id, a class or function, or the name of one in a module.

The one place that reads names of envs, for `make_vec`, trainings, evaluations and all commands; it
also finds the `Game` of an env. The module before a colon is imported (`named`), which runs its
code.
"""

import logging
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator

from stepladder import named
from stepladder.errors import ConfigError
from stepladder.games.game import Game
from stepladder.games.registry import GAMES, register_id
from stepladder.named import module_of

logger = logging.getLogger("stepladder.envs")


class UnknownEnvError(ConfigError, gym.error.UnregisteredEnv):
    """No env is registered under an id; Gymnasium's own error as well."""


def name_of(env: Any) -> str:
    """Return the name that stands for an env in configs and runs (`named.name_of`).

    Args:
        env: A name, a spec, or a class or function that makes an env.

    Raises:
        ConfigError: It is none of these.
    """
    if isinstance(env, EnvSpec):
        return env.id
    return named.name_of(env, "env must be an env's id, or a class or function that makes an env")


def give_env(name: str, env: Any) -> None:
    """Let a name stand for an env in this process: for a class, a function, or another name."""
    name_of(env)
    named.give(name, find_env(env) if isinstance(env, str) else env)


def find_env(text: str) -> EnvSpec | Callable[..., Any]:
    """Return what makes an env, given its name.

    Args:
        text: An id (``CartPole-v1``), an id that a module registers when it is imported
            (``minigrid:MiniGrid-Empty-5x5-v0``), or a class or function in a module
            (``package.module:make_env``).

    Returns:
        What is registered under the id, or the class or function.

    Raises:
        ConfigError: The module cannot be imported, or there is no such id or function.
    """
    given = named.given(text)
    if given is not None:
        return given
    module = module_of(text)
    name = text if module is None else text.partition(":")[2]
    found = None if module is None else named.imported(module)
    register_id(name)
    if name in gym.registry:
        return gym.registry[name]
    function = named.attribute(found, name)
    if callable(function):
        return function
    newest = _newest(name)
    if newest is not None:
        return newest
    if named.was_local(text):
        raise UnknownEnvError(
            f"the env {text!r} was defined in a notebook or a function, and cannot be found from "
            "here. Give it again: train(env=..., resume=run); to a command as module:name, with "
            "train --resume RUN --env, or eval and watch RUN --env-id."
        )
    if found is not None and name.replace(".", "_").isidentifier():
        raise UnknownEnvError(
            f"{module} has no function {name!r}, nor does it register an env of this name. Name a "
            "function in it that makes an env, or an id."
        )
    raise _unknown(text, name)


def game_of(env: Any) -> Game:
    """Return the `Game` of an env; its module is imported if necessary.

    Args:
        env: A name, a spec, or a class or function that makes an env.

    Raises:
        ConfigError: There is no such env.
    """
    if not isinstance(env, str | EnvSpec):
        return _described(env)
    name = env.id if isinstance(env, EnvSpec) else env.rpartition(":")[2]
    if name in GAMES:
        return GAMES[name]
    found = env if isinstance(env, EnvSpec) else find_env(env)
    if not isinstance(found, EnvSpec):
        return _described(found)
    if found.id in GAMES:
        return GAMES[found.id]
    entry = found.entry_point
    try:
        return _described(load_env_creator(entry) if isinstance(entry, str) else entry)
    except ImportError:
        # Making the env reports what is missing.
        return Game()


def known_game(name: str) -> Game | None:
    """Return the `Game` of an env without importing its module; None if that is needed.

    Ids of games, and of what Gymnasium has registered, need no import.
    """
    module, bare = module_of(name), name.rpartition(":")[2]
    if bare in GAMES:
        return GAMES[bare]
    given = named.given(name)
    if given is not None:
        return game_of(given)
    if module is not None and module not in sys.modules:
        return None
    spec = gym.registry.get(bare)
    made: Any = None if module is None else named.attribute(sys.modules[module], bare)
    if spec is not None:
        made = spec.entry_point
        if isinstance(made, str):
            home, _, attribute = made.partition(":")
            made = named.attribute(sys.modules.get(home), attribute)
    return _described(made)


def _described(made: Any) -> Game:
    made = made.func if isinstance(made, partial) else made
    game = getattr(made, "game", None)
    return game if isinstance(game, Game) else Game()


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
