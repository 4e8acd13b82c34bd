"""Worlds without sense in which pictures, tiles and numbers are seen, and several things done."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space
from gymnasium.vector.utils import batch_space, create_empty_array
from torch import nn

from agents.small_worlds import REPLAY, ROLLOUT
from stepladder.agents.base import Agent, VectorStep, make_agent
from stepladder.agents.config import AgentConfig
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.sac.config import SACConfig
from stepladder.agents.vision.config import VisionConfig

SEEN = Dict(
    {
        "picture": Box(0, 255, (16, 18, 3), np.uint8),
        "map": Box(-1, 3, (5, 6), np.int8),
        "own": Box(-1.0, 1.0, (2,), np.float32),
        "keys": MultiBinary(3),
        "way": Discrete(3, start=1),
    }
)
VISION = VisionConfig(channels=(3, 4), features=5, tiles="convolved")
NUMBERS = Box(-2.0, 1.0, (2,), np.float32)
SEVERAL = MultiDiscrete([2, 3], start=[1, -1])


class OwnNetwork(nn.Module):
    """A user's network, with all that may be forgotten: statistics, dropout, frozen weights."""

    def __init__(self, space: Dict, width: int = 4):
        super().__init__()
        size = space["picture"].shape[-1] + 2
        self.layers = nn.Sequential(
            nn.Linear(size, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, width)
        )
        self.frozen = nn.Linear(2, 2).requires_grad_(False)

    def forward(self, seen: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return features: the mean colour, and what is frozen."""
        axes = tuple(range(1, seen["picture"].ndim - 1))
        colour = seen["picture"].float().mean(axes) / 255.0
        own = seen["own"] if seen["own"].ndim == 2 else seen["own"][:, -1]
        return self.layers(torch.cat([colour, self.frozen(own)], dim=1))


OWN: dict[str, Any] = {"encoder": OwnNetwork, "encoder_kwargs": {"width": 7}}

KINDS: dict[str, tuple[AgentConfig, Space[Any]]] = {
    "ppo, several choices, stacked": (
        PPOConfig(**ROLLOUT, vision=VISION, frame_stack=3, normalise_rewards=True), SEVERAL,
    ),
    "ppo, recurrent": (
        PPOConfig(**ROLLOUT, vision=VISION, recurrent=True, normalise_observations=True),
        MultiBinary(2),
    ),
    "ppo, own": (PPOConfig(**ROLLOUT, **OWN, frame_stack=2), NUMBERS),
    "dddqn, combinations, stacked": (
        DDDQNConfig(**REPLAY, vision=VISION, frame_stack=3, epsilon_start=0.5), SEVERAL,
    ),
    "dddqn, own, 3 steps, stacked": (
        DDDQNConfig(**REPLAY, **OWN, frame_stack=2, num_step_returns=3, normalise_rewards=True),
        MultiBinary(2),
    ),
    "sac, stacked": (SACConfig(**REPLAY, vision=VISION, frame_stack=2), NUMBERS),
    "sac, own": (SACConfig(**REPLAY, **OWN, normalise_observations=True), NUMBERS),
}  # fmt: skip


def make(kind: str, num_envs: int = 3, seed: int = 0) -> Agent:
    """Make an agent of a kind."""
    config, actions = KINDS[kind]
    return make_agent(config, SEEN, actions, num_envs, seed=seed)


class Visions:
    """Whatever is done, chance decides what is seen and when it ends."""

    def __init__(self, num_envs: int, seed: int = 0, space: Space[Any] = SEEN):
        self._space = batch_space(space, num_envs)
        self._space.seed(seed)
        self._empty = create_empty_array(space, num_envs)
        self._rng = np.random.default_rng(seed)
        self._num_envs = num_envs
        self.seen: Any = self._space.sample()
        self.is_playing = np.ones(num_envs, dtype=np.bool_)

    def step(self, actions: npt.NDArray[Any]) -> VectorStep:
        """Let time go on; the step after an ending only resets."""
        chances = self._rng.random((2, self._num_envs)) < 0.1
        terminated, truncated = chances & self.is_playing
        rewards = self._rng.normal(3.0, size=self._num_envs) * self.is_playing
        before, self.seen, playing = self.seen, self._space.sample(), self.is_playing
        self.is_playing = ~(terminated | truncated)
        return VectorStep(before, actions, rewards, terminated, truncated, self.seen, playing)
