"""Envs that the tests of the worker vector env play in, importable by every start method.

`RandomEnv` gives random values of any spaces, with random endings and infos, all decided by its
seed. `TroubleEnv` counts, and on demand raises, hangs, or takes its process with it.
"""

import os
import re
import signal
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from stepladder.envs.workers import WorkerVectorEnv
from stepladder.tasks import Task

NEXT_STEP, SAME_STEP, DISABLED = (
    AutoresetMode.NEXT_STEP,
    AutoresetMode.SAME_STEP,
    AutoresetMode.DISABLED,
)


class Parcel(spaces.Space[Any]):
    """A space that nobody knows: lists of whole numbers, of any length up to three."""

    def __init__(self, seed: int | None = None):
        super().__init__(None, None, seed)

    def sample(self, mask: Any = None, probability: Any = None) -> list[int]:
        return [int(number) for number in self.np_random.integers(9, size=self._length())]

    def _length(self) -> int:
        return int(self.np_random.integers(4))

    def contains(self, x: Any) -> bool:
        return isinstance(x, list)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parcel)

    __hash__ = None  # type: ignore[assignment]


def digest(value: Any) -> float:
    """Return a number that changes with any part of a nested value, its types included."""
    if isinstance(value, dict):
        return sum(len(str(key)) * 3.0 + digest(part) * 1.25 for key, part in value.items())
    if isinstance(value, tuple | list):
        return sum((index + 2) * digest(part) for index, part in enumerate(value)) + 0.5
    if isinstance(value, str):
        return float(sum(map(ord, value)))
    array = np.asarray(value)
    flat = array.astype(np.float64).ravel()
    weights = np.arange(1, flat.size + 1)
    return float(np.clip(flat, -1e6, 1e6) @ weights) + array.dtype.num + 10.0 * array.ndim


class RandomEnv(gym.Env[Any, Any]):
    """Returns random observations and infos; everything follows from its seed and the actions.

    Args:
        env_index: Makes the envs of a vector env differ.
        observation_space: What to observe.
        action_space: What to act with.
        mean_length: Of an episode.
        info_share: How often there is an info.
        in_place: Whether all observations are the same memory, as some envs have it.
        odd_keys: Whether infos have keys that are not strings too.
    """

    def __init__(
        self,
        env_index: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        mean_length: float = 3.0,
        info_share: float = 0.6,
        in_place: bool = False,
        odd_keys: bool = False,
    ):
        self.env_index = env_index
        self.observation_space = deepcopy(observation_space)
        self.action_space = deepcopy(action_space)
        self._mean_length = mean_length
        self._info_share = info_share
        self._odd_keys = odd_keys
        self._in_place = in_place and isinstance(observation_space, spaces.Box)
        self._memory: Any = None
        self._sampler = deepcopy(observation_space)
        self._seed(1000 + env_index)

    def _seed(self, seed: int) -> None:
        self._sampler.seed(seed)
        self._rng = np.random.default_rng(seed)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        if seed is not None:
            self._seed(seed)
        info = self._info()
        if options:
            info["told"] = digest(options)
        return self._observe(), info

    def step(self, action: Any):
        ends = self._rng.random() < 1.0 / self._mean_length
        kind = int(self._rng.integers(3))
        terminated, truncated = ends and kind != 0, ends and kind != 1
        reward = self._rng.normal() + digest(action)
        # Envs return either, and Gymnasium takes either.
        flag = np.bool_ if self.env_index % 2 else bool
        return self._observe(), reward, flag(terminated), flag(truncated), self._info()

    def _observe(self) -> Any:
        value = self._sampler.sample()
        if not self._in_place:
            return value
        if self._memory is None:
            self._memory = np.empty_like(value)
        self._memory[...] = value
        return self._memory

    def _info(self) -> dict[str, Any]:
        rng = self._rng
        if rng.random() >= self._info_share:
            return {}
        number = int(rng.integers(100))
        # Which kind a key has is the same in all envs but for one, where the first env decides.
        everything: dict[Any, Any] = {
            "whole": number,
            "real": number / 7,
            "mixed": number if self.env_index % 2 else number / 7,
            "small": np.float32(number / 3),
            "byte": np.uint8(number),
            "flag": bool(number % 2),
            "numpy_flag": np.bool_(number % 2),
            "text": f"text {number}",
            "nothing": None,
            "list": [number, "a"],
            "pair": (number, number),
            "array": np.full((2, 3), number, dtype=np.float32),
            "scalar_array": np.array(number),
            "complex": np.complex64(number + 1j),
            f"own_{self.env_index}": number,
            "nested": self._nested(number),
            "empty": {},
        }
        if self._odd_keys:
            everything |= self._with_odd_keys(number)
        return {key: value for key, value in everything.items() if rng.random() < 0.4}

    def _with_odd_keys(self, number: int) -> dict[Any, Any]:
        """Keys that are not strings, equal to each other or named like the mask of another."""
        return {
            7: number,
            "7": f"text {number}",
            (1, "a"): number / 7,
            None: np.full(2, number),
            True if self.env_index % 2 else 1: number,
            frozenset({3}): {2: number, (): {None: "deep", "word": number}},
            "_text": np.bool_(number % 2),
            "by_number": {self.env_index: number, -1: {0.5: "half"}},
            "ordered": OrderedDict(a=number, b=OrderedDict({4: "four"})),
        }

    def _nested(self, number: int) -> dict[str, Any]:
        nested: dict[str, Any] = {"deeper": {"value": number, f"own_{self.env_index}": 1.5}}
        if number % 2:
            nested["odd"] = np.int16(number)
        if number % 3 == 0:
            nested["words"] = "three"
        return nested


class BoomError(RuntimeError):
    """What an env raises on demand."""


class StubbornError(RuntimeError):
    """Can be neither pickled nor made again."""

    def __init__(self, message: str, *, more: Any):
        super().__init__(message)
        self.more = more

    def __reduce__(self) -> Any:
        raise TypeError("this error stays where it is")


class TroubleEnv(gym.Env[Any, Any]):
    """Counts what happens to it; gets into trouble when it is told to.

    An observation is its env index, the number of its resets and of steps since the last one. An
    episode takes `length` steps, or as many as its task says, and succeeds.

    Args:
        env_index: Its row.
        length: Steps of an episode.
        trouble: What happens in which method, each time: ``{"step": "raise"}``.
        once: A file; trouble of the constructor happens only if it is there, and takes it away.
        met: A file that is made when trouble begins.
        diary: A file to which a byte is added when an episode ends.
        pause_s: How long a step takes.
        quiet: Whether infos are empty.
        render_mode: Gymnasium's.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}  # noqa: RUF012
    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = spaces.Discrete(4)

    def __init__(
        self,
        env_index: int = 0,
        length: int = 3,
        *,
        trouble: dict[str, str] | None = None,
        once: Path | None = None,
        met: Path | None = None,
        diary: Path | None = None,
        pause_s: float = 0.0,
        quiet: bool = True,
        render_mode: str | None = None,
    ):
        self.env_index = env_index
        self.length = length
        self.always = dict(trouble or {})
        self.trouble: dict[str, str] = {}
        """What happens in which method, the next time."""
        self.met = met
        self.diary = diary
        self.pause_s = pause_s
        self.quiet = quiet
        self.render_mode = render_mode
        self.resets = 0
        self.steps = 0
        self.seeds: list[int | None] = []
        self.options: list[Any] = []
        self.actions: list[int] = []
        if once is None or once.exists():
            if once is not None:
                once.unlink()
            self._meet("make")

    def _meet(self, method: str) -> None:
        what = self.trouble.pop(method, None) or self.always.get(method)
        if what is not None:
            if self.met is not None:
                self.met.touch()
            TROUBLES[what](f"boom in {method} of env {self.env_index}")

    def set_task(self, task: Task) -> None:
        self.length = task.params.get("length", self.length)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.resets += 1
        self.steps = 0
        self.seeds.append(seed)
        self.options.append(options)
        if self.pause_s:
            time.sleep(self.pause_s)
        self._meet("reset")
        return self._observe(), {} if self.quiet else {"began": self.resets}

    def step(self, action: Any):
        self._meet("step")
        if self.pause_s:
            time.sleep(self.pause_s)
        self.actions.append(int(action))
        self.steps += 1
        ended = self.steps >= self.length
        info: dict[str, Any] = {}
        if ended:
            info = {"is_success": True}
            if self.diary is not None:
                with self.diary.open("ab") as file:
                    file.write(b".")
        elif not self.quiet:
            info = {"at": self.steps}
        return self._observe(), float(action), ended, False, info

    def _observe(self) -> np.ndarray:
        return np.array([self.env_index, self.resets, self.steps], dtype=np.float64)

    def render(self) -> Any:
        return np.full((2, 2, 3), self.env_index, dtype=np.uint8)

    def pid(self) -> int:
        """Return the process it lives in."""
        return os.getpid()

    def try_call(self, *args: Any, **kwargs: Any) -> Any:
        """Return what it was given, or get into trouble."""
        self._meet("call")
        return self.env_index, args, kwargs

    def close(self) -> None:
        self._meet("close")


def _boom(text: str) -> None:
    raise BoomError(text)


def _stubborn(text: str) -> None:
    raise StubbornError(text, more=lambda: None)


def _kill(text: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def _leave(text: str) -> None:
    sys.exit(3)


def _sleep(text: str) -> None:
    time.sleep(3600)


def _spin(text: str) -> None:
    while True:
        pass


def _stick(text: str) -> None:
    # Never lets any other thread of its process run, and heeds no Ctrl-C.
    re.match(r"(a+)+$", "a" * 64 + "b")


def _interrupt(text: str) -> None:
    raise KeyboardInterrupt(text)


def _lose_connection(text: str) -> None:
    raise ConnectionResetError(text)


TROUBLES: dict[str, Callable[[str], None]] = {
    "raise": _boom,
    "raise stubborn": _stubborn,
    "kill": _kill,
    "exit": _leave,
    "sleep": _sleep,
    "spin": _spin,
    "stick": _stick,
    "interrupt": _interrupt,
    "lose connection": _lose_connection,
}


def trouble_envs(num_envs: int, **settings: Any) -> list[Callable[[], TroubleEnv]]:
    """Return functions that make so many envs."""
    return [partial(TroubleEnv, index, **settings) for index in range(num_envs)]


@contextmanager
def worker_env(
    functions: int | Sequence[Callable[[], gym.Env[Any, Any]]] = 4,
    *,
    env: dict[str, Any] | None = None,
    **settings: Any,
) -> Iterator[WorkerVectorEnv]:
    """Make a vector env, of `TroubleEnv` if only their number is given, and close it again."""
    if isinstance(functions, int):
        functions = trouble_envs(functions, **(env or {}))
    settings.setdefault("start_method", "fork")
    vec = WorkerVectorEnv(functions, **settings)
    try:
        yield vec
    finally:
        vec.close(timeout_s=1.0)


def no_actions(vec: Any) -> np.ndarray:
    """Return an action per env that does nothing special."""
    return np.zeros(vec.num_envs, dtype=np.int64)


def worker_pids(vec: Any) -> dict[int, list[int]]:
    """Return which rows each worker process has."""
    rows: dict[int, list[int]] = {}
    for row, pid in enumerate(vec.call("pid")):
        if pid != os.getpid():
            rows.setdefault(pid, []).append(row)
    return rows
