"""Trainings on pictures, tiles and several frames: envs of a user's own, and exact resuming."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, MultiBinary, MultiDiscrete

from stepladder.agents import DDDQNConfig, PPOConfig, SACConfig, VisionConfig
from stepladder.errors import EnvError
from stepladder.training import resume, train
from stepladder.training.checkpoints import load_newest
from stepladder.training.config import EvaluationConfig, TrainingConfig
from stepladder.training.loop import Trainer
from stepladder.training.world import mirror_of
from training.training_scenes import LEDGE_PPO

NO_EVALUATION = EvaluationConfig(every_steps=None, num_games=2)
SMALL: dict[str, Any] = {
    "num_envs": 2, "num_workers": 0, "total_steps": 96, "epoch_steps": 48,
    "evaluation": NO_EVALUATION,
}  # fmt: skip


class Camera(gym.Env[Any, Any]):
    """Shows noise; the lamps say how far the episode is."""

    observation_space = Dict(
        {"camera": Box(0, 255, (16, 17, 4), np.uint8), "lamps": MultiBinary(4)}
    )
    action_space = MultiDiscrete([2, 3])
    lit = 1

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.step_index = 0
        return self._seen(), {}

    def _seen(self) -> Any:
        picture = self.np_random.integers(0, 256, (16, 17, 4), dtype=np.uint8)
        return {"camera": picture, "lamps": np.full(4, self.lit * (self.step_index % 2), np.int8)}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        self.step_index += 1
        is_over = self.step_index == 7
        return self._seen(), float(action[1] == 2), is_over, False, {"is_success": is_over}


class BrokenLamp(Camera):
    lit = 3


class Float(Camera):
    observation_space = Box(0.0, 1.0, (16, 16, 3), np.float32)

    def _seen(self) -> Any:
        return np.zeros((16, 16, 3), np.float32)


AGENT = PPOConfig(
    hidden_sizes=(8,), rollout_steps=32, minibatch_size=16, frame_stack=2, normalise_rewards=True,
    vision=VisionConfig(channels=(2, 2), features=4),
)  # fmt: skip


def test_an_env_with_pictures_and_several_actions_is_trained_and_resumed(tmp_path: Path) -> None:
    train(env=Camera, agent=AGENT, run_folder=tmp_path / "run", **SMALL)
    result = train(env=Camera, resume=tmp_path / "run", total_steps=200)
    assert result.evaluation_results[-1]["total"]["mean_length"] == 7.0
    description = load_newest(tmp_path / "run")[0].description
    assert description["config"]["frame_stack"] == 2
    assert description["observation_space"]["parts"]["lamps"] == {"space": "multi_binary", "n": 4}


def test_what_the_default_does_not_suit_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    agent = PPOConfig(hidden_sizes=(8,), rollout_steps=32, minibatch_size=16)
    with caplog.at_level(logging.WARNING, "stepladder.agents"):
        train(env=Float, agent=agent, **SMALL)
    (record,) = [one for one in caplog.records if one.name == "stepladder.agents"]
    assert "are read as 768 separate numbers. If they are pictures, let the env" in record.message


def test_switches_outside_their_space_end_the_training() -> None:
    with pytest.raises(EnvError, match=r"observation\['lamps'\] of env 0 is \[3, 3, 3, 3\]; its"):
        train(env=BrokenLamp, agent=AGENT, **SMALL)


def test_bytes_that_can_have_any_value_are_not_compared_with_their_space() -> None:
    trainer = Trainer(TrainingConfig(env=Camera, agent=AGENT, **SMALL))
    trainer.close()
    assert set(trainer.world._limits) == {"lamps"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "agent",
    [
        replace(AGENT, recurrent=True, vision=replace(AGENT.vision, tiles="convolved")),
        DDDQNConfig(
            hidden_sizes=(8,), batch_size=16, buffer_size=300, warmup_steps=32, frame_stack=3,
            updates_per_step=0.1, vision=replace(AGENT.vision, tiles="convolved"),
        ),
    ],
    ids=["ppo", "dddqn"],
)  # fmt: skip
def test_a_stopped_training_goes_on_exactly(agent: Any, tmp_path: Path) -> None:
    config = replace(LEDGE_PPO, agent=agent, total_steps=256)
    train(config, run_folder=tmp_path / "whole")
    half = tmp_path / "part"
    train(config, run_folder=half, on_epoch=lambda progress: progress.num_steps > 100)
    stopped_at = load_newest(tmp_path / "part")[0].step
    resume(tmp_path / "part")
    whole, part = (load_newest(tmp_path / name)[0] for name in ("whole", "part"))
    assert stopped_at < whole.step == part.step
    assert whole.agent.numbers == part.agent.numbers
    assert {name: one.numpy().tobytes() for name, one in whole.agent.tensors.items()} == {
        name: one.numpy().tobytes() for name, one in part.agent.tensors.items()
    }


def test_every_frame_has_the_signs_of_the_mirror() -> None:
    signs = {
        number: mirror_of(
            TrainingConfig(
                env="stepladder/Hockey-v0", agent=SACConfig(mirror=True, frame_stack=number)
            ),
            torch.device("cpu"),
        )
        for number in (1, 2)
    }
    one, two = (signs[number]._number_signs for number in (1, 2))  # type: ignore[union-attr]
    assert torch.equal(two, one.repeat(2))
    assert (one < 0).any()
