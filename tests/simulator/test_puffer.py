"""The simulated tasks through PufferLib's own interface."""

from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("pufferlib")

import pufferlib.vector

from stepladder.curricula import Uniform
from stepladder.errors import TaskError
from stepladder.simulator import Noise, TaskDependencySimulator
from stepladder.simulator.puffer import PufferTaskDependencyEnv

SKILLS = {0: 0.1, 1: 0.3, 2: 0.5, 3: 0.7, 4: 0.9}


def telling() -> TaskDependencySimulator:
    """A learner whose reward says which task was played."""
    return TaskDependencySimulator(5, noise=Noise(reward="skill"), start=SKILLS)


@dataclass
class Config:
    label: str


def test_a_step_fills_the_buffers():
    env = PufferTaskDependencyEnv(telling(), Config("taskclass3"), learns=False)
    observations, infos = env.reset()
    assert observations.tolist() == [[0.0]]
    assert infos == [{}]
    observations, rewards, terminals, truncations, infos = env.step(np.zeros(1, dtype=np.int64))
    assert rewards.tolist() == pytest.approx([0.7])
    assert rewards is env.rewards
    assert (terminals.tolist(), truncations.tolist()) == ([True], [False])
    assert infos[0]["task_dependency"]["task_class"] == 3
    assert env.get_episode_rewards().tolist() == pytest.approx([0.7])
    env.close()


def test_a_config_set_between_two_plays_is_the_one_that_is_played():
    # Defect 7 of the ancestor: the config arrived one play too late.
    env = PufferTaskDependencyEnv(telling(), learns=False)
    env.reset()
    env.step(0)
    for node in (3, 0, 4, 1):
        env.set_mg_config(Config(f"taskclass{node}"))
        env.step(0)
        assert env.get_episode_rewards().tolist() == pytest.approx([SKILLS[node]])


def test_every_step_is_a_play_and_no_play_is_drawn_in_vain():
    # Defect 8 of the ancestor: the driver reset the env once more after every ending.
    simulator = TaskDependencySimulator(3)
    env = PufferTaskDependencyEnv(simulator)
    env.reset()
    for _ in range(50):
        env.step(0)
    assert simulator.num_plays == 50


def test_the_seed_decides_all_outcomes():
    def course(seed):
        env = PufferTaskDependencyEnv(
            TaskDependencySimulator(1, start={0: 0.5}), learns=False, seed=seed
        )
        env.reset()
        return [float(env.step(0)[1][0]) for _ in range(40)]

    assert course(0) == course(0) != course(1)


def test_a_seed_given_to_reset_counts():
    def course(seed):
        env = PufferTaskDependencyEnv(TaskDependencySimulator(1, start={0: 0.5}), learns=False)
        env.reset(seed)
        return [float(env.step(0)[1][0]) for _ in range(40)]

    assert course(7) == course(7) != course(8)


def test_a_reset_without_a_seed_does_not_begin_the_same_again():
    env = PufferTaskDependencyEnv(TaskDependencySimulator(1, start={0: 0.5}), learns=False, seed=0)
    outcomes = set()
    for _ in range(40):
        env.reset()
        outcomes.add(float(env.step(0)[1][0]))
    assert outcomes == {0.0, 1.0}


def test_an_unknown_config_is_refused():
    env = PufferTaskDependencyEnv(telling())
    with pytest.raises(TaskError, match="task 9 does not exist"):
        env.set_mg_config(Config("taskclass9"))


def test_pufferlib_vectorises_it():
    simulator = telling()
    envs = pufferlib.vector.make(
        PufferTaskDependencyEnv,
        env_args=[simulator, "taskclass4"],
        env_kwargs={"learns": False},
        backend=pufferlib.vector.Serial,
        num_envs=4,
    )
    envs.reset(seed=3)
    for env, node in zip(envs.envs, (2, 0, 1, 4), strict=True):
        env.set_mg_config(Config(f"taskclass{node}"))
    actions = np.zeros(4, dtype=np.int64)
    # Task 4 was begun at reset; what was set then is played in the second step.
    assert envs.step(actions)[1].tolist() == pytest.approx([0.9] * 4)
    _, rewards, terminals, _, infos = envs.step(actions)
    assert rewards.tolist() == pytest.approx([0.5, 0.1, 0.3, 0.9])
    assert terminals.all()
    assert [info["task_dependency"]["task_class"] for info in infos] == [2, 0, 1, 4]
    envs.close()


def test_a_curriculum_can_drive_it_by_hand():
    simulator = TaskDependencySimulator(4, seed=1)
    curriculum = Uniform(simulator.source(), seed=1)
    env = PufferTaskDependencyEnv(simulator)
    for _ in range(100):
        draw = curriculum.draw_one()
        env.set_mg_config(curriculum.task(draw))
        env.reset(draw.seed & 0x7FFFFFFF)
        _, rewards, _, _, infos = env.step(0)
        curriculum.report(draw, infos[0]["task_dependency"]["success"], float(rewards[0]))
    assert curriculum.plays.tolist() == simulator.get_summary()["sample_counts"]
    assert curriculum.num_observed == simulator.num_plays == 100
