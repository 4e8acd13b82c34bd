"""Optional packages of the extra ``watch``, imported when something is to be drawn or filmed.

Below all modules of this folder. Games import the folder only to render, so training needs none of
these packages.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from stepladder.errors import ConfigError

HIDE_GREETING = "PYGAME_HIDE_SUPPORT_PROMPT"
KEEP_SIGNALS = "SDL_NO_SIGNAL_HANDLERS"


def required(module: str, package: str, user: str) -> ModuleType:
    """Import a module of an optional package, without its output and environment variables.

    Args:
        module: The module's full name.
        package: What pip calls the package.
        user: What needs it, for the message.

    Raises:
        ConfigError: It is not installed.
    """
    before = set(os.environ)
    # pygame greets on standard output, where a command's results go, and leaves variables behind.
    os.environ.setdefault(HIDE_GREETING, "1")
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{user} needs the package {package}, which cannot be imported ({error}). "
            "Install it with: pip install 'stepladder[watch]'"
        ) from error
    finally:
        for name in set(os.environ) - before:
            del os.environ[name]


@contextmanager
def keeping_signals() -> Iterator[None]:
    """Keep SDL from catching signals that are to end the process.

    It would turn them into events, which a process that reads no events never sees.
    """
    before = os.environ.get(KEEP_SIGNALS)
    os.environ[KEEP_SIGNALS] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[KEEP_SIGNALS]
        else:
            os.environ[KEEP_SIGNALS] = before
