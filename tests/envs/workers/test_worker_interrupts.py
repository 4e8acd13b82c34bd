"""Ctrl-C at every line: whatever it breaks off, nothing is left when the vector env is closed.

A tracer sends the signal at the n-th line that runs in the library. By default some n are tried,
other ones in each scenario; with ``STEPLADDER_EVERY_LINE=1`` in the environment all of them, which
takes some minutes.
"""

import gc
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import gymnasium as gym
import numpy as np
import psutil
import pytest

import stepladder
from interrupts import EVERY_LINE
from stepladder import make_vec
from stepladder.curricula import Uniform
from stepladder.envs.workers import worker_count
from stepladder.envs.workers.parent.worker_restart import MAX_DEATHS, WorkerRestart
from stepladder.tasks import Task

TIMEOUT_S = 3600 if EVERY_LINE else 180

pytestmark = [pytest.mark.processes, pytest.mark.timeout(TIMEOUT_S, method="signal")]

LIBRARY = str(Path(stepladder.__file__).parent)
NUM_TRIED = 16
NUM_ENVS = 4


class Ledger:
    """Counts the episodes that envs have finished, in whichever process; in memory of all."""

    def __init__(self, path: Path):
        self.counts = np.memmap(path, dtype=np.int64, mode="w+", shape=(NUM_ENVS,))

    @property
    def total(self) -> int:
        return int(self.counts.sum())


class ShortEnv(gym.Env[Any, Any]):
    """Plays episodes of two steps, and notes each that it has finished."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, counts: Any, env_index: int):
        self._counts = counts
        self._env_index = env_index
        self._num_steps = 0

    def set_task(self, task: Task) -> None:
        """Play any task alike."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        self._num_steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any):
        self._num_steps += 1
        has_ended = self._num_steps == 2
        self._counts[self._env_index] += has_ended
        return np.zeros(2, np.float32), 1.0, has_ended, False, {"is_success": True}


class Interrupter:
    """Sends Ctrl-C at the n-th line of the library, counted inside of a function if one is given.

    Only to this thread of this process; where the library holds Ctrl-C back, it comes later.
    """

    def __init__(self, at_line: int, inside: Any = None):
        self.num_lines = 0
        self.where = ""
        self._at_line = at_line
        self._inside = None if inside is None else inside.__code__
        self._depth = int(inside is None)
        self._pid = os.getpid()

    @property
    def was_sent(self) -> bool:
        """Whether it came so far: how often a wait is repeated differs from run to run."""
        return 0 < self._at_line <= self.num_lines

    def __enter__(self) -> "Interrupter":
        sys.settrace(self._trace)
        return self

    def __exit__(self, *error: Any) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if os.getpid() != self._pid or not frame.f_code.co_filename.startswith(LIBRARY):
            return None
        if frame.f_code is self._inside:
            self._depth += {"call": 1, "return": -1}.get(event, 0)
        if event == "line" and self._depth:
            self.num_lines += 1
            if self.num_lines == self._at_line:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                signal.raise_signal(signal.SIGINT)
        return self._trace


def open_descriptors() -> dict[str, str]:
    """Return what is open, by number."""
    found: dict[str, str] = {}
    for number in os.listdir("/proc/self/fd"):
        # The listing itself is closed by now.
        with suppress(FileNotFoundError):
            found[number] = os.readlink(f"/proc/self/fd/{number}")
    return found


class Traces:
    """What a vector env could leave behind."""

    def __init__(self) -> None:
        self.descriptors = open_descriptors()
        maps = Path("/proc/self/maps").read_text().splitlines()
        self.num_segments = sum("memfd:stepladder" in line for line in maps)
        self.children = {child.pid for child in psutil.Process().children()}
        self.workers = {child.pid for child in multiprocessing.active_children()}
        self.handler = signal.getsignal(signal.SIGINT)
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Switch the garbage collector on again, where a test has switched it off."""
    yield
    gc.enable()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


def make(ledger: Ledger, curriculum: Uniform, num_workers: Any = 2) -> Any:
    functions = [
        lambda env_index=env_index: ShortEnv(ledger.counts, env_index)
        for env_index in range(NUM_ENVS)
    ]
    return make_vec(
        functions, curriculum=curriculum, num_workers=num_workers, start_method="fork", timeout_s=60
    )


def tasks() -> Uniform:
    return Uniform([Task(f"task{index}") for index in range(3)], seed=0)


def lines_to_try(num_lines: int) -> Iterator[int]:
    """Give all lines, or some that are spread evenly."""
    every = 1 if EVERY_LINE else max(1, num_lines // NUM_TRIED)
    yield from range(1 + every // 2, num_lines + 1, every)


def interrupt_each(scenario: Callable[[int], Interrupter], *, collects: bool = False) -> None:
    """Run a scenario without an interrupt, then with one at each line; nothing may be left.

    Args:
        scenario: Called with the line.
        collects: Whether garbage is collected before it is looked what is left.
    """
    # Twice: what is loaded the first time is not left behind but there for good.
    scenario(0)
    num_lines = scenario(0).num_lines
    assert num_lines > 20
    # What the test before this one has left, such as its ledger; from here on nothing is collected.
    gc.collect()
    gc.disable()
    before = vars(Traces())
    for at_line in lines_to_try(num_lines):
        interrupter = scenario(at_line)
        if collects:
            gc.collect()
        after = vars(Traces())
        changed = {name for name in after if after[name] != before[name]}
        different = dict(after["descriptors"].items() ^ before["descriptors"].items())
        assert not changed, (at_line, interrupter.where, changed, different)


def play(vec: Any, num_steps: int) -> None:
    for _ in range(num_steps):
        vec.step(np.zeros(NUM_ENVS, dtype=np.int64))


def worker_pids(vec: Any) -> list[int]:
    return [handle.process.pid for handle in vec.unwrapped._coordinator._pool.handles]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    # Until it is known to be gone, so that every run does the same.
    while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        pass


def test_a_restart_may_be_interrupted_at_any_line(ledger: Ledger) -> None:
    def restart(at_line: int) -> Interrupter:
        ledger.counts[:] = 0
        curriculum = tasks()
        vec = make(ledger, curriculum)
        vec.reset(seed=0)
        play(vec, 3)
        kill(worker_pids(vec)[1])
        where = ""
        with Interrupter(at_line, inside=WorkerRestart.restart) as interrupter:
            try:
                play(vec, 1)
            except KeyboardInterrupt as error:
                where = "".join(traceback.format_tb(error.__traceback__))
        assert bool(where) == interrupter.was_sent, at_line
        if at_line % 2:
            # Either it goes on or it is closed as it is.
            vec.reset()
            play(vec, 4)
        vec.close()
        assert curriculum.num_observed == ledger.total, where
        return interrupter

    interrupt_each(restart)


@pytest.mark.parametrize("num_workers", [2, "auto"])
def test_making_a_vector_env_may_be_interrupted_at_any_line(
    ledger: Ledger, num_workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_count, "ROUNDS", 1)
    monkeypatch.setattr(worker_count, "SLICE_S", 1e-4)
    curriculum = tasks()

    def begin(at_line: int) -> Interrupter:
        with Interrupter(at_line) as interrupter:
            try:
                vec = make(ledger, curriculum, num_workers)
            except KeyboardInterrupt:
                vec = None
        assert (vec is None) == interrupter.was_sent, at_line
        if vec is not None:
            vec.close()
        return interrupter

    # An exception that leaves several vector envs on trial can be part of a circle with them.
    interrupt_each(begin, collects=num_workers == "auto")
    # It belongs to nobody.
    with make(ledger, curriculum) as vec:
        vec.reset()


def test_closing_may_be_interrupted_at_any_line(ledger: Ledger) -> None:
    def end(at_line: int) -> Interrupter:
        ledger.counts[:] = 0
        curriculum = tasks()
        vec = make(ledger, curriculum)
        vec.reset(seed=0)
        play(vec, 3)
        with Interrupter(at_line) as interrupter, suppress(KeyboardInterrupt):
            vec.close()
        vec.close()
        assert curriculum.num_observed == ledger.total
        return interrupter

    interrupt_each(end)


class SlowlyMadeEnv(ShortEnv):
    """Takes its time to be made."""

    def __init__(self, counts: Any, env_index: int):
        super().__init__(counts, env_index)
        time.sleep(0.3)


@pytest.mark.parametrize("has_curriculum", [True, False])
def test_restarts_that_are_interrupted_again_and_again_are_no_deaths(
    ledger: Ledger, has_curriculum: bool
) -> None:
    functions = [lambda: SlowlyMadeEnv(ledger.counts, 0)] * 2
    curriculum = tasks() if has_curriculum else None
    with make_vec(functions, curriculum=curriculum, num_workers=1, parent_steps=False) as vec:
        vec.reset(seed=0)
        kill(worker_pids(vec)[0])
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            for _ in range(MAX_DEATHS + 2):
                signal.setitimer(signal.ITIMER_REAL, 0.15)
                with pytest.raises(KeyboardInterrupt):
                    vec.reset()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)
        vec.reset()
        vec.step(np.zeros(2, dtype=np.int64))
