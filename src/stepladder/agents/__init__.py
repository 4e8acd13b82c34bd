"""Who learns: batched agents in torch, and players that only play.

Below `training`, which feeds them what vector envs return; they know nothing of envs, curricula or
runs. Names are imported when first used: most of them load torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepladder.agents.base import Agent, AgentState, VectorStep
    from stepladder.agents.config import (
        AgentConfig,
        DDDQNConfig,
        PPOConfig,
        SACConfig,
        register_agent,
    )
    from stepladder.agents.dddqn import DDDQN
    from stepladder.agents.making import make_agent
    from stepladder.agents.player import Player, make_player
    from stepladder.agents.policy import Policy
    from stepladder.agents.ppo import PPO
    from stepladder.agents.sac import SAC

_HOMES = {
    "Agent": "base",
    "AgentConfig": "config",
    "AgentState": "base",
    "DDDQN": "dddqn",
    "DDDQNConfig": "config",
    "PPO": "ppo",
    "PPOConfig": "config",
    "Player": "player",
    "Policy": "policy",
    "SAC": "sac",
    "SACConfig": "config",
    "VectorStep": "base",
    "make_agent": "making",
    "make_player": "player",
    "register_agent": "config",
}

__all__ = [
    "DDDQN",
    "PPO",
    "SAC",
    "Agent",
    "AgentConfig",
    "AgentState",
    "DDDQNConfig",
    "PPOConfig",
    "Player",
    "Policy",
    "SACConfig",
    "VectorStep",
    "make_agent",
    "make_player",
    "register_agent",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"stepladder.agents.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'stepladder.agents' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
