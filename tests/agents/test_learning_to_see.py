"""Agents learn from pictures what cannot be read off any single pixel."""

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from stepladder.agents.base import Agent, VectorStep, make_agent
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.sac.config import SACConfig
from stepladder.agents.vision.config import VisionConfig

pytestmark = pytest.mark.slow

NUM_ENVS = 16
SEEN = Dict({"eye": Box(0, 255, (3, 16, 16), np.uint8), "own": Box(-1.0, 1.0, (1,), np.float32)})
VISION = VisionConfig(channels=(6, 8), features=16)
REPLAY: dict[str, Any] = {
    "hidden_sizes": (16,), "learning_rate": 3e-3, "batch_size": 32, "buffer_size": 2_000,
    "warmup_steps": 64, "updates_per_step": 0.1, "vision": VISION, "normalise_rewards": True,
}  # fmt: skip


class Stripes:
    """Episodes of one step: are the stripes upright, and is the number above 0?"""

    def __init__(self, seed: int = 0):
        self._rng = np.random.default_rng(seed)

    def look(self) -> Any:
        """Return pictures of stripes at any place, in any colour, and numbers."""
        rng = self._rng
        self.upright = rng.integers(2, size=NUM_ENVS)
        phases = rng.integers(2, size=NUM_ENVS)
        wave = (np.arange(16)[None] // 2 + phases[:, None]) % 2
        along = np.broadcast_to(wave[:, None, :], (NUM_ENVS, 16, 16))
        stripes = np.where(self.upright[:, None, None] == 1, along, along.transpose(0, 2, 1))
        colours = rng.integers(80, 256, (NUM_ENVS, 3, 1, 1))
        self.own = rng.choice(np.float32([-1.0, 1.0]), (NUM_ENVS, 1))
        return {"eye": (stripes[:, None] * colours).astype(np.uint8), "own": self.own}

    def judge(self, actions: Any) -> Any:
        """Return the rewards of actions of any kind."""
        wanted = np.stack([self.upright, self.own[:, 0] > 0], axis=1).astype(float)
        if actions.dtype.kind == "f":
            return 1.0 - np.abs(actions - wanted).mean(1)
        if actions.ndim == 2:
            return (actions == wanted).mean(1)
        return (actions == wanted @ [2, 1]).astype(float)


@pytest.mark.parametrize(
    ("config", "actions", "num_steps"),
    [
        (
            PPOConfig(
                hidden_sizes=(16,), learning_rate=5e-3, rollout_steps=256, minibatch_size=64,
                gamma=0.9, vision=VISION, normalise_rewards=True,
            ),
            MultiDiscrete([2, 2]),
            320,
        ),
        (DDDQNConfig(**REPLAY, epsilon_steps=1_500, target_every_updates=20), Discrete(4), 250),
        (SACConfig(**REPLAY, initial_temperature=0.1), Box(0.0, 1.0, (2,), np.float32), 300),
    ],
)  # fmt: skip
def test_they_learn_what_pictures_and_numbers_say(config: Any, actions: Any, num_steps: int):
    agent: Agent = make_agent(config, SEEN, actions, NUM_ENVS)
    world, ended = Stripes(), np.ones(NUM_ENVS, dtype=np.bool_)
    for _ in range(num_steps):
        seen = world.look()
        chosen = agent.act_batch(seen)
        agent.remember(VectorStep(seen, chosen, world.judge(chosen), ended, ~ended, seen, ended))
        agent.learn()
    examined = [
        world.judge(agent.act_batch(world.look(), deterministic=True)).mean() for _ in range(10)
    ]
    assert np.mean(examined) > 0.85
