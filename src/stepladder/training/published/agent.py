"""An agent as the published trainer writes it, and as a config of ours.

Used by `config`. A setting that is left out has the published default, which differs from ours in
places: a file must mean what it meant.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from stepladder.agents.config import AgentConfig
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.sac.config import SACConfig
from stepladder.configs.checks import (
    Integer,
    Positive,
    PositiveInteger,
    UnitInterval,
    is_integer,
    not_empty,
)
from stepladder.configs.codec import UNREAD, Kinds
from stepladder.configs.problems import Problems
from stepladder.training.published.phases import PublishedPart

REFUSED_ALGORITHMS = {
    "TD3": "TD3 is not among the agents here; the published trainer refused it too, though later. "
    "Use SAC, which has the same actions.",
    "DDQN_PER": "DDQN_PER is DDDQN here; write that, with use_per true among its hyperparameters.",
}
"""Agents that a user may well ask for, and why there are none."""

SPELLINGS = {
    "hidden_dim": ("hidden_dims", "hidden_sizes", "hidden_layers", "layers"),
    "discount": ("gamma",),
    "target_update_freq": ("target_update_frequency", "target_sync"),
    "eps": ("epsilon", "eps_start", "epsilon_start"),
    "eps_min": ("epsilon_min", "eps_end", "epsilon_final"),
    "eps_decay": ("epsilon_decay",),
    "grad_clip": ("max_grad_norm",),
}
"""The published names, and others that users write."""

Widths = Annotated[tuple[PositiveInteger, ...], not_empty]
StepsOf = Callable[[float], int]
"""Returns the env steps of the first so many episodes."""


@dataclass(frozen=True, kw_only=True)
class Common(PublishedPart):
    """Hyperparameters that a file may have outside its agent."""

    learning_rate: Positive | None = None
    batch_size: PositiveInteger | None = None


@dataclass(frozen=True, kw_only=True)
class Hyperparameters(Common):
    """Settings of either agent."""

    NUM_LAYERS: ClassVar[int]
    """Layers where one number is the width of each."""

    FOREIGN: ClassVar[tuple[str, tuple[str, ...]]]
    """The other agent, and those of its settings that this one has not."""

    buffer_size: PositiveInteger = 1_000_000
    discount: UnitInterval = 0.99

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Return the settings under their published names."""
        given = super().expand(value, problems)
        if not isinstance(given, dict):
            return given
        for name, others in SPELLINGS.items():
            for other in others:
                if other in given and given.setdefault(name, given[other]) != given[other]:
                    text = f"is another name of {name}, which says otherwise. Keep one."
                    problems.at(other).add(text)
                given.pop(other, None)
        agent, names = cls.FOREIGN
        for name in names:
            if given.pop(name, None) is not None:
                problems.at(name).add(f"unknown key. It is a setting of {agent}. Remove it.")
        if is_integer(given.get("hidden_dim")):
            given["hidden_dim"] = [given["hidden_dim"]] * cls.NUM_LAYERS
        return given


@dataclass(frozen=True, kw_only=True)
class DDDQNHyperparameters(Hyperparameters):
    """Settings of the published DDDQN."""

    NUM_LAYERS = 2
    FOREIGN = ("SAC", ("tau", "alpha", "learn_alpha", "noise", "max_episode_steps"))

    hidden_dim: Widths = (256, 256)
    target_update_freq: PositiveInteger = 50
    grad_clip: Positive = 1.0
    use_huber_loss: bool = False
    use_per: bool = False
    per_alpha: UnitInterval = 0.6
    per_beta: UnitInterval = 0.4
    eps: UnitInterval = 1.0
    eps_min: UnitInterval = 0.01
    eps_decay: UnitInterval = 0.9995
    action_fineness: PositiveInteger = 1

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Say why `reward_clip` is refused; a decay of null never decays."""
        given = super().expand(value, problems)
        if isinstance(given, dict):
            names = ("eps_decay", *SPELLINGS["eps_decay"])
            if any(value.get(name, ...) is None for name in names):
                given.setdefault("eps_decay", 1.0)
            if given.pop("reward_clip", None) is not None:
                text = "is not offered; rewards are scaled by training.reward_scale."
                problems.at("reward_clip").add(text)
        return given

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield a grid of actions that has no middle."""
        if self.action_fineness == 2:
            yield "action_fineness", "must be 1 or at least 3; got 2."

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """Arguments that the env needs."""
        discrete = {"actions": "discrete"}
        if self.action_fineness == 1:
            return discrete
        return {**discrete, "fineness": self.action_fineness}

    def converted(self, shared: dict[str, Any], steps_of: StepsOf) -> AgentConfig:
        """Return the agent as ours."""
        return DDDQNConfig(
            **shared,
            hidden_sizes=self.hidden_dim,
            target_every_updates=self.target_update_freq,
            max_grad_norm=self.grad_clip,
            loss="huber" if self.use_huber_loss else "mse",
            prioritised=self.use_per,
            priority_exponent=self.per_alpha,
            priority_correction=self.per_beta,
            # There it grows by a ten-thousandth with every update.
            priority_correction_updates=max(1, round((1.0 - self.per_beta) * 10_000)),
            **self._exploration(steps_of),
        )

    def _exploration(self, steps_of: StepsOf) -> dict[str, Any]:
        """Return how the share of random actions falls.

        The published trainer multiplies it by ``eps_decay`` at every episode until it is
        ``eps_min``. Ours falls along a straight line over env steps. The line is as long as makes
        the number of random actions beyond ``eps_min`` the same, an episode being as long as it can
        be: with ``r = -ln(eps_decay)`` the curve meets ``eps_min`` after ``n = ln(eps / eps_min) /
        r`` episodes; the area between is ``(eps - eps_min) / r - eps_min * n``; the line's is half
        its length times the difference.
        """
        start, final, decay = self.eps, self.eps_min, self.eps_decay
        if decay in (0.0, 1.0) or start <= final:
            # It never falls; or it is at its end from the first episode on.
            level = start if decay == 1.0 else final
            return {"epsilon_start": level, "epsilon_final": level, "epsilon_steps": 1}
        rate = -math.log(decay)
        # Not the logarithm of a ratio, which overflows where `final` is tiny.
        meets = (math.log(start) - math.log(final)) / rate if final > 0 else 0.0
        steps = steps_of(2.0 * (1.0 / rate - final * meets / (start - final)))
        return {"epsilon_start": start, "epsilon_final": final, "epsilon_steps": steps}


@dataclass(frozen=True, kw_only=True)
class SACHyperparameters(Hyperparameters):
    """Settings of the published SAC."""

    NUM_LAYERS = 3
    FOREIGN = ("DDDQN", ("action_fineness", "eps", "eps_min", "eps_decay", "target_update_freq"))

    env_kwargs: ClassVar[dict[str, Any]] = {}

    hidden_dim: Widths = (256, 256, 256)
    tau: UnitInterval = 0.005
    alpha: Positive = 0.2
    learn_alpha: bool = True
    noise: Literal["normal", "pink"] = "normal"
    max_episode_steps: Annotated[int, Integer(2)] = 1_000

    def converted(self, shared: dict[str, Any], steps_of: StepsOf) -> AgentConfig:
        """Return the agent as ours."""
        return SACConfig(
            **shared,
            hidden_sizes=self.hidden_dim,
            tau=self.tau,
            learn_temperature=self.learn_alpha,
            # Where it is learnt, the published trainer begins with 1, whatever alpha says.
            initial_temperature=1.0 if self.learn_alpha else self.alpha,
            noise=self.noise,
            pink_steps=self.max_episode_steps,
        )


@dataclass(frozen=True, kw_only=True)
class PublishedAgent(PublishedPart):
    """Who learns, by its type."""

    hyperparameters: DDDQNHyperparameters | SACHyperparameters

    @classmethod
    def kinds(cls) -> Kinds:
        """Return the agents by the name under "type"."""
        return {"DDDQN": PublishedDDDQN, "SAC": PublishedSAC}

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Say why an agent that a user may well ask for is not there."""
        given = super().expand(value, problems)
        name = given.get("type") if isinstance(given, dict) else None
        if isinstance(name, str) and name in REFUSED_ALGORITHMS:
            problems.at("type").add(REFUSED_ALGORITHMS[name])
            return UNREAD
        return given


@dataclass(frozen=True, kw_only=True)
class PublishedDDDQN(PublishedAgent):
    """The published DDDQN."""

    hyperparameters: DDDQNHyperparameters = field(default_factory=DDDQNHyperparameters)


@dataclass(frozen=True, kw_only=True)
class PublishedSAC(PublishedAgent):
    """The published SAC."""

    hyperparameters: SACHyperparameters = field(default_factory=SACHyperparameters)
