"""What may go wrong, done to real processes with real signals."""

import gc
import logging
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from stepladder import CurriculumVectorEnv, make_vec
from stepladder.curricula import Uniform
from stepladder.envs.workers import WorkerVectorEnv
from stepladder.envs.workers.parent.worker_handle import WorkerHandle
from stepladder.errors import ChannelError, EnvError, EnvTimeoutError, WorkerDiedError
from stepladder.tasks import Task
from worker_envs import (
    DISABLED,
    SAME_STEP,
    BoomError,
    Parcel,
    RandomEnv,
    StubbornError,
    TroubleEnv,
    no_actions,
    trouble_envs,
    worker_env,
    worker_pids,
)

pytestmark = [pytest.mark.processes, pytest.mark.timeout(60, method="signal")]

MODES = pytest.mark.parametrize("mode", list(AutoresetMode))
ROWS = pytest.mark.parametrize("row", [0, 3], ids=["parent", "worker"])
"""Of four envs and one worker: a row of this process's own, and one of the worker's."""

NOTICED_S = 3.0
"""A second to notice, and as much as a busy machine may add."""


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """Whatever a test does, no process of its own and no segment outlives it."""
    segments = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    children = {process.pid for process in multiprocessing.active_children()}
    yield
    left = [p for p in multiprocessing.active_children() if p.pid not in children]
    for process in left:
        process.kill()
        process.join()
    assert not [process for process in left if "stepladder" in process.name]
    if segments:
        assert {n for n in set(os.listdir("/dev/shm")) - segments if "stepladder" in n} == set()


def worker_of(vec: Any, row: int) -> int:
    """Return the process that steps a row, which is not this one."""
    pid = vec.call("pid")[row]
    assert pid != os.getpid()
    return pid


def kill(pid: int) -> None:
    """Kill a worker and wait until it no longer runs."""
    (process,) = (child for child in multiprocessing.active_children() if child.pid == pid)
    process.kill()
    process.join()


def stop(pid: int) -> None:
    """Stop a worker and wait until it no longer runs."""
    os.kill(pid, signal.SIGSTOP)
    while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
        time.sleep(1e-3)


class Killer(threading.Thread):
    """Kills a worker when one of its envs has got into the trouble that it is told of by a file."""

    def __init__(self, pid: int, met: Path):
        super().__init__()
        self._pid = pid
        self._met = met
        self._began = time.monotonic()
        self.start()

    def run(self) -> None:
        deadline = time.monotonic() + 20
        while not self._met.exists() and time.monotonic() < deadline:
            time.sleep(0.002)
        self._began = time.monotonic()
        os.kill(self._pid, signal.SIGKILL)

    @property
    def seconds_since(self) -> float:
        """How long ago it was killed."""
        self.join()
        return time.monotonic() - self._began


def step(vec: Any, num_steps: int = 1) -> None:
    for _ in range(num_steps):
        vec.step(no_actions(vec))


class Timed:
    """How long a block took."""

    def __enter__(self) -> "Timed":
        self._began = time.monotonic()
        return self

    def __exit__(self, *args: Any) -> None:
        self.seconds = time.monotonic() - self._began


# An env raises.


def assert_told(error: BaseException, row: int, method: str) -> None:
    """The user learns which env it was, and where in its code."""
    assert error.env_index == row  # type: ignore[attr-defined]
    text = "".join(traceback.format_exception(error))
    assert f"boom in {method} of env {row}" in text
    assert f"env {row}" in text
    assert "worker_envs.py" in text
    assert "TROUBLES[what]" in text


@ROWS
@pytest.mark.parametrize("method", ["step", "reset", "reset with seed", "call"])
@pytest.mark.parametrize(
    ("what", "kind"), [("raise", BoomError), ("raise stubborn", (StubbornError, EnvError))]
)
def test_what_an_env_raises_comes_back_and_the_vector_env_goes_on(
    row: int, method: str, what: str, kind: Any
) -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset(seed=0)
        vec.set_attr_on([row], "trouble", [{method.split()[0]: what}])
        calls: dict[str, Callable[[], Any]] = {
            "step": lambda: vec.step(no_actions(vec)),
            "reset": lambda: vec.reset(),
            "reset with seed": lambda: vec.reset(seed=4),
            "call": lambda: vec.call("try_call"),
        }
        with pytest.raises(kind) as caught:
            calls[method]()
        assert_told(caught.value, row, method.split()[0])
        assert vec.get_attr("env_index") == (0, 1, 2, 3)
        vec.reset(seed=0)
        for number in (1, 2, 3):
            np.testing.assert_array_equal(vec.step(no_actions(vec))[0][:, 2], number)


@ROWS
def test_what_a_constructor_raises_comes_back_and_no_process_is_left(row: int) -> None:
    functions = trouble_envs(4)
    functions[row] = partial(TroubleEnv, row, trouble={"make": "raise"})
    with pytest.raises(BoomError) as caught:
        WorkerVectorEnv(functions, num_workers=1, start_method="fork")
    assert_told(caught.value, row, "make")
    assert not multiprocessing.active_children()


def test_of_several_errors_that_of_the_first_env_is_raised() -> None:
    with worker_env(6, num_workers=2) as vec:
        vec.reset()
        vec.set_attr_on([1, 3, 5], "trouble", [{"step": "raise"}] * 3)
        with pytest.raises(BoomError, match="env 1"):
            vec.step(no_actions(vec))
        vec.reset(seed=1)
        assert vec.get_attr("env_index") == (0, 1, 2, 3, 4, 5)
        vec.set_attr_on([3, 5], "trouble", [{"reset": "raise"}] * 2)
        with pytest.raises(BoomError, match="env 3"):
            vec.reset(seed=1)
        vec.reset(seed=1)
        assert vec.get_attr("env_index") == (0, 1, 2, 3, 4, 5)


def test_an_env_that_exits_takes_only_its_own_worker_with_it() -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset()
        vec.set_attr_on([2], "trouble", [{"step": "exit"}])
        truncated = vec.step(no_actions(vec))[3]
        np.testing.assert_array_equal(truncated, [False, False, True, True])


# A worker is killed.


class Endings:
    """Plays on and writes down how the episodes of each env end."""

    def __init__(self, vec: Any):
        self.vec = vec
        self.mode = vec.metadata["autoreset_mode"]
        self.lost = np.zeros(vec.num_envs, dtype=int)
        self.ended = np.zeros(vec.num_envs, dtype=int)

    def step(self) -> Any:
        """Step; then reset what nobody else resets."""
        result = self.vec.step(no_actions(self.vec))
        self.note(slice(0, self.vec.num_envs), result)
        over = result[2] | result[3]
        if self.mode is DISABLED and over.any():
            self.vec.reset(options={"reset_mask": over})
        return result

    def note(self, rows: slice, result: Any) -> None:
        """Count the endings of some rows."""
        observations, rewards, terminated, truncated, infos = result
        if self.mode is SAME_STEP:
            if (terminated | truncated).any():
                np.testing.assert_array_equal(infos["_final_obs"], terminated | truncated)
            infos = infos.get("final_info", {})
        died = np.asarray(infos.get("worker_died", np.zeros(len(rewards), dtype=bool)), dtype=bool)
        # An ending whose worker has died is an ending like any other, but for its cause.
        assert (truncated[died]).all()
        assert not terminated[died].any()
        assert (rewards[died] == 0).all()
        np.testing.assert_array_equal(observations[:, 0], np.arange(rows.start, rows.stop))
        self.lost[rows] += died
        self.ended[rows] += terminated | truncated


@MODES
@pytest.mark.parametrize("num_workers", [1, 3])
def test_a_worker_killed_while_idle_is_restarted(mode: AutoresetMode, num_workers: int) -> None:
    with worker_env(8, num_workers=num_workers, autoreset_mode=mode, env={"length": 5}) as vec:
        vec.reset(seed=0)
        endings = Endings(vec)
        for _ in range(2):
            endings.step()
        victim = worker_of(vec, 7)
        rows = worker_pids(vec)[victim]
        kill(victim)
        with Timed() as timed:
            for _ in range(9):
                endings.step()
        assert timed.seconds < NOTICED_S
        expected = np.zeros(8, dtype=int)
        expected[rows] = 1
        np.testing.assert_array_equal(endings.lost, expected)
        # The others have not noticed anything.
        others = np.setdiff1d(np.arange(8), rows)
        assert (endings.ended[others] == endings.ended[others][0]).all()
        assert worker_of(vec, 7) != victim


@MODES
@pytest.mark.parametrize("moment", ["spinning", "asleep"])
def test_it_is_noticed_in_time_whatever_the_worker_was_waiting_in(
    mode: AutoresetMode, moment: str
) -> None:
    with worker_env(4, num_workers=1, autoreset_mode=mode, env={"length": 9}) as vec:
        vec.reset(seed=0)
        victim = worker_of(vec, 3)
        vec.step(no_actions(vec))
        if moment == "asleep":
            time.sleep(0.1)
        os.kill(victim, signal.SIGKILL)
        with Timed() as timed:
            truncated = vec.step(no_actions(vec))[3]
        assert timed.seconds < NOTICED_S
        # Killed as it was, it may just have managed to step.
        if not truncated.any():
            truncated = vec.step(no_actions(vec))[3]
        np.testing.assert_array_equal(truncated, [False, False, True, True])


@MODES
@pytest.mark.parametrize("what", ["sleep", "spin", "stick", "kill"])
def test_a_worker_killed_while_it_steps_is_restarted(
    mode: AutoresetMode, what: str, tmp_path: Path
) -> None:
    env = {"length": 9, "met": tmp_path / "met"}
    with worker_env(6, num_workers=1, autoreset_mode=mode, env=env) as vec:
        vec.reset(seed=0)
        endings = Endings(vec)
        endings.step()
        # The worker has rows 3 to 5: one has been stepped, one is being stepped, one is not.
        vec.set_attr_on([4], "trouble", [{"step": what}])
        killer = None if what == "kill" else Killer(worker_of(vec, 4), env["met"])
        with Timed() as timed:
            observations, _, _, truncated, _ = endings.step()
        assert (killer.seconds_since if killer else timed.seconds) < NOTICED_S
        # What had been stepped is a step like any other; its episode ends with the next.
        np.testing.assert_array_equal(truncated, [False] * 4 + [True] * 2)
        assert observations[:4, 2].tolist() == [2, 2, 2, 2]
        for _ in range(4):
            endings.step()
        np.testing.assert_array_equal(endings.lost, [0, 0, 0, 1, 1, 1])


@MODES
@pytest.mark.parametrize("seed", [None, 7])
def test_a_worker_killed_while_it_resets_is_restarted(
    mode: AutoresetMode, seed: Any, tmp_path: Path
) -> None:
    env = {"length": 9, "met": tmp_path / "met"}
    with worker_env(6, num_workers=1, autoreset_mode=mode, env=env) as vec:
        vec.reset(seed=0)
        endings = Endings(vec)
        endings.step()
        vec.set_attr_on([4], "trouble", [{"reset": "sleep"}])
        killer = Killer(worker_of(vec, 4), env["met"])
        observations, _ = vec.reset(seed=seed)
        assert killer.seconds_since < NOTICED_S
        np.testing.assert_array_equal(observations[:, 0], range(6))
        np.testing.assert_array_equal(observations[:, 2], 0)
        if seed is not None:
            assert [seeds[-1] for seeds in vec.get_attr("seeds")] == list(range(7, 13))
        for _ in range(4):
            endings.step()
        # Whoever resets gives up the episodes that were played.
        assert not endings.lost.any()


def test_a_worker_killed_while_it_resets_some_loses_only_the_others() -> None:
    with worker_env(6, num_workers=1, autoreset_mode=DISABLED, env={"length": 9}) as vec:
        vec.reset(seed=0)
        endings = Endings(vec)
        endings.step()
        vec.set_attr_on([4], "trouble", [{"reset": "kill"}])
        mask = np.array([True, False, False, True, True, False])
        observations, _ = vec.reset(options={"reset_mask": mask})
        np.testing.assert_array_equal(observations[:, 2], [0, 1, 1, 0, 0, 1])
        for _ in range(3):
            endings.step()
        np.testing.assert_array_equal(endings.lost, [0, 0, 0, 0, 0, 1])


def test_a_row_between_two_episodes_loses_nothing() -> None:
    with worker_env(4, num_workers=1, env={"length": 1}) as vec:
        vec.reset(seed=0)
        endings = Endings(vec)
        assert endings.step()[2].all()
        kill(worker_of(vec, 3))
        observations, _, terminated, truncated, _ = endings.step()
        assert not (terminated | truncated).any()
        np.testing.assert_array_equal(observations[:, 2], 0)
        assert endings.step()[2].all()
        assert not endings.lost.any()


def test_an_ending_of_the_very_step_in_which_its_worker_dies_is_kept() -> None:
    for mode in AutoresetMode:
        with worker_env(6, num_workers=1, autoreset_mode=mode, env={"length": 2}) as vec:
            vec.reset(seed=0)
            endings = Endings(vec)
            endings.step()
            vec.set_attr_on([5], "trouble", [{"step": "kill"}])
            _, _, terminated, truncated, _ = endings.step()
            np.testing.assert_array_equal(terminated, [True] * 5 + [False])
            np.testing.assert_array_equal(truncated, [False] * 5 + [True])
            np.testing.assert_array_equal(endings.ended, 1)
            np.testing.assert_array_equal(endings.lost, [0, 0, 0, 0, 0, 1])
            for _ in range(2):
                endings.step()
            # Between two episodes, or at the beginning of one that is lost too.
            began = 1 if mode is SAME_STEP else 0
            np.testing.assert_array_equal(endings.lost, [0, 0, 0, began, began, 1])


@MODES
def test_several_workers_killed_at_once_are_all_restarted(mode: AutoresetMode) -> None:
    with worker_env(8, num_workers=3, autoreset_mode=mode, env={"length": 9}) as vec:
        vec.reset(seed=0)
        endings = Endings(vec)
        endings.step()
        for pid in worker_pids(vec):
            kill(pid)
        for _ in range(5):
            endings.step()
        np.testing.assert_array_equal(endings.lost, [0, 0] + [1] * 6)


@MODES
@pytest.mark.parametrize("moment", ["before", "between", "during"])
def test_a_worker_killed_with_two_halves_under_way_is_restarted(
    mode: AutoresetMode, moment: str
) -> None:
    settings: Any = {"num_workers": 1, "num_batches": 2, "autoreset_mode": mode}
    with worker_env(8, env={"length": 9}, **settings) as vec:
        vec.reset(seed=0)
        endings = Endings(vec)
        victim = worker_of(vec, 7)
        rows = worker_pids(vec)[victim]
        assert rows == [2, 3, 6, 7]
        actions = np.zeros(4, dtype=np.int64)
        if moment == "during":
            vec.set_attr_on([3], "trouble", [{"step": "kill"}])
        for number in range(4):
            if number == 1 and moment == "before":
                kill(victim)
            vec.send(actions, 0)
            if number == 1 and moment == "between":
                kill(victim)
            vec.send(actions, 1)
            for batch_index in (1, 0):
                endings.note(vec.batches[batch_index], vec.recv(batch_index))
            ended = vec.buffers.truncated.copy()
            if mode is DISABLED and ended.any():
                vec.reset(options={"reset_mask": ended})
        np.testing.assert_array_equal(endings.lost, [0, 0, 1, 1, 0, 0, 1, 1])


def test_values_without_a_fixed_size_survive_the_death_of_their_worker() -> None:
    functions = [
        partial(RandomEnv, row, spaces.Tuple((Parcel(), spaces.Text(3))), Parcel(), 1e9, 0.0)
        for row in range(4)
    ]
    with worker_env(functions, num_workers=1, autoreset_mode=SAME_STEP, parent_steps=False) as vec:
        before = vec.reset(seed=0)[0]
        actions = ([1], [2], [3, 3], [])
        (pid,) = (child.pid for child in multiprocessing.active_children())
        assert pid is not None
        kill(pid)
        _, _, _, truncated, infos = vec.step(actions)
        assert truncated.all()
        for row in range(4):
            assert infos["final_obs"][row] == (before[0][row], before[1][row])
        vec.reset(seed=0)
        rewards = vec.step(actions)[1]
        vec.reset(seed=0)
        np.testing.assert_array_equal(vec.step(actions)[1], rewards)


def test_calls_reach_a_restarted_worker() -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset(seed=0)
        kill(worker_of(vec, 3))
        assert vec.get_attr("env_index") == (0, 1, 2, 3)
        kill(worker_of(vec, 3))
        vec.set_attr("length", [5, 6, 7, 8])
        assert vec.get_attr("length") == (5, 6, 7, 8)
        np.testing.assert_array_equal(vec.step(no_actions(vec))[3], [False, False, True, True])


def test_a_worker_that_dies_over_a_call_is_said_to_and_restarted() -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset(seed=0)
        vec.set_attr_on([3], "trouble", [{"call": "kill"}])
        with pytest.raises(WorkerDiedError, match="died") as caught:
            vec.call("try_call")
        assert "\n" not in str(caught.value)
        np.testing.assert_array_equal(vec.step(no_actions(vec))[3], [False, False, True, True])


def test_a_worker_killed_before_the_first_reset_is_restarted() -> None:
    with worker_env(4, num_workers=1) as vec:
        kill(worker_of(vec, 3))
        np.testing.assert_array_equal(vec.reset(seed=0)[0][:, 2], 0)
        assert not vec.step(no_actions(vec))[3].any()


@pytest.mark.parametrize("start_method", ["forkserver", "spawn"])
def test_a_killed_worker_is_restarted_by_every_start_method(start_method: Any) -> None:
    with worker_env(2, num_workers=1, start_method=start_method, env={"length": 9}) as vec:
        vec.reset(seed=0)
        kill(worker_of(vec, 1))
        np.testing.assert_array_equal(vec.step(no_actions(vec))[3], [False, True])
        np.testing.assert_array_equal(vec.step(no_actions(vec))[0][:, 2], [2, 0])


def test_a_worker_is_restarted_from_a_thread_too() -> None:
    with worker_env(4, num_workers=1, env={"length": 9}) as vec:
        vec.reset(seed=0)
        kill(worker_of(vec, 3))
        results: list[Any] = []

        def play() -> None:
            for _ in range(3):
                results.append(vec.step(no_actions(vec)))

        thread = threading.Thread(target=play)
        thread.start()
        thread.join()
        np.testing.assert_array_equal(results[0][3], [False, False, True, True])
        # The thread that started it is gone, and it must not go with it.
        time.sleep(0.1)
        assert not vec.step(no_actions(vec))[3].any()


def test_a_worker_killed_in_the_middle_of_a_large_message_is_restarted() -> None:
    functions = [partial(TalkerEnv, row, 9) for row in range(4)]
    with worker_env(functions, num_workers=1) as vec:
        vec.reset(seed=0)
        victim = worker_of(vec, 3)
        vec.send(no_actions(vec))
        # It waits for somebody to take what does not fit into the pipe.
        time.sleep(0.2)
        kill(victim)
        _, _, _, truncated, infos = vec.recv()
        np.testing.assert_array_equal(truncated, [False, False, True, True])
        np.testing.assert_array_equal(infos["worker_died"], truncated)
        np.testing.assert_array_equal(infos["_blob"], ~truncated)


class TalkerEnv(TroubleEnv):
    """Has more to say than there is room for, and than a pipe takes."""

    def step(self, action: Any):
        observation, reward, terminated, truncated, _ = super().step(action)
        return observation, reward, terminated, truncated, {"blob": bytes(4 << 20)}


# Again and again.


def test_a_worker_that_dies_once_more_while_it_is_restarted_is_restarted_again(
    tmp_path: Path,
) -> None:
    once = tmp_path / "once"
    for mode in AutoresetMode:
        env = {"length": 9, "trouble": {"make": "kill"}, "once": once}
        with worker_env(6, num_workers=1, autoreset_mode=mode, num_batches=2, env=env) as vec:
            vec.reset(seed=0)
            endings = Endings(vec)
            endings.step()
            rows = worker_pids(vec)[worker_of(vec, 5)]
            # Kills the worker, and then its successor while it makes its envs.
            once.touch()
            vec.set_attr_on([rows[1]], "trouble", [{"step": "kill"}])
            observations = endings.step()[0]
            assert not once.exists()
            # What the first one had stepped is not stepped again.
            assert observations[rows[0], 2] == 2
            for _ in range(4):
                endings.step()
            expected = np.zeros(6, dtype=int)
            expected[rows] = 1
            np.testing.assert_array_equal(endings.lost, expected)


@pytest.mark.parametrize("method", ["reset", "step"])
def test_a_worker_that_dies_again_and_again_is_given_up(method: str) -> None:
    functions = trouble_envs(4)
    functions[3] = partial(TroubleEnv, 3, trouble={method: "kill"})
    with worker_env(functions, num_workers=1) as vec:

        def play() -> None:
            vec.reset(seed=0)
            for _ in range(40):
                vec.step(no_actions(vec))

        with pytest.raises(WorkerDiedError) as caught:
            play()
        assert list(caught.value.env_indices) == [2, 3]
        assert "\n" not in str(caught.value)


def test_a_worker_that_dies_now_and_then_is_never_given_up() -> None:
    with worker_env(4, num_workers=1, env={"length": 2}) as vec:
        vec.reset(seed=0)
        endings = Endings(vec)
        for _ in range(6):
            kill(worker_of(vec, 3))
            for _ in range(12):
                endings.step()
        assert endings.ended.min() > 15


def test_raise_raises_with_the_envs_of_the_worker(tmp_path: Path) -> None:
    env = {"length": 9, "met": tmp_path / "met"}
    for is_stepping in (False, True):
        with worker_env(6, num_workers=2, on_worker_death="raise", env=env) as vec:
            vec.reset(seed=0)
            victim = worker_of(vec, 5)
            rows = worker_pids(vec)[victim]
            killer = None
            if is_stepping:
                vec.set_attr_on([5], "trouble", [{"step": "sleep"}])
                killer = Killer(victim, env["met"])
            else:
                kill(victim)
            with Timed() as timed, pytest.raises(WorkerDiedError, match="signal 9") as caught:
                vec.step(no_actions(vec))
            assert (killer.seconds_since if killer else timed.seconds) < NOTICED_S
            assert list(caught.value.env_indices) == rows
            with pytest.raises((WorkerDiedError, ChannelError, Exception)):
                vec.step(no_actions(vec))


def test_a_restart_is_told_to_whoever_wants_to_know(caplog: pytest.LogCaptureFixture) -> None:
    with worker_env(4, num_workers=1) as vec:
        told: list[list[int]] = []
        vec.on_restart(told.append)
        vec.reset(seed=0)
        kill(worker_of(vec, 3))
        with caplog.at_level(logging.WARNING, "stepladder.envs"):
            vec.step(no_actions(vec))
        assert told == [[2, 3]]
        assert "signal 9" in caplog.text
        assert "2, 3" in caplog.text


# With a curriculum.


def lessons() -> list[Task]:
    return [Task(f"task{length}", params={"length": length}) for length in (1, 2, 4)]


def taught(num_envs: int = 6, **settings: Any) -> Any:
    env = settings.pop("env", {})
    settings = {"num_workers": 2, "start_method": "fork", **settings}
    return make_vec(
        trouble_envs(num_envs, **env), curriculum=Uniform(lessons(), seed=3), **settings
    )


def assert_conserved(vec: CurriculumVectorEnv) -> None:
    counts = vec.counts
    total = counts.finished + counts.aborted + counts.failed + counts.in_flight
    assert counts.started == total
    assert counts.failed == 0
    assert 0 <= counts.in_flight <= vec.num_envs


@MODES
@pytest.mark.parametrize("num_batches", [1, 2])
def test_no_finished_episode_is_lost_and_unfinished_ones_are_aborted(
    mode: AutoresetMode, num_batches: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Workers are killed at random moments while the vector env is stepped as fast as it goes."""
    diary = tmp_path / "ended"
    diary.touch()
    vec = taught(autoreset_mode=mode, num_batches=num_batches, env={"diary": diary})
    curriculum = vec.curriculum
    endings = Endings(vec)
    rng = random.Random(3)
    stop = threading.Event()

    num_steps, kills = [0], [0]

    def assassinate() -> None:
        while not stop.wait(rng.uniform(0.05, 0.12)):
            workers = [p for p in multiprocessing.active_children() if "worker" in p.name]
            # On a slow machine too, episodes end between two kills; else the worker is given up.
            if workers and num_steps[0] > 40 * kills[-1]:
                rng.choice(workers).kill()
                kills.append(num_steps[0] // 40 + 1)

    caplog.set_level(logging.WARNING, "stepladder.envs")
    assassin = threading.Thread(target=assassinate)
    vec.reset(seed=0)
    assassin.start()
    try:
        while len(kills) < 12:
            endings.step()
            num_steps[0] += 1
            assert_conserved(vec)
    finally:
        stop.set()
        assassin.join()
    for _ in range(10):
        endings.step()
    assert_conserved(vec)
    counts = vec.counts
    # An env may have written down an ending that nobody could report any more.
    assert counts.finished <= diary.stat().st_size <= counts.finished + counts.aborted
    assert counts.finished >= endings.ended.sum() - endings.lost.sum()
    assert counts.finished == curriculum.num_observed
    assert counts.aborted <= endings.lost.sum() + vec.num_envs
    assert endings.lost.sum() > 0
    assert counts.finished > 100
    assert "did not see end" not in caplog.text
    vec.check_agreement()
    vec.close()


@MODES
def test_exactly_the_unfinished_episodes_of_a_killed_worker_are_aborted(
    mode: AutoresetMode, caplog: pytest.LogCaptureFixture
) -> None:
    vec = taught(4, num_workers=1, autoreset_mode=mode)
    caplog.set_level(logging.WARNING, "stepladder.envs")
    vec.reset(seed=0)
    endings = Endings(vec)
    for _ in range(7):
        endings.step()
    before = vec.counts
    rows = worker_pids(vec)[worker_of(vec, 3)]
    kill(worker_of(vec, 3))
    endings.step()
    after = vec.counts
    assert after.aborted - before.aborted == endings.lost.sum() <= len(rows)
    if mode is SAME_STEP:
        assert endings.lost.sum() == len(rows)
    assert_conserved(vec)
    for _ in range(30):
        endings.step()
    assert_conserved(vec)
    assert vec.counts.aborted == after.aborted
    assert vec.counts.finished == endings.ended.sum() - endings.lost.sum()
    assert "did not see end" not in caplog.text
    vec.close()


def test_a_worker_that_dies_over_a_call_does_not_end_the_training() -> None:
    vec = taught(4, num_workers=1)
    vec.reset(seed=0)
    vec.unwrapped.set_attr_on([3], "trouble", [{"call": "kill"}])
    with pytest.raises(WorkerDiedError):
        vec.call("try_call")
    step(vec, 20)
    assert_conserved(vec)
    assert vec.counts.finished > 10
    vec.close()


def test_a_warning_that_is_due_still_comes_after_a_restart(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Deaths explain only the endings that they have caused."""
    vec = taught(4, num_workers=1)
    vec.reset(seed=0)
    kill(worker_of(vec, 3))
    for _ in range(20):
        vec.step(no_actions(vec))
    caplog.set_level(logging.WARNING, "stepladder.envs")
    vec.tracker.collect(3)
    assert "did not see end" in caplog.text
    vec.close()


def test_raise_with_a_curriculum_counts_what_was_finished_and_what_was_not() -> None:
    vec = taught(4, num_workers=1, on_worker_death="raise")
    vec.reset(seed=0)
    endings = Endings(vec)
    for _ in range(7):
        endings.step()
    ended = int(endings.ended.sum())
    kill(worker_of(vec, 3))
    with pytest.raises(WorkerDiedError) as caught:
        vec.step(no_actions(vec))
    assert "\n" not in str(caught.value)
    assert vec.counts.finished >= ended
    vec.close()
    assert_conserved(vec)


@ROWS
@pytest.mark.parametrize("what", ["raise", "lose connection"])
def test_an_error_of_an_env_with_a_curriculum_is_its_own(row: int, what: str) -> None:
    vec = taught(4, num_workers=1)
    vec.reset(seed=0)
    vec.unwrapped.set_attr_on([row], "trouble", [{"step": what}])
    with pytest.raises((BoomError, ConnectionResetError), match=f"boom in step of env {row}"):
        step(vec, 3)
    vec.reset(seed=1)
    step(vec, 20)
    assert_conserved(vec)
    assert vec.counts.aborted <= 4
    vec.close()


def test_a_hung_env_with_a_curriculum_costs_only_the_unfinished_episodes() -> None:
    vec = taught(4, num_workers=1, timeout_s=0.4)
    vec.reset(seed=0)
    vec.unwrapped.set_attr_on([3], "trouble", [{"step": "sleep"}])
    with pytest.raises(EnvTimeoutError, match="env 3"):
        step(vec, 3)
    vec.reset(seed=1)
    step(vec, 20)
    assert_conserved(vec)
    vec.close()


# An env hangs.


@ROWS
@pytest.mark.parametrize("what", ["sleep", "spin"])
@pytest.mark.parametrize("method", ["step", "reset", "reset with seed"])
def test_a_hung_env_is_named_in_time_and_the_vector_env_goes_on(
    row: int, what: str, method: str
) -> None:
    with worker_env(4, num_workers=1, timeout_s=0.4) as vec:
        vec.reset(seed=0)
        vec.set_attr_on([row], "trouble", [{method.split()[0]: what}])
        calls: dict[str, Callable[[], Any]] = {
            "step": lambda: step(vec),
            "reset": lambda: vec.reset(),
            "reset with seed": lambda: vec.reset(seed=1),
        }
        with Timed() as timed, pytest.raises(EnvTimeoutError, match=f"env {row}") as caught:
            calls[method]()
        assert 0.35 < timed.seconds < 0.4 + NOTICED_S
        assert "0.4 s" in str(caught.value)
        assert "timeout_s" in str(caught.value)
        vec.reset(seed=1)
        assert vec.get_attr("env_index") == (0, 1, 2, 3)
        np.testing.assert_array_equal(vec.step(no_actions(vec))[0][:, 2], 1)


def test_a_hung_env_is_noticed_in_a_thread_too() -> None:
    with worker_env(2, num_workers=0, timeout_s=0.3) as vec:
        vec.reset(seed=0)
        vec.set_attr_on([1], "trouble", [{"step": "spin"}])
        raised: list[BaseException] = []

        def play() -> None:
            try:
                vec.step(no_actions(vec))
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=play, daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
        assert isinstance(raised[0], EnvTimeoutError)
        assert "env 1" in str(raised[0])


def test_a_call_that_hangs_in_a_worker_is_noticed() -> None:
    with worker_env(4, num_workers=1, timeout_s=0.4) as vec:
        vec.reset(seed=0)
        vec.set_attr_on([3], "trouble", [{"call": "sleep"}])
        with Timed() as timed, pytest.raises(EnvTimeoutError):
            vec.call("try_call")
        assert timed.seconds < 0.4 + NOTICED_S
        vec.reset(seed=0)
        vec.step(no_actions(vec))


def test_a_stopped_worker_is_noticed_and_no_env_is_blamed_that_was_not_asked() -> None:
    for call in ("step", "reset", "call"):
        with worker_env(4, num_workers=1, timeout_s=0.4) as vec:
            vec.reset(seed=0)
            stop(worker_of(vec, 3))
            calls: dict[str, Callable[[], Any]] = {
                "step": lambda vec=vec: vec.step(no_actions(vec)),
                "reset": lambda vec=vec: vec.reset(seed=1),
                "call": lambda vec=vec: vec.call("try_call"),
            }
            with Timed() as timed, pytest.raises(EnvTimeoutError, match="did not begin"):
                calls[call]()
            assert timed.seconds < 0.4 + NOTICED_S
            vec.reset(seed=1)
            np.testing.assert_array_equal(vec.step(no_actions(vec))[0][:, 2], 1)


@pytest.mark.parametrize("parent_steps", [True, False])
def test_the_time_limit_is_that_of_one_env_and_not_of_all(parent_steps: bool) -> None:
    settings: Any = {"num_workers": 1, "timeout_s": 0.5, "parent_steps": parent_steps}
    with worker_env(4, env={"pause_s": 0.2}, **settings) as vec:
        vec.reset()
        vec.step(no_actions(vec))
        vec.reset(seed=1)


def test_thinking_between_two_steps_takes_as_long_as_it_likes() -> None:
    with worker_env(4, num_workers=1, timeout_s=0.4) as vec:
        vec.reset()
        for _ in range(2):
            time.sleep(0.5)
            vec.step(no_actions(vec))


def test_without_a_time_limit_nobody_is_in_a_hurry() -> None:
    with worker_env(2, num_workers=1, timeout_s=None, env={"pause_s": 0.3}) as vec:
        vec.reset()
        vec.step(no_actions(vec))


# Ctrl-C within the process.


class Interrupter:
    """Sends Ctrl-C to this process, once for each time it is armed, after a random moment."""

    def __init__(self) -> None:
        self._rng = random.Random(1)
        self._armed = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Interrupter":
        self._thread.start()
        return self

    def _run(self) -> None:
        while self._armed.wait() and not self._is_over:
            self._armed.clear()
            time.sleep(self._rng.uniform(0.0, 0.03))
            os.kill(os.getpid(), signal.SIGINT)

    def arm(self) -> None:
        self._armed.set()

    def __exit__(self, *args: Any) -> None:
        self._is_over = True
        self._armed.set()
        self._thread.join()


@pytest.mark.parametrize("kind", [TroubleEnv, TalkerEnv])
@pytest.mark.parametrize("num_batches", [1, 2])
def test_ctrl_c_at_any_moment_can_be_followed_by_a_reset(kind: Any, num_batches: int) -> None:
    functions = [partial(kind, row) for row in range(4)]
    settings: Any = {"num_workers": 1, "timeout_s": 5.0, "num_batches": num_batches}
    with worker_env(functions, **settings) as vec, Interrupter() as interrupter:

        def play() -> None:
            interrupter.arm()
            vec.reset(seed=3)
            while True:
                vec.call("try_call", 1)
                step(vec, 2)

        for _ in range(25):
            with pytest.raises(KeyboardInterrupt):
                play()
            with Timed() as timed:
                observations, _ = vec.reset(seed=3)
            assert timed.seconds < NOTICED_S
            np.testing.assert_array_equal(observations[:, 2], 0)
            assert vec.get_attr("env_index") == (0, 1, 2, 3)
            np.testing.assert_array_equal(vec.step(no_actions(vec))[0][:, 2], 1)


@pytest.mark.parametrize("method", ["step", "call"])
def test_ctrl_c_between_an_order_and_what_belongs_to_it_can_be_followed_by_a_reset(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with worker_env(4, num_workers=1, timeout_s=10.0) as vec:
        vec.reset(seed=0)
        # Asleep, so that it has to be woken.
        time.sleep(0.1)
        with monkeypatch.context() as patch:
            patch.setattr(WorkerHandle, "send_bytes", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                vec.call("pid") if method == "call" else vec.step(no_actions(vec))
        with Timed() as timed:
            observations, _ = vec.reset(seed=3)
        assert timed.seconds < NOTICED_S
        np.testing.assert_array_equal(observations[:, 2], 0)
        assert vec.get_attr("env_index") == (0, 1, 2, 3)


def test_a_command_of_an_interrupted_call_is_not_taken_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with worker_env(4, num_workers=1, timeout_s=10.0) as vec:
        vec.reset(seed=0)
        worker = worker_of(vec, 3)
        os.kill(worker, signal.SIGSTOP)
        with monkeypatch.context() as patch:
            patch.setattr(WorkerHandle, "pump", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                vec.call("pid")
        threading.Timer(0.2, os.kill, (worker, signal.SIGCONT)).start()
        vec.reset(seed=3)
        assert [seeds[-1] for seeds in vec.get_attr("seeds")] == [3, 4, 5, 6]
        assert vec.get_attr("env_index") == (0, 1, 2, 3)


def _interrupted(*args: Any) -> None:
    raise KeyboardInterrupt


def test_an_interrupted_recv_can_be_followed_by_a_reset() -> None:
    with worker_env(4, num_workers=1, num_batches=2) as vec:
        vec.reset(seed=0)
        vec.set_attr_on([0], "trouble", [{"step": "interrupt"}])
        for batch_index in (0, 1):
            vec.send(np.zeros(2, dtype=np.int64), batch_index)
        with pytest.raises(KeyboardInterrupt):
            vec.recv(0)
        with pytest.raises(ResetNeeded):
            vec.recv(1)
        vec.reset(seed=1)
        np.testing.assert_array_equal(vec.step(no_actions(vec))[0][:, 2], 1)


# The end.


@pytest.mark.parametrize("what", ["sleep", "spin", "stick"])
def test_close_ends_while_a_worker_hangs(what: str) -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset(seed=0)
        vec.set_attr_on([3], "trouble", [{"step": what}])
        vec.send(no_actions(vec))
        with Timed() as timed:
            vec.close(timeout_s=0.3)
        assert timed.seconds < 0.3 + NOTICED_S
        assert not multiprocessing.active_children()


def test_close_ends_while_a_worker_is_stopped() -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset(seed=0)
        os.kill(worker_of(vec, 3), signal.SIGSTOP)
        with Timed() as timed:
            vec.close(timeout_s=0.3)
        assert timed.seconds < 0.3 + NOTICED_S


def test_close_ends_while_an_env_hangs_over_its_own_close() -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset(seed=0)
        vec.set_attr_on([3], "trouble", [{"close": "sleep"}])
        with Timed() as timed:
            vec.close(timeout_s=0.3)
        assert timed.seconds < 0.3 + NOTICED_S


def test_close_is_quick_when_all_is_well() -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset(seed=0)
        vec.send(no_actions(vec))
        with Timed() as timed:
            vec.close()
        assert timed.seconds < 1.0


@pytest.mark.parametrize("moment", ["dead", "failed", "interrupted", "given up", "never used"])
def test_close_ends_after_whatever_has_happened(moment: str) -> None:
    with worker_env(4, num_workers=1, timeout_s=0.3) as vec:
        if moment != "never used":
            vec.reset(seed=0)
        if moment == "dead":
            kill(worker_of(vec, 3))
        troubles = {"failed": "raise", "interrupted": "interrupt", "given up": "sleep"}
        if moment in troubles:
            row = 0 if moment == "interrupted" else 3
            vec.set_attr_on([row], "trouble", [{"step": troubles[moment]}])
            with pytest.raises((BoomError, KeyboardInterrupt, EnvTimeoutError)):
                vec.step(no_actions(vec))
        with Timed() as timed:
            vec.close()
            vec.close()
        assert timed.seconds < 2.0
        assert not multiprocessing.active_children()


@ROWS
def test_what_an_env_raises_while_it_is_closed_is_logged(
    row: int, caplog: pytest.LogCaptureFixture
) -> None:
    with worker_env(4, num_workers=1) as vec:
        vec.reset()
        vec.set_attr_on([row], "trouble", [{"close": "raise"}])
        with Timed() as timed:
            vec.close()
        assert f"boom in close of env {row}" in caplog.text
        assert timed.seconds < 1.0


def test_every_env_is_closed_even_if_one_of_them_raises(tmp_path: Path) -> None:
    class Closer(TroubleEnv):
        def close(self) -> None:
            (tmp_path / str(self.env_index)).touch()
            super().close()

    functions = [partial(Closer, row, trouble={"close": "raise"}) for row in range(5)]
    with worker_env(functions, num_workers=1) as vec:
        vec.reset()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "3", "4"]


def test_a_forgotten_vector_env_ends_its_workers() -> None:
    vec = WorkerVectorEnv(trouble_envs(4), num_workers=1, start_method="fork")
    vec.reset()
    pids = list(worker_pids(vec))
    del vec
    gc.collect()
    assert not multiprocessing.active_children()
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_two_vector_envs_do_not_disturb_each_other() -> None:
    with worker_env(4, num_workers=1) as first, worker_env(4, num_workers=2) as second:
        first.reset(seed=0)
        second.reset(seed=0)
        for number in (1, 2):
            np.testing.assert_array_equal(first.step(no_actions(first))[0][:, 2], number)
            np.testing.assert_array_equal(second.step(no_actions(second))[0][:, 2], number)
        kill(worker_of(first, 3))
        first.step(no_actions(first))
        assert second.step(no_actions(second))[2].all()
        first.close()
        assert not second.step(no_actions(second))[2].any()


# Copies of the process.


def _try_to_use(vec: Any, answers: Any) -> None:
    for call in (partial(step, vec), vec.reset, partial(vec.call, "pid")):
        try:
            call()
            answers.put("worked")
        except ChannelError as error:
            answers.put(str(error))
    vec.close()


def test_a_fork_of_the_process_does_not_disturb_its_vector_env() -> None:
    context = multiprocessing.get_context("fork")
    with worker_env(4, num_workers=1) as vec:
        vec.reset(seed=0)
        vec.step(no_actions(vec))
        answers = context.Queue()
        child = context.Process(target=_try_to_use, args=(vec, answers))
        child.start()
        for _ in range(3):
            assert "another process" in answers.get(timeout=10)
        child.join(10)
        assert child.exitcode == 0
        np.testing.assert_array_equal(vec.step(no_actions(vec))[0][:, 2], 2)
        pid = os.fork()
        if not pid:
            del vec
            gc.collect()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        np.testing.assert_array_equal(vec.step(no_actions(vec))[0][:, 2], 3)


def _play_inside(answers: Any, daemonic: bool) -> None:
    vec = make_vec(
        trouble_envs(4),
        num_workers="auto" if daemonic else 1,
        curriculum=Uniform(lessons(), seed=1),
        start_method="fork",
    )
    vec.reset(seed=0)
    for _ in range(5):
        vec.step(no_actions(vec))
    answers.put(vec.unwrapped.num_workers)
    vec.close()


@pytest.mark.parametrize("daemonic", [False, True])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_vector_env_can_be_made_inside_another_process(daemonic: bool, method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    answers = context.Queue()
    child = context.Process(target=_play_inside, args=(answers, daemonic), daemon=daemonic)
    child.start()
    assert answers.get(timeout=30) == (0 if daemonic else 1)
    child.join(10)
    assert child.exitcode == 0


def _make_in_a_daemon(answers: Any) -> None:
    try:
        make_vec(trouble_envs(4), num_workers=1, start_method="fork")
        answers.put("made")
    except Exception as error:
        answers.put(f"{type(error).__name__}: {error}")


def test_workers_of_a_daemonic_process_are_refused_in_one_line() -> None:
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_make_in_a_daemon, args=(answers,), daemon=True)
    child.start()
    answer = answers.get(timeout=20)
    child.join(10)
    assert "daemonic" in answer
    assert "\n" not in answer


# The parent is killed, interrupted, or simply ends.

PROGRAM = """
import os, signal, sys, time
import numpy as np
from functools import partial
from stepladder import make_vec
from stepladder.curricula import Uniform
from stepladder.tasks import Task
from worker_envs import TroubleEnv, trouble_envs, worker_pids

def main():
    curriculum = Uniform([Task("a", params={{"length": 2}})]) if {curriculum} else None
    vec = make_vec(
        trouble_envs(6, pause_s=1e-3), num_workers=2, start_method={method!r}, curriculum=curriculum
    )
    vec.reset(seed=0)
    base = vec.unwrapped
    print(*worker_pids(base), flush=True)
{body}

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a program that has a vector env with two workers and prints their ids."""
    started: list[subprocess.Popen[str]] = []

    def start(body: str, method: str = "fork", curriculum: bool = False) -> Any:
        path = tmp_path / "program.py"
        body = textwrap.indent(textwrap.dedent(body), "    ")
        path.write_text(PROGRAM.format(body=body, method=method, curriculum=curriculum))
        paths = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
        process = subprocess.Popen(
            [sys.executable, str(path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def pids_of(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    return [int(word) for word in line.split()]


def are_gone(pids: list[int], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if not any(_runs(pid) for pid in pids):
            return True
        time.sleep(0.02)
    for pid in pids:
        if _runs(pid):
            os.kill(pid, signal.SIGKILL)
    return False


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


STEPS = """
while True:
    vec.step(np.zeros(6, dtype=np.int64))
"""
IDLES = "time.sleep(60)"


def hangs(what: str) -> str:
    return f"""
base.set_attr_on([5], "trouble", [{{"step": {what!r}}}])
vec.step(np.zeros(6, dtype=np.int64))
"""


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("fork", STEPS),
        ("spawn", IDLES),
        ("fork", hangs("spin")),
        ("forkserver", hangs("spin")),
        ("spawn", hangs("spin")),
    ],
    ids=["stepping", "idle", "hung-fork", "hung-forkserver", "hung-spawn"],
)
def test_a_killed_parent_leaves_no_worker_and_no_segment(
    program: Any, method: str, body: str
) -> None:
    process = program(body, method, curriculum=True)
    pids = pids_of(process)
    assert len(pids) == 2
    time.sleep(0.2)
    process.kill()
    assert are_gone(pids, NOTICED_S)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_killed_parent_leaves_no_worker_that_lets_no_thread_run(
    program: Any, method: str
) -> None:
    process = program(hangs("stick"), method)
    pids = pids_of(process)
    time.sleep(0.3)
    process.kill()
    assert are_gone(pids, NOTICED_S)


def test_a_parent_killed_while_its_workers_start_leaves_none(program: Any, tmp_path: Path) -> None:
    process = program(
        """
        pids = os.path.join(os.path.dirname(__file__), "pids")
        def make(row):
            if os.getpid() != parent:
                with open(pids, "a") as file:
                    print(os.getpid(), file=file, flush=True)
                time.sleep(60)
            return TroubleEnv(row)
        parent = os.getpid()
        make_vec([partial(make, row) for row in range(3)], num_workers=2, start_method="fork")
        """
    )
    first = pids_of(process)
    pids = tmp_path / "pids"
    deadline = time.monotonic() + 20
    while not pids.exists() or len(pids.read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    assert are_gone([*first, *map(int, pids.read_text().split())], NOTICED_S)


@pytest.mark.parametrize(
    ("method", "curriculum"),
    [("fork", False), ("fork", True), ("forkserver", True), ("spawn", True)],
)
def test_a_program_may_end_without_closing(program: Any, method: str, curriculum: bool) -> None:
    process = program(
        "for _ in range(5): vec.step(np.zeros(6, dtype=np.int64))", method, curriculum
    )
    pids = pids_of(process)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert errors == ""
    assert are_gone(pids, NOTICED_S)


def test_a_program_may_end_while_a_worker_hangs(program: Any) -> None:
    process = program(
        """
        base.set_attr_on([5], "trouble", [{"step": "sleep"}])
        base.send(np.zeros(6, dtype=np.int64))
        """
    )
    pids = pids_of(process)
    with Timed() as timed:
        _, errors = process.communicate(timeout=30)
    assert timed.seconds < 10
    assert process.returncode == 0
    assert errors == ""
    assert are_gone(pids, NOTICED_S)


def test_a_program_that_raises_ends(program: Any) -> None:
    process = program("raise RuntimeError('that is all')")
    pids = pids_of(process)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 1
    assert errors.count("Traceback") == 1
    assert are_gone(pids, NOTICED_S)


@pytest.mark.parametrize(
    ("method", "body"),
    [("fork", STEPS), ("forkserver", STEPS), ("spawn", STEPS), ("fork", hangs("sleep"))],
    ids=["fork", "forkserver", "spawn", "while an env hangs"],
)
def test_ctrl_c_interrupts_the_parent_once_and_no_worker_complains(
    program: Any, method: str, body: str
) -> None:
    indented = textwrap.indent(body, "    ")
    body = f"try:\n{indented}\nexcept KeyboardInterrupt:\n    print('interrupted')"
    process = program(body, method, curriculum=True)
    pids = pids_of(process)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert output == "interrupted\n"
    assert "Traceback" not in errors
    assert process.returncode == 0
    assert are_gone(pids, NOTICED_S)


def test_ctrl_c_that_nobody_catches_shows_one_traceback(program: Any) -> None:
    process = program(STEPS)
    pids = pids_of(process)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert are_gone(pids, NOTICED_S)


def test_after_ctrl_c_training_can_go_on(program: Any) -> None:
    process = program(
        """
        try:
            while True:
                vec.step(np.zeros(6, dtype=np.int64))
        except KeyboardInterrupt:
            pass
        vec.reset(seed=1)
        for _ in range(10):
            vec.step(np.zeros(6, dtype=np.int64))
        counts = vec.counts
        assert counts.started == counts.finished + counts.aborted + counts.in_flight
        print("went on", len(worker_pids(base)), flush=True)
        vec.close()
        """,
        curriculum=True,
    )
    pids = pids_of(process)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert output == "went on 2\n", errors
    # Where it fell between the two halves of an order, that worker is started anew, and said so.
    said = re.sub(
        r"\[VecEnv\] The worker of env .* was interrupted\. It is restarted\.\n", "", errors
    )
    assert said == ""
    assert are_gone(pids, NOTICED_S)
