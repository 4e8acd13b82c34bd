"""Convert what an env returned to a float, a bool or a dict, or raise an error that says why not.

Envs return rewards as floats, NumPy scalars, arrays of one entry, fractions. `curriculum_env`,
`success` and `workers` call this where a value is not simply a float or a bool.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stepladder.errors import EnvError, shown

# Tuples made once: a union in a call of `isinstance` is made again each time.
_CONTAINERS = (np.ndarray, list, tuple)
_NOT_REAL = (str, bytes, complex, np.complexfloating)


def number_of(value: Any) -> float | None:
    """Return a real number, or the only entry of an array or a list, as a float; else None.

    Text is not a number, nor is an integer that is too large for a float.
    """
    if type(value) is bool or type(value) is float:
        return float(value)
    if isinstance(value, _CONTAINERS):
        try:
            entries = np.asarray(value)
        except ValueError:
            return None
        if entries.size != 1 or entries.dtype.kind not in "biuf":
            return None
        value = entries.reshape(-1)[0]
    if value is None or isinstance(value, _NOT_REAL):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def reward_of(value: Any, env_index: int) -> float:
    """Return a reward as a float.

    Raises:
        EnvError: It is not a number.
    """
    if isinstance(value, np.floating):
        return float(value)
    number = number_of(value)
    if number is None:
        raise EnvError(
            f"env {env_index} returned the reward {shown(value)}; expected a number. Fix the env: "
            "step must return a float."
        )
    return number


def flag_of(value: Any, name: str, env_index: int) -> bool:
    """Return whether something is true, as Python takes it.

    Raises:
        EnvError: It is neither true nor false, such as an array of several entries.
    """
    try:
        return bool(value)
    except (TypeError, ValueError) as error:
        raise EnvError(
            f"env {env_index} returned {name} {shown(value)}; expected True or False. Fix the env."
        ) from error


def info_of(value: Any, env_index: int) -> dict[str, Any]:
    """Return an info as it is.

    Raises:
        EnvError: It is not a dict.
    """
    # A dict first: asking an abstract class takes ten times as long.
    if type(value) is not dict and not isinstance(value, Mapping):
        raise EnvError(
            f"env {env_index} returned the info {shown(value)}; expected a dict. Fix the env: "
            "return {} where there is nothing to say."
        )
    return value  # pyright: ignore[reportReturnType]
