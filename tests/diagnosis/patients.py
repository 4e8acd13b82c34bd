"""Envs to examine: three healthy ones, two of them by others, and faults to plant in each.

At the top level, so that the process of the doctor can import it.
"""

import multiprocessing.resource_tracker
import os
import signal
import subprocess
import sys
import time
from multiprocessing.shared_memory import SharedMemory
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from stepladder.tasks import Task


class Walk(gym.Env[Any, Any]):
    """Walk to the end of a corridor; the task says how long it is."""

    observation_space = gym.spaces.Box(0.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def set_task(self, task: Task) -> None:
        self.length = task.params["length"]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.num_steps = int(self.np_random.integers(0, 2)), 0
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        self.place = max(0, self.place + 2 * int(action) - 1)
        self.num_steps += 1
        reached = self.place >= self.length
        is_late = self.num_steps >= 6 * self.length
        return self.seen(), float(reached), reached, is_late, {"is_success": reached}

    def seen(self) -> Any:
        seen = np.array([self.place / 10.0, self.num_steps / 60.0], np.float32)
        return np.minimum(seen, np.float32(1.0))


WALKS = tuple(Task(f"{n}", "short" if n < 5 else "long", {"length": n}) for n in range(2, 8))


class Grid(gym.Wrapper[Any, Any, Any, Any]):
    """A room of MiniGrid, with or without lava."""

    def __init__(self) -> None:
        from minigrid.core.world_object import Lava
        from minigrid.envs import EmptyEnv
        from minigrid.wrappers import ImgObsWrapper

        class Room(EmptyEnv):
            has_lava = False

            def _gen_grid(self, width: int, height: int) -> None:
                super()._gen_grid(width, height)
                if self.has_lava:
                    self.put_obj(Lava(), 1, 2)

        super().__init__(ImgObsWrapper(Room(size=5, max_steps=60)))

    def set_task(self, task: Task) -> None:
        self.env.unwrapped.has_lava = task.params["lava"]  # type: ignore[attr-defined]

    def step(self, action: Any) -> Any:
        seen, reward, terminated, truncated, info = self.env.step(action)
        return seen, reward, terminated, truncated, {**info, "is_success": float(reward) > 0.0}


GRIDS = (Task("empty", "empty", {"lava": False}), Task("lava", "lava", {"lava": True}))


class Rink(gym.Wrapper[Any, Any, Any, Any]):
    """The interface of the original hockey env, against the opponent that the task names."""

    def __init__(self) -> None:
        from envs.original_hockey import BasicOpponent, HockeyEnv
        from stepladder.envs import AgainstOpponent

        super().__init__(
            AgainstOpponent(
                HockeyEnv(),
                {"weak": BasicOpponent, "strong": lambda: BasicOpponent(weak=False)},
            )
        )

    def set_task(self, task: Task) -> None:
        from envs.original_hockey import Mode

        self.env.unwrapped.mode = Mode[task.params["mode"]]  # type: ignore[attr-defined]
        self.env.get_wrapper_attr("set_task")(task)

    def step(self, action: Any) -> Any:
        seen, reward, terminated, truncated, info = self.env.step(action)
        return seen, reward, terminated, truncated, {**info, "is_success": info["winner"] == 1}


RINKS = tuple(
    Task(opponent, label, {"mode": mode, "opponent": opponent})
    for label, mode, opponent in (
        ("drill", "TRAIN_SHOOTING", "none"),
        ("game", "NORMAL", "weak"),
        ("game", "NORMAL", "strong"),
    )
)

HOSTS: dict[str, tuple[type[gym.Env[Any, Any]], tuple[Task, ...]]] = {
    "walk": (Walk, WALKS),
    "grid": (Grid, GRIDS),
    "rink": (Rink, RINKS),
}
"""Every healthy env, and its tasks."""


class Planted(gym.Wrapper[Any, Any, Any, Any]):
    """A broken copy of an env."""

    generator: ClassVar[np.random.Generator] = np.random.default_rng(0)

    def __init__(self, host: str, fault: str):
        super().__init__(HOSTS[host][0]())
        self.fault, self.tasks = fault, HOSTS[host][1]
        self.num_episodes = self.num_steps = 0
        self.earlier: Task | None = None
        if fault == "wrong shape":
            space: Any = self.env.observation_space
            shape = (*space.shape, 2)
            self.observation_space = gym.spaces.Box(0, 1, shape, space.dtype)
        if fault == "no delivery":
            self.has_wrapper_attr = lambda name: name != "set_task"  # type: ignore[method-assign]

    def set_task(self, task: Task) -> None:
        if self.fault == "broken task" and task.name == self.tasks[-1].name:
            raise KeyError("size")
        if self.fault == "task ignored":
            task = self.tasks[len(self.tasks) // 2]
        if self.fault == "task late":
            task, self.earlier = self.earlier or self.tasks[0], task
        self.env.get_wrapper_attr("set_task")(task)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if self.fault == "raises at reset":
            raise ZeroDivisionError("no room")
        self.num_episodes += 1
        self.num_steps = 0
        if seed is not None:
            Planted.generator = np.random.default_rng(seed)
        seen, info = self.env.reset(seed=seed)
        if self.fault == "unseeded":
            seen = self.marked(seen, int(np.random.default_rng().integers(7)))
        return self.spoil(seen), info

    def step(self, action: Any) -> Any:
        self.num_steps += 1
        if self.num_steps == 3:
            self.fail()
        seen, reward, terminated, truncated, info = self.env.step(action)
        if self.fault == "never ends":
            terminated = truncated = False
        if self.fault == "reward of NaN" and self.num_steps == 2:
            reward = float("nan")
        if "is_success" in info and (terminated or truncated):
            info = self.judged(info)
        if self.fault == "misspelt success":
            info = {("succeeded" if key == "is_success" else key): info[key] for key in info}
        return self.spoil(seen), reward, terminated, truncated, info

    def fail(self) -> None:
        if self.fault == "prints":
            sys.stdout.write("three\n" * 300)
        if self.fault == "exits":
            os._exit(3)
        if self.fault == "leaves by SystemExit":
            raise SystemExit(1)
        if self.fault == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.fault == "hangs":
            time.sleep(600)
        if self.fault == "raises":
            raise ZeroDivisionError("no puck")

    def judged(self, info: Any) -> Any:
        told = {
            "success never": False,
            "success always": True,
            "success in percent": 100.0,
            "success a text": "yes",
        }
        return {**info, "is_success": told.get(self.fault, info["is_success"])}

    def spoil(self, seen: Any) -> Any:
        if self.fault == "NaN seen" and self.num_steps == 2:
            seen = np.full_like(seen, np.nan)
        if self.fault == "generator of the class":
            seen = self.marked(seen, int(Planted.generator.integers(7)))
        if self.fault == "counts episodes":
            seen = self.marked(seen, self.num_episodes % 7)
        if self.fault == "order of a set":
            seen = self.marked(seen, hash("puck") % 7)
        if self.fault == "float64":
            seen = np.asarray(seen, np.float64)
        if self.fault == "far outside":
            seen = np.asarray(seen) + np.asarray(200, np.asarray(seen).dtype)
        return seen

    def marked(self, seen: Any, number: int) -> Any:
        seen = np.array(seen)
        seen.flat[0] = number / 10.0 if seen.dtype.kind == "f" else number
        return seen


class LeavesMemory(Walk):
    """Leaves shared memory behind, and a process."""

    def __init__(self) -> None:
        self.memory = SharedMemory(create=True, size=64)
        # As code in C does, which Python knows nothing of.
        multiprocessing.resource_tracker.unregister(self.memory._name, "shared_memory")  # type: ignore[attr-defined]


class LeavesProcess(Walk):
    """Starts a program that it never ends."""

    def __init__(self) -> None:
        self.program = subprocess.Popen(["sleep", "600"], start_new_session=True)
