"""An episode lost with its worker ends with one whole observation, wherever the worker died.

Every observation carries one number in all its leaves, so that parts of two are recognised.
"""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from worker_envs import DISABLED, SAME_STEP, no_actions, worker_env

pytestmark = [pytest.mark.processes, pytest.mark.timeout(60, method="signal")]

NUM_ENVS = 4
"""With one worker, which has the last two of them."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


class DeadlyNumber:
    """Kills its process when it is written into an array."""

    shape = (2,)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        die()


class DeadlyText(str):
    """Kills its process when it is sent to another one."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        die()
        return str, ()


class NumberedEnv(gym.Env[Any, Any]):
    """Observes one number, in several leaves, that rises with every step and reset.

    Args:
        deaths: By moment, a file; if it is there, the next step takes it away and its process with
            it at that moment.
    """

    observation_space = spaces.Dict(
        {
            "first": spaces.Box(0, np.inf, (3,), np.int64),
            "second": spaces.Box(0, np.inf, (2,), np.int64),
            "text": spaces.Text(30, charset="0123456789"),
            "third": spaces.Box(0, np.inf, (), np.int64),
        }
    )
    action_space = spaces.Discrete(2)

    def __init__(self, deaths: dict[str, Path]):
        self._deaths = deaths
        # Other numbers than those of an env that was here before.
        self._number = os.getpid() * 1000

    def _observe(self) -> dict[str, Any]:
        self._number += 1
        number = self._number
        return {
            "first": np.full(3, number),
            "second": np.full(2, number),
            "text": str(number),
            "third": np.int64(number),
        }

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        return self._observe(), {"number": self._number}

    def step(self, action: Any):
        observation = self._observe()
        info: dict[str, Any] = {"number": self._number}
        for moment, path in self._deaths.items():
            if path.exists():
                path.unlink()
                if moment == "step":
                    die()
                elif moment == "array":
                    observation["second"] = DeadlyNumber()
                elif moment == "text":
                    observation["text"] = DeadlyText(observation["text"])
                else:
                    info["deadly"] = DeadlyText()
        return observation, 0.0, False, False, info


def number_of(observation: dict[str, Any], row: int | None = None) -> int:
    """Return the number of an observation, which must be the same in all leaves."""
    leaves = [leaf if row is None else leaf[row] for leaf in observation.values()]
    numbers = {int(value) for leaf in leaves for value in np.atleast_1d(leaf)}
    assert len(numbers) == 1, observation
    return numbers.pop()


MOMENTS = ("step", "array", "text", "info")


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("row", [2, 3])
def test_a_lost_row_ends_with_the_last_whole_observation(
    mode: AutoresetMode, moment: str, row: int, tmp_path: Path
) -> None:
    paths = [{name: tmp_path / f"{index}-{name}" for name in MOMENTS} for index in range(NUM_ENVS)]
    functions = [lambda deaths=deaths: NumberedEnv(deaths) for deaths in paths]
    with worker_env(functions, num_workers=1, autoreset_mode=mode) as vec:
        observations, _ = vec.reset(seed=0)
        for _ in range(2):
            observations = vec.step(no_actions(vec))[0]
        before = [number_of(observations, index) for index in range(NUM_ENVS)]
        paths[row][moment].touch()
        # Rows 2 and 3 are lost, each in the step in which it is found out.
        lost: dict[int, int] = {}
        while len(lost) < 2:
            observations, _, terminated, truncated, infos = vec.step(no_actions(vec))
            assert not terminated.any()
            for index in range(NUM_ENVS):
                number = number_of(observations, index)
                if truncated[index]:
                    final = infos["final_obs"][index] if mode is SAME_STEP else observations
                    lost[index] = number_of(final, None if mode is SAME_STEP else index)
                elif index not in lost:
                    assert number == before[index] + 1
                    before[index] = number
            if mode is DISABLED and truncated.any():
                vec.reset(options={"reset_mask": truncated})
        assert lost == {2: before[2], 3: before[3]}


class LargeEnv(gym.Env[Any, Any]):
    """Observes arrays that take a while to write, and says as much."""

    observation_space = spaces.Dict(
        {name: spaces.Box(0, np.inf, (1 << 17,), np.int64) for name in ("first", "second")}
    )
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self._number = os.getpid() * 1000

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        return self._observe(), {}

    def step(self, action: Any):
        return self._observe(), 0.0, False, False, {"blob": bytes(1 << 18)}

    def _observe(self) -> dict[str, Any]:
        self._number += 1
        return {name: np.full(1 << 17, self._number) for name in ("first", "second")}


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, SAME_STEP])
def test_no_kill_at_any_moment_tears_an_observation(mode: AutoresetMode) -> None:
    delays_s = np.random.default_rng(0).uniform(0.0, 0.02, size=6)
    with worker_env([LargeEnv] * 3, num_workers=1, autoreset_mode=mode, copy=False) as vec:
        vec.reset(seed=0)
        for delay_s in delays_s:
            handle = vec._coordinator._pool.handles[0]
            killer = threading.Timer(delay_s, os.kill, (handle.process.pid, signal.SIGKILL))
            killer.start()
            steps_to_go = 3
            while steps_to_go:
                observations, _, _, truncated, infos = vec.step(no_actions(vec))
                for row in range(3):
                    assert_whole({name: leaf[row] for name, leaf in observations.items()})
                    if mode is SAME_STEP and truncated[row]:
                        assert_whole(infos["final_obs"][row])
                # Until it has been replaced, and those that it has lost have ended.
                steps_to_go -= vec._coordinator._pool.handles[0] is not handle
            killer.join()
            # An episode that ends by itself would show that the worker is well again.
            vec._coordinator.restarts._deaths[:] = [0]


def assert_whole(observation: dict[str, Any]) -> None:
    first = observation["first"][0]
    for name, leaf in observation.items():
        assert (leaf == first).all(), name
