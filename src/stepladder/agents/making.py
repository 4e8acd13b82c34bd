"""The agent that a config describes, if there is room for it.

Where `training` gets its agent. Which kind it is, the config decides (`AgentConfig.make`).
"""

from typing import Any

import torch
from gymnasium.spaces import Space

from stepladder.agents.base import Agent, checked_device
from stepladder.agents.config import AgentConfig
from stepladder.agents.mirror import Mirror
from stepladder.agents.observations import Layout
from stepladder.agents.room import require_room_for_networks


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
    require_room_for_networks(config, layout, action_space, there)
    return config.make(
        observation_space, action_space, num_envs, device=there, seed=seed, mirror=mirror
    )
