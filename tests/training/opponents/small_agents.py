"""Agents small enough for tests, and players that count how often they are asked."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Discrete, Space

from stepladder.agents import DDDQNConfig, PPOConfig, SACConfig, make_agent, make_player
from stepladder.agents.base import Agent
from stepladder.agents.player import Player
from stepladder.training.config import OpponentsConfig
from stepladder.training.opponents.league import League
from stepladder.training.opponents.member import Member

SEEN = Box(-np.inf, np.inf, (18,), np.float32)
FORCES = Box(-1.0, 1.0, (4,), np.float32)
CHOICES = Discrete(8)

CONFIGS = {
    "sac": (SACConfig(hidden_sizes=(8,)), FORCES),
    "ppo": (PPOConfig(hidden_sizes=(8,)), FORCES),
    "recurrent": (PPOConfig(hidden_sizes=(8,), recurrent=True), FORCES),
    "dddqn": (DDDQNConfig(hidden_sizes=(8,), epsilon_final=0.5), CHOICES),
    "ppo_choices": (PPOConfig(hidden_sizes=(8,)), CHOICES),
}

NUM_ENVS = 6


def small_agent(kind: str = "sac", seed: int = 0) -> Agent:
    """Return an agent that has learnt nothing."""
    config, space = CONFIGS[kind]
    actions: Space[Any] = space
    return make_agent(config, SEEN, actions, NUM_ENVS, seed=seed)


def learn_a_little(agent: Agent) -> None:
    """Change every weight of an agent, as learning would."""
    weights = agent.weights()
    agent.load_weights(
        {
            name: tensor + 0.1 if tensor.is_floating_point() else tensor
            for name, tensor in weights.items()
        }
    )
    agent.num_updates += 1


@cache
def small_member(seed: int, kind: str = "sac", step: int = 0) -> Member:
    """Return somebody who can play, each seed another one."""
    return Member.of_agent(small_agent(kind, seed), step, f"seed {seed}")


def views(seed: int, num_rows: int = NUM_ENVS) -> npt.NDArray[np.float32]:
    """Return what is seen in so many rows."""
    return np.random.default_rng(seed).normal(size=(num_rows, 18)).astype(np.float32)


class CountingPlayer(Player):
    """Keeps how many rows it was asked about, call by call."""

    asked: list[int]

    def act_batch(self, observations: Any, deterministic: bool = True, rows: Any = None) -> Any:
        """Count, then act."""
        self.asked.append(len(observations))
        return super().act_batch(observations, deterministic, rows)


class CountingMaker:
    """Makes players that count."""

    def __init__(self) -> None:
        self.players: list[CountingPlayer] = []

    def __call__(self, *arguments: Any, **settings: Any) -> Player:
        """Make a player."""
        player = make_player(*arguments, **settings)
        player.__class__ = CountingPlayer
        assert isinstance(player, CountingPlayer)
        player.asked = []
        self.players.append(player)
        return player

    def take(self) -> list[int]:
        """Return the rows of all calls since the last time."""
        calls = [rows for player in self.players for rows in player.asked]
        for player in self.players:
            player.asked = []
        return calls


def same_weights(one: Any, two: Any) -> bool:
    """Whether two sets of weights are equal bit for bit."""
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def league_of(
    agent: Agent, *names: str, config: OpponentsConfig | None = None, **settings: object
) -> League:
    """Return a league in which, by default, past selves play."""
    config = config or OpponentsConfig(snapshot_every_steps=100, pool_size=3)
    return League(config, names or ("caller:pool",), agent, NUM_ENVS, **settings)  # pyright: ignore[reportArgumentType]
