"""`close()` gives back every descriptor, mapping and process at once, garbage collected or not.

Each test runs in a process of its own with the garbage collector switched off, and compares what
that process holds before a vector env is made and after it is closed.
"""

import gc
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import psutil
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from stepladder import CurriculumEnv, CurriculumVectorEnv, make_vec
from stepladder.curricula import Uniform
from stepladder.envs.puffer import PufferView
from stepladder.errors import ConfigError
from stepladder.tasks import Task

pytestmark = [pytest.mark.processes, pytest.mark.timeout(110)]

NUM_ENVS = 6


class OneStepEnv(gym.Env[Any, Any]):
    """Ends with every step; knows itself, so that only a collector could free it."""

    observation_space = gym.spaces.Dict(
        {"box": gym.spaces.Box(-1, 1, (2,), np.float32), "text": gym.spaces.Text(5)}
    )
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.me = self

    def set_task(self, task: Task) -> None:
        """Play any task alike."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        return {"box": np.zeros(2, np.float32), "text": "a"}, {}

    def step(self, action: Any):
        return {"box": np.ones(2, np.float32), "text": "b"}, 1.0, True, False, {"is_success": True}


class PlainEnv(OneStepEnv):
    """Observes one array, which PufferLib's buffers and Stable-Baselines3 can take."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, **settings: Any):
        return np.zeros(2, np.float32), {}

    def step(self, action: Any):
        return np.ones(2, np.float32), 1.0, True, False, {"is_success": True}


class BrokenEnv(OneStepEnv):
    """Cannot be made."""

    def __init__(self) -> None:
        raise RuntimeError("broken")


class OtherEnv(OneStepEnv):
    """Has another space than the others."""

    action_space = gym.spaces.Discrete(3)


@dataclass(frozen=True)
class Holdings:
    """What this process has."""

    descriptors: list[str]
    segments: list[str]
    children: list[int]
    num_threads: int


threads_before: list[int] = []
"""How many threads there were, once that is known."""


def holdings() -> Holdings:
    me = psutil.Process()
    # The system lists a thread for a moment after it has been joined, longer on busy cores.
    deadline = time.monotonic() + 10.0
    while [me.num_threads()] > threads_before != [] and time.monotonic() < deadline:
        time.sleep(0.001)
    maps = Path("/proc/self/maps").read_text().splitlines()
    return Holdings(
        sorted(os.listdir("/proc/self/fd"), key=int),
        [line for line in maps if "memfd:stepladder" in line or "/dev/shm" in line],
        sorted(child.pid for child in me.children(recursive=True)),
        me.num_threads(),
    )


def curriculum() -> Uniform:
    return Uniform([Task(f"task{index}") for index in range(3)], seed=0)


def taught(env: type[gym.Env[Any, Any]] = OneStepEnv) -> CurriculumEnv:
    return CurriculumEnv(env(), enable_local_tracking=False)


def play(vec: Any) -> None:
    vec.reset()
    for _ in range(4):
        vec.step(np.zeros(NUM_ENVS, dtype=np.int64))


def ours(*, learns: bool = False, **settings: Any) -> Any:
    """Make a vector env by `make_vec`, with or without a curriculum."""
    settings = {"env": OneStepEnv, "num_envs": NUM_ENVS, "start_method": "fork", **settings}
    return make_vec(curriculum=curriculum() if learns else None, **settings)


def gymnasiums(kind: Any, backend: Any) -> Any:
    return CurriculumVectorEnv(kind([taught] * NUM_ENVS), curriculum(), backend=backend)


def stable_baselines(is_forked: bool, backend: Any) -> Any:
    # Here: only the process that needs it loads PyTorch.
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    from stepladder.envs.sb3 import CurriculumVecEnvWrapper

    functions = [partial(taught, PlainEnv)] * NUM_ENVS
    envs = SubprocVecEnv(functions, start_method="fork") if is_forked else DummyVecEnv(functions)
    return CurriculumVecEnvWrapper(envs, curriculum(), backend=backend)


# What is done with a vector env. Each returns what is held while it is still known.


def use(make: Callable[[], Any]) -> Holdings:
    vec = make()
    play(vec)
    vec.close()
    return holdings()


def leave_by_an_exception(make: Callable[[], Any]) -> Holdings:
    try:
        with make() as vec:
            play(vec)
            raise KeyError
    except KeyError:
        return holdings()


def fail_to_make(make: Callable[[], Any]) -> Holdings:
    try:
        make()
    except (RuntimeError, ConfigError):
        return holdings()
    raise AssertionError("it was made")


def replace_a_worker(make: Callable[[], Any]) -> Holdings:
    vec = make()
    play(vec)
    os.kill(vec.unwrapped._coordinator._pool.handles[0].process.pid, 9)
    play(vec)
    vec.close()
    return holdings()


def keep_an_array(make: Callable[[], Any]) -> Holdings:
    """Keep an array that is the memory itself: it stays valid, and the memory goes with it."""
    before = len(holdings().segments)
    vec = make()
    vec.reset()
    observations = vec.step(np.zeros(NUM_ENVS, dtype=np.int64))[0]["box"]
    vec.close()
    assert len(holdings().segments) == before + 1
    observations[:] = 3
    assert observations.sum() == 6 * NUM_ENVS
    del observations
    return holdings()


def use_as_buffers(make: Callable[[], Any]) -> Holdings:
    view = PufferView(make())
    view.async_reset()
    view.recv()
    view.send(np.zeros(NUM_ENVS, dtype=np.int64))
    view.recv()
    view.close()
    return holdings()


def play_a_game(make: Callable[[], Any]) -> Holdings:
    vec = make()
    vec.reset()
    for _ in range(3):
        vec.step(vec.action_space.sample())
    vec.close()
    return holdings()


Case = tuple[Callable[[Callable[[], Any]], Holdings], Callable[[], Any]]

CASES: dict[str, list[Case]] = {
    "fork": [
        (use, partial(ours, num_workers=workers, learns=learns))
        for workers in (0, 1, 3)
        for learns in (False, True)
    ]
    + [
        (leave_by_an_exception, partial(ours, num_workers=3, learns=True)),
        (replace_a_worker, partial(ours, num_workers=2, learns=True)),
        (keep_an_array, partial(ours, num_workers=1, copy=False)),
        (use_as_buffers, partial(ours, env=PlainEnv, num_workers=1, learns=True)),
        (fail_to_make, partial(ours, env=BrokenEnv, num_workers=2)),
        (fail_to_make, partial(ours, env=[OneStepEnv, BrokenEnv], num_envs=2, num_workers=1)),
        (fail_to_make, partial(ours, env=[OneStepEnv, OtherEnv], num_envs=2, num_workers=1)),
        (fail_to_make, partial(ours, num_workers=1, learns=True, check_interval_episodes=3)),
    ],
    "forkserver": [(use, partial(ours, num_workers=3, learns=True, start_method="forkserver"))],
    "spawn": [(use, partial(ours, num_workers=1, learns=True, start_method="spawn"))],
    "gymnasium": [
        (use, partial(gymnasiums, kind, backend))
        for kind, backends in (
            (SyncVectorEnv, ("local", "shared", "pushed")),
            # In a process that was spawned it would spawn, too: a second for each worker.
            (partial(AsyncVectorEnv, context="fork"), ("shared", "pushed")),
        )
        for backend in backends
    ],
    "stable_baselines": [
        (use, partial(stable_baselines, False, "local")),
        (use, partial(stable_baselines, False, "shared")),
        (use, partial(stable_baselines, True, "shared")),
        (use, partial(stable_baselines, True, "pushed")),
    ],
    "games": [(play_a_game, partial(make_vec, "stepladder/Hockey-v0", 64))],
}


def check(name: str) -> None:
    """Do everything under a name twice, without a collector; the second time leaves nothing."""
    gc.disable()
    for do, make in CASES[name]:
        threads_before.clear()
        do(make)
        before = holdings()
        threads_before.append(before.num_threads)
        after = do(make)
        for now in (after, holdings()):
            # One that was ending may have been counted before.
            assert now.num_threads <= before.num_threads, (now, before, do, make)
            same = replace(now, num_threads=before.num_threads)
            assert same == before, (now, before, do, make)


def make_and_close_with_few_descriptors() -> None:
    gc.disable()
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    for _ in range(30):
        use(partial(ours, num_workers=3, learns=True))


def run_apart(work: Callable[..., None], *arguments: Any) -> int | None:
    """Run something in a process of its own; return its exit code."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    process.start()
    try:
        process.join(timeout=100)
        return process.exitcode
    finally:
        process.kill()
        process.join()


@pytest.mark.parametrize("name", CASES)
def test_closing_gives_everything_back_without_a_collector(name: str) -> None:
    assert run_apart(check, name) == 0


def test_few_descriptors_are_enough_for_any_number_of_vector_envs() -> None:
    assert run_apart(make_and_close_with_few_descriptors) == 0
