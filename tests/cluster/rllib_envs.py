"""Envs that RLlib's processes import: a corridor for one, and one for two."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from stepladder.curricula import Staged
from stepladder.tasks import Task

SEEN = Box(0.0, 1.0, (1,), np.float32)


def make_lengths() -> Staged:
    tasks = [
        Task(f"length {length}", "short" if length < 6 else "long", {"length": length})
        for length in range(2, 10)
    ]
    return Staged(tasks, stages=("short", "long"), threshold=0.8, min_episodes=50)


class Corridor(gym.Env[Any, Any]):
    """Walk to the end; the task says how long it is."""

    observation_space, action_space = SEEN, Discrete(2)

    def __init__(self, config: Any = None):
        self.length, self.config = 3, dict(config or {})

    def set_task(self, task: Task) -> None:
        self.length = int(task.params["length"])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.position = self.num_steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.position = max(0, self.position + 2 * int(action) - 1)
        self.num_steps += 1
        reached = self.position == self.length
        seen = np.array([self.position / self.length], np.float32)
        late = self.num_steps == 2 * self.length
        return seen, float(reached), reached, late, {"is_success": reached}


class TwoCorridors(MultiAgentEnv):
    """Two walk, each for itself; the episode ends when both have."""

    def __init__(self, config: Any = None):
        self.agents = self.possible_agents = ["left", "right"]
        self.observation_spaces = dict.fromkeys(self.agents, SEEN)
        self.action_spaces = dict.fromkeys(self.agents, Discrete(2))
        super().__init__()
        self.corridors = {agent: Corridor() for agent in self.possible_agents}

    def set_task(self, task: Task) -> None:
        for corridor in self.corridors.values():
            corridor.set_task(task)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.agents = list(self.possible_agents)
        return {agent: one.reset(seed=seed)[0] for agent, one in self.corridors.items()}, {}

    def step(self, action_dict: Any) -> Any:
        told: tuple[dict[str, Any], ...] = ({}, {}, {}, {}, {})
        for agent, action in action_dict.items():
            for place, value in zip(told, self.corridors[agent].step(action), strict=True):
                place[agent] = value
        self.agents = [one for one in self.agents if not (told[2][one] or told[3][one])]
        told[2]["__all__"], told[3]["__all__"] = not self.agents, False
        return told
