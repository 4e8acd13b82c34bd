"""Info keys that are not strings: taken as Gymnasium takes them, whoever reads the infos."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from envs.workers.test_worker_trajectories import assert_same, play_alike
from stepladder.curricula import Uniform
from stepladder.envs import CurriculumEnv, CurriculumVectorEnv, make_vec
from stepladder.envs.agent_rows import entries_of, spread_infos
from stepladder.envs.puffer import PufferView
from stepladder.stats.rollout import accumulate_rollout_stats
from stepladder.tasks import Task
from worker_envs import RandomEnv

pytestmark = [pytest.mark.processes, pytest.mark.timeout(60, method="signal")]

WORKERS = pytest.mark.parametrize("num_workers", [0, 1])
ODD: dict[Any, Any] = {3: 1.5, (1, "a"): {None: "deep"}, None: 7, "word": "x"}


class OddKeys(gym.Env[Any, Any]):
    """Episodes of two steps; every info has keys of all kinds."""

    observation_space = spaces.Box(0, 9, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.num_steps = 0
        return np.zeros(1, np.float32), dict(ODD)

    def step(self, action: Any):
        self.num_steps += 1
        return np.ones(1, np.float32), 1.0, self.num_steps == 2, False, {**ODD, "success": True}


def ignore_task(env: Any, task: Any) -> None:
    """Deliver nothing."""


@WORKERS
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_with_a_curriculum_infos_are_those_of_the_plain_loop(
    num_workers: int, mode: AutoresetMode
) -> None:
    space = spaces.Box(-1, 1, (2,), np.float32)
    functions = [
        partial(RandomEnv, index, space, spaces.Discrete(3), odd_keys=True) for index in range(3)
    ]
    options: dict[str, Any] = {"deliver": ignore_task}

    def taught(function: Any) -> Any:
        return CurriculumEnv(function(), enable_local_tracking=False, **options)

    plain = SyncVectorEnv([partial(taught, each) for each in functions], autoreset_mode=mode)
    tasks = [Task(f"task {number}") for number in range(5)]
    theirs = CurriculumVectorEnv(plain, Uniform(tasks, seed=1))
    ours = make_vec(
        functions,
        curriculum=Uniform(tasks, seed=1),
        curriculum_env=options,
        num_workers=num_workers,
        autoreset_mode=mode,
        start_method="fork",
    )
    play_alike(ours, theirs, np.random.default_rng(4), num_steps=12)
    assert ours.counts == theirs.counts
    ours.close()
    theirs.close()


@WORKERS
def test_stable_baselines3_gets_the_keys_as_they_are(num_workers: int) -> None:
    from stepladder.envs.sb3 import as_vec_env

    vec = as_vec_env(make_vec(OddKeys, 2, num_workers=num_workers, start_method="fork"))
    vec.reset()
    assert vec.reset_infos == [ODD, ODD]
    vec.step(np.zeros(2, dtype=int))
    *_, infos = vec.step(np.zeros(2, dtype=int))
    for info in infos:
        assert {key: info[key] for key in ODD} == ODD
        assert info["terminal_observation"] == np.ones(1)
    vec.close()


@WORKERS
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_pufferlib_gets_the_keys_as_they_are(num_workers: int, mode: str) -> None:
    vec = make_vec(OddKeys, 2, num_workers=num_workers, autoreset_mode=mode, start_method="fork")
    view = PufferView(vec)
    _, infos = view.reset()
    assert infos == [ODD, ODD]
    for _ in range(2):
        *_, infos = view.step(np.zeros(2, dtype=int))
    ended = {**ODD, "success": True}
    assert infos == ([ended, ended] if mode == "NextStep" else [ended, ODD, ended, ODD])
    view.close()


def test_rows_of_agents_have_the_keys_of_their_env_and_their_own() -> None:
    yes, first = np.array([True, True]), np.array([True, False])
    infos = {
        5: np.array([1, 2]),
        "_5": yes,
        "ann": {None: np.array([3, 0]), "_None": first},
        "_ann": first,
    }
    assert [key for key, _, _ in entries_of(infos, 2)] == [5, "ann"]
    rows = spread_infos(infos, {"ann": 0, "bob": 1}, np.ones((2, 2), dtype=np.bool_))
    assert_same(
        rows,
        {
            5: np.array([1, 1, 2, 2]),
            "_5": np.ones(4, dtype=np.bool_),
            None: np.array([3, 0, 0, 0]),
            "_None": np.array([True, False, False, False]),
        },
    )


def test_metrics_are_named_after_the_text_of_a_key_and_masks_are_no_metrics() -> None:
    vec = make_vec(OddKeys, 2, num_workers=0)
    _, infos = vec.reset()
    stats: dict[str, list[float]] = {}
    accumulate_rollout_stats(infos, stats)
    assert stats == {"3": [1.5, 1.5], "None": [7.0, 7.0]}
    vec.close()
