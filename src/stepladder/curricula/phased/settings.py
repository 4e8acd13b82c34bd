"""Settings of a phase that are drawn anew for every episode.

Part of a phase's config; resolved by each client through `PhasedLegend`, so that env 3 may meet
the weak opponent while env 4 meets the strong one. A setting overrides the task's params at a
dotted path. What is drawn depends only on seed, env and episode, never on who asks.
"""

import math
from dataclasses import dataclass
from typing import Any

from stepladder.configs.checks import is_finite, require_whole
from stepladder.errors import ConfigError, shown
from stepladder.plans.philox import SETTING_STREAM, uniform_and_seed


@dataclass(frozen=True)
class Mixed:
    """One of several values, drawn per episode."""

    values: tuple[Any, ...]
    """What to choose from."""

    weights: tuple[float, ...] = ()
    """How likely each is; need not sum to one. Empty means alike."""

    def __post_init__(self) -> None:
        if not self.values:
            raise ConfigError("a mixed setting needs at least one value; got none.")
        if self.weights and len(self.weights) != len(self.values):
            raise ConfigError(
                f"a mixed setting has {len(self.values)} values and {len(self.weights)} weights; "
                "give one weight per value."
            )
        if self.weights and not (
            all(is_finite(w) and w >= 0 for w in self.weights)
            and 0 < sum(map(float, self.weights)) < math.inf
        ):
            raise ConfigError(
                f"the weights of a mixed setting must be 0 or more with a finite sum above 0; got "
                f"{shown(self.weights)}."
            )

    def at(self, uniform: float) -> Any:
        """Return the value for a number in [0, 1)."""
        weights = self.weights or (1.0,) * len(self.values)
        rest = uniform * sum(weights)
        chosen = self.values[0]
        for value, weight in zip(self.values, weights, strict=True):
            if weight > 0:
                chosen = value
                if rest < weight:
                    break
                rest -= weight
        return chosen


@dataclass(frozen=True, kw_only=True)
class Ramp:
    """A number that stays at its start for a while, then moves evenly to its end.

    Counted in episodes of the phase: ``start`` until `hold_episodes`, ``end`` from
    `hold_episodes` + `ramp_episodes` on, a straight line between.
    """

    start: float
    end: float
    hold_episodes: int = 0
    ramp_episodes: int = 1

    def __post_init__(self) -> None:
        if not (is_finite(self.start) and is_finite(self.end)):
            raise ConfigError(
                f"a ramp must be finite; got {shown(self.start)} to {shown(self.end)}."
            )
        require_whole("hold_episodes of a ramp", self.hold_episodes, 0)
        require_whole("ramp_episodes of a ramp", self.ramp_episodes, 1)

    def at(self, episode: float) -> float:
        """Return the value in the given episode of the phase."""
        done = min(1.0, max(0.0, (episode - self.hold_episodes) / self.ramp_episodes))
        return (1.0 - done) * self.start + done * self.end


def resolve(
    settings: dict[str, Any],
    phase_episode: float,
    seed: int,
    env_index: int,
    episode: int,
    first_stream: int = SETTING_STREAM,
) -> dict[str, Any]:
    """Return the values of all settings for one episode of one env, each from its own stream."""
    values: dict[str, Any] = {}
    for number, (path, setting) in enumerate(sorted(settings.items())):
        if isinstance(setting, Mixed):
            uniform, _ = uniform_and_seed(seed, env_index, episode, first_stream + number)
            values[path] = setting.at(uniform)
        elif isinstance(setting, Ramp):
            values[path] = setting.at(phase_episode)
        else:
            values[path] = setting
    return values
