"""Track one curriculum over any Gymnasium vector env, in this process or in others.

Wraps the vector env whose envs are each a `CurriculumEnv`; collects after every step. Correct under
all three autoreset modes, because each env draws when it is reset and reports when it ends.
"""

from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeGuard, cast

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorWrapper

from stepladder.arrays import Array
from stepladder.curricula.base import Curriculum
from stepladder.envs.tracking.tracked import EnvAccess, Tracked
from stepladder.envs.tracking.tracker import Tracker, release_processes
from stepladder.envs.types import (
    Action,
    EnvSeed,
    GymVectorEnv,
    ResetOptions,
    ResetResult,
    VectorStep,
)
from stepladder.envs.workers.vector_env import WorkerVectorEnv
from stepladder.errors import AgreementError, ConfigError, NotConnectedError, SnapshotError
from stepladder.saving.saved_array import SavedArray
from stepladder.saving.snapshot import Snapshot
from stepladder.sync import Host

if TYPE_CHECKING:
    from stepladder.games.batch import GameVectorEnv

SteppedEnvs: TypeAlias = "WorkerVectorEnv | GameVectorEnv"
"""What `make_vec` returns without a curriculum: envs with workers, or built-in games."""

TRUE = np.True_.tobytes()


class CurriculumVectorEnv(Tracked, EnvAccess, VectorWrapper):
    """Tracks one curriculum over all envs of a Gymnasium vector env.

    Args:
        env: A vector env of envs that are each wrapped in ``CurriculumEnv(env)``.
        curriculum: The curriculum; only this wrapper draws from it and teaches it.
        backend: How plans and records travel; ``auto`` finds out.
        max_failed_share: Share of draws that may turn out unbuildable before a step raises.
        check_interval_episodes: For stages: episodes between checks, over all envs together.
    """

    def __init__(
        self,
        env: GymVectorEnv,
        curriculum: Curriculum,
        *,
        backend: str = "auto",
        max_failed_share: float = 0.5,
        check_interval_episodes: int | None = None,
    ):
        super().__init__(env)
        if backend == "pushed" and is_batched(env.unwrapped):
            raise ConfigError(
                "backend='pushed' sends plans to single envs, and these are stepped as one batch "
                "in this process. Use 'auto'."
            )
        self.curriculum = curriculum
        self._had_ended = False
        base = env.unwrapped
        self._games = base if base is env and is_batched(base) else None
        """Games without a wrapper in between: they say themselves what has happened."""
        if isinstance(env.unwrapped, WorkerVectorEnv):
            env.unwrapped.on_restart(self._reconnect)
        # Last: whatever comes after it could fail and leave it open.
        self.tracker = Tracker(
            self,
            curriculum,
            env.num_envs,
            backend=backend,
            in_process=runs_here(env.unwrapped),
            reports_deaths=isinstance(env.unwrapped, WorkerVectorEnv),
            max_failed_share=max_failed_share,
            check_interval_episodes=check_interval_episodes,
        )

    def _reconnect(self, env_indices: list[int]) -> None:
        """Give the new envs of a restarted worker their clients."""
        if "tracker" not in self.__dict__:
            # It is just about to connect all of them.
            return
        clients = self.tracker.replace_dead(env_indices)
        cast("SteppedEnvs", self.env.unwrapped).set_attr_on(
            env_indices, "curriculum_client", clients
        )

    def connect(self, host: Host) -> None:
        """Give each env its client, or all of them at once the host itself."""
        base = self.env.unwrapped
        if is_batched(base):
            base.connect_host(host)
            return
        cast("SyncVectorEnv", base).set_attr("curriculum_client", list(host.clients()))
        try:
            versions = self.call_all("get_plan_version")
        except NotConnectedError as error:
            # Gymnasium sets an attribute on whatever is there; only CurriculumEnv connects by it.
            raise AttributeError(str(error)) from error
        if len(set(versions)) != 1:
            raise AgreementError(f"the envs have plan versions {versions}; expected one for all.")

    def call_all(self, method: str, *args: Any) -> list[Any]:
        """Call a method on every env."""
        return list(cast("SyncVectorEnv", self.env.unwrapped).call(method, *args))

    def reporting_rows(self) -> npt.NDArray[Any] | None:
        """Return the envs that may have reported, if they are stepped as a batch."""
        base = self.env.unwrapped
        return base.reporting_rows() if is_batched(base) else None

    def can_save_envs(self) -> bool:
        """Whether these are games stepped as a batch, without a wrapper in between."""
        return self.env is self.env.unwrapped and is_batched(self.env)

    def save_envs(self, *, in_flight: bool) -> Snapshot | None:
        """Return the seeds of envs that are stepped as a batch, and their games as they are."""
        base = self.env.unwrapped
        if not is_batched(base):
            return None
        envs = Snapshot({})
        if in_flight:
            envs = Snapshot.of_parts({"had_ended": self._had_ended}, games=base.save_games())
        return Snapshot(envs.state, {**envs.arrays, "seeds": base.batch.seeds.copy()})

    def read_envs(
        self, saved: Snapshot, *, in_flight: bool, heads: Array | None = None
    ) -> Callable[[], bool]:
        """Check what was saved of a batch; return a function that gives it to these envs."""
        base = self.env.unwrapped
        if not is_batched(base):
            return super().read_envs(saved, in_flight=in_flight, heads=heads)
        seeds = SavedArray("seeds", base.batch.seeds).read(saved.arrays, saved.place)
        give_games_back = base.read_games(saved.part("games"), heads) if in_flight else None
        had_ended = saved.state.get("had_ended", False)
        if not isinstance(had_ended, bool):
            raise SnapshotError(
                f"had_ended of {saved.place} is {had_ended!r}; expected true or false. Use an "
                "older one."
            )

        def give_back() -> bool:
            base.batch.seeds[:] = seeds
            if give_games_back is None:
                return False
            give_games_back()
            self._had_ended = had_ended
            return base.has_begun

        return give_back

    def worker_processes(self) -> list[BaseProcess]:
        """Return the process of each env, or an empty list if that is not known."""
        return list(getattr(self.env.unwrapped, "processes", ()))

    def drop_workers(self) -> None:
        """Close the pipes to workers that have ended."""
        base: Any = self.env.unwrapped
        base.closed = True
        for pipe in getattr(base, "parent_pipes", ()):
            if pipe is not None:
                pipe.close()

    def reset(self, *, seed: EnvSeed = None, options: ResetOptions = None) -> ResetResult:
        """Reset all envs, or those of ``options["reset_mask"]``; each draws a task."""
        vec = cast("WorkerVectorEnv", self.env)
        rows = options.get("reset_mask") if isinstance(options, dict) else None
        return self.tracker.reset(lambda: vec.reset(seed=seed, options=options), rows)

    def step(self, actions: Action) -> VectorStep:
        """Step all envs, then let the curriculum learn from what ended."""
        tracker = self.tracker
        if tracker.begin_step():
            # Any env may have ended in it and will be reset in this one.
            self._had_ended = True
        try:
            result = tracker.guard(lambda: self.env.step(actions))
        except KeyboardInterrupt:
            base = self.env.unwrapped
            # Games go on where they are, and a vector env with workers refuses to step by itself.
            if not (is_batched(base) or isinstance(base, WorkerVectorEnv)):
                tracker.break_off()
            raise
        self._learn(result)
        tracker.end_step()
        return result

    @property
    def batches(self) -> tuple[slice, ...]:
        """Rows of each batch, for `send` and `recv`; for a vector env of `make_vec`."""
        return cast("SteppedEnvs", self.env.unwrapped).batches

    def send(self, actions: Action, batch_index: int = 0) -> None:
        """Have the workers begin to step one batch; for a vector env of `make_vec`."""
        self.tracker.check_ready()
        vec = cast("WorkerVectorEnv", self.env)
        self.tracker.guard(lambda: vec.send(actions, batch_index))

    def recv(self, batch_index: int = 0) -> VectorStep:
        """Wait for a batch that was sent actions, then let the curriculum learn from what ended."""
        vec = cast("WorkerVectorEnv", self.env)
        return self._learn(self.tracker.guard(lambda: vec.recv(batch_index)))

    def _learn(self, result: VectorStep) -> VectorStep:
        games = self._games
        if games is not None:
            num_ended, may_have_reset = games.num_ended, games.has_failures
        else:
            # Bytes are searched and counted in a tenth of the time that NumPy takes for so few.
            num_ended = result[2].tobytes().count(TRUE)
            if TRUE in result[3].tobytes():
                num_ended = (result[2] | result[3]).tobytes().count(TRUE)
            # An env that ended in the last step may have been reset in this one.
            may_have_reset = self._had_ended
            self._had_ended = num_ended > 0
        if num_ended or may_have_reset:
            self.tracker.collect(num_ended, may_have_reset=may_have_reset)
        if self.tracker.reporter is not None:
            self.tracker.reporter.note_step(result[2] | result[3])
        return result

    # Reaching single envs: Gymnasium's wrappers do not pass these on.

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every env, or read an attribute."""
        base = cast("SyncVectorEnv", self.env.unwrapped)
        return tuple(self.tracker.guard(lambda: base.call(name, *args, **kwargs)))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of every env."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every env; a list or tuple has one value per env."""
        base = cast("SyncVectorEnv", self.env.unwrapped)
        self.tracker.guard(lambda: base.set_attr(name, values))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.close()
        except BaseException:
            # Ctrl-C: after the `with` statement there may be no reference left to close.
            self.close()
            raise

    def close(self, **kwargs: Any) -> None:
        """Close the vector env and the channel; leaves no process and no descriptor behind."""
        self.tracker.close(lambda: self.env.close(**kwargs))
        release_processes(self.worker_processes())
        base = self.env.unwrapped
        if isinstance(base, AsyncVectorEnv):
            # Its two ends of a pipe stay open as long as there is a reference to it.
            vars(base)["error_queue"] = None


def is_batched(env: GymVectorEnv) -> "TypeGuard[GameVectorEnv]":
    """Whether these are built-in games, which one object steps and connects to a host."""
    return getattr(env, "is_batched", False)


def envs_stepped_by(vec: GymVectorEnv) -> "SteppedEnvs | None":
    """Return the vector env that steps inside what `make_vec` has returned; None for others."""
    base = vec.env if isinstance(vec, CurriculumVectorEnv) else vec
    return base if isinstance(base, WorkerVectorEnv) or is_batched(base) else None


def runs_here(env: GymVectorEnv) -> bool:
    """Whether all envs are in this process."""
    if isinstance(env, WorkerVectorEnv):
        return not env.num_workers
    return isinstance(env, SyncVectorEnv) or is_batched(env)
