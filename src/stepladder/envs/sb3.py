"""Stable-Baselines3: `as_vec_env` for what `make_vec` returns, a wrapper for SB3's own vector envs.

`SB3VecEnv` stands between SB3 and a `WorkerVectorEnv`, or the `CurriculumVectorEnv` around one:
steps become `send` and `recv`, infos one dict per env. `CurriculumVecEnvWrapper` goes around
`DummyVecEnv` or `SubprocVecEnv` whose envs are each a `CurriculumEnv`. Needs the extra ``sb3``;
nothing else in the library imports this module.
"""

import select
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from multiprocessing.process import BaseProcess
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.spaces import MultiBinary
from gymnasium.vector import AutoresetMode

try:
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecEnvWrapper
    from stable_baselines3.common.vec_env.base_vec_env import (
        VecEnvIndices,
        VecEnvObs,
        VecEnvStepReturn,
    )
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"stepladder.envs.sb3 needs Stable-Baselines3 ({error}). Install the extra: "
        "pip install 'stepladder[sb3]'.",
        name=error.name,
    ) from error

from stepladder.curricula.base import Curriculum
from stepladder.envs.curriculum_env import CurriculumEnv
from stepladder.envs.sb3_callback import CurriculumCallback, saved_model
from stepladder.envs.tracking.check_interval import check_interval_of
from stepladder.envs.tracking.tracked import EnvAccess, Tracked
from stepladder.envs.tracking.tracker import Tracker, release_processes
from stepladder.envs.types import Action, GymVectorEnv, GymWrapper, Info
from stepladder.envs.vector import CurriculumVectorEnv, SteppedEnvs, envs_stepped_by
from stepladder.envs.workers import WorkerVectorEnv
from stepladder.errors import ConfigError
from stepladder.sync import Host

__all__ = ["CurriculumCallback", "CurriculumVecEnvWrapper", "as_vec_env", "saved_model"]

IMMUTABLE = (bool, int, float, str, bytes, type(None))


def as_vec_env(vec: GymVectorEnv) -> "SB3VecEnv":
    """Make a Stable-Baselines3 vector env of one that `make_vec` has made.

    The adapter owns the vector env from then on: it switches it to same-step autoreset, as SB3 has
    it, and infos are no longer merged.

    Args:
        vec: Not reset yet, or made with ``autoreset_mode="SameStep"``.

    Raises:
        ConfigError: It is something else, or was made with settings that SB3 does not support.
    """
    return SB3VecEnv(vec)


class SB3VecEnv(Tracked, VecEnv):
    """A vector env of `make_vec` with Stable-Baselines3's interface.

    With a curriculum it learns after every step and has `curriculum`, `counts`, `staleness`,
    `check_agreement`, `snapshot` and `restore`. Without one, these raise `AttributeError`.
    """

    def __init__(self, vec: GymVectorEnv):
        self._base = base = _checked_envs(vec)
        base.use_autoreset_mode(AutoresetMode.SAME_STEP)
        base.merges_infos = False
        self.vec = cast("WorkerVectorEnv | CurriculumVectorEnv", vec)
        super().__init__(base.num_envs, base.single_observation_space, base.single_action_space)
        self.metadata = base.metadata
        self.num_workers = base.num_workers
        self._actions_are_floats = isinstance(self.action_space, MultiBinary)

    @property
    def _curriculum_vec(self) -> CurriculumVectorEnv:
        if isinstance(self.vec, CurriculumVectorEnv):
            return self.vec
        raise AttributeError(
            "this vector env has no curriculum. Make it with make_vec(..., curriculum=curriculum)."
        )

    @property
    def curriculum(self) -> Curriculum:
        """The curriculum of the vector env."""
        return self._curriculum_vec.curriculum

    @property
    def tracker(self) -> Tracker:  # type: ignore[override]
        """Answers what `Tracked` forwards."""
        return self._curriculum_vec.tracker

    # Playing.

    def reset(self) -> VecEnvObs:
        """Reset all envs, with the seeds and options that were set for this reset."""
        # None if none was set: then workers need no message through a pipe.
        seeds = self._seeds if any(seed is not None for seed in self._seeds) else None
        options = [each or None for each in self._options] if any(self._options) else None
        observations, _ = self.vec.reset(seed=seeds, options=options)
        # SB3 uses both only once.
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{} for _ in range(self.num_envs)]
        for env_index, info in self._base.last_infos:
            self.reset_infos[env_index] = own_copy(info)
        return observations

    def step_async(self, actions: Action) -> None:
        """Have the workers begin to step."""
        if self._actions_are_floats:
            # SB3 samples zeros and ones as floats, whatever the type of the space.
            actions = np.asarray(actions).astype(self.action_space.dtype)
        self.vec.send(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Step this process's own share and wait for the workers."""
        observations, rewards, terminated, truncated, _ = self.vec.recv()
        ended = terminated | truncated
        infos: list[Info] = [
            {"TimeLimit.truncated": cut_off} for cut_off in (truncated & ~terminated).tolist()
        ]
        for env_index, info in self._base.last_infos:
            if ended[env_index]:
                # The info of its reset; under final_info, that of the end.
                began = dict(info)
                infos[env_index]["terminal_observation"] = began.pop("final_obs")
                info = began.pop("final_info")
                self.reset_infos[env_index] = own_copy(began)
            infos[env_index] = {**own_copy(info), **infos[env_index]}
        return observations, rewards.astype(np.float32), ended, infos

    # Reaching single envs.

    def _rows(self, indices: VecEnvIndices) -> list[int]:
        every = range(self.num_envs)
        return [every[index] for index in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        """Return whether every env has an attribute, found through its wrappers."""
        return all(self._base.call("has_wrapper_attr", attr_name))

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute of some envs, found through their wrappers."""
        # Not by its own name: a method would be called.
        return self._base.call_on(self._rows(indices), "get_wrapper_attr", attr_name)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of some envs: where it is, or if it is nowhere, on the outermost."""
        rows = self._rows(indices)
        self._base.set_attr_on(rows, attr_name, [value] * len(rows))

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method of some envs, found through their wrappers."""
        return self._base.call_on(self._rows(indices), method_name, *method_args, **method_kwargs)

    def env_is_wrapped(
        self, wrapper_class: type[GymWrapper], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Return for some envs whether they are in a wrapper of this class or of a derived one."""
        return self._base.apply_on(self._rows(indices), wrapper_test(wrapper_class))

    def get_images(self) -> Sequence[Any]:
        """Return what every env renders, if that is pictures."""
        if self.render_mode != "rgb_array":
            warnings.warn(
                f"render_mode is {self.render_mode!r}, and pictures need 'rgb_array'. Make the "
                "envs with that.",
                stacklevel=2,
            )
            return [None] * self.num_envs
        return self._base.call("render")

    def close(self) -> None:
        """Close all envs and end all workers."""
        self.vec.close()


def _checked_envs(vec: GymVectorEnv) -> "SteppedEnvs":
    """Return the vector env that steps, if SB3 can use it."""
    base = envs_stepped_by(vec)
    if base is None:
        raise ConfigError(
            f"as_vec_env needs what make_vec returns; got a {type(vec).__name__}. Put wrappers "
            "around each env, with make_vec(wrappers=…), or around the result."
        )
    if len(base.batches) > 1:
        raise ConfigError(
            f"SB3 steps all envs at once, and these are in {len(base.batches)} batches. Make the "
            "vector env with num_batches=1."
        )
    if not base.copy:
        raise ConfigError(
            "SB3 keeps observations beyond the next step, which would change them with copy=False. "
            "Make the vector env with copy=True."
        )
    return base


def own_copy(info: Info) -> Info:
    """Return an info that stays as it is: an env in this process may change what it returned."""
    return {
        key: value if isinstance(value, IMMUTABLE) else deepcopy(value)
        for key, value in info.items()
    }


def wrapper_test(wrapper_class: type[GymWrapper]) -> Callable[[object], bool]:
    """Return a function that tells whether an env is in a wrapper of this class or one derived."""
    wanted = (wrapper_class.__module__, wrapper_class.__qualname__)

    # By name, and nested, so that it is pickled by value: a worker then imports neither the class
    # nor this module, and with either all of SB3.
    def is_wrapped(env: object) -> bool:
        while isinstance(env, gym.Wrapper):
            for kind in type(env).__mro__:
                # In a spawned worker the main module goes by another name.
                module = kind.__module__.replace("__mp_main__", "__main__")
                if (module, kind.__qualname__) == wanted:
                    return True
            env = env.env
        return False

    return is_wrapped


class CurriculumVecEnvWrapper(Tracked, EnvAccess, VecEnvWrapper):
    """Tracks one curriculum over all envs of a Stable-Baselines3 vector env.

    ``env_method("get_curriculum_stage")`` and ``env_method("get_mixing_ratio")`` show what each
    env draws from; `check_agreement` compares them all with the host.

    Args:
        venv: A vector env of envs each wrapped in ``CurriculumEnv(env,
            enable_local_tracking=False)``.
        curriculum: The curriculum; only this wrapper draws from it and teaches it.
        check_interval_episodes: For stages: episodes between checks, over all envs together.
        backend: How plans and records travel; ``auto`` finds out.
        max_failed_share: Share of draws that may turn out unbuildable before a step raises.
        check_advancement_freq: ``check_interval_episodes`` under its published name.
    """

    def __init__(
        self,
        venv: VecEnv,
        curriculum: Curriculum,
        check_interval_episodes: int | None = None,
        *,
        backend: str = "auto",
        max_failed_share: float = 0.5,
        check_advancement_freq: int | None = None,
    ):
        if not isinstance(venv, VecEnv):
            raise ConfigError(
                f"expected a Stable-Baselines3 vector env; got {venv!r}. Put the envs into a "
                "DummyVecEnv or SubprocVecEnv first."
            )
        super().__init__(venv)
        watch_forked_workers(venv.unwrapped)
        self.curriculum = curriculum
        self.tracker = Tracker(
            self,
            curriculum,
            venv.num_envs,
            backend=backend,
            in_process=isinstance(venv.unwrapped, DummyVecEnv),
            max_failed_share=max_failed_share,
            check_interval_episodes=check_interval_of(
                check_interval_episodes, check_advancement_freq
            ),
        )

    def connect(self, host: Host) -> None:
        """Give each env its client of the host."""
        wrapped = self.venv.env_is_wrapped(CurriculumEnv)
        if not all(wrapped):
            raise AttributeError(f"env {wrapped.index(False)} is not wrapped in CurriculumEnv")
        for env_index, client in enumerate(host.clients()):
            self.venv.env_method("connect_curriculum", client, indices=[env_index])

    def call_all(self, method: str, *args: Any) -> list[Any]:
        """Call a method on every env."""
        return self.venv.env_method(method, *args)

    def worker_processes(self) -> list[BaseProcess]:
        """Return the process of each env, or an empty list if that is not known."""
        return list(getattr(self.venv.unwrapped, "processes", ()))

    def drop_workers(self) -> None:
        """Close the pipes to workers that have ended."""
        base: Any = self.venv.unwrapped
        base.closed = True
        for remote in base.remotes:
            remote.close()

    def reset(self) -> VecEnvObs:
        """Reset all envs; each draws a task."""
        return self.tracker.reset(self.venv.reset)

    def step_async(self, actions: Action) -> None:
        """Send all envs their actions."""
        self.tracker.begin_step()
        self.tracker.guard(lambda: self.venv.step_async(actions))

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step, then let the curriculum learn from what ended."""
        try:
            result = self.tracker.guard(self.venv.step_wait)
        except KeyboardInterrupt:
            self.tracker.break_off()
            raise
        self.tracker.collect(int(np.count_nonzero(result[2])))
        if self.tracker.reporter is not None:
            self.tracker.reporter.note_step(result[2])
        self.tracker.end_step()
        return result

    def close(self) -> None:
        """Close the vector env and the channel; leaves no process and no descriptor behind."""
        self.tracker.close(self.venv.close)
        release_processes(self.worker_processes())
        for remote in getattr(self.venv.unwrapped, "remotes", ()):
            remote.close()


class WatchedRemote:
    """The host's end of the pipe to one worker, which notices that the worker has died.

    Forked workers inherit the ends of each other's pipes, so the pipe of a dead one stays open as
    long as its siblings live, and a plain `recv` never returns.
    """

    def __init__(self, remote: Connection, process: BaseProcess):
        self._remote = remote
        self._poller = select.poll()
        self._poller.register(remote.fileno(), select.POLLIN)
        self._poller.register(process.sentinel, select.POLLIN)
        self._sentinel = process.sentinel

    def recv(self) -> Any:
        """Receive an answer.

        Raises:
            EOFError: The worker has died without an answer.
        """
        ready = [descriptor for descriptor, _ in self._poller.poll()]
        if ready == [self._sentinel]:
            raise EOFError("the worker has died")
        return self._remote.recv()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote, name)


def watch_forked_workers(venv: VecEnv) -> None:
    """Make a vector env of forked workers notice when one dies."""
    if isinstance(venv, SubprocVecEnv) and isinstance(venv.processes[0], ForkProcess):
        venv.remotes = tuple(
            WatchedRemote(remote, process)
            for remote, process in zip(venv.remotes, venv.processes, strict=True)
        )
