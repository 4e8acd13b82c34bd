"""Words of a question as numbers, within limits; used by every query that takes some."""

import math
from collections.abc import Mapping

from stepladder.errors import ConfigError


def integer(params: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """Return an integer of a question.

    Raises:
        ConfigError: It is none, or outside the limits.
    """
    text = params.get(name)
    if text is None or text == "":
        return default
    is_integer = text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()
    if len(text) < 20 and is_integer and least <= int(text) <= most:
        return int(text)
    raise ConfigError(f"{name} must be an integer from {least} to {most}; got {text[:40]!r}.")


def number(params: Mapping[str, str], name: str) -> float | None:
    """Return a number of a question; None if it has none.

    Raises:
        ConfigError: It is no finite number.
    """
    text = params.get(name)
    if text is None or text == "":
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f"{name} must be a number; got {text[:40]!r}.")
    return value
