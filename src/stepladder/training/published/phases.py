"""Phases as the published trainer writes them, and as phases of a `PhasedConfig`.

Used by `config`. A phase there has an env mode, an opponent and a schedule of rewards; here these
are settings of the phase, drawn for every episode of every env.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from stepladder.configs.checks import (
    Name,
    NotNegative,
    NotNegativeInteger,
    OneOf,
    PositiveInteger,
    not_empty,
)
from stepladder.configs.codec import Config
from stepladder.configs.problems import Problems
from stepladder.curricula.phased.config import Phase
from stepladder.curricula.phased.settings import Mixed, Ramp
from stepladder.games.game import CALLED
from stepladder.games.hockey.rules import LIMIT, TRAINING_LIMIT
from stepladder.games.hockey.task import MODES

SCRIPTED_NAMES = {"none": "none", "basic_weak": "weak", "basic_strong": "strong"}
NEURAL_TYPES = {"archive": f"{CALLED}archive", "run_checkpoints": f"{CALLED}pool"}
MIXTURE, SELF_PLAY_MODE = "weighted_mixture", "self_play"
TYPES = (*SCRIPTED_NAMES, SELF_PLAY_MODE, *NEURAL_TYPES)

TOLERANCE = 0.01
"""How far from 1 the weights of a mixture of opponents may sum."""

SHAPING = (
    ("closeness_weight", "CLOSENESS_START", "CLOSENESS_FINAL"),
    ("touch_weight", "TOUCH_START", "TOUCH_FINAL"),
    ("direction_weight", "DIRECTION_START", "DIRECTION_FINAL"),
)
"""A hockey task's weight of a reward, and the keys of its first and its last value."""

Mode = Annotated[str, OneOf(tuple(MODES))]


class PublishedPart(Config):
    """One object of a published config: null says nothing, and 5.0 is an integer."""

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Leave out what is null, and write integers as such."""
        if not isinstance(value, Mapping):
            return value
        return {
            key: int(entry) if isinstance(entry, float) and entry.is_integer() else entry
            for key, entry in value.items()
            if entry is not None
        }


@dataclass(frozen=True, kw_only=True)
class WeightedMode(PublishedPart):
    """A mode of hockey in a mixture."""

    mode: Mode
    weight: NotNegative = 1.0


@dataclass(frozen=True, kw_only=True)
class Environment(PublishedPart):
    """How a game begins."""

    mode: Mode | None = None
    mixture: Annotated[tuple[WeightedMode, ...], not_empty] | None = None
    keep_mode: bool = True

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield a mode that is missing, or given twice."""
        if self.mixture is None and self.mode is None:
            yield "mode", "is missing. Give it, or a mixture."
        if self.mixture is not None and self.mode is not None:
            yield "mixture", "is there beside mode. Give one of them."
        if self.mixture is not None and not any(entry.weight > 0 for entry in self.mixture):
            yield "mixture", "has no weight above 0. Give at least one."

    def settings(self) -> dict[str, Any]:
        """Return the settings of a phase."""
        entries = self.mixture or (WeightedMode(mode=self.mode or "NORMAL"),)
        mode = _mixed([(entry.mode, entry.weight) for entry in entries])
        return {"mode": mode} if self.keep_mode else {"mode": mode, "keep_mode": False}


@dataclass(frozen=True, kw_only=True)
class PublishedOpponent(PublishedPart):
    """Who plays the other side: one opponent, or several as a mixture."""

    type: Annotated[str, OneOf((*TYPES, MIXTURE))]
    weight: NotNegative = 1.0
    checkpoint: Name = "latest"
    deterministic: bool | None = None
    agent_type: Name | None = None
    opponents: "tuple[PublishedOpponent, ...] | None" = None

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Leave out what a program writes beside a mixture, and say why `distribution` is wrong."""
        given = super().expand(value, problems)
        if isinstance(given, dict) and given.get("type") == MIXTURE:
            for name in ("weight", "checkpoint", "deterministic"):
                given.pop(name, None)
        if isinstance(given, dict) and given.get("type") == "archive" and "distribution" in given:
            del given["distribution"]
            problems.at("distribution").add(
                "cannot be chosen: whom of the archive to play follows from the results so far. "
                "Leave it out."
            )
        return given

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield keys of another type, and a mixture whose weights do not sum to 1."""
        if self.agent_type is not None and (self.type in SCRIPTED_NAMES or self.type == MIXTURE):
            yield "agent_type", f"unknown key. The type {self.type} has no agent. Remove it."
        if self.type != MIXTURE:
            if self.opponents is not None:
                yield "opponents", f"belongs to the type {MIXTURE}. Remove it, or say that."
            return
        if not self.opponents:
            yield "opponents", "must be a list with at least one entry. Name the opponents."
            return
        for index, entry in enumerate(self.opponents):
            if entry.type == MIXTURE:
                known = ", ".join(TYPES)
                yield f"opponents[{index}].type", f"must be one of {known}; got {MIXTURE!r}."
        total = sum(entry.weight for entry in self.opponents)
        if abs(total - 1.0) > TOLERANCE:
            yield "opponents", f"has weights that sum to {total:g}; they must sum to 1."

    def entries(self) -> "tuple[tuple[str, PublishedOpponent], ...]":
        """Return the path, from this one, and the opponent of each entry of a mixture."""
        if self.opponents is None:
            return (("", self),)
        return tuple((f".opponents[{index}]", entry) for index, entry in enumerate(self.opponents))

    @property
    def name(self) -> str:
        """What a hockey task calls this opponent."""
        if self.type in SCRIPTED_NAMES:
            return SCRIPTED_NAMES[self.type]
        newest = "newest" if self.checkpoint == "latest" else self.checkpoint
        return NEURAL_TYPES.get(self.type, f"{CALLED}{newest}")


@dataclass(frozen=True, kw_only=True)
class Shaping(PublishedPart):
    """Weights of rewards that stay for N episodes of the phase and move for K more."""

    N: NotNegativeInteger
    K: NotNegativeInteger
    CLOSENESS_START: float
    TOUCH_START: float
    CLOSENESS_FINAL: float
    TOUCH_FINAL: float
    DIRECTION_FINAL: float
    DIRECTION_START: float = 0.0

    def settings(self) -> dict[str, Any]:
        """Return the settings of a phase."""
        found: dict[str, Any] = {}
        for name, first, last in SHAPING:
            start, end = getattr(self, first), getattr(self, last)
            if self.K > 0:
                found[name] = Ramp(start=start, end=end, hold_episodes=self.N, ramp_episodes=self.K)
            else:
                # Without a ramp the last value holds from episode N on.
                hold = self.N - 1
                found[name] = end if hold < 0 else Ramp(start=start, end=end, hold_episodes=hold)
        return found


@dataclass(frozen=True, kw_only=True)
class PublishedPhase(PublishedPart):
    """A time slice of the training."""

    name: Name
    episodes: PositiveInteger
    environment: Environment
    opponent: PublishedOpponent
    reward_shaping: Shaping | None = None
    clear_buffer: bool = True

    @property
    def longest(self) -> int:
        """Most steps that an episode can have."""
        mode = self.environment.settings()["mode"]
        modes = mode.values if isinstance(mode, Mixed) else (mode,)
        # A game lasts one step longer than its nominal limit.
        return 1 + max(LIMIT if mode == "NORMAL" else TRAINING_LIMIT for mode in modes)

    def converted(self) -> Phase:
        """Return the phase as ours."""
        opponents = [(entry.name, entry.weight) for _, entry in self.opponent.entries()]
        settings = {**self.environment.settings(), "opponent": _mixed(opponents)}
        if self.reward_shaping is not None:
            settings |= self.reward_shaping.settings()
        return Phase(name=self.name, episodes=self.episodes, settings=settings)


def _mixed(entries: list[tuple[str, float]]) -> Any:
    """Return a setting that draws from several values; a single one is itself."""
    drawn = [entry for entry in entries if entry[1] > 0] or entries[:1]
    if len(drawn) == 1:
        return drawn[0][0]
    return Mixed(tuple(value for value, _ in drawn), tuple(weight for _, weight in drawn))
