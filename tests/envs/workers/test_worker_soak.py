"""A million episodes, hundreds of vector envs: nothing grows, nothing is left, all is counted."""

import gc
import multiprocessing
import os
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import psutil
import pytest
from gymnasium.vector import AutoresetMode

from stepladder import CurriculumVectorEnv, make_vec
from stepladder.curricula import Uniform
from stepladder.envs.workers import WorkerVectorEnv
from stepladder.tasks import Task
from worker_envs import SAME_STEP, TroubleEnv, trouble_envs, worker_env

pytestmark = pytest.mark.soak

MIB = 2**20
NUM_ENVS = 64
NUM_EPISODES = 1_000_000
"""So many that the smallest object left behind by each would be seen."""


class MayflyEnv(gym.Env[Any, Any]):
    """Lives for one step."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self._observation = np.zeros(2, np.float32)

    def set_task(self, task: Task) -> None:
        """Play any task alike."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        return self._observation, {}

    def step(self, action: Any):
        return self._observation, 1.0, True, False, {"is_success": True}


class Footprint:
    """What this process and its workers hold."""

    def __init__(self, pids: list[int]):
        gc.collect()
        processes = [psutil.Process(pid) for pid in (os.getpid(), *pids)]
        self.bytes = [process.memory_info().rss for process in processes]
        self.descriptors = [process.num_fds() for process in processes]
        self.threads = [process.num_threads() for process in processes]


def assert_flat(before: Footprint, after: Footprint, growth_bytes: int) -> None:
    assert after.descriptors == before.descriptors
    assert after.threads == before.threads
    grown = np.subtract(after.bytes, before.bytes)
    assert (grown < growth_bytes).all(), grown / MIB


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    segments, descriptors = _segments(), psutil.Process().num_fds()
    yield
    assert not [p for p in multiprocessing.active_children() if "stepladder" in p.name]
    gc.collect()
    assert _segments() == segments
    # Whatever a library has opened the first time it was used.
    assert psutil.Process().num_fds() <= descriptors + 2


def _segments() -> list[str]:
    folder = "/dev/shm"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(name for name in names if name.startswith("stepladder"))


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.timeout(180, method="signal")
def test_a_million_episodes_leave_nothing_behind() -> None:
    tasks = [Task(f"task{index}") for index in range(50)]
    vec = make_vec(
        MayflyEnv,
        NUM_ENVS,
        curriculum=Uniform(tasks, seed=0),
        num_workers=1,
        autoreset_mode=SAME_STEP,
        start_method="fork",
    )
    assert isinstance(vec, CurriculumVectorEnv)
    base: Any = vec.unwrapped
    vec.reset(seed=0)
    actions = np.zeros(NUM_ENVS, dtype=np.int64)
    pids = [process.pid for process in multiprocessing.active_children() if process.pid]
    # What an adapter does: infos by themselves rather than merged.
    base.merges_infos = False
    num_steps, before = NUM_EPISODES // NUM_ENVS, None
    for number in range(num_steps):
        if number == num_steps // 10:
            before = Footprint(pids)
        _, rewards, terminated, _, _ = vec.step(actions)
        assert terminated.all()
        assert rewards.sum() == NUM_ENVS
    assert before is not None
    assert_flat(before, Footprint(pids), 4 * MIB)
    counts = vec.counts
    assert counts.finished == num_steps * NUM_ENVS
    assert counts.started == counts.finished + NUM_ENVS
    assert (counts.aborted, counts.failed, counts.in_flight) == (0, 0, NUM_ENVS)
    assert vec.curriculum.num_observed == num_steps * NUM_ENVS
    vec.close()


@pytest.mark.processes
@pytest.mark.timeout(120, method="signal")
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_thousands_of_episodes_with_merged_infos_leave_nothing_behind(mode: AutoresetMode) -> None:
    settings: Any = {"num_workers": 2, "autoreset_mode": mode}
    with worker_env(8, env={"length": 1, "quiet": False}, **settings) as vec:
        vec.reset(seed=0)
        actions = np.zeros(8, dtype=np.int64)
        pids = [process.pid for process in multiprocessing.active_children() if process.pid]
        vec.set_attr("actions", [_Bin() for _ in range(8)])
        before = None
        for number in range(3000):
            if number == 1000:
                before = Footprint(pids)
            _, _, terminated, truncated, _ = vec.step(actions)
            ended = terminated | truncated
            if mode is AutoresetMode.DISABLED and ended.any():
                vec.reset(options={"reset_mask": ended})
            if number % 100 == 0:
                vec.call("pid")
                vec.set_attr("seeds", [_Bin() for _ in range(8)])
                vec.set_attr("options", [_Bin() for _ in range(8)])
        assert before is not None
        assert_flat(before, Footprint(pids), 4 * MIB)


class _Bin(list[Any]):
    """Takes everything and keeps nothing."""

    def append(self, value: Any) -> None:
        """Forget it."""


@pytest.mark.processes
@pytest.mark.timeout(120, method="signal")
def test_infos_without_room_do_not_pile_up() -> None:
    with worker_env([TalkerEnv] * 3, num_workers=1) as vec:
        vec.reset(seed=0)
        pids = [process.pid for process in multiprocessing.active_children() if process.pid]
        before = None
        for number in range(90):
            if number == 30:
                before = Footprint(pids)
            vec.step(np.zeros(3, dtype=np.int64))
            vec.call("try_call", bytes(MIB))
        assert before is not None
        assert_flat(before, Footprint(pids), 16 * MIB)


class TalkerEnv(TroubleEnv):
    """Has more to say than there is room for."""

    def step(self, action: Any):
        observation, reward, terminated, truncated, _ = super().step(action)
        return observation, reward, terminated, truncated, {"blob": bytes(MIB)}


def make_and_close_hundreds() -> None:
    before = None
    for number in range(200):
        vec = WorkerVectorEnv(
            trouble_envs(4), num_workers=2, start_method="fork", num_batches=1 + number % 2
        )
        vec.reset(seed=0)
        vec.step(np.zeros(4, dtype=np.int64))
        if number % 3 == 0:
            os.kill(vec.call("pid")[3], 9)
            vec.step(np.zeros(4, dtype=np.int64))
        vec.close()
        assert not multiprocessing.active_children()
        if number == 20:
            before = Footprint([])
    assert before is not None
    assert_flat(before, Footprint([]), 8 * MIB)


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.timeout(120, method="signal")
def test_hundreds_of_vector_envs_leave_nothing_behind() -> None:
    # In a process of its own: a fork of this one copies what all other tests have imported.
    process = multiprocessing.get_context("spawn").Process(target=make_and_close_hundreds)
    process.start()
    try:
        process.join()
    finally:
        process.kill()
        process.join()
    assert process.exitcode == 0
