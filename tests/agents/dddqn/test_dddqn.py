"""DDDQN: what it explores, learns and copies."""

from typing import Any

import numpy as np
import pytest
import torch

from agents.small_worlds import CHOICES, NUMBERS, SEEN, Bandit, Noise, live, make
from stepladder.agents.base import VectorStep
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.dddqn.dddqn import DDDQN
from stepladder.errors import ConfigError

QUICK: dict[str, Any] = {
    "hidden_sizes": (16,), "learning_rate": 0.01, "batch_size": 32, "buffer_size": 1_000,
    "warmup_steps": 32, "updates_per_step": 0.25, "target_every_updates": 10, "epsilon_steps": 500,
}  # fmt: skip


def made(num_envs: int = 8, **changes: Any) -> DDDQN:
    """Make an agent that learns quickly."""
    return DDDQN(DDDQNConfig(**{**QUICK, **changes}), SEEN, CHOICES, num_envs)


def right_choice(seen: Any, actions: Any) -> Any:
    """Say 1 where the action is the one that the first two numbers ask for."""
    wanted = np.where(seen[:, 0] > 0, 1, np.where(seen[:, 1] > 0, 2, 3))
    return (actions == wanted).astype(np.float64)


@pytest.mark.parametrize("changes", [{}, {"prioritised": True}, {"loss": "mse"}])
def test_it_learns_what_to_choose(changes: dict[str, Any]):
    agent, bandit = made(**changes), Bandit(8, right_choice)
    untaught = bandit.examine(agent)
    bandit.teach(agent, 120)
    assert untaught < 0.8
    assert bandit.examine(agent) > 0.95


class Chain:
    """Four places in a row: only the step off the right end is worth anything."""

    def __init__(self, num_envs: int):
        self._num_envs = num_envs
        self.places = np.zeros(num_envs, dtype=np.int64)
        self.is_playing = np.ones(num_envs, dtype=np.bool_)

    def look(self) -> Any:
        """Return the places as numbers."""
        return np.eye(4, dtype=np.float32)[self.places][:, :3]

    def step(self, actions: Any) -> VectorStep:
        """Go left (1), stay (2) or go right (3)."""
        seen, playing = self.look(), self.is_playing
        moved = np.where(playing, np.clip(self.places + actions - 2, 0, 4), 0)
        over = playing & (moved == 4)
        self.places = np.where(over, 3, moved)
        self.is_playing = ~over
        rewards, never = over.astype(np.float64), np.zeros_like(over)
        return VectorStep(seen, actions, rewards, over, never, self.look(), playing)


@pytest.mark.parametrize("num_step_returns", [1, 3])
def test_it_learns_the_discounted_worth_of_a_way(num_step_returns: int):
    agent = made(gamma=0.5, num_step_returns=num_step_returns, epsilon_final=1.0)
    chain = Chain(8)
    for _ in range(250):
        agent.remember(chain.step(agent.act_batch(chain.look())))
        agent.learn()
    seen = np.eye(4, dtype=np.float32)[:, :3]
    assert (agent.act_batch(seen, deterministic=True) == 3).all()
    values = agent.policy().network(agent.layout.to_seen(seen, agent.device)).amax(1)
    if num_step_returns == 1:
        # 1 at the end, halved with every step before it.
        assert values.tolist() == pytest.approx([0.125, 0.25, 0.5, 1.0], abs=0.1)


def test_exploration_falls_evenly_with_env_steps():
    agent = made(epsilon_start=1.0, epsilon_final=0.2, epsilon_steps=100)
    shares = []
    for steps in (0, 50, 100, 1_000):
        agent.num_steps = steps
        shares.append(agent.epsilon)
    assert shares == pytest.approx([1.0, 0.6, 0.2, 0.2])
    assert agent.memory_stats()["epsilon"] == agent.epsilon


def test_as_many_rows_explore_as_exploration_says():
    agent = made(num_envs=2_000, epsilon_start=0.3, epsilon_final=0.3)
    seen = np.zeros((2_000, 3), dtype=np.float32)
    best = agent.act_batch(seen, deterministic=True)[0]
    # As long as nothing was learnt, all of them: two of three choices are others.
    assert np.mean(agent.act_batch(seen) != best) == pytest.approx(2 / 3, abs=0.04)
    agent.num_updates = 1
    assert np.mean(agent.act_batch(seen) != best) == pytest.approx(0.2, abs=0.04)


def test_the_target_is_copied_every_so_many_updates():
    agent, world = (
        made(target_every_updates=5, updates_per_step=1.0, normalise_observations=True),
        Noise(8),
    )
    live(agent, world, 6)

    def is_copy() -> bool:
        own, target = agent.policy().network.state_dict(), agent.target.state_dict()
        return all(torch.equal(own[name], target[name]) for name in own)

    seen = []
    for _ in range(10):
        agent._do_update()
        agent.num_updates += 1
        agent._after_update()
        seen.append((agent.num_updates % 5 == 0, is_copy()))
    assert all(due == copied for due, copied in seen)
    assert any(due for due, _ in seen)


def test_priorities_are_forgotten_with_the_memory():
    agent, world = made(prioritised=True), Noise(8)
    live(agent, world, 12)
    assert agent._priorities is not None
    assert agent._priorities.total > 0.0
    agent.forget()
    assert agent._priorities.total == 0.0
    live(agent, world, 12)
    drawn, _ = agent._priorities.draw(np.linspace(0.0, 0.99, 100))
    assert drawn.max() < agent.memory.size


def test_weights_from_elsewhere_are_the_target_too():
    agent, other = made(), made()
    live(other, Noise(8), 20)
    agent.load_weights(other.weights())
    own, target = agent.policy().network.state_dict(), agent.target.state_dict()
    assert all(torch.equal(own[name], target[name]) for name in own)


def test_weights_from_elsewhere_are_played_with_from_the_first_step():
    agent, seen = made(epsilon_start=0.0, epsilon_final=0.0), Noise(8).seen
    assert agent.acts_at_random
    agent.load_weights(made().weights())
    assert not agent.acts_at_random
    assert np.array_equal(agent.act_batch(seen), agent.act_batch(seen, deterministic=True))
    other = made(epsilon_start=0.0, epsilon_final=0.0)
    fresh = other.state()
    other.restore(agent.state())
    assert not other.acts_at_random
    other.restore(fresh)
    assert other.acts_at_random


def test_numbers_are_no_choices():
    with pytest.raises(ConfigError, match="Use SAC or PPO"):
        DDDQN(DDDQNConfig(), SEEN, NUMBERS, 1)
    with pytest.raises(ConfigError):
        make("sac", buffer_size=2)
