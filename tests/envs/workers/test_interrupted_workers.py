"""Ctrl-C while a worker is restarted, and at any moment of a training loop of one's own.

The envs, some of them in a worker process, keep a ledger of the episodes that they finish in a file
that all processes map; a listener keeps one of those that the curriculum was told of. Every other
line is tried; with ``STEPLADDER_EVERY_LINE=1`` in the environment every one.
"""

import logging
import os
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from interrupts import EVERY_LINE, interrupted
from stepladder import Staged, Task, make_vec
from sync.rig import forked, receive, wait_until

NUM_ENVS = 4
HERE, THERE, KILL, INTERRUPTED, NUM_PLACES = 0, 1, 2, 3, 4
"""Places of the ledger: episodes finished in the parent, and in a worker; whether to die; how many
interrupts have been got over."""

NUM_INTERRUPTS = 60

pytestmark = [
    pytest.mark.processes,
    pytest.mark.timeout(100),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


class MappedLedgerEnv(gym.Env[Any, Any]):
    """Finishes an episode with every step, and counts that in a file; dies in a worker if asked."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, path: Path, parent: int):
        self.ledger = ledger_at(path)
        self.parent = parent

    def set_task(self, task: Task) -> None:
        pass

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        place = HERE if os.getpid() == self.parent else THERE
        if place == THERE and self.ledger[KILL]:
            self.ledger[KILL] = 0
            os.kill(os.getpid(), signal.SIGKILL)
        result = np.zeros(1, np.float32), 1.0, True, False, {"is_success": True}
        # Nothing comes after it: an interrupt in here would not be the library's to get over.
        self.ledger[place] += 1
        return result


def make_envs(path: Path, **settings: Any) -> tuple[Any, Any, list[tuple[int, int]]]:
    """Return envs with a worker, their curriculum, and a ledger of what it is told."""
    tasks = [Task(f"{stage}/{number}", stage) for stage in ("a", "b", "c") for number in range(3)]
    curriculum = Staged(tasks, stages=("a", "b", "c"), min_episodes=20, early=None)
    told: list[tuple[int, int]] = []
    curriculum.add_listener(
        lambda records: told.extend(records[["env_index", "episode_index"]].tolist())
    )
    make = partial(MappedLedgerEnv, path, os.getpid())
    envs = make_vec(
        make, NUM_ENVS, curriculum=curriculum, num_workers=1, start_method="fork", **settings
    )
    return envs, curriculum, told


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return an empty ledger."""
    ledger = np.zeros(NUM_PLACES, dtype=np.int64)
    ledger[INTERRUPTED] = -1
    ledger.tofile(tmp_path / "ledger")
    return tmp_path / "ledger"


def ledger_at(path: Path) -> Any:
    return np.asarray(np.memmap(path, dtype=np.int64, mode="r+", shape=(NUM_PLACES,)))


WITHIN = ("envs/tracking/tracker.py", "sync/host.py")
"""Where the episodes of a worker that has died are taken account of."""


def test_ctrl_c_at_any_line_of_a_restart_loses_and_doubles_no_episode(path: Path) -> None:
    envs, curriculum, told = make_envs(path)
    ledger, actions = ledger_at(path), np.zeros(NUM_ENVS, dtype=np.int64)
    envs.reset()
    line, num_died = 0, 0
    while True:
        line += 1 if EVERY_LINE else 2
        # Every other step resets; the worker dies in one that plays.
        envs.step(actions)
        envs.step(actions)
        ledger[KILL] = 1
        if not interrupted(line, lambda: envs.step(actions), WITHIN):
            break
        num_died += not ledger[KILL]
        ledger[KILL] = 0
        envs.reset()
        counts = envs.counts
        assert counts.in_flight == NUM_ENVS
        assert counts.started == counts.finished + counts.aborted + NUM_ENVS
        assert counts.finished == curriculum.num_observed == ledger[:KILL].sum()
    envs.close()
    assert num_died > (30 if EVERY_LINE else 15)
    assert len(set(told)) == len(told) == curriculum.num_observed == ledger[:KILL].sum()


class Restarts(logging.Handler):
    """Counts workers that were restarted."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "is restarted" in record.msg


def train(pipe: Any, path: Path, parent_steps: bool) -> None:
    """Play as a user's own loop does, which gets over every Ctrl-C with a reset."""
    envs, curriculum, told = make_envs(path, parent_steps=parent_steps)
    ledger, actions = ledger_at(path), np.zeros(NUM_ENVS, dtype=np.int64)
    log = Restarts()
    logging.getLogger("stepladder.envs").addHandler(log)
    num_interrupts = 0
    while num_interrupts < NUM_INTERRUPTS:
        try:
            envs.reset()
            ledger[INTERRUPTED] = num_interrupts
            while True:
                envs.step(actions)
        except KeyboardInterrupt:
            num_interrupts += 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    envs.reset()
    counts = envs.counts
    envs.close()
    pipe.send((counts, curriculum.num_observed, told, ledger[:KILL].sum(), log.count))


def get_over_it(pid: int, ledger: Any, number: int) -> None:
    """Wait until a loop goes on after so many interrupts.

    Python itself loses an interrupt that falls into a destructor. Whoever presses Ctrl-C and sees
    nothing happen presses it again, and that must help.
    """
    pressed_at = time.monotonic()

    def has_got_over_it() -> bool:
        nonlocal pressed_at
        if number and time.monotonic() > pressed_at + 5.0:
            pressed_at = time.monotonic()
            os.kill(pid, signal.SIGINT)
        return bool(ledger[INTERRUPTED] >= number)

    wait_until(has_got_over_it, f"getting over interrupt {number}")


@pytest.mark.parametrize("parent_steps", [False, True])
def test_sixty_real_interrupts_of_a_loop_lose_and_double_no_episode(
    path: Path, parent_steps: bool
) -> None:
    ledger, rng = ledger_at(path), random.Random(5)
    with forked(train, path, parent_steps) as (process, pipe):
        assert process.pid is not None
        for number in range(NUM_INTERRUPTS):
            get_over_it(process.pid, ledger, number)
            time.sleep(rng.uniform(0.0005, 0.01))
            os.kill(process.pid, signal.SIGINT)
        counts, num_observed, told, num_finished, num_restarts = receive(pipe)
        process.join(10)
    assert counts.in_flight == NUM_ENVS
    assert counts.started == counts.finished + counts.aborted + NUM_ENVS
    assert counts.finished == num_observed
    # A worker whose wake-up call was interrupted is killed, perhaps before a step returns that the
    # env has counted.
    assert num_observed <= num_finished <= num_observed + num_restarts
    # Whoever is interrupted while it listens is told again; nobody is told less than once.
    assert len(set(told)) == num_observed
