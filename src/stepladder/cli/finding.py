"""Things of the user's own: functions named as MODULE:FUNCTION, and what they raise.

Used by the verbs that take such a thing; its module may lie in the working directory.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym

from stepladder.envs.ids import module_of
from stepladder.errors import ConfigError, EnvError, StepladderError

FOREIGN_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    gym.error.Error,
)
"""What envs and policies of others raise when something is wrong with them or with their arguments;
anything else leaves the command with its traceback."""

NEEDED_TO_LEARN = ("torch", "safetensors")
"""Packages of the extra `train`."""


def look_here() -> None:
    """Look for modules in the working directory too, which a command does not do by itself."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def look_for(env: str) -> None:
    """Look in the working directory too, if the name of an env has a module in front of it."""
    if module_of(env) is not None:
        look_here()


def find_function(text: str, purpose: str) -> Callable[..., Any]:
    """Return the function that a text names.

    Args:
        text: Such as ``package.module:function``.
        purpose: What the function is for, as in "makes an env".

    Raises:
        ConfigError: There is no such module, or no such function in it.
    """
    module, colon, name = text.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module.split("."), name]):
        raise ConfigError(
            f"{text!r} names no function. Write it as package.module:function, with a function "
            f"that {purpose}."
        )
    look_here()
    try:
        found = import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"the module {module!r} cannot be imported: {error}. Correct its name, or run the "
            "command where it lies."
        ) from error
    function = getattr(found, name, None)
    if not callable(function):
        raise ConfigError(
            f"{module} has no function {name!r}. Name a function in it that {purpose}."
        )
    return function


def guarded(who: str, call: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call something of somebody else's; what it raises is said in one line that names `who`.

    Raises:
        EnvError: It raised something.
    """
    try:
        return call(*arguments, **keywords)
    except StepladderError:
        raise
    except FOREIGN_ERRORS as error:
        raise EnvError(f"{who} raised {type(error).__name__}: {error}. Mend it.") from error


def learning() -> Any:
    """Return the module `learnt`, which lets policies play and needs torch for it."""
    return needing_torch("stepladder.cli.learnt", "learnt policies")


def needing_torch(module: str, who: str) -> Any:
    """Import a module of ours that needs torch.

    Args:
        module: Its name.
        who: What needs it, for the message; several.

    Raises:
        ConfigError: Something that it needs is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in NEEDED_TO_LEARN:
            raise
        raise ConfigError(
            f"{who} need the package {error.name}, which is not installed. Install it with: "
            "pip install 'stepladder[train]'"
        ) from error
