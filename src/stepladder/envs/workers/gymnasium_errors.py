"""Errors of the vector env that are Gymnasium's as well.

Each derives from the class that Gymnasium's own vector envs raise in the same place, so that code
written for those catches it. Beside `errors`, which loads no Gymnasium.
"""

import multiprocessing

from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError

from stepladder.errors import ChannelError, ConfigError, EnvTimeoutError


class ClosedError(ClosedEnvironmentError, ChannelError):
    """The vector env is closed."""


class PendingCallError(AlreadyPendingCallError, ChannelError):
    """A call in two parts has begun and has not been waited for."""


class NoPendingCallError(NoAsyncCallError, ChannelError):
    """A call is waited for that was not begun."""


class CallTimeoutError(multiprocessing.TimeoutError, EnvTimeoutError):
    """The workers have not finished a call within the time that was given for it."""


class DifferentSpacesError(ConfigError, RuntimeError):
    """The spaces of the envs do not fit together."""


class WrongTypeError(ConfigError, TypeError):
    """An argument is of the wrong type."""
