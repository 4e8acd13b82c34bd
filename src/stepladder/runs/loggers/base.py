"""What a logger must offer, and how a missing package is reported.

Implemented by the other files of this folder, or by anything of your own with the same three
methods.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from stepladder.errors import ConfigError


@runtime_checkable
class Logger(Protocol):
    """Receives what a run logs. All calls come from one thread, in order.

    A method may raise: the run counts it, reports the first one, and continues.
    """

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Take the metrics of one step; values may be NaN or infinite."""
        ...

    def event(self, step: int, kind: str, text: str) -> None:
        """Take one event."""
        ...

    def close(self) -> None:
        """Write what is left. Nothing comes after it."""
        ...


def check_loggers(loggers: Sequence[Any]) -> None:
    """Raise unless all of these are loggers."""
    for logger in loggers:
        if not isinstance(logger, Logger):
            raise ConfigError(
                f"a logger needs the methods log, event and close; got {logger!r}. "
                "Give an instance of a logger."
            )


def require_package(module: str, extra: str, user: str) -> ModuleType:
    """Import a module of an optional package.

    Args:
        module: The module's full name.
        extra: Name of the package, and of the extra that installs it.
        user: What needs it, for the message.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{user} needs the package {extra}, which cannot be imported ({error}). "
            f"Install it with: pip install 'stepladder[{extra}]'"
        ) from error
