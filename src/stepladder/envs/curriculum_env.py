"""A wrapper for one env, which plays the tasks that a curriculum chooses.

Between the client of `sync` and any Gymnasium env: draws at reset, counts return and length, reads
success at the end, reports. It holds no curriculum state. In a vector env each env has one of
these, and the vector wrapper (`vector`, `sb3`) gives it its client; alone, it tracks by itself.
"""

from typing import Any

import gymnasium as gym
import numpy as np

from stepladder.configs.checks import require_integer
from stepladder.curricula.base import Curriculum
from stepladder.curricula.foreign import ForeignCurriculum
from stepladder.envs.delivery import Deliver, Delivery
from stepladder.envs.success import SuccessReader
from stepladder.envs.tracking.check_interval import apply_check_interval, check_interval_of
from stepladder.envs.types import Action, EnvStep, GymEnv, Info, ResetResult
from stepladder.envs.values import flag_of, info_of, reward_of
from stepladder.errors import (
    BuildError,
    ConfigError,
    EnvError,
    NotConnectedError,
    WrongProcessError,
    shown,
)
from stepladder.plans.record import Draw
from stepladder.saving.snapshot import Snapshot
from stepladder.sync import Client, Host, LocalHost, mailbox
from stepladder.tasks import Task

MAX_REDRAWS = 1000
"""Draws of tasks already known to be unbuildable that one reset puts up with."""

MOST_BUILD_FAILURES = mailbox.CAPACITY // 2
"""More failures in one reset could fill the mailbox, which is not emptied during a reset."""

MAX_ENV_SEED = 2**31 - 1
"""Seeds above this are refused by many envs, whose generators take 32 bits or fewer."""


class CurriculumEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Plays the tasks that a curriculum chooses, and reports how they went.

    Args:
        env: The env to play in.
        curriculum: A curriculum, for one env that tracks by itself; or a client; or None, for an
            env that a vector wrapper will connect.
        enable_local_tracking: Whether a curriculum given here is drawn from and updated here.
            True for a single env. False inside a vector env, whose wrapper tracks for all: then
            the curriculum given is ignored, for the wrapper knows it.
        deliver: How a task reaches the env: by a method ``set_task(task)`` found through wrappers,
            by ``reset(options={"task": task})``, or by a function of env and task.
        success_key: Info key that holds success, and that the last info of every episode must have;
            None looks for ``is_success``, then ``success``.
        return_threshold: Return from which an episode without such a key is a success; not beside
            a `success_key`.
        missing_success_is_failure: Whether an episode without any signal is a failure rather than
            an error, for envs that set the key only on success.
        check_interval_episodes: For local tracking of stages: episodes between checks.
        check_advancement_freq: The same under its published name (`check_interval_of`).
        seed_episodes: Whether the env is seeded again for each episode, with a seed that depends
            only on the curriculum's seed, the env's index and the episode's number.
        max_build_failures: Tasks that one reset may fail to build before it raises, at most 32.
        build_errors: Exceptions during ``set_task`` or ``reset`` that mean the task is at fault.
    """

    def __init__(
        self,
        env: GymEnv,
        curriculum: Curriculum | ForeignCurriculum | Client | None = None,
        *,
        enable_local_tracking: bool = True,
        deliver: Deliver = "auto",
        success_key: str | None = None,
        return_threshold: float | None = None,
        missing_success_is_failure: bool = False,
        check_interval_episodes: int | None = None,
        check_advancement_freq: int | None = None,
        seed_episodes: bool = False,
        max_build_failures: int = 20,
        build_errors: tuple[type[Exception], ...] = (Exception,),
    ):
        super().__init__(env)
        require_integer("max_build_failures", max_build_failures, 1)
        if max_build_failures > MOST_BUILD_FAILURES:
            raise ConfigError(
                f"max_build_failures must be at most {MOST_BUILD_FAILURES}; got "
                f"{max_build_failures}. Fix tasks that fail so often, or leave them out."
            )
        self._delivery = Delivery(env, deliver)
        self._reader = SuccessReader(
            key=success_key,
            return_threshold=return_threshold,
            missing_is_failure=missing_success_is_failure,
        )
        self._seed_episodes = seed_episodes
        self._max_build_failures = max_build_failures
        self._build_errors = build_errors
        self._unbuildable: set[tuple[int, int]] = set()
        self._last_failure = "nothing"
        self._client: Client | None = None
        self._host: Host | None = None
        self.inner_step = env.step
        """Steps the env without counting; for a vector env that counts for all its envs."""
        self._about: dict[str, Any] = {}
        self._task: Task | None = None
        self._return, self._length = 0.0, 0
        """Of the running episode, as far as it has been counted."""
        self._uncounted: tuple[Any, ...] | None = None
        """What the env returned for a step that has not been counted and reported yet."""
        if isinstance(curriculum, Client):
            self._client = curriculum
        elif curriculum is not None and enable_local_tracking:
            interval = check_interval_of(check_interval_episodes, check_advancement_freq)
            self._track_locally(curriculum, interval)

    def _track_locally(
        self, curriculum: Curriculum | ForeignCurriculum, check_interval_episodes: int | None
    ) -> None:
        if not isinstance(curriculum, Curriculum | ForeignCurriculum):
            raise ConfigError(
                f"expected a curriculum, a client or None; got a {type(curriculum).__name__}. "
                "Make a curriculum of your tasks first, such as Uniform(tasks)."
            )
        if isinstance(curriculum, ForeignCurriculum):
            raise WrongProcessError(
                "this env runs in another process than its curriculum, so local tracking would "
                "have no effect. Pass enable_local_tracking=False and wrap the vector env."
            )
        self._host = LocalHost(curriculum, 1)
        try:
            apply_check_interval(curriculum, check_interval_episodes)
        except ConfigError:
            self._host.close()
            raise
        self._client = self._host.client(0)

    # Connecting: called by the vector wrappers.

    @property
    def curriculum_client(self) -> Client | None:
        """This env's side of the channel; set by the vector wrapper."""
        return self._client

    @curriculum_client.setter
    def curriculum_client(self, client: Client) -> None:
        self.connect_curriculum(client)

    def connect_curriculum(self, client: Client) -> int:
        """Draw from this client from now on; return the version of its plan."""
        if self._host is not None:
            raise ConfigError(
                "this env tracks by itself and is inside a vector wrapper that tracks as well, so "
                "every episode would count twice. Pass enable_local_tracking=False."
            )
        self._client = client
        self._unbuildable.clear()
        return client.plan_version()

    def curriculum_call(self, method: str, *args: Any) -> Any:
        """Call a method of this env's client. For hosts that share no memory with their clients."""
        client = self._connected()
        function = getattr(client, method, None)
        if function is None:
            raise NotConnectedError(
                f"the host called {method!r}, which the {type(client).__name__} of this env does "
                "not have. Connect the env with a client of the same host first."
            )
        return function(*args)

    def _connected(self) -> Client:
        if self._client is None:
            raise NotConnectedError(
                "this env has no curriculum yet. Wrap the vector env in CurriculumVecEnvWrapper "
                "(Stable-Baselines3) or CurriculumVectorEnv (Gymnasium), or give CurriculumEnv a "
                "curriculum and leave enable_local_tracking on."
            )
        return self._client

    # Playing.

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> ResetResult:
        """Draw a task and begin to play it; an episode still running counts as aborted.

        A task that the env cannot build is reported and another is drawn.

        Raises:
            BuildError: Too many tasks in a row could not be built.
        """
        client = self._connected()
        if self._uncounted is not None:
            self._report_interrupted()
        self._return, self._length, self._uncounted = 0.0, 0, None
        failures, redraws = 0, 0
        while True:
            draw = client.draw()
            if self._unbuildable and (draw.slot, draw.generation) in self._unbuildable:
                client.skip()
                redraws += 1
                if redraws > MAX_REDRAWS:
                    raise BuildError(
                        f"{MAX_REDRAWS} draws in a row gave tasks that this env cannot build "
                        f"({len(self._unbuildable)} different ones; the last one that was tried "
                        f"raised {self._last_failure}). Fix the tasks or the env."
                    )
                continue
            # Not kept for the next draw: each has a seed of its own.
            env_seed = draw.seed & MAX_ENV_SEED if self._seeds_itself(seed) else seed
            try:
                task = client.task(draw)
                observation, info = self._delivery.reset(task, env_seed, options)
                break
            except self._build_errors as error:
                failures += 1
                self._give_up(client, draw, error)
                if failures >= self._max_build_failures:
                    raise BuildError(
                        f"{failures} tasks in a row could not be built; the last one raised "
                        f"{self._last_failure}. Fix the tasks or the env."
                    ) from error
        self._task = task
        self._about = {
            "curriculum_stage": client.stage_of(task.label),
            "curriculum_label": task.label,
            "curriculum_task": task.name,
            "curriculum_slot": draw.slot,
            "curriculum_generation": draw.generation,
            "curriculum_plan_version": draw.plan_version,
        }
        return observation, {**info_of(info, client.env_index), **self._about}

    def _seeds_itself(self, seed: int | None) -> bool:
        return self._seed_episodes and seed is None

    def _give_up(self, client: Client, draw: Draw, error: Exception) -> None:
        self._unbuildable.add((draw.slot, draw.generation))
        self._last_failure = f"{type(error).__name__}: {error}"
        client.fail(self._last_failure)
        if self._host is not None:
            self._host.collect()

    def step(self, action: Action) -> EnvStep:
        """Step the env; report the episode if it ends here.

        A step that an interrupt (Ctrl-C) broke off after the env itself had stepped is not done
        again: the next call returns what the env returned then, whatever the action.
        """
        result = self._uncounted
        is_late = result is not None
        if result is None:
            self._uncounted = result = self.inner_step(action)
        try:
            _, reward, terminated, truncated, info = result
        except (TypeError, ValueError) as error:
            self._uncounted = None
            raise EnvError(
                f"env {self._env_index} returned {shown(result)} from step; expected observation, "
                "reward, terminated, truncated and info. Fix the env, or wrap it for Gymnasium."
            ) from error
        if type(reward) is not float:
            # Not added as it is: a sum of NumPy's smaller floats would stay as coarse as these.
            is_double = type(reward) is np.float64
            reward = float(reward) if is_double else reward_of(reward, self._env_index)
        try:
            if not (terminated or truncated):
                # One line without a call: no interrupt comes between the three.
                self._return, self._length, self._uncounted = (
                    self._return + reward,
                    self._length + 1,
                    None,
                )
                return result  # type: ignore[reportReturnType]
        except (TypeError, ValueError):
            # One of them is neither true nor false, and this says which.
            flag_of(terminated, "terminated", self._env_index)
            flag_of(truncated, "truncated", self._env_index)
        try:
            info = self.finish_episode(
                info,
                terminated=bool(terminated),
                episode_return=self._return + reward,
                length=self._length + 1,
                is_late=is_late,
            )
        except Exception:  # passed on; only an interrupt leaves something to do again
            self._return, self._length, self._uncounted = 0.0, 0, None
            raise
        self._return, self._length, self._uncounted = 0.0, 0, None
        return (*result[:4], info)  # type: ignore[reportReturnType]

    def _report_interrupted(self) -> None:
        """Report an episode that has ended in a step that an interrupt has broken off."""
        result = self._uncounted
        if result is not None and (result[2] or result[3]):
            self.step(None)

    @property
    def _env_index(self) -> int:
        return 0 if self._client is None else self._client.env_index

    def finish_episode(
        self,
        info: Info,
        *,
        terminated: bool,
        episode_return: float,
        length: int,
        is_late: bool = False,
    ) -> dict[str, Any]:
        """Report the episode that has just ended; return its last info with what was reported.

        Args:
            info: The last info.
            terminated: Whether it came to its end, rather than being cut off.
            episode_return: Its return.
            length: Its env steps.
            is_late: Whether an interrupt came meanwhile: it may have been reported already.
        """
        client = self._connected()
        info = info_of(info, client.env_index)
        success = self._reader.read(info, episode_return, client.legend.needs_success)
        if not is_late or client.is_playing():
            client.finish(
                success=success,
                episode_return=episode_return,
                length=length,
                # Running out of time while also finishing counts as finishing.
                truncated=not terminated,
            )
        version = client.plan_version()
        if self._host is not None:
            self._host.collect()
        return {
            **info,
            **self._about,
            "curriculum_plan_version_end": version,
            "curriculum_success": success,
        }

    def _tracking(self) -> Host:
        if self._host is None:
            raise ConfigError(
                "this env does not track by itself, so there is nothing to save here. Use snapshot "
                "and restore of the vector wrapper or host that tracks."
            )
        return self._host

    def snapshot(self) -> Snapshot:
        """Return everything needed to continue exactly here; for an env that tracks by itself."""
        return self._tracking().snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Continue exactly where a snapshot was made; reset the env afterwards."""
        self._tracking().restore(snapshot)
        self._unbuildable.clear()

    def close(self) -> None:
        """Close the env; a curriculum tracked here can then be used elsewhere."""
        if self._host is not None:
            self._host.close()
        super().close()
        if self._client is not None:
            # At once, even if there are other references to this env.
            self._client.disconnect()

    # Asking: also through ``env_method`` or ``call``.

    def get_curriculum_stage(self) -> str | None:
        """Return the stage this env draws from now."""
        return self._connected().current_stage()

    def get_curriculum_phase(self) -> str | None:
        """Return the phase this env draws from now."""
        return self._connected().current_phase()

    def get_mixing_ratio(self, stage: str | None = None) -> float:
        """Return the mixing ratio this env draws with now; by default of the current stage."""
        return self._connected().mixing_ratio(stage)

    def get_plan_version(self) -> int:
        """Return the version of the plan this env draws from now."""
        return self._connected().plan_version()

    def get_curriculum_task(self) -> Task | None:
        """Return the task being played, or None before the first reset."""
        return self._task
