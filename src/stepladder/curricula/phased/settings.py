"""Settings of a phase that are drawn for every episode.

Part of a phase's config; resolved by each client through `PhasedLegend`, so that env 3 may meet
the weak opponent while env 4 meets the strong one. A setting overrides the task's params at a
dotted path. What is drawn depends only on seed, env and episode, never on the caller.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from stepladder.arrays import Floats
from stepladder.configs.checks import NotNegative, NotNegativeInteger, PositiveInteger, not_empty
from stepladder.configs.codec import Config
from stepladder.errors import shown
from stepladder.plans.legend import Legend
from stepladder.plans.philox import SETTING_STREAM, uniform_and_seed
from stepladder.records import Fields


class PhaseDials(Fields):
    """The dials of a phased curriculum; those of the curricula inside follow."""

    phase: float
    num_episodes: float
    """Of the phase so far."""


PHASE_DIALS = PhaseDials.dtype


def dials_from(dials: Floats, first_dial: int) -> np.void:
    """Return the dials of a phased curriculum by name, in the memory of all dials."""
    return dials[first_dial : first_dial + PhaseDials.num_words].view(PHASE_DIALS)[0]


MAX_SETTINGS = 2**16
"""Streams set apart for the settings of each phased curriculum in a plan."""


@dataclass(frozen=True)
class Mixed(Config):
    """One of several values, drawn per episode."""

    values: Annotated[tuple[Any, ...], not_empty]
    """What to choose from."""

    weights: tuple[NotNegative, ...] = ()
    """How likely each is; need not sum to one. Empty means equally likely."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield weights that do not belong to the values."""
        if not self.weights:
            return
        if len(self.weights) != len(self.values):
            yield (
                "weights",
                f"has {len(self.weights)} weights for {len(self.values)} values; give one each.",
            )
        elif not 0.0 < sum(self.weights) < math.inf:
            yield (
                "weights",
                f"must be 0 or more with a finite sum above 0; got {shown(self.weights)}.",
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
class Ramp(Config):
    """A number that stays at its start for a while, then moves evenly to its end.

    Counted in episodes of the phase: ``start`` until `hold_episodes`, ``end`` from
    `hold_episodes` + `ramp_episodes` on, a straight line between.
    """

    start: float
    end: float
    hold_episodes: NotNegativeInteger = 0
    ramp_episodes: PositiveInteger = 1

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


@dataclass(frozen=True, kw_only=True)
class PhasedLegend(Legend):
    """A plan with phases: the first dial is the phase, the second its episodes so far."""

    first_dial: int
    names: tuple[str, ...]
    legends: tuple[Legend, ...]
    phase_settings: tuple[dict[str, Any], ...]

    @property
    def has_settings(self) -> bool:
        """Whether any phase has settings."""
        inner = any(legend.has_settings for legend in self.legends)
        return inner or any(self.phase_settings)

    def _phase(self, dials: Floats) -> int:
        return int(dials_from(dials, self.first_dial)["phase"])

    def stage_of(self, label: str, dials: Floats) -> str:
        """Return the stage of a label, as the curriculum inside the phase sees it."""
        return self.legends[self._phase(dials)].stage_of(label, dials)

    def current_stage(self, dials: Floats) -> str | None:
        """Return the stage in force, if the phase has stages."""
        return self.legends[self._phase(dials)].current_stage(dials)

    def current_phase(self, dials: Floats) -> str | None:
        """Return the phase in force."""
        return self.names[self._phase(dials)]

    def mixing_ratio(self, stage: str, dials: Floats) -> float:
        """Return the mixing ratio of a stage, if the phase has stages."""
        return self.legends[self._phase(dials)].mixing_ratio(stage, dials)

    def settings(self, dials: Floats, seed: int, env_index: int, episode: int) -> dict[str, Any]:
        """Return the settings of one episode, those of the inner curriculum included."""
        phase = self._phase(dials)
        inner = self.legends[phase].settings(dials, seed, env_index, episode)
        done = float(dials_from(dials, self.first_dial)["num_episodes"])
        # Nested curricula have other dials, and so other streams: no two settings go together.
        stream = SETTING_STREAM + MAX_SETTINGS * self.first_dial
        own = resolve(self.phase_settings[phase], done, seed, env_index, episode, stream)
        return {**inner, **own}
