"""How an episode's success is read: the one signal that most curricula need.

Used by `CurriculumEnv` when an episode ends, and by evaluations. Without a signal a curriculum
would never move and show no reason; so an episode that ends without one raises. A key that the user
has named is required even where no curriculum needs it: a misspelt name must not go unnoticed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepladder.configs.checks import is_finite
from stepladder.envs.values import number_of
from stepladder.errors import ConfigError, SignalError, shown

USUAL_KEYS = ("is_success", "success")
"""Info keys that are looked for, in this order, when no key is named."""


@dataclass(frozen=True, kw_only=True)
class SuccessReader:
    """Reads success from the last info of an episode, or from its return."""

    key: str | None = None
    """Info key that every ended episode must have; None looks for the usual ones."""

    return_threshold: float | None = None
    """Return from which an episode without a key counts as a success."""

    missing_is_failure: bool = False
    """Whether an episode without any signal is a failure rather than an error."""

    def __post_init__(self) -> None:
        if self.return_threshold is not None and not is_finite(self.return_threshold):
            raise ConfigError(
                f"return_threshold must be a finite number; got {shown(self.return_threshold)}."
            )
        if self.key is not None and self.return_threshold is not None:
            raise ConfigError(
                f"success_key is {self.key!r} and return_threshold is {self.return_threshold}; "
                "success is read from one of them. Leave the other out."
            )

    def read(self, info: Mapping[str, Any], episode_return: float, needed: bool) -> float:
        """Return success in [0, 1], or NaN where there is none and none is needed.

        Raises:
            SignalError: There is none, and the curriculum needs one or a key was named.
        """
        for key in self.keys:
            if key in info:
                number = number_of(info[key])
                if number is None or (needed and math.isnan(number)):
                    raise unreadable(key, info[key])
                return number
        if self.return_threshold is not None:
            return float(episode_return >= self.return_threshold)
        if self.missing_is_failure:
            return 0.0
        if not needed and self.key is None:
            return math.nan
        raise self._missing(info)

    def read_cut_off(self, info: Mapping[str, Any], episode_return: float) -> float:
        """Return success of an episode that was cut off from outside, whose info may not say it."""
        if self.key is not None and self.key not in info and not self.missing_is_failure:
            return math.nan
        return self.read(info, episode_return, needed=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """Info keys that are looked for, in this order."""
        return USUAL_KEYS if self.key is None else (self.key,)

    def _missing(self, info: Mapping[str, Any]) -> SignalError:
        has = f"(it has {sorted(map(str, info))})"
        if self.key is not None:
            return SignalError(
                f"the episode ended without info[{self.key!r}], the named success_key {has}. "
                "Correct the key, or pass missing_success_is_failure=True if it is only there on "
                "success."
            )
        return SignalError(
            "the episode ended without a success signal: its info has no "
            f"{' or '.join(map(repr, USUAL_KEYS))} {has}. Name the right key with success_key=…, "
            "give a return_threshold=…, or pass missing_success_is_failure=True if the key is only "
            "there on success."
        )


def unreadable(key: str, value: Any) -> SignalError:
    """Return the error for a signal that is not a number."""
    return SignalError(
        f"info[{key!r}] is {shown(value)}; expected a bool or a number in [0, 1]. "
        "Name another key with success_key=…."
    )
