"""Sizes are checked before memory is taken."""

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from agents.small_worlds import CHOICES, NUMBERS, SEEN, make
from stepladder.agents.base import make_agent
from stepladder.agents.config import AgentConfig
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.player import make_player
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.sac.config import SACConfig
from stepladder.agents.spaces import space_from_json, space_to_json
from stepladder.agents.vision.config import VisionConfig
from stepladder.errors import ConfigError, SnapshotError


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (SACConfig(buffer_size=10**15), "a memory of 1,000,000,000,000,000 transitions would take"),
        (DDDQNConfig(buffer_size=2**63 - 1), "Lower buffer_size"),
        (SACConfig(num_step_returns=10**14), "Lower num_step_returns or num_envs"),
        (SACConfig(noise="pink", pink_steps=10**15), "Lower pink_steps or num_envs"),
        (PPOConfig(rollout_steps=10**15), "Lower rollout_steps or num_envs"),
        (PPOConfig(hidden_sizes=(10**9, 10**9)), "Lower hidden_sizes"),
        (SACConfig(hidden_sizes=(2**62,)), "Lower hidden_sizes"),
        (DDDQNConfig(hidden_sizes=(10**12,)), "Lower hidden_sizes"),
    ],
)
def test_what_is_larger_than_the_machine_is_refused(config: AgentConfig, words: str):
    actions: Any = NUMBERS if isinstance(config, SACConfig) else CHOICES
    with pytest.raises(ConfigError, match=words):
        make_agent(config, SEEN, actions, 4)


def test_pictures_shorten_the_memory_that_is_there_by_default():
    config, row_bytes = DDDQNConfig(), 2 * 56 * 56 * 3
    assert config.capacity(200) == 1_000_000
    assert 200_000 < config.capacity(row_bytes) * row_bytes / row_bytes < 230_000
    assert config.capacity(row_bytes) * row_bytes <= 4 * 2**30
    assert DDDQNConfig(buffer_size=10**6).capacity(row_bytes) == 10**6
    assert DDDQNConfig(batch_size=300_000).capacity(row_bytes) == 300_000
    pictures = Box(0, 255, (56, 56, 3), np.uint8)
    with pytest.raises(ConfigError, match="Lower channels or features of vision"):
        make_agent(DDDQNConfig(vision=VisionConfig(channels=(10**7, 10**7))), pictures, CHOICES, 4)


def test_a_file_cannot_ask_for_more_than_there_is():
    agent = make("ppo")
    description: dict[str, Any] = agent.description()
    large: list[dict[str, Any]] = [
        {**description, "config": {**description["config"], "hidden_sizes": [10**9, 10**9]}},
        {**description, "observation_space": space_to_json(Box(0, 255, (8, 8), np.uint8)),
         "config": {**description["config"], "vision": {"channels": [10**6, 10**6]}}},
        {**description, "observation_space": {
            "space": "box", "low": 0.0, "high": 1.0, "shape": [10**12], "dtype": "float32"}},
        {**description, "action_space": {"space": "discrete", "n": 10**15, "start": 0}},
    ]  # fmt: skip
    for one in large:
        with pytest.raises(SnapshotError, match="cannot be played with"):
            make_player(one, agent.weights(), 2)
    with pytest.raises(SnapshotError, match="described by an object"):
        make_player([], agent.weights(), 2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        None, [], {}, {"space": "discrete", "n": 10**40, "start": 0},
        {"space": "discrete", "n": 0, "start": 0}, {"space": "discrete", "n": -3, "start": 0},
        {"space": "box", "low": 0, "high": 1, "shape": [-1], "dtype": "float32"},
        {"space": "box", "low": 0, "high": 1, "shape": "ab", "dtype": "float32"},
        {"space": "box", "low": 0, "high": 1, "shape": [2], "dtype": "nothing"},
        {"space": "box", "low": [1, 2, 3], "high": 1, "shape": [2], "dtype": "float32"},
        {"space": "multi_discrete", "nvec": [0], "start": [0]}, {"space": "dict", "parts": 3},
    ],
)  # fmt: skip
def test_a_space_that_is_none_is_refused_in_one_line(data: Any):
    with pytest.raises(SnapshotError) as caught:
        space_from_json(data)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_usual_sizes_have_room():
    large = Box(0, 255, (84, 84, 4), np.uint8)
    make_agent(PPOConfig(hidden_sizes=(512, 512)), large, Discrete(18), 8)
