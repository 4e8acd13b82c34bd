"""Vector envs that several threads make, restart and close at once, whatever else they compile."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numba
import numpy as np
import psutil
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv

from stepladder import make_vec
from stepladder.curricula import Uniform
from stepladder.envs.workers.parent import worker_handle
from stepladder.errors import WorkerDiedError
from stepladder.tasks import Task
from worker_envs import trouble_envs, worker_env

pytestmark = [pytest.mark.processes, pytest.mark.timeout(110)]


class CompilingEnv(gym.Env[Any, Any]):
    """Compiles a function of its own when it is made, as envs with kernels do the first time."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        offset = time.perf_counter()

        @numba.njit
        def observe(step: int) -> float:
            return step + offset

        self._observe = observe
        self._num_steps = 0
        observe(0)

    def set_task(self, task: Task) -> None:
        """Play any task alike."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        self._num_steps = 0
        return np.zeros(2), {}

    def step(self, action: Any):
        self._num_steps += 1
        observation = np.full(2, self._observe(self._num_steps))
        return observation, 1.0, self._num_steps == 3, False, {"is_success": True}


def run_in_threads(work: Callable[[], None], num_threads: int) -> None:
    """Do the same in several threads at once; raise what the first of them has raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(num_threads)

    def run() -> None:
        try:
            barrier.wait(timeout=20)
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=100)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize(
    ("start_method", "num_threads"),
    [("fork", 4), ("forkserver", 2), pytest.param("spawn", 2, marks=pytest.mark.slow)],
)
def test_threads_make_restart_and_close_vector_envs_at_once(
    start_method: Any, num_threads: int
) -> None:
    def play() -> None:
        curriculum = Uniform([Task(f"task{index}") for index in range(3)], seed=0)
        vec = make_vec(
            CompilingEnv,
            4,
            curriculum=curriculum,
            num_workers=1,
            start_method=start_method,
            timeout_s=50,
        )
        try:
            actions = np.zeros(4, dtype=np.int64)
            vec.reset(seed=0)
            for _ in range(3):
                vec.step(actions)
            os.kill(vec.unwrapped._coordinator._pool.handles[0].process.pid, signal.SIGKILL)
            for _ in range(3):
                vec.step(actions)
            assert vec.counts.finished >= 4
        finally:
            vec.close()

    run_in_threads(play, num_threads)
    assert not [p for p in multiprocessing.active_children() if "stepladder" in p.name]


def test_gymnasiums_workers_can_compile_though_other_threads_do() -> None:
    is_over = threading.Event()

    def compile_on() -> None:
        while not is_over.is_set():
            CompilingEnv()

    thread = threading.Thread(target=compile_on)
    thread.start()
    try:
        vec = AsyncVectorEnv([CompilingEnv] * 2)
        vec.reset_async()
        vec.reset_wait(timeout=40)
        vec.close()
    finally:
        is_over.set()
        thread.join()


COLD = """
    import threading
    from stepladder import make_vec

    errors = []

    def play():
        try:
            vec = make_vec("CartPole-v1", 4, num_workers=1, start_method="fork", timeout_s=90)
            vec.reset(seed=0)
            vec.step(vec.action_space.sample())
            vec.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
"""


@pytest.mark.slow
def test_threads_make_vector_envs_when_nothing_is_compiled_yet(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    program = [sys.executable, "-c", textwrap.dedent(COLD)]
    subprocess.run(program, env=environment, check=True, timeout=100)


# What is said of a worker that does not come up.


def sleep(*arguments: Any) -> None:
    time.sleep(60)


def test_a_worker_that_does_not_start_is_not_blamed_on_an_env(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_handle, "main", sleep)
    monkeypatch.setattr(worker_handle, "START_S", 0.3)
    with pytest.raises(WorkerDiedError, match=r"worker 0 .* did not start within 0\.3 s") as caught:
        make_vec(trouble_envs(4), num_workers=1, start_method="fork", timeout_s=0.2)
    assert caught.value.env_indices == [2, 3]
    assert "were not called" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not [p for p in multiprocessing.active_children() if "stepladder" in p.name]


def test_a_worker_that_does_not_start_again_is_not_blamed_on_an_env(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with worker_env(4, num_workers=1, timeout_s=0.3) as vec:
        vec.reset(seed=0)
        pid = vec._coordinator._pool.handles[0].process.pid
        os.kill(pid, signal.SIGKILL)
        psutil.wait_procs([psutil.Process(pid)], timeout=0.01)
        monkeypatch.setattr(worker_handle, "main", sleep)
        monkeypatch.setattr(worker_handle, "START_S", 0.3)
        with pytest.raises(WorkerDiedError, match="did not start"):
            vec.step(np.zeros(4, dtype=np.int64))


def test_what_fails_before_an_env_is_asked_is_not_blamed_on_one() -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset(seed=0)
        with pytest.raises(ZeroDivisionError) as caught:
            vec.call("try_call", CannotArrive())
        assert any("before an env was called" in note for note in caught.value.__notes__)
        vec.step(np.zeros(4, dtype=np.int64))


class CannotArrive:
    """Can be sent and cannot be received."""

    def __reduce__(self) -> Any:
        return divmod, (1, 0)
