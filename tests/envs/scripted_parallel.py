"""A parallel env whose agents come and go by a script, in PettingZoo's shape but without it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple


@dataclass(frozen=True)
class Life:
    """When an agent is there, in steps, and how it ends."""

    last: int
    how: str = "terminated"
    """``terminated``, ``truncated``, ``both``, or ``vanishes``: gone without a flag."""
    first: int = 0
    """After how many steps it enters."""


class Crowd:
    """Agents that live as their lives say, or as long as chance has it.

    An observation tells the episode, the step, the agent and the action it took. The reward of an
    agent is 10 ** its index, times the step, plus its action.

    Args:
        lives: By agent; None draws them anew for each episode, with its own generator.
        talks: Whether agents have infos: the step when it is even, and a word when they end.
    """

    metadata = {"render_modes": ["rgb_array"], "name": "crowd"}  # noqa: RUF012, as in PettingZoo
    render_mode = "rgb_array"

    def __init__(
        self,
        lives: Mapping[Any, Life] | None = None,
        *,
        names: Sequence[Any] = ("ann", "bob", "cid"),
        talks: bool = False,
    ):
        self.lives = dict(lives) if lives is not None else {}
        self.draws = lives is None
        self.possible_agents = list(lives or names)
        self.agents: list[Any] = []
        self.talks = talks
        self.rng = np.random.default_rng(0)
        self.seeds: list[int | None] = []
        self.options: Any = None
        self.received: list[dict[Any, Any]] = []
        self.episode = 0
        self.now = 0
        self.difficulty = 0
        self.task: Any = None
        self.closed = False

    def observation_space(self, agent: Any) -> Space[Any]:
        return Box(-1.0, 1e6, (4,), np.float32)

    def action_space(self, agent: Any) -> Space[Any]:
        return Discrete(5)

    def set_task(self, task: Any) -> None:
        self.task = task

    def get_pid(self) -> int:
        return os.getpid()

    def get_difficulty(self) -> int:
        return self.difficulty

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.seeds.append(seed)
        self.options = options
        self.episode += 1
        self.now = 0
        if self.draws:
            self.lives = {agent: self._draw_life() for agent in self.possible_agents}
            # Somebody must be there from the beginning.
            self.lives[self.possible_agents[0]] = Life(int(self.rng.integers(1, 6)), "truncated")
        self.agents = [agent for agent, life in self.lives.items() if life.first == 0]
        infos = {agent: {} for agent in self.agents}
        if self.talks:
            infos = {agent: {"began": self.episode} for agent in self.agents}
        return {agent: self._observe(agent, 0) for agent in self.agents}, infos

    def _draw_life(self) -> Life:
        first = int(self.rng.choice([0, 0, 0, 2]))
        how = str(self.rng.choice(["terminated", "truncated", "both", "vanishes"]))
        return Life(first + int(self.rng.integers(1, 6)), how, first)

    def step(self, actions: dict[Any, Any]):
        assert set(actions) == set(self.agents), "exactly those who are there must act"
        self.received.append(actions)
        self.now += 1
        present = self.agents + [a for a, life in self.lives.items() if life.first == self.now]
        ends = {a: self.lives[a].how for a in present if self.lives[a].last == self.now}
        acted = {agent: int(actions.get(agent, 0)) for agent in present}
        # A new list, and the old one emptied: adapters must not hold on to it.
        self.agents.clear()
        self.agents = [agent for agent in present if agent not in ends]
        return (
            {agent: self._observe(agent, acted[agent]) for agent in present},
            {agent: self._reward(agent, acted[agent]) for agent in present},
            {agent: ends.get(agent) in ("terminated", "both") for agent in present},
            {agent: ends.get(agent) in ("truncated", "both") for agent in present},
            {agent: self._talk(agent, agent in ends) for agent in present},
        )

    def _observe(self, agent: Any, action: int) -> Any:
        index = self.possible_agents.index(agent)
        return np.array([self.episode, self.now, index + 1, action], dtype=np.float32)

    def _reward(self, agent: Any, action: int) -> float:
        return 10.0 ** self.possible_agents.index(agent) * self.now + action

    def _talk(self, agent: Any, ends: bool) -> dict[str, Any]:
        info: dict[str, Any] = {}
        if self.talks and self.now % 2 == 0:
            index = self.possible_agents.index(agent)
            # Not every agent has the same kind of number to tell.
            info = {"step": self.now + (0.5 if index == 1 else 0), "odd": {"index": index}}
        if self.talks and ends:
            info["word"] = f"bye from {agent}"
        return info

    def render(self) -> Any:
        return np.full((2, 2, 3), self.now, dtype=np.uint8)

    def close(self) -> None:
        self.closed = True


class NestedCrowd(Crowd):
    """Sees and does things of every kind of space that there is room for."""

    def observation_space(self, agent: Any) -> Space[Any]:
        return Dict(
            {
                "place": Box(0, 255, (2, 3), np.uint8),
                "number": Discrete(100),
                "parts": Tuple((MultiDiscrete([90, 90]), MultiBinary(2))),
            }
        )

    def action_space(self, agent: Any) -> Space[Any]:
        return Dict({"push": Box(-1, 1, (2,), np.float32), "choose": Discrete(4, start=1)})

    def step(self, actions: dict[Any, Any]):
        for action in actions.values():
            assert self.action_space(None).contains(action), action
        return super().step({agent: action["choose"] for agent, action in actions.items()})

    def _observe(self, agent: Any, action: int) -> Any:
        index = self.possible_agents.index(agent) + 1
        return {
            "place": np.full((2, 3), 10 * index + self.now, dtype=np.uint8),
            "number": 20 * index + self.now,
            "parts": (np.array([self.now, action]), np.array([1, self.now % 2], dtype=np.int8)),
        }
