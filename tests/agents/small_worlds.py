"""Worlds of a few lines in which an agent learns, or fails to, within a second."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, Space

from stepladder.agents.base import Agent, AgentState, VectorStep, make_agent
from stepladder.agents.config import AgentConfig
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.sac.config import SACConfig

SEEN = Box(-1.0, 1.0, (3,), np.float32)
NUMBERS = Box(-2.0, 1.0, (2,), np.float32)
CHOICES = Discrete(3, start=1)

REPLAY: dict[str, Any] = {
    "hidden_sizes": (8,), "batch_size": 8, "buffer_size": 64, "warmup_steps": 8,
    "updates_per_step": 0.25,
}  # fmt: skip
ROLLOUT: dict[str, Any] = {"hidden_sizes": (8,), "rollout_steps": 32, "minibatch_size": 16}

KINDS: dict[str, tuple[AgentConfig, Space[Any]]] = {
    "dddqn": (DDDQNConfig(**REPLAY, target_every_updates=3), CHOICES),
    "dddqn, prioritised, 3 steps": (
        DDDQNConfig(**REPLAY, prioritised=True, num_step_returns=3, epsilon_start=0.5), CHOICES,
    ),
    "sac": (SACConfig(**REPLAY, normalise_observations=True), NUMBERS),
    "sac, pink, 2 steps": (
        SACConfig(**REPLAY, noise="pink", pink_steps=9, num_step_returns=2), NUMBERS,
    ),
    "ppo": (PPOConfig(**ROLLOUT, normalise_observations=True), CHOICES),
    "ppo, numbers": (PPOConfig(**ROLLOUT, anneal_learning_rate=True, anneal_steps=500), NUMBERS),
    "ppo, recurrent": (PPOConfig(**ROLLOUT, recurrent=True), CHOICES),
}  # fmt: skip
"""Every agent with and without what can be switched on."""


def make(kind: str, num_envs: int = 4, seed: int = 0, **changes: Any) -> Agent:
    """Make an agent of a kind."""
    config, actions = KINDS[kind]
    if changes:
        config = type(config)(**{**vars(config), **changes})
    return make_agent(config, SEEN, actions, num_envs, seed=seed)


class Noise:
    """A world without sense: whatever is done, chance decides what is seen and when it ends."""

    def __init__(self, num_envs: int, seed: int = 0):
        self._rng = np.random.default_rng(seed)
        self._num_envs = num_envs
        self.seen = self._look()
        self.is_playing = np.ones(num_envs, dtype=np.bool_)

    def _look(self) -> npt.NDArray[np.float32]:
        return self._rng.uniform(-1.0, 1.0, (self._num_envs, 3)).astype(np.float32)

    def step(self, actions: npt.NDArray[Any]) -> VectorStep:
        """Let time go on."""
        chances = self._rng.random((2, self._num_envs)) < 0.1
        terminated, truncated = chances & self.is_playing
        rewards = self._rng.normal(size=self._num_envs) * self.is_playing
        before, self.seen, playing = self.seen, self._look(), self.is_playing
        self.is_playing = ~(terminated | truncated)
        return VectorStep(before, actions, rewards, terminated, truncated, self.seen, playing)


def live(agent: Agent, world: Noise, num_steps: int) -> int:
    """Let an agent live in a world for so many vector steps; return its updates."""
    updates = 0
    for _ in range(num_steps):
        agent.remember(world.step(agent.act_batch(world.seen)))
        updates += agent.learn()
    return updates


def copied(state: AgentState) -> AgentState:
    """Return a state that does not change when the agent goes on."""
    return AgentState(state.numbers, {name: one.clone() for name, one in state.tensors.items()})


def same_state(one: AgentState, two: AgentState) -> bool:
    """Whether two states are equal bit for bit."""
    return one.numbers == two.numbers and {
        name: tensor.cpu().numpy().tobytes() for name, tensor in one.tensors.items()
    } == {name: tensor.cpu().numpy().tobytes() for name, tensor in two.tensors.items()}


class Bandit:
    """Episodes of one step: the right action depends on what is seen.

    Args:
        num_envs: Envs.
        rate: Says what an action is worth, given what is seen.
        seed: Of what is seen.
    """

    def __init__(self, num_envs: int, rate: Callable[[Any, Any], Any], seed: int = 0):
        self._rng, self._num_envs, self._rate = np.random.default_rng(seed), num_envs, rate

    def look(self) -> npt.NDArray[np.float32]:
        """Return what is seen: three numbers, each 1 or -1."""
        return self._rng.choice(np.float32([-1.0, 1.0]), (self._num_envs, 3))

    def teach(self, agent: Agent, num_steps: int) -> None:
        """Let an agent play and learn; resets take no step."""
        ended = np.ones(self._num_envs, dtype=np.bool_)
        for _ in range(num_steps):
            seen = self.look()
            actions = agent.act_batch(seen)
            rewards = self._rate(seen, actions)
            agent.remember(VectorStep(seen, actions, rewards, ended, ~ended, seen, ended))
            agent.learn()

    def examine(self, agent: Agent) -> float:
        """Return what an agent's best actions are worth, on average."""
        rewards = []
        for _ in range(10):
            seen = self.look()
            rewards.append(self._rate(seen, agent.act_batch(seen, deterministic=True)))
        return float(np.mean(rewards))
