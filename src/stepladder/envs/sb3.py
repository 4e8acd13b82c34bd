"""Stable-Baselines3: `as_vec_env` for what `make_vec` returns, a wrapper for SB3's own vector envs.

The wrapper goes around `DummyVecEnv` or `SubprocVecEnv` whose envs are each a `CurriculumEnv`; the
adapter is in `sb3_adapter`. Needs the extra ``sb3``; nothing else in the library imports this
module.
"""

import select
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np

try:
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecEnvWrapper
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"stepladder.envs.sb3 needs Stable-Baselines3 ({error}). Install the extra: "
        "pip install 'stepladder[sb3]'.",
        name=error.name,
    ) from error

from stepladder.curricula.base import Curriculum
from stepladder.envs.check_interval import check_interval_of
from stepladder.envs.curriculum_env import CurriculumEnv
from stepladder.envs.sb3_adapter import as_vec_env
from stepladder.envs.tracked import Tracked
from stepladder.envs.tracker import Tracker, release_processes
from stepladder.envs.types import Action
from stepladder.errors import ConfigError
from stepladder.sync import Host

__all__ = ["CurriculumVecEnvWrapper", "as_vec_env"]


class CurriculumVecEnvWrapper(Tracked, VecEnvWrapper):
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
        """Return the process of each env, or nothing if that is not known."""
        return list(getattr(self.venv.unwrapped, "processes", ()))

    def drop_workers(self) -> None:
        """Let go of workers that are gone."""
        base: Any = self.venv.unwrapped
        base.closed = True
        for remote in base.remotes:
            remote.close()

    @property
    def total_episodes(self) -> int:
        """Episodes observed over all envs."""
        return self.counts.finished

    def reset(self) -> VecEnvObs:
        """Reset all envs; each draws a task."""
        return self.tracker.reset(self.venv.reset)

    def step_async(self, actions: Action) -> None:
        """Tell all envs to step."""
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
            EOFError: The worker has died and left none.
        """
        ready = [descriptor for descriptor, _ in self._poller.poll()]
        if ready == [self._sentinel]:
            raise EOFError("the worker has died")
        return self._remote.recv()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote, name)


def watch_forked_workers(venv: Any) -> None:
    """Make a vector env of forked workers notice when one dies."""
    if isinstance(venv, SubprocVecEnv) and isinstance(venv.processes[0], ForkProcess):
        venv.remotes = tuple(
            WatchedRemote(remote, process)
            for remote, process in zip(venv.remotes, venv.processes, strict=True)
        )
