"""Envs for the benchmark of vector envs: CartPole, busy ones, MiniGrid, and some that only show.

A world is a function that makes one env, the same one for every library. Functions at the top of a
module, so that worker processes can be started in any way.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from stepladder import Task

EPISODE_STEPS = 200


class ShowingEnv(gym.Env[Any, Any]):
    """Shows the same observation in every step, and does nothing else.

    Args:
        shape: Shape of the observation, of bytes.
    """

    action_space = Discrete(2)

    def __init__(self, shape: tuple[int, ...]):
        self.observation_space = Box(0, 255, shape, np.uint8)
        self._observation: npt.NDArray[np.uint8] = np.full(shape, 7, np.uint8)
        self._left = 0

    def set_task(self, task: Task) -> None:
        """Take a task and ignore it."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin; nothing is random."""
        self._left = EPISODE_STEPS
        return self._observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Count down."""
        self._left -= 1
        return self._observation, 0.0, self._left <= 0, False, {}


class BusyEnv(ShowingEnv):
    """Spends CPU time in every step.

    The thread's own clock: a process that has to wait for a core gets no work done meanwhile.
    """

    def __init__(self, busy_us: float):
        super().__init__((4,))
        self._busy_ns = int(busy_us * 1000)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Spin, then show."""
        end = time.thread_time_ns() + self._busy_ns
        while time.thread_time_ns() < end:
            pass
        return super().step(action)


class Taught(gym.Wrapper[Any, Any, Any, Any]):
    """Takes tasks for an env that knows none."""

    def set_task(self, task: Task) -> None:
        """Take a task and ignore it."""


def make_cart_pole() -> gym.Env[Any, Any]:
    """Make CartPole as everybody does."""
    return gym.make("CartPole-v1")


def make_taught_cart_pole() -> gym.Env[Any, Any]:
    """Make CartPole that takes tasks."""
    return Taught(make_cart_pole())


def make_mini_grid() -> gym.Env[Any, Any]:
    """Make an empty room of MiniGrid that shows its picture of 7 x 7 x 3 bytes."""
    from minigrid.wrappers import ImgObsWrapper

    return ImgObsWrapper(gym.make("MiniGrid-Empty-5x5-v0"))


@dataclass(frozen=True)
class World:
    """One env to run many of."""

    name: str
    make: Callable[[], gym.Env[Any, Any]]

    shows_much: bool = False
    """Whether observations are so large that copying them counts."""

    envpool_id: str | None = None
    """What EnvPool calls it, if it has it."""

    package: str | None = None
    """What must be installed for it."""

    @property
    def is_installed(self) -> bool:
        """Whether the world can be made here."""
        return self.package is None or find_spec(self.package) is not None


CART_POLE = World("CartPole", make_cart_pole, envpool_id="CartPole-v1")
BUSY_100 = World("busy 100 us", partial(BusyEnv, 100.0))
WORLDS = (
    CART_POLE,
    BUSY_100,
    World("busy 1 ms", partial(BusyEnv, 1000.0)),
    World("MiniGrid", make_mini_grid, package="minigrid"),
    World("shows 4 bytes", partial(ShowingEnv, (4,))),
    World("shows 84x84", partial(ShowingEnv, (84, 84)), shows_much=True),
    World("shows 84x84x4", partial(ShowingEnv, (84, 84, 4)), shows_much=True),
)

WITH_TASKS = (
    World("busy 100 us", partial(BusyEnv, 100.0)),
    World("CartPole", make_taught_cart_pole),
    World("no-op", partial(ShowingEnv, (4,))),
)
"""Worlds that take tasks, to be run with a curriculum and without."""
