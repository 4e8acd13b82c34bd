"""What editors know of the result of `make_vec`; checked by pyright in `make check`, never run."""

# pyright: reportUnnecessaryTypeIgnoreComment=error

from typing import assert_type

import gymnasium as gym

from stepladder import CurriculumVectorEnv, Uniform, make_vec
from stepladder.envs.workers.vector_env import WorkerVectorEnv
from stepladder.games import LedgeEnv
from stepladder.games.batch import GameVectorEnv


def of_an_env_that_steps_in_workers(env: type[gym.Env]) -> None:
    envs = make_vec(env, 4, num_workers=2)
    assert_type(envs, WorkerVectorEnv)
    envs.step_async(envs.action_space.sample())
    assert_type(make_vec([env, env]), WorkerVectorEnv)
    assert_type(make_vec(lambda: gym.make("CartPole-v1"), 4), WorkerVectorEnv)


def of_what_may_be_a_game() -> None:
    assert_type(make_vec(LedgeEnv, 4), WorkerVectorEnv | GameVectorEnv)
    envs = make_vec("stepladder/Ledge-v0", 4)
    assert_type(envs, WorkerVectorEnv | GameVectorEnv)
    # A batch has no calls in two parts.
    envs.step_async(envs.action_space.sample())  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(envs, WorkerVectorEnv):
        envs.step_async(envs.action_space.sample())


def with_a_curriculum(curriculum: Uniform) -> None:
    assert_type(make_vec("CartPole-v1", 4, curriculum=curriculum), CurriculumVectorEnv)
    assert_type(make_vec(LedgeEnv, 4, curriculum=curriculum), CurriculumVectorEnv)
