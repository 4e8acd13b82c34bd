"""Stable-Baselines3 and a curriculum, connected by one callback: log, scores, run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

import stepladder
from stepladder.curricula import LevelReplay, Staged, Uniform
from stepladder.envs import CurriculumEnv, make_vec
from stepladder.envs.sb3 import (
    CurriculumCallback,
    CurriculumVecEnvWrapper,
    as_vec_env,
    saved_model,
)
from stepladder.errors import ConfigError
from stepladder.runs import RunReader
from stepladder.tasks import Task
from testing_env import PracticeEnv

TASKS = [Task(f"t{n}", "ab"[n > 2], {"length": n, "success": 1.0}) for n in (1, 2, 3, 5)]


def adapted(curriculum: Any) -> Any:
    return as_vec_env(make_vec(PracticeEnv, 3, curriculum=curriculum, num_workers=0))


def wrapped(curriculum: Any) -> Any:
    def practice() -> Any:
        return CurriculumEnv(PracticeEnv(), enable_local_tracking=False)

    return CurriculumVecEnvWrapper(DummyVecEnv([practice] * 3), curriculum)


def small_ppo(envs: Any, **settings: Any) -> PPO:
    return PPO("MlpPolicy", envs, **{"n_steps": 16, "batch_size": 24, "device": "cpu", **settings})


# Scores.


@pytest.mark.slow
@pytest.mark.parametrize("make", [adapted, wrapped])
@pytest.mark.parametrize("agent", [PPO, A2C])
def test_every_episode_is_scored_from_the_rollout_buffer(make: Any, agent: Any):
    curriculum = LevelReplay(TASKS, scored_by="value_loss")
    envs = make(curriculum)
    settings = {"batch_size": 24} if agent is PPO else {}
    model = agent("MlpPolicy", VecMonitor(envs), n_steps=16, seed=0, device="cpu", **settings)
    callback = CurriculumCallback()
    lengths: list[int] = []
    curriculum.add_listener(lambda records: lengths.extend(records["length"].tolist()))
    model.learn(480, callback=callback)
    assert callback.scores is not None
    # Steps of same-step autoreset: all are played, and all but the last episodes are scored.
    assert callback.scores.num_scored == len(lengths) == curriculum.num_observed > 100
    assert callback.scores.num_steps == 0
    assert curriculum.num_seen == len(TASKS)
    assert np.all(curriculum.scores() > 0.0)
    model.learn(48, callback=callback, reset_num_timesteps=False)
    assert callback.scores.num_scored == curriculum.num_observed > len(TASKS)
    envs.close()


def test_scores_are_means_of_the_buffers_advantages():
    curriculum = LevelReplay([Task("two", params={"length": 2})], scored_by="value_loss")
    envs = adapted(curriculum)
    model = small_ppo(envs, n_steps=4, batch_size=12, seed=0)
    seen: list[Any] = []

    class Look(CurriculumCallback):
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


def test_agents_without_rollouts_are_refused_by_a_curriculum_that_wants_scores():
    envs = adapted(LevelReplay(TASKS, scored_by="value_loss"))
    with pytest.raises(ConfigError, match=r"such as PPO or A2C; got a DQN\. Let the curriculum"):
        DQN("MlpPolicy", envs, device="cpu").learn(8, callback=CurriculumCallback())
    envs.close()


# The log of SB3.


def test_the_log_shows_what_the_curriculum_does(monkeypatch: pytest.MonkeyPatch):
    logged: list[dict[str, Any]] = []
    dump = Logger.dump
    monkeypatch.setattr(
        Logger, "dump", lambda self, step=0: (logged.append(dict(self.name_to_value)), dump(self))
    )
    curriculum = Staged(TASKS, stages=("a", "b"), threshold=0.5, min_episodes=5)
    envs = adapted(curriculum)
    small_ppo(envs).learn(96, callback=CurriculumCallback())
    assert [one["curriculum/episodes"] for one in logged][-1] == curriculum.num_observed > 20
    assert all(f"curriculum/{name}" in logged[-1] for name in curriculum.state_metrics())
    envs.close()


# The run.


@pytest.mark.parametrize("make", [adapted, wrapped])
def test_a_run_has_all_of_a_training_and_goes_on_with_its_model(make: Any, tmp_path: Path):
    folder = tmp_path / "run"
    seen: list[int] = []
    for part in (1, 2):
        curriculum = Staged(TASKS, stages=("a", "b"), threshold=0.5, min_episodes=5, seed=1)
        envs = make(curriculum)
        with stepladder.run(folder, envs, resume=True, epoch_steps=48) as run:
            path = saved_model(run)
            assert (path is not None) == (part == 2)
            monitored = VecMonitor(envs)
            model = small_ppo(monitored) if path is None else PPO.load(path, env=monitored)
            # Two calls of `learn` belong to one run.
            for _ in range(2):
                model.learn(96, callback=CurriculumCallback(run), reset_num_timesteps=False)
            assert run.num_steps == 192 * part
            assert model.num_timesteps == 192 * part
        assert run.num_episodes == curriculum.num_observed == envs.counts.finished
        seen.append(curriculum.num_observed)
        envs.close()
    reader = RunReader(folder)
    assert (reader.status, reader.config["num_envs"]) == ("finished", 3)
    steps, rewards = reader.metric("overview/reward")
    assert steps.tolist() == [48 * number for number in range(1, 9)]
    assert np.all(rewards >= 1.0)
    assert np.all(np.isfinite(reader.metric("losses/value_loss")[1]))
    assert len(reader.metric("train/clip_fraction")[0]) == len(reader.metric("losses/loss")[0]) > 5
    assert not any("TimeLimit" in name for name in reader.metric_names())
    assert len(reader.events("stage_advanced")) == 1
    assert sum(reader.tasks()["samples"]) == seen[1] > seen[0]


def test_an_agent_that_learns_from_replay_can_be_kept_too(tmp_path: Path):
    envs = VecNormalize(adapted(Uniform(TASKS)))
    model = DQN("MlpPolicy", envs, learning_starts=8, buffer_size=100, device="cpu")
    with stepladder.run(tmp_path, envs, epoch_steps=12) as run:
        model.learn(36, callback=[CurriculumCallback(run, saves_model=False)])
    reader = RunReader(tmp_path)
    assert reader.metric("metric/agent_step")[0].tolist()[-1] == 36
    assert len(reader.metric("losses/loss")[0]) > 0
    assert list(tmp_path.glob("checkpoints/*/model.zip")) == []
    envs.close()


def test_a_wrong_run_or_envs_without_a_curriculum_are_refused(tmp_path: Path):
    with pytest.raises(
        ConfigError, match=r"run must be what stepladder\.run returns; got 'runs/a'"
    ):
        CurriculumCallback("runs/a")  # type: ignore[arg-type]
    envs, others = adapted(Uniform(TASKS)), adapted(Uniform(TASKS))
    with (
        stepladder.run(tmp_path, others) as run,
        pytest.raises(ConfigError, match="opened for another vector env than that of the model"),
    ):
        small_ppo(envs).learn(48, callback=CurriculumCallback(run))
    bare = as_vec_env(make_vec("CartPole-v1", 3, num_workers=0))
    with pytest.raises(AttributeError, match="this vector env has no curriculum"):
        small_ppo(bare).learn(48, callback=CurriculumCallback())
    for one in (envs, others, bare):
        one.close()
