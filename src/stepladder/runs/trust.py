"""What a run would have imported, and whether its reader has said that it may be.

A run's folder is data: whoever plays its env, goes on with it or draws its tasks imports a module
that its settings name only if they trust where the run came from. Used by `training` and by the
commands, before anything of a run is made.

An id such as ``CartPole-v1`` needs no trust: it stands for what Gymnasium, this library or an
installed package has registered, and a run cannot change that.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepladder.errors import RunError

_SETTINGS = ("env", "tasks")
"""Settings that can name something in a module, as ``module:name``."""

_made_here: dict[Path, tuple[str, ...]] = {}
"""Runs that this process itself has begun, and what they name: whoever began them has said it."""


def names_of_code(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return all that settings name which would be imported, each as ``module:name``.

    Example:
        >>> names_of_code({"env": "my_games:Maze-v0"}), names_of_code({"env": "CartPole-v1"})
        (('my_games:Maze-v0',), ())
    """
    values = (config.get(setting) for setting in _SETTINGS)
    return tuple(value for value in values if isinstance(value, str) and ":" in value)


def note_own(folder: Path, config: Mapping[str, Any]) -> None:
    """Note that this process begins a run: it may import what it has named itself."""
    names = names_of_code(config)
    if names:
        _made_here[folder.resolve()] = names


def require_trust(folder: str | Path, config: Mapping[str, Any], trust: bool) -> None:
    """Raise if playing a run would import something, and nobody has said that it may.

    Args:
        folder: The run.
        config: Its settings.
        trust: Whether somebody has.

    Raises:
        RunError: Nobody has; the message says what would be imported.
    """
    names = names_of_code(config)
    if trust or not names or _made_here.get(Path(folder).resolve()) == names:
        return
    said = " and ".join(map(repr, names))
    modules = " and ".join(dict.fromkeys(repr(name.partition(":")[0]) for name in names))
    raise RunError(
        f"the run {folder} names {said}: playing it would import {modules} and run that code. If "
        "you trust where this run came from, add --trust (in Python: trust=True)."
    )
