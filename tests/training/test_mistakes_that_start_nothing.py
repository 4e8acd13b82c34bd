"""What cannot work is refused before it starts, and what an env does wrong before it is learnt."""

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from stepladder.agents import PPOConfig, SACConfig, VectorStep, make_agent
from stepladder.errors import ConfigError, EnvError
from stepladder.training import train
from stepladder.training.config import OpponentsConfig, TrainingConfig

TINY = PPOConfig(hidden_sizes=(8,), rollout_steps=16, minibatch_size=8)


class Poisoned(gym.Env[Any, Any]):
    """Gives a number that is none in its fifth step."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, what: str = "reward"):
        self.what, self.clock = what, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(2, dtype=np.float32), {}

    def step(self, action: Any) -> Any:
        self.clock += 1
        bad = np.nan if self.clock == 5 else 0.0
        seen = np.full(2, bad if self.what == "observation" else 0.0, dtype=np.float32)
        return seen, bad if self.what == "reward" else 0.0, False, False, {}


@pytest.mark.parametrize("what", ["reward", "observation"])
def test_an_env_that_gives_no_number_is_named_before_anything_is_learnt(what: str) -> None:
    gym.register("Poisoned-v0", Poisoned, kwargs={"what": what})
    try:
        config = TrainingConfig(env="Poisoned-v0", num_envs=1, total_steps=64, agent=TINY)
        with pytest.raises(EnvError, match=f"the {what} of env 0 is .*nan.*Fix the env"):
            train(config)
    finally:
        del gym.registry["Poisoned-v0"]


def test_an_archive_of_opponents_is_for_games_for_two() -> None:
    with pytest.raises(ConfigError, match=r"opponents\.archive: opponents need a game for two"):
        TrainingConfig(env="CartPole-v1", opponents=OpponentsConfig(archive="somewhere"))


def test_a_mirror_is_for_envs_with_a_symmetry() -> None:
    with pytest.raises(ConfigError, match=r"agent\.mirror: Pendulum-v1 has no symmetry"):
        TrainingConfig(env="Pendulum-v1", agent=SACConfig(mirror=True))


def test_an_action_that_cannot_move_is_refused() -> None:
    space = gym.spaces.Box(np.array([-1.0, 2.0]), np.array([1.0, 2.0]), dtype=np.float64)
    with pytest.raises(ConfigError, match="lower bound is below the upper one"):
        make_agent(SACConfig(), gym.spaces.Box(-1.0, 1.0, (2,)), space, 1)


def test_an_unknown_env_is_said_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    config = TrainingConfig(env="Nope-v7", num_envs=2, total_steps=64, agent=TINY)
    with pytest.raises(ConfigError, match="env 'Nope-v7' cannot be found"):
        train(config)
    assert not caplog.records


@pytest.mark.parametrize("num_envs", [1, 3, 6, 64])
def test_a_recurrent_policy_learns_as_often_with_any_number_of_envs(num_envs: int) -> None:
    config = PPOConfig(
        hidden_sizes=(4,), rollout_steps=192, minibatch_size=24, num_epochs=2, recurrent=True
    )
    agent = make_agent(config, gym.spaces.Box(-1.0, 1.0, (2,)), gym.spaces.Discrete(2), num_envs)
    seen = np.zeros((num_envs, 2), dtype=np.float32)
    no, yes = np.zeros(num_envs, dtype=np.bool_), np.ones(num_envs, dtype=np.bool_)
    while agent.num_updates == 0:
        actions = agent.act_batch(seen)
        agent.remember(VectorStep(seen, actions, np.zeros(num_envs), no, no, seen, yes))
        agent.learn()
    assert agent.num_steps == 192
    assert agent.num_updates == 2 * 192 // 24


def test_evaluations_do_not_end_a_training_that_counts_episodes() -> None:
    config = TrainingConfig(
        env="CartPole-v1", num_envs=2, total_steps=400, total_episodes=8, agent=TINY, epoch_steps=32
    )
    evaluation = replace(config.evaluation, every_steps=32, num_games=20)
    result = train(replace(config, evaluation=evaluation))
    assert result.evaluation_steps > config.total_steps
    assert result.total_episodes >= 8


def test_an_evaluation_is_made_as_often_as_asked_for_however_long_an_epoch_is() -> None:
    config = TrainingConfig(env="CartPole-v1", num_envs=2, total_steps=10_000, agent=TINY)
    evaluation = replace(config.evaluation, every_steps=64, num_games=2)
    result = train(replace(config, evaluation=evaluation, total_episodes=12))
    assert len(result.evaluation_results) >= result.total_steps // 64
