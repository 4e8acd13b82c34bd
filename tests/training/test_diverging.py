"""A training that is no longer finite stops, keeps its last good checkpoint, and has failed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from cli.command_line import CommandLine
from stepladder.agents.config import AgentConfig
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.ppo.config import PPOConfig
from stepladder.curricula.uniform import UniformConfig
from stepladder.errors import DivergenceError, EnvError, SnapshotError
from stepladder.runs import RunReader
from stepladder.training import checkpoints, train
from stepladder.training.checkpoints.tensor_files import save_policy
from stepladder.training.config import CheckpointConfig, EvaluationConfig, TrainingConfig
from stepladder.training.starting import resume
from training.training_scenes import DISCRETE, LEDGE_PPO, SELF_PLAY

ONCE = EvaluationConfig(every_steps=None, num_games=2)


class Growing(gym.Env[Any, Any]):
    """Gives rewards of 1, and others from some step on."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, after: int = 10**9, reward: Any = 1.0, seen: Any = 0.0, space: Any = None):
        self.after, self.reward, self.seen, self.clock = after, reward, seen, 0
        self.observation_space = space or gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)

    def _look(self) -> Any:
        if isinstance(self.observation_space, gym.spaces.Discrete):
            return int(self.seen if self.clock > self.after else 0)
        return np.full(2, float(self.seen) if self.clock > self.after else 0.0)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self._look(), {}

    def step(self, action: Any) -> Any:
        self.clock += 1
        reward = self.reward if self.clock > self.after else 1.0
        return self._look(), reward, self.clock % 7 == 0, False, {}


@pytest.fixture
def growing():
    """An env of the user's own."""
    # Gymnasium's checker only warns of what is refused here.
    gym.register("Growing-v0", Growing, disable_env_checker=True)
    yield "Growing-v0"
    del gym.registry["Growing-v0"]


PPO = PPOConfig(hidden_sizes=(8,), rollout_steps=32, minibatch_size=16)


def config(env: str, kwargs: dict[str, Any], agent: AgentConfig = PPO) -> TrainingConfig:
    """Return a short training in it."""
    return TrainingConfig(
        env=env,
        env_kwargs=kwargs,
        num_envs=2,
        total_steps=400,
        epoch_steps=64,
        curriculum=UniformConfig(),
        agent=agent,
        evaluation=ONCE,
        checkpoints=CheckpointConfig(every_steps=64),
    )


def are_finite(folder: Path) -> bool:
    """Whether every number of every checkpoint is finite."""
    states = [checkpoints.load(place).agent for place in checkpoints.find(folder)]
    return all(
        bool(tensor.isfinite().all())
        for state in states
        for tensor in state.tensors.values()
        if tensor.is_floating_point()
    )


DDDQN = DDDQNConfig(
    hidden_sizes=(8,), batch_size=8, buffer_size=200, warmup_steps=16, updates_per_step=0.25,
    loss="mse",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "agent", [PPO, replace(PPO, recurrent=True), DDDQN, replace(DDDQN, prioritised=True)]
)
def test_the_last_good_checkpoint_stays_and_is_named(
    growing: str, agent: AgentConfig, tmp_path: Path
):
    folder = tmp_path / "run"
    with pytest.raises(DivergenceError) as caught:
        train(config(growing, {"after": 100, "reward": 1e30}, agent), run_folder=folder)
    text, reader = str(caught.value), RunReader(folder)
    name = reader.checkpoints()[-1]
    assert text.startswith(f"update {caught.value.update}: losses/")
    assert caught.value.update > 1
    assert "Lower reward_scale" in text
    assert f"The last good checkpoint, {name}, is kept" in text
    assert f"--initial-weights {folder}" in text
    assert reader.status == f"failed: DivergenceError: {text}"
    (event,) = reader.events("diverged")
    assert event.data == {"update": caught.value.update, "checkpoint": name}
    assert are_finite(folder)
    # It can be resumed; the same rewards end it again, and the checkpoint still stays.
    with pytest.raises(DivergenceError, match="The last good checkpoint, step-"):
        resume(folder, total_steps=800)
    assert RunReader(folder).status.startswith("failed: DivergenceError: update ")
    assert are_finite(folder)


@pytest.mark.slow
@pytest.mark.parametrize("scene", [LEDGE_PPO, DISCRETE, SELF_PLAY])
def test_a_scale_that_is_too_large_ends_a_training_in_a_game(scene: TrainingConfig, tmp_path: Path):
    with pytest.raises((DivergenceError, EnvError), match="Lower reward_scale"):
        train(scene, reward_scale=3e38, run_folder=tmp_path / "run")
    reader = RunReader(tmp_path / "run")
    assert reader.status.startswith("failed: ")
    assert are_finite(tmp_path / "run")


@pytest.mark.parametrize("reward", [1e300, np.float64(3.5e38), -1e39])
def test_a_reward_that_does_not_fit_into_32_bits_is_named(growing: str, reward: float):
    with pytest.raises(EnvError, match=r"the reward of env [01] is -?[\d.e+]+; expected finite"):
        train(config(growing, {"after": 20, "reward": reward}))


def test_a_reward_that_only_its_scale_makes_too_large_is_named(growing: str):
    settings = config(growing, {"after": 4, "reward": 1e10})
    with pytest.raises(EnvError, match=r"is 10000000000\.0; .*Lower reward_scale \(now 1e\+30\)"):
        train(replace(settings, reward_scale=1e30))


def test_an_observation_that_does_not_fit_into_32_bits_is_named(growing: str):
    with pytest.raises(EnvError, match=r"the observation of env 0 is \[1e\+300.*Scale it"):
        train(config(growing, {"after": 20, "seen": 1e300}))
    with pytest.raises(EnvError, match=r"the observation of env 0 is \[nan, nan\].*Fix the env"):
        train(config(growing, {"after": -1, "seen": "nan"}))


@pytest.mark.parametrize("seen", [7, -1])
def test_an_observation_outside_its_space_is_named(growing: str, seen: int):
    space = gym.spaces.Discrete(4)
    gym.register("Coded-v0", lambda: Growing(20, seen=seen, space=space), disable_env_checker=True)
    try:
        with pytest.raises(EnvError, match=rf"env 0 is {seen}; its space goes from 0 to 3"):
            train(config("Coded-v0", {}))
    finally:
        del gym.registry["Coded-v0"]


def test_the_command_says_so_and_does_not_end_well(command: CommandLine):
    small = ("--num-envs", "2", "--agent.hidden-sizes", "8", "--total-steps", "4096")
    text = command("train", "cartpole", *small, "--reward-scale", "1e38", "--out", "run")
    assert text.code == 2
    assert text.err.startswith("stepladder: update 1: losses/")
    assert text.err.count("\n") == 1
    assert "No checkpoint was saved before it." in text.err
    assert "RuntimeWarning" not in text.err
    assert RunReader("run").status.startswith("failed: DivergenceError: update 1: losses/")
    shown = command("explain", "run")
    assert "failed: DivergenceError: update 1" in shown.out


def test_a_policy_file_that_is_not_finite_is_refused(growing: str, tmp_path: Path):
    folder = tmp_path / "run"
    train(config(growing, {}), run_folder=folder, total_steps=64)
    saved = checkpoints.read_policy(folder)
    name = next(iter(saved.weights))
    saved.weights[name].view(-1)[0] = torch.nan
    save_policy(tmp_path / "bad.safetensors", saved.description, saved.weights)
    with pytest.raises(SnapshotError, match=rf"{name}\[0.*\] is nan"):
        train(config(growing, {}), initial_weights=tmp_path / "bad.safetensors")
