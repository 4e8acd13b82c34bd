"""Code of the user: functions named as MODULE:FUNCTION, and what they raise; imports of torch.

Used by the verbs that run such code; its module may lie in the working directory.
"""

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym

import stepladder
from stepladder import named
from stepladder.errors import ConfigError, EnvError, StepladderError
from stepladder.named import module_of

USER_CODE_ERRORS = (
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


def look_for(*names: str) -> None:
    """Import from the working directory too, if one of these names has a module."""
    if any(module_of(name) is not None for name in names):
        look_here()


def find_function(text: str, purpose: str) -> Callable[..., Any]:
    """Return the function that a text names.

    Args:
        text: Such as ``package.module:function``.
        purpose: What the function is for, as in "makes an env".

    Raises:
        ConfigError: The module or the function does not exist.
    """
    look_here()
    return named.find_function(text, f"a function that {purpose}")


def guarded(name: str, call: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call code of the user; an error becomes one line that starts with `name`.

    Raises:
        EnvError: The call raised one of `USER_CODE_ERRORS`.
    """
    try:
        return call(*arguments, **keywords)
    except StepladderError:
        raise
    except USER_CODE_ERRORS as error:
        raise EnvError(f"{name} raised {type(error).__name__}: {error}. Fix its code.") from error


@contextmanager
def one_line_for_env(name: str) -> Iterator[None]:
    """Turn whatever an env raises inside the block into one line; its notes stay.

    Raises:
        EnvError: An env of a vector env has raised something.
    """
    try:
        yield
    except Exception as error:  # the env may raise anything; a command prints it as one line
        if isinstance(error, StepladderError) or not hasattr(error, "env_index"):
            raise
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f" in {frame.name}, {Path(frame.filename).name} line {frame.lineno}"
        # One from a worker process has no frame of the env here.
        where = "" if Path(stepladder.__file__).parent in Path(frame.filename).parents else where
        shown = EnvError(f"{name} raised {type(error).__name__}: {error}{where}. Fix the env.")
        for note in getattr(error, "__notes__", ()):
            shown.add_note(note.partition("; there:")[0])
        raise shown from error


def learning() -> Any:
    """Return the module `learnt`, which needs torch."""
    return needing_torch("stepladder.cli.output.learnt", "trained policies")


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
