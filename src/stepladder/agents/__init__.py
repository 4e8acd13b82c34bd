"""Agents that learn in batches, in torch, and players that only play.

Below `training`, which gives them what vector envs return; they do not depend on envs, curricula or
runs. One folder per agent; `replay` is shared by those that learn from stored transitions. Names
are imported when first used: most of them load torch.
"""

from typing import TYPE_CHECKING

from stepladder.lazy import lazy_names

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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "stepladder.agents.base": "Agent AgentState VectorStep make_agent",
        "stepladder.agents.config": "AgentConfig register_agent",
        "stepladder.agents.dddqn.config": "DDDQNConfig",
        "stepladder.agents.dddqn.dddqn": "DDDQN",
        "stepladder.agents.player": "Player make_player",
        "stepladder.agents.policy": "Policy",
        "stepladder.agents.ppo.config": "PPOConfig",
        "stepladder.agents.ppo.ppo": "PPO",
        "stepladder.agents.sac.config": "SACConfig",
        "stepladder.agents.sac.sac": "SAC",
        "stepladder.agents.vision.config": "VisionConfig",
    },
)
