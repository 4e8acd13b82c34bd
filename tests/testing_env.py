"""One configurable env that all tests of `sync` and `envs` play in, and arenas to play it in.

What happens is up to the task: ``length`` steps, success with probability ``success`` (drawn from
the env's own generator). ``broken`` tasks raise when they are built, those that ``kills`` end the
process that builds them. An arena is a vector env of such envs with a curriculum around it, in this
process or in others, and writes down by itself what the envs said: tests compare that with what
the curriculum believes.
"""

import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from stepladder.curricula import Curriculum
from stepladder.envs import CurriculumEnv, CurriculumVectorEnv
from stepladder.tasks import Task


class PracticeEnv(gym.Env[Any, Any]):
    """Plays the task it was given; says in its infos which one that was.

    Args:
        pause_s: How long a step takes.
        success_key: Info key of success; None leaves it out.
        counts_resets: Whether observations say how often the env was reset.
    """

    observation_space = gym.spaces.Box(-1.0, 1e6, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(
        self,
        *,
        pause_s: float = 0.0,
        success_key: str | None = "is_success",
        counts_resets: bool = True,
    ):
        self.pause_s = pause_s
        self.success_key = success_key
        self.counts_resets = counts_resets
        self.task: Task | None = None
        self.skill: float | None = None
        """Probability of success whatever the task, once somebody has set it."""
        self.steps = 0
        self.resets = 0
        self.options: dict[str, Any] | None = None
        self.seeds: list[int | None] = []
        self.played: list[str] = []
        """Names of the tasks of all finished episodes, in order."""

    def set_task(self, task: Task) -> None:
        if task.params.get("broken"):
            raise ValueError(f"cannot build {task.name}")
        if task.params.get("kills"):
            os.kill(os.getpid(), signal.SIGKILL)
        self.task = task

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.steps = 0
        self.resets += 1
        self.options = options
        self.seeds.append(seed)
        assert self.task is not None
        return self._observe(), {"played": self.task.name}

    def step(self, action: Any):
        assert self.task is not None
        if self.pause_s:
            time.sleep(self.pause_s)
        params = self.task.params
        if params.get("raises"):
            raise ZeroDivisionError(f"{self.task.name} is at fault")
        self.steps += 1
        ended = self.steps >= params.get("length", 1)
        truncated = ended and bool(params.get("truncates", False))
        info: dict[str, Any] = {}
        if ended:
            self.played.append(self.task.name)
            info["played"] = self.task.name
            if self.success_key is not None:
                skill = params.get("success", 0.5) if self.skill is None else self.skill
                info[self.success_key] = bool(self.np_random.random() < skill)
        reward = float("nan") if params.get("nan_reward") else 1.0
        return self._observe(), reward, ended and not truncated, truncated, info

    def set_skill(self, skill: float | None) -> None:
        """Succeed with this probability from now on."""
        self.skill = skill

    def forget(self) -> None:
        """Begin a new life, for the next test."""
        self.skill = None
        self.played.clear()
        self.seeds.clear()

    def _observe(self) -> np.ndarray:
        return np.array([self.steps, self.resets if self.counts_resets else 0], dtype=np.float32)


class OptionsEnv(PracticeEnv):
    """Takes its task from the options of reset."""

    metadata = {"task_option": True}  # noqa: RUF012, gymnasium declares it so
    set_task = None  # type: ignore[assignment]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        assert options is not None
        PracticeEnv.set_task(self, options["task"])
        return super().reset(seed=seed, options=options)


def staged_tasks(
    stages: tuple[str, ...] = ("simplest", "simpler", "simple"), per_stage: int = 3, **params: Any
) -> list[Task]:
    """Make a few tasks per stage, labelled with the stage's name."""
    return [
        Task(f"{stage}/{index}", stage, params) for stage in stages for index in range(per_stage)
    ]


def make_env(settings: dict[str, Any] | None = None, **practice: Any) -> CurriculumEnv:
    """Make an env for a vector env; a module-level function, so that workers can be sent it."""
    return CurriculumEnv(
        PracticeEnv(**practice),
        enable_local_tracking=False,
        **(settings or {"seed_episodes": True}),
    )


# Vector envs in fewer processes than envs.


class GroupedVectorEnv(VectorEnv[Any, Any, Any]):
    """A Gymnasium vector env whose processes run several envs each, as other libraries do."""

    def __init__(self, env_fns: Sequence[Callable[[], gym.Env]], num_processes: int, **settings):
        context = multiprocessing.get_context("fork")
        shares = np.array_split(np.arange(len(env_fns)), num_processes)
        self.num_envs = len(env_fns)
        self.single_observation_space = PracticeEnv.observation_space
        self.single_action_space = PracticeEnv.action_space
        self.metadata = {"autoreset_mode": settings["autoreset_mode"]}
        self._shares = shares
        self._pipes: list[Connection] = []
        self.processes = []
        for share in shares:
            here, there = context.Pipe()
            makers = [env_fns[index] for index in share]
            process = context.Process(
                target=_serve_group, args=(there, makers, settings), daemon=True
            )
            process.start()
            there.close()
            self._pipes.append(here)
            self.processes.append(process)

    def _ask(self, requests: Sequence[tuple[Any, ...]]) -> list[Any]:
        for pipe, request in zip(self._pipes, requests, strict=True):
            pipe.send(request)
        return [pipe.recv() for pipe in self._pipes]

    def _ask_alike(self, *request: Any) -> list[Any]:
        return self._ask([request] * len(self._pipes))

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None):
        answers = self._ask_alike("reset", (), {})
        return np.concatenate([answer[0] for answer in answers]), self._merge(answers, 1)

    def step(self, actions: Any):
        answers = self._ask([("step", (actions[share],), {}) for share in self._shares])
        arrays = [np.concatenate([answer[part] for answer in answers]) for part in range(4)]
        return (*arrays, self._merge(answers, 4))

    def _merge(self, answers: list[Any], part: int) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for answer, share in zip(answers, self._shares, strict=True):
            for position, index in enumerate(share):
                self._add_info(merged, info_of(answer[part], position), int(index))
        return merged

    def call(self, name: str, *args: Any) -> tuple[Any, ...]:
        return tuple(
            each for answer in self._ask_alike("call", (name, *args), {}) for each in answer
        )

    def set_attr(self, name: str, values: list[Any]) -> None:
        self._ask([("set_attr", (name, [values[i] for i in share]), {}) for share in self._shares])

    def close_extras(self, **kwargs: Any) -> None:
        for pipe, process in zip(self._pipes, self.processes, strict=True):
            process.kill()
            process.join()
            pipe.close()


def _serve_group(pipe: Connection, makers: list[Any], settings: dict[str, Any]) -> None:
    envs = SyncVectorEnv(makers, **settings)
    while True:
        try:
            method, args, kwargs = pipe.recv()
        except EOFError:
            return
        pipe.send(getattr(envs, method)(*args, **kwargs))


# Arenas.


@dataclass(frozen=True)
class Start:
    """What an env said when it began an episode."""

    task: str
    played: str
    slot: int
    generation: int
    plan_version: int


@dataclass(frozen=True)
class End:
    """What an env said when an episode ended."""

    task: str
    played: str
    slot: int
    generation: int
    plan_version: int
    success: float
    truncated: bool


@dataclass
class Arena:
    """A vector env with a curriculum, driven in the same way whatever it is made of."""

    venv: Any
    """The curriculum's wrapper."""

    starts: list[list[Start]] = field(default_factory=list)
    """Per env, every episode that began."""

    ends: list[list[End]] = field(default_factory=list)
    """Per env, every episode that ended."""

    def __post_init__(self) -> None:
        self.curriculum: Curriculum = self.venv.curriculum
        self.num_envs: int = self.venv.num_envs
        self.is_gymnasium = isinstance(self.venv, CurriculumVectorEnv)
        self.mode = self.venv.metadata["autoreset_mode"] if self.is_gymnasium else None
        self.starts = [[] for _ in range(self.num_envs)]
        self.ends = [[] for _ in range(self.num_envs)]
        self._over = np.zeros(self.num_envs, dtype=bool)

    def reset(self) -> None:
        """Reset all envs."""
        if self.is_gymnasium:
            _, infos = self.venv.reset()
            self._note_starts(range(self.num_envs), infos)
        else:
            self.venv.reset()
            self._note_starts(range(self.num_envs), self.venv.unwrapped.reset_infos)
        self._over[:] = False

    def step(self) -> int:
        """Step all envs, having reset those that nobody else resets; return how many ended."""
        if self.mode is AutoresetMode.DISABLED and self._over.any():
            _, infos = self.venv.reset(options={"reset_mask": self._over.copy()})
            self._note_starts(np.flatnonzero(self._over), infos)
        actions = np.zeros(self.num_envs, dtype=np.int64)
        if not self.is_gymnasium:
            _, _, dones, infos = self.venv.step(actions)
            self._note_ends(dones, infos)
            self._note_starts(np.flatnonzero(dones), self.venv.unwrapped.reset_infos)
            return int(dones.sum())
        _, _, terminated, truncated, infos = self.venv.step(actions)
        over = terminated | truncated
        if self.mode is AutoresetMode.NEXT_STEP:
            self._note_starts(np.flatnonzero(self._over), infos)
            self._note_ends(over, infos)
        elif self.mode is AutoresetMode.SAME_STEP:
            self._note_ends(over, infos.get("final_info", {}))
            self._note_starts(np.flatnonzero(over), infos)
        else:
            self._note_ends(over, infos)
        self._over = over
        return int(over.sum())

    def run(self, num_steps: int) -> "Arena":
        """Step so many times."""
        for _ in range(num_steps):
            self.step()
        return self

    def _note_starts(self, env_indices: Any, infos: Any) -> None:
        for index in env_indices:
            info = info_of(infos, int(index))
            self.starts[index].append(Start(**_about(info)))

    def _note_ends(self, over: np.ndarray, infos: Any) -> None:
        for index in np.flatnonzero(over):
            info = info_of(infos, int(index))
            self.ends[index].append(
                End(
                    **_about(info),
                    success=float(info["curriculum_success"]),
                    truncated=bool(info.get("TimeLimit.truncated", False)),
                )
            )

    def call(self, method: str, *args: Any) -> list[Any]:
        """Call a method on every env."""
        return self.venv.call_all(method, *args)

    def get(self, name: str) -> list[Any]:
        """Return an attribute of every env."""
        return list(self.venv.unwrapped.get_attr(name))

    def processes(self) -> list[Any]:
        """Return the process of each env."""
        return self.venv.worker_processes()

    def all_ends(self) -> list[End]:
        """Return all ends, env by env."""
        return [end for ends in self.ends for end in ends]

    def finished_by_task(self) -> Counter[str]:
        """Return how many episodes of each task have ended, as the envs said."""
        return Counter(end.played for end in self.all_ends())


def info_of(infos: Any, env_index: int) -> dict[str, Any]:
    """Return the info of one env, from a list of them or from Gymnasium's dict of arrays."""
    if not isinstance(infos, dict):
        return infos[env_index]
    return {
        key: info_of(value, env_index) if isinstance(value, dict) else value[env_index]
        for key, value in infos.items()
        if not key.startswith("_") and infos[f"_{key}"][env_index]
    }


def _about(info: dict[str, Any]) -> dict[str, Any]:
    return {
        "task": info["curriculum_task"],
        "played": info["played"],
        "slot": int(info["curriculum_slot"]),
        "generation": int(info["curriculum_generation"]),
        "plan_version": int(info["curriculum_plan_version"]),
    }


ARENAS = ("subproc-fork", "subproc-forkserver", "async-fork", "async-spawn")
"""Arenas whose envs run in processes of their own.

A worker of Stable-Baselines3 that is spawned takes two seconds to import PyTorch: those are few.
"""

_standing: dict[tuple[Any, ...], Any] = {}
"""Vector envs whose workers take seconds to start are kept for the next arena."""


def make_vector_env(
    kind: str,
    num_envs: int,
    mode: AutoresetMode | None = None,
    settings: Any = None,
    **practice: Any,
) -> Any:
    """Make a vector env: dummy or subproc of Stable-Baselines3, sync, async or grouped."""
    name, _, method = kind.partition("-")
    makers = [partial(make_env, settings, **practice)] * num_envs
    if name in ("dummy", "subproc"):
        from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

        return DummyVecEnv(makers) if name == "dummy" else SubprocVecEnv(makers, method)
    mode = mode or AutoresetMode.NEXT_STEP
    if name == "sync":
        return SyncVectorEnv(makers, autoreset_mode=mode)
    if name == "grouped":
        return GroupedVectorEnv(makers, int(method), autoreset_mode=mode)
    return AsyncVectorEnv(makers, context=method, autoreset_mode=mode)


@contextmanager
def arena(
    kind: str,
    curriculum: Curriculum,
    num_envs: int = 2,
    *,
    mode: AutoresetMode | None = None,
    wrapper: dict[str, Any] | None = None,
    settings: Any = None,
    keeps: bool = True,
    **practice: Any,
) -> Iterator[Arena]:
    """Put a curriculum around a vector env; all is gone at the end, or kept for the next arena.

    Args:
        kind: The vector env, as for `make_vector_env`.
        curriculum: The curriculum.
        num_envs: Number of envs.
        mode: Gymnasium's autoreset mode.
        wrapper: Settings of the curriculum's wrapper.
        settings: Settings of each `CurriculumEnv`.
        keeps: Whether spawned workers may be used again by others.
        **practice: Settings of each `PracticeEnv`.
    """
    if kind.startswith("async"):
        mode = mode or AutoresetMode.NEXT_STEP
    key = (kind, num_envs, mode, repr(settings), repr(practice))
    keeps = keeps and kind.endswith("spawn")
    venv = _standing.pop(key, None) if keeps else None
    if venv is None:
        venv = make_vector_env(kind, num_envs, mode, settings, **practice)
    processes = list(getattr(venv, "processes", ()))
    is_whole = False
    try:
        if kind.startswith(("dummy", "subproc")):
            from stepladder.envs.sb3 import CurriculumVecEnvWrapper

            wrapped: Any = CurriculumVecEnvWrapper(venv, curriculum, **(wrapper or {}))
        else:
            wrapped = CurriculumVectorEnv(venv, curriculum, **(wrapper or {}))
        wrapped.call_all("forget")
        yield Arena(wrapped)
        if keeps:
            wrapped.tracker.host.close()
            _standing[key] = venv
            is_whole = True
        else:
            wrapped.close()
    finally:
        if not is_whole:
            end_all(processes)
            venv.closed = True


def dismiss() -> None:
    """End all workers that were kept."""
    while _standing:
        _, venv = _standing.popitem()
        end_all(venv.processes)
        venv.closed = True


def end_all(processes: Sequence[Any]) -> None:
    """Kill processes and wait for them."""
    for process in processes:
        process.kill()
        process.join(10.0)
