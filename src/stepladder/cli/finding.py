"""Code of the user: functions named as MODULE:FUNCTION, and what they raise; imports of torch.

Used by the verbs that run such code; its module may lie in the working directory.
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
"""What envs and policies raise when they or their arguments are wrong; other exceptions are shown
with their traceback."""

NEEDED_TO_LEARN = ("torch", "safetensors")
"""Packages of the extra `train`."""


def look_here() -> None:
    """Import modules from the working directory too, as ``python -m`` does."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def look_for(env: str) -> None:
    """Import from the working directory too, if the id of an env names a module."""
    if module_of(env) is not None:
        look_here()


def find_function(text: str, purpose: str) -> Callable[..., Any]:
    """Return the function that a text names.

    Args:
        text: Such as ``package.module:function``.
        purpose: What the function is for, as in "makes an env".

    Raises:
        ConfigError: The module or the function does not exist.
    """
    module, colon, name = text.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module.split("."), name]):
        raise ConfigError(
            f"{text!r} does not name a function. Write package.module:function, with a function "
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


def guarded(name: str, call: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call code of the user; an error becomes one line that starts with `name`.

    Raises:
        EnvError: The call raised one of `FOREIGN_ERRORS`.
    """
    try:
        return call(*arguments, **keywords)
    except StepladderError:
        raise
    except FOREIGN_ERRORS as error:
        raise EnvError(f"{name} raised {type(error).__name__}: {error}. Fix its code.") from error


def learning() -> Any:
    """Return the module `learnt`, which needs torch."""
    return needing_torch("stepladder.cli.learnt", "trained policies")


def needing_torch(module: str, users: str) -> Any:
    """Import a module of this library that needs torch.

    Args:
        module: Its name.
        users: What needs torch, in the plural, for the message.

    Raises:
        ConfigError: A package that it needs is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in NEEDED_TO_LEARN:
            raise
        raise ConfigError(
            f"{users} need the package {error.name}, which is not installed. Install it with: "
            "pip install 'stepladder[train]'"
        ) from error
