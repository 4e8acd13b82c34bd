"""Which modules a run would import, and whether the user allows it.

A run's folder is data: a module that its settings name is imported only if the user trusts where
the run came from. Checked by `training` and by the commands, before anything of a run is made.

An id such as ``CartPole-v1`` needs no trust: it stands for what Gymnasium, this library or an
installed package has registered, and a run cannot change that.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepladder.errors import RunError
from stepladder.trusted import allow, is_allowed

_SETTINGS = ("env", "tasks", "deliver", "wrappers")
"""Settings that can name something in a module, as ``module:name``, or a list of such names."""

_OF_AGENT = ("encoder",)
"""Those of the agent."""

_made_here: dict[Path, tuple[str, ...]] = {}
"""Runs that this process has created, and what they name: their settings are its own."""


def names_of_code(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what settings name that would be imported, each as ``module:name``.

    Example:
        >>> names_of_code({"env": "my_games:Maze-v0"}), names_of_code({"env": "CartPole-v1"})
        (('my_games:Maze-v0',), ())
    """
    agent = config.get("agent")
    parts = [(config, _SETTINGS), (agent if isinstance(agent, Mapping) else {}, _OF_AGENT)]
    found: list[Any] = []
    for part, settings in parts:
        for setting in settings:
            value = part.get(setting)
            found += value if isinstance(value, list | tuple) else [value]
    return tuple(name for name in found if isinstance(name, str) and ":" in name)


def note_own(folder: Path, config: Mapping[str, Any]) -> None:
    """Note that this process creates a run: it may import what it named itself."""
    names = names_of_code(config)
    if names:
        _made_here[folder.resolve()] = names


def require_trust(folder: str | Path, config: Mapping[str, Any], trust: bool) -> None:
    """Raise if playing a run would import a module and the user has not allowed it.

    Raises:
        RunError: `trust` is False; the message says what would be imported.
    """
    names = names_of_code(config)
    if trust or set(names) <= set(_made_here.get(Path(folder).resolve(), ())):
        allow(names)
        return
    named = " and ".join(map(repr, names))
    modules = " and ".join(dict.fromkeys(repr(name.partition(":")[0]) for name in names))
    raise RunError(
        f"the run {folder} names {named}: playing it would import {modules} and run that code. If "
        "you trust where this run came from, add --trust (in Python: trust=True)."
    )


def require_trust_in_policy(path: str | Path, description: Mapping[str, Any], trust: bool) -> None:
    """Raise if playing a policy would import a network that the user has not allowed.

    Args:
        path: Of the run, the checkpoint or the file that holds it.
        description: Of its agent.
        trust: Whether the user trusts where it came from.

    Raises:
        RunError: `trust` is False; the message says what would be imported.
    """
    named = {"agent": description.get("config")}
    if not all(map(is_allowed, names_of_code(named))):
        require_trust(path, named, trust)
