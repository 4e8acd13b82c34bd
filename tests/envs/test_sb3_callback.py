"""Stable-Baselines3's own advantages reach the curriculum, by a callback."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from stepladder.curricula import LevelReplay, Uniform
from stepladder.envs import CurriculumEnv, make_vec
from stepladder.envs.sb3 import AdvantageCallback, CurriculumVecEnvWrapper, as_vec_env
from stepladder.errors import ConfigError
from stepladder.tasks import Task
from testing_env import PracticeEnv

TASKS = [Task(f"t{n}", params={"length": n}) for n in (1, 2, 3, 5)]


def adapted(curriculum: Any) -> Any:
    return as_vec_env(make_vec(PracticeEnv, 3, curriculum=curriculum, num_workers=0))


def wrapped(curriculum: Any) -> Any:
    def practice() -> Any:
        return CurriculumEnv(PracticeEnv(), enable_local_tracking=False)

    return CurriculumVecEnvWrapper(DummyVecEnv([practice] * 3), curriculum)


@pytest.mark.parametrize("make", [adapted, wrapped])
@pytest.mark.parametrize("agent", [PPO, A2C])
def test_every_episode_is_scored_from_the_rollout_buffer(make: Any, agent: Any):
    curriculum = LevelReplay(TASKS, scored_by="value_loss")
    envs = make(curriculum)
    settings = {"batch_size": 24} if agent is PPO else {}
    model = agent("MlpPolicy", VecMonitor(envs), n_steps=16, seed=0, device="cpu", **settings)
    callback = AdvantageCallback()
    lengths: list[int] = []
    curriculum.add_listener(lambda records: lengths.extend(records["length"].tolist()))
    model.learn(480, callback=callback)
    # Steps of same-step autoreset: all are played, and all but the last episodes are scored.
    assert callback.reporter.num_scored == len(lengths) == curriculum.num_observed > 100
    assert callback.reporter.num_steps == 0
    assert curriculum.num_seen == len(TASKS)
    assert np.all(curriculum.scores() > 0.0)
    model.learn(48, callback=callback, reset_num_timesteps=False)
    assert callback.reporter.num_scored == curriculum.num_observed > len(TASKS)
    envs.close()


def test_scores_are_means_of_the_buffers_advantages():
    curriculum = LevelReplay([Task("two", params={"length": 2})], scored_by="value_loss")
    envs = adapted(curriculum)
    model = PPO("MlpPolicy", envs, n_steps=4, batch_size=12, seed=0, device="cpu")
    seen: list[Any] = []

    class Look(AdvantageCallback):
        def _on_rollout_end(self) -> None:
            super()._on_rollout_end()
            advantages = self.model.rollout_buffer.advantages.astype(np.float64)  # type: ignore[attr-defined]
            # Episodes of two steps: the last that is reported is the newest score.
            seen.append((np.abs(advantages[2:, 2]).mean(), curriculum.scores()[0]))

    model.learn(36, callback=Look())
    assert len(seen) == 3
    for expected, found in seen:
        assert found == pytest.approx(expected, rel=1e-6)
    envs.close()


def test_agents_without_rollouts_are_refused():
    envs = adapted(LevelReplay(TASKS, scored_by="value_loss"))
    with pytest.raises(ConfigError, match=r"such as PPO or A2C; got a DQN\. Leave the callback"):
        DQN("MlpPolicy", envs, device="cpu").learn(8, callback=AdvantageCallback())
    envs.close()


def test_curricula_that_want_no_scores_are_refused():
    envs = adapted(Uniform(TASKS))
    with pytest.raises(ConfigError, match="Uniform wants no scores from a trainer"):
        PPO("MlpPolicy", envs, n_steps=4, batch_size=12, device="cpu").learn(
            8, callback=AdvantageCallback()
        )
    envs.close()
