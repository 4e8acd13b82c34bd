"""The agent that a config describes.

Where `training` gets its agent; the only place that knows all kinds.
"""

from typing import Any

import torch
from gymnasium.spaces import Space

from stepladder.agents.base import Agent, checked_device
from stepladder.agents.config import AgentConfig, DDDQNConfig, PPOConfig, SACConfig
from stepladder.agents.dddqn import DDDQN
from stepladder.agents.mirror import Mirror
from stepladder.agents.observations import Layout
from stepladder.agents.ppo import PPO
from stepladder.agents.room import require_room_for_networks
from stepladder.agents.sac import SAC
from stepladder.errors import ConfigError


def make_agent(
    config: AgentConfig,
    observation_space: Space[Any],
    action_space: Space[Any],
    num_envs: int,
    *,
    device: str | torch.device = "cpu",
    seed: int = 0,
    mirror: Mirror | None = None,
) -> Agent:
    """Make an agent.

    Args:
        config: Its settings; their kind decides which agent.
        observation_space: Of one env.
        action_space: Of one env.
        num_envs: How many envs it plays.
        device: Where it computes: "cpu", "cuda", "cuda:1", or "auto".
        seed: Of everything that it draws.
        mirror: How a transition looks in a mirror, where the env has one.

    Raises:
        ConfigError: The agent cannot play such an env.
    """
    layout, there = Layout(observation_space), checked_device(device)
    if isinstance(config, PPOConfig | SACConfig | DDDQNConfig):
        require_room_for_networks(config, layout, action_space, there)
    settings: dict[str, Any] = {"device": there, "seed": seed}
    if isinstance(config, PPOConfig):
        return PPO(config, observation_space, action_space, num_envs, **settings)
    if isinstance(config, SACConfig):
        return SAC(config, observation_space, action_space, num_envs, mirror=mirror, **settings)
    if isinstance(config, DDDQNConfig):
        return DDDQN(config, observation_space, action_space, num_envs, mirror=mirror, **settings)
    raise ConfigError(f"{type(config).__name__} describes no agent; use one of its kinds.")
