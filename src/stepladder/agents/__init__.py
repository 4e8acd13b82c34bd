"""Agents that learn in batches, in torch, and players that only play.

Below `training`, which gives them what vector envs return; they do not depend on envs, curricula or
runs. One folder per agent; `replay` is shared by those that learn from stored transitions. Names
are imported when first used: most of them load torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepladder.agents.base import Agent, AgentState, VectorStep, make_agent
    from stepladder.agents.config import AgentConfig, register_agent
    from stepladder.agents.dddqn.config import DDDQNConfig
    from stepladder.agents.dddqn.dddqn import DDDQN
    from stepladder.agents.player import Player, make_player
    from stepladder.agents.policy import Policy
    from stepladder.agents.ppo.config import PPOConfig
    from stepladder.agents.ppo.ppo import PPO
    from stepladder.agents.sac.config import SACConfig
    from stepladder.agents.sac.sac import SAC
    from stepladder.agents.vision.config import VisionConfig

_HOMES = {
    "Agent": "base",
    "AgentConfig": "config",
    "AgentState": "base",
    "DDDQN": "dddqn.dddqn",
    "DDDQNConfig": "dddqn.config",
    "PPO": "ppo.ppo",
    "PPOConfig": "ppo.config",
    "Player": "player",
    "Policy": "policy",
    "SAC": "sac.sac",
    "SACConfig": "sac.config",
    "VectorStep": "base",
    "VisionConfig": "vision.config",
    "make_agent": "base",
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
    "VisionConfig",
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
