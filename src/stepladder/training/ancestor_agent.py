"""An agent as the ancestor writes it, as the config of ours.

Part of `ancestor_config`. What is left out is as it was there: the ancestor's defaults differ from
ours in places, and a file must mean what it meant.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stepladder.agents.config import AgentConfig, DDDQNConfig, SACConfig
from stepladder.errors import ConfigError, shown
from stepladder.training.problems import join
from stepladder.training.sections import Section

REFUSED = {
    "TD3": "TD3 is not among the agents here; the published trainer refused it too, though later. "
    "Use SAC, which has the same actions.",
    "DDQN_PER": "DDQN_PER is DDDQN here; write that, with use_per true among its hyperparameters.",
}
"""Agents that somebody may well ask for, and why there are none."""

SPELLINGS = {
    "hidden_dim": ("hidden_dims", "hidden_sizes", "hidden_layers", "layers"),
    "discount": ("gamma",),
    "target_update_freq": ("target_update_frequency", "target_sync"),
    "eps": ("epsilon", "eps_start", "epsilon_start"),
    "eps_min": ("epsilon_min", "eps_end", "epsilon_final"),
    "eps_decay": ("epsilon_decay",),
    "grad_clip": ("max_grad_norm",),
}
"""The ancestor's names, and others that its users write."""


@dataclass(frozen=True)
class Surroundings:
    """What the rest of the document says that concerns the agent."""

    updates_per_step: float
    warmup_steps: int
    mirror: bool
    steps_of: Callable[[float], int]
    """Env steps of the first so many episodes."""


def read_agent(
    document: Section, around: Surroundings
) -> tuple[AgentConfig | None, dict[str, Any]]:
    """Return the agent, or None if that is impossible, and the arguments it needs of the env."""
    document.require("agent")
    agent, common = document.section("agent"), document.section("hyperparameters")
    kind = _kind(agent) if document.has("agent") and agent.is_object else None
    own = _spelt(agent.section("hyperparameters"))
    agent.close()
    shared = {
        "learning_rate": _common(common, own, "learning_rate", common.positive, own.positive),
        "batch_size": _common(common, own, "batch_size", common.whole, own.whole),
        "buffer_size": own.whole("buffer_size", 1_000_000),
        "gamma": own.number("discount", 0.99, low=0.0, high=1.0),
        "updates_per_step": around.updates_per_step,
        "warmup_steps": around.warmup_steps,
        "mirror": around.mirror,
    }
    common.close()
    if kind is None:
        return None, {}
    env_kwargs = _env_kwargs(own) if kind is DDDQNConfig else {}
    read = _dddqn if kind is DDDQNConfig else _sac
    settings = {**shared, **read(own, around)}
    _refuse_foreign(own, kind)
    own.close()
    said = {name: value for name, value in settings.items() if value is not None}
    try:
        return kind(**said), env_kwargs
    except ConfigError as error:
        own.refuse(None, str(error))
        return None, {}


def _kind(agent: Section) -> type[DDDQNConfig] | type[SACConfig] | None:
    kinds = {"DDDQN": DDDQNConfig, "SAC": SACConfig}
    if not agent.require("type"):
        return None
    name = agent.values["type"]
    if isinstance(name, str) and name in REFUSED:
        agent.refuse("type", REFUSED[name])
        return None
    return kinds.get(agent.choice("type", list(kinds), ""))


def _spelt(section: Section) -> Section:
    """Return the same settings, each under the ancestor's name."""
    values = dict(section.values)
    for name, others in SPELLINGS.items():
        for other in others:
            if other not in values:
                continue
            value = values.pop(other)
            if values.setdefault(name, value) != value:
                section.refuse(other, f"is another name of {name}, which says otherwise. Keep one.")
    return Section(values, section.path, section.problems)


def _common(
    common: Section,
    own: Section,
    name: str,
    of_common: Callable[[str, Any], Any],
    of_own: Callable[[str, Any], Any],
) -> Any:
    """Return a setting that two places may have; None if neither has."""
    theirs, mine = of_common(name, None), of_own(name, None)
    if theirs is not None and mine is not None and theirs != mine:
        own.refuse(
            name,
            f"is {mine:g} and {join(common.path, name)} is {theirs:g}. Keep one of them.",
        )
    return theirs if mine is None else mine


def _env_kwargs(own: Section) -> dict[str, Any]:
    fineness = own.whole("action_fineness", 1)
    if fineness == 2:
        own.refuse("action_fineness", "must be 1 or at least 3; got 2.")
    kwargs: dict[str, Any] = {"actions": "discrete"}
    return kwargs if fineness == 1 else {**kwargs, "fineness": fineness}


def _dddqn(own: Section, around: Surroundings) -> dict[str, Any]:
    if own.has("reward_clip"):
        own.refuse("reward_clip", "is not offered; rewards are scaled by training.reward_scale.")
    is_huber, is_prioritised = own.truth("use_huber_loss", False), own.truth("use_per", False)
    correction = own.number("per_beta", 0.4, low=0.0, high=1.0)
    return {
        "hidden_sizes": _widths(own, (256, 256)),
        "target_every_updates": own.whole("target_update_freq", 50),
        "max_grad_norm": own.positive("grad_clip", 1.0),
        "loss": "huber" if is_huber else "mse",
        "prioritised": is_prioritised,
        "priority_exponent": own.number("per_alpha", 0.6, low=0.0, high=1.0),
        "priority_correction": correction,
        # There it grows by a ten-thousandth with every update.
        "priority_correction_updates": max(1, round((1.0 - correction) * 10_000)),
        **_exploration(own, around),
    }


def _exploration(own: Section, around: Surroundings) -> dict[str, Any]:
    """Return how the share of random actions falls.

    The ancestor multiplies it by ``eps_decay`` at every episode until it is ``eps_min``. Ours falls
    along a straight line over env steps. The line is as long as makes the number of random actions
    beyond ``eps_min`` the same, an episode being as long as it can be: with ``r = -ln(eps_decay)``
    the curve meets ``eps_min`` after ``n = ln(eps / eps_min) / r`` episodes; the area between is
    ``(eps - eps_min) / r - eps_min * n``; the line's is half its length times the difference.
    """
    start, final = (
        own.number("eps", 1.0, low=0.0, high=1.0),
        own.number("eps_min", 0.01, low=0.0, high=1.0),
    )
    decay = own.number("eps_decay", 0.9995, low=0.0, high=1.0)
    if "eps_decay" in own.values and own.values["eps_decay"] is None:
        decay = 1.0
    if decay == 1.0 or start <= final:
        # It never falls; or it is at its end from the first episode on.
        level = start if decay == 1.0 else final
        return {"epsilon_start": level, "epsilon_final": level, "epsilon_steps": 1}
    if decay == 0.0:
        return {"epsilon_start": final, "epsilon_final": final, "epsilon_steps": 1}
    rate = -math.log(decay)
    # Not the logarithm of a ratio, which overflows where `final` is tiny.
    meets = (math.log(start) - math.log(final)) / rate if final > 0 else 0.0
    num_episodes = 2.0 * (1.0 / rate - final * meets / (start - final))
    return {
        "epsilon_start": start,
        "epsilon_final": final,
        "epsilon_steps": around.steps_of(num_episodes),
    }


def _sac(own: Section, around: Surroundings) -> dict[str, Any]:
    is_learnt, alpha = own.truth("learn_alpha", True), own.positive("alpha", 0.2)
    return {
        "hidden_sizes": _widths(own, (256, 256, 256)),
        "tau": own.number("tau", 0.005, low=0.0, high=1.0),
        "learn_temperature": is_learnt,
        # Where it is learnt, the ancestor begins with 1, whatever alpha says.
        "initial_temperature": 1.0 if is_learnt else alpha,
        "noise": own.choice("noise", ("normal", "pink"), "normal"),
        "pink_steps": own.whole("max_episode_steps", 1_000, 2),
    }


def _widths(own: Section, default: tuple[int, ...]) -> tuple[int, ...]:
    """Return the widths of hidden layers; one number is that of each."""
    if not own.has("hidden_dim"):
        return default
    value = own.values["hidden_dim"]
    if not isinstance(value, list):
        return (own.whole("hidden_dim", 1),) * len(default)
    if value and all(isinstance(width, list) for width in value):
        own.refuse("hidden_dim", "is a list of networks to try; a training has one. Choose one.")
        return default
    if not value or not all(type(width) is int and width >= 1 for width in value):
        own.refuse("hidden_dim", f"must be widths of layers; got {shown(value)}.")
        return default
    return tuple(value)


def _refuse_foreign(own: Section, kind: type[AgentConfig]) -> None:
    """Say of a setting of the other agent whose it is."""
    other, names = (
        ("SAC", ("tau", "alpha", "learn_alpha", "noise", "max_episode_steps"))
        if kind is DDDQNConfig
        else (
            "DDDQN",
            ("action_fineness", "eps", "eps_min", "eps_decay", "target_update_freq"),
        )
    )
    for name in names:
        if name in own.values:
            own.has(name)
            own.refuse(name, f"unknown key. It is a setting of {other}, and this is {kind.kind}.")
