"""One configurable env that all tests of `sync` and `envs` play in.

What happens is up to the task: ``length`` steps, success with probability ``success`` (drawn from
the env's own generator), ``broken`` tasks raise when they are built.
"""

import time
from typing import Any

import gymnasium as gym
import numpy as np

from stepladder.tasks import Task


class PracticeEnv(gym.Env[Any, Any]):
    """Plays the task it was given; says in its infos which one that was."""

    observation_space = gym.spaces.Box(-1.0, 1e6, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, *, pause_s: float = 0.0, success_key: str = "is_success"):
        self.pause_s = pause_s
        self.success_key = success_key
        self.task: Task | None = None
        self.steps = 0
        self.resets = 0

    def set_task(self, task: Task) -> None:
        if task.params.get("broken"):
            raise ValueError(f"cannot build {task.name}")
        self.task = task

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.steps = 0
        self.resets += 1
        assert self.task is not None
        return self._observe(), {"played": self.task.name}

    def step(self, action: Any):
        assert self.task is not None
        if self.pause_s:
            time.sleep(self.pause_s)
        params = self.task.params
        self.steps += 1
        ended = self.steps >= params.get("length", 1)
        truncated = ended and bool(params.get("truncates", False))
        info: dict[str, Any] = {}
        if ended:
            success = self.np_random.random() < params.get("success", 0.5)
            info = {self.success_key: bool(success), "played": self.task.name}
        return self._observe(), 1.0, ended and not truncated, truncated, info

    def _observe(self) -> np.ndarray:
        return np.array([self.steps, self.resets], dtype=np.float32)


class OptionsEnv(PracticeEnv):
    """Takes its task from the options of reset."""

    metadata = {"task_option": True}  # noqa: RUF012, gymnasium declares it so
    set_task = None  # type: ignore[assignment]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        assert options is not None
        PracticeEnv.set_task(self, options["task"])
        return super().reset(seed=seed)


def staged_tasks(
    stages: tuple[str, ...] = ("simplest", "simpler", "simple"), per_stage: int = 3, **params: Any
) -> list[Task]:
    """Make a few tasks per stage, labelled with the stage's name."""
    return [
        Task(f"{stage}/{index}", stage, params) for stage in stages for index in range(per_stage)
    ]
