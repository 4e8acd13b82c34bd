"""Checks that the configs of all curricula share; each says what is wrong in one line."""

import math

from stepladder.errors import ConfigError


def require_share(name: str, value: float) -> None:
    """Raise unless `value` lies in [0, 1]."""
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"{name} must lie in [0, 1]; got {value!r}.")


def require_positive(name: str, value: float) -> None:
    """Raise unless `value` is finite and above 0."""
    if not (value > 0 and math.isfinite(value)):
        raise ConfigError(f"{name} must be finite and above 0; got {value!r}.")


def require_whole(name: str, value: int, least: int) -> None:
    """Raise unless `value` is a whole number of at least `least`."""
    if isinstance(value, bool) or value != value or int(value) != value or value < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}; got {value!r}.")
