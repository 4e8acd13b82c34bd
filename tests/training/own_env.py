"""Envs that a user might write, with and without something to say about themselves."""

from typing import Any

import gymnasium as gym
import numpy as np

from stepladder.games import Fixture, Game, Programme, Symmetry
from stepladder.tasks import ListSource, Task


class Corridor(gym.Env[Any, Any]):
    """Walk to its end; a task says how long it is."""

    observation_space = gym.spaces.Box(-9.0, 9.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length: int = 3):
        self.length = length

    def set_task(self, task: Task) -> None:
        self.length = task.params["length"]

    def _seen(self) -> Any:
        return np.array([self.place, self.num_steps / 9], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.num_steps = 0, 0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.place += 2 * int(action) - 1
        self.num_steps += 1
        is_there = self.place == self.length
        is_over = self.num_steps == 9
        info = {"is_success": is_there} if is_there or is_over else {}
        return self._seen(), float(is_there), is_there, is_over and not is_there, info


TASKS = [Task(f"length {n}", "short" if n < 4 else "long", {"length": n}) for n in range(2, 6)]


class Corridors(Game):
    """Has tasks, a symmetry and an evaluation of its own."""

    def source(self, settings: Any) -> ListSource:
        return ListSource(TASKS[: settings.get("num_tasks", 4)])

    def symmetry(self, env_kwargs: Any) -> Symmetry:
        return Symmetry((-1.0, 1.0), action_swaps=(1, 0))

    def programme(self, request: Any, env_kwargs: Any, rivals: Any) -> Programme:
        task = Task("the longest", params={"length": 8})
        fixture = Fixture(
            group="exam", part="8", num_games=request.num_games, first_seed=request.seed, task=task
        )
        return Programme(fixtures=(fixture,), env_kwargs=dict(env_kwargs))


class Described(Corridor):
    """The same, with something to say about itself."""

    game = Corridors()


def make_corridor(length: int = 3) -> Corridor:
    """Return an env, as a function of a module does."""
    return Corridor(length)
