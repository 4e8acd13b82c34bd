"""Functions that a command line names as MODULE:FUNCTION.

Used by the verbs that take something of the user's own, whose module may lie in the working
directory.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym

from stepladder.errors import ConfigError

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


def look_here() -> None:
    """Look for modules in the working directory too, which a command does not do by itself."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


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
