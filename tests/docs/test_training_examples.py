"""The examples that train with torch: they run with tiny budgets, and their arithmetic is right."""

import importlib.util
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType

import gymnasium as gym
import numpy as np
import pytest
import torch

from stepladder import Task, make_vec
from stepladder.runs import RunReader

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs an example as a shell would, but in this process, which has torch already."""

    def run_example(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    num_threads = torch.get_num_threads()
    yield run_example
    torch.set_num_threads(num_threads)


@pytest.fixture
def no_new_envs():
    """Takes back what an example registers with Gymnasium."""
    known = set(gym.registry)
    yield
    for name in set(gym.registry) - known:
        del gym.registry[name]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up the module they are defined in.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


@pytest.mark.slow
@pytest.mark.timeout(90)
@pytest.mark.parametrize(
    ("example", "steps"), [("sb3_ledge.py", "4096"), ("cleanrl_ppo.py", "16384")]
)
def test_ledge_is_practised_and_every_episode_is_accounted_for(run, example, steps, tmp_path):
    said = run(example, "--steps", steps, "--run", str(tmp_path))
    counts = re.search(
        r"Started (\d+) episodes: (\d+) finished and each observed once, 0 aborted, (\d+) being",
        said,
    )
    assert counts is not None
    started, finished, playing = map(int, counts.groups())
    assert started == finished + playing
    assert finished > 0
    reader = RunReader(tmp_path)
    assert (reader.kind, reader.status) == ("loop", "finished")
    assert reader.metric("env_curriculum_stats/total_completions")[1].tolist()[-1] == finished
    assert "Held-out levels solved: simplest" in said


@pytest.mark.timeout(90)
@pytest.mark.usefixtures("no_new_envs")
def test_the_lake_is_tried_with_a_curriculum_and_without(run):
    said = run("frozenlake_curriculum.py", "--steps", "2048")
    assert re.search(r"without a curriculum: not solved in 2,0\d\d steps", said)
    assert "With a curriculum: 0 of 1 solved." in said


def test_the_goal_of_the_lake_is_where_the_task_says():
    module = load("frozenlake_curriculum")
    env = module.LakeWithGoals()
    env.set_task(Task("near", "near", {"goal": "near"}))
    env.reset(seed=0)
    left, down, right = 0, 1, 2
    infos = [env.step(action)[4] for action in (down, down, right)]
    assert not any(info["is_success"] for info in infos)
    field, reward, terminated, _, info = env.step(right)
    assert (field, reward, terminated, info["is_success"]) == (2 * 8 + 2, 1.0, True, True)
    env.set_task(Task("far", "far", {"goal": "far"}))
    env.reset()
    for action in (down, down, right, right, left):
        assert not env.step(action)[2]


def test_advantages_stop_at_endings_and_time_running_out_is_bootstrapped():
    module = load("cleanrl_ppo")
    rollout = module.Rollout.empty(3, 2, 1)
    # Env 0 dies in its second step, env 1 runs out of time in it.
    rollout.rewards[:] = torch.tensor([[1.0, 1.0], [2.0, 2.0], [0.0, 0.0]])
    rollout.values[:] = torch.tensor([[0.5, 0.5], [1.0, 1.0], [4.0, 4.0], [8.0, 8.0]])
    rollout.ended[1] = True
    rollout.terminated[1, 0] = True
    advantages = module.advantages_of(rollout, gamma=0.5, gae_lambda=0.5)
    # Second step: 2 - 1 for the dead; 2 + 0.5 * 4 - 1 for the other, whose last value is 4.
    assert advantages[1].tolist() == [1.0, 3.0]
    # First step: 1 + 0.5 * 1 - 0.5 = 1, and a quarter of what follows.
    assert advantages[0].tolist() == [1.25, 1.75]


def test_the_step_that_only_resets_is_not_learnt_from():
    module = load("cleanrl_ppo")
    envs = make_vec("stepladder/Ledge-v0", 4, env_kwargs={"time_limit": 3})
    observations, _ = envs.reset(seed=0)
    seen, just_ended = module.features_of(observations), torch.zeros(4, dtype=torch.bool)
    torch.manual_seed(0)
    policy = module.Policy(seen.shape[1], 8)
    rollout = module.Rollout.empty(9, 4, seen.shape[1])
    module.play(envs, policy, rollout, seen, just_ended)
    envs.close()
    # Three steps of an episode, then one that only resets, in all envs.
    played = [True, True, True, False] * 2 + [True]
    np.testing.assert_array_equal(rollout.is_played.numpy().T, [played] * 4)
    np.testing.assert_array_equal(
        rollout.ended.numpy().T, [([False] * 2 + [True, False]) * 2 + [False]] * 4
    )
    assert not rollout.terminated.any()
    # What is seen in the step that resets is the end of the episode: no time is left.
    assert (rollout.features[3, :, 18] == 0.0).all()
    assert (rollout.features[4, :, 18] == 1.0).all()
