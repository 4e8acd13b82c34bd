"""What both vector wrappers do: connect every env, collect after every step, say what happened.

Used by `vector` (Gymnasium) and `sb3` (Stable-Baselines3), which differ only in how one reaches an
env. Owns the host. Log lines begin with ``[VecEnv]``; each advancement is logged with its reason.
"""

import logging
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from typing import Any, Literal, Protocol, TypeAlias

from stepladder.curricula.base import Curriculum
from stepladder.curricula.record import Record, RecordArray
from stepladder.curricula.snapshot import Snapshot
from stepladder.curricula.staged import Staged
from stepladder.envs.curriculum_env import set_check_interval
from stepladder.errors import ConfigError, DeliveryError, WorkerDiedError
from stepladder.sync import Host, LocalHost, PushedHost, SharedHost
from stepladder.sync.client import Client
from stepladder.sync.pushed import require_agreement

logger = logging.getLogger("stepladder.envs")

Backend: TypeAlias = Literal["auto", "local", "shared", "pushed"]
"""How plans and records travel; ``auto`` takes local memory if all envs are in this process."""

BROKEN_PIPES = (EOFError, ConnectionError)
"""What a vector env raises when one of its workers has died."""


class Reach(Protocol):
    """How a vector wrapper reaches its envs."""

    def connect_clients(self, clients: Sequence[Client]) -> None:
        """Give each env its client."""
        ...

    def call_all(self, method: str, *args: Any) -> list[Any]:
        """Call a method on every env."""
        ...

    def worker_processes(self) -> list[BaseProcess]:
        """Return the process of each env, or nothing if that is not known."""
        ...


class Tracker:
    """Tracks all episodes of a vector env for one curriculum."""

    def __init__(
        self,
        reach: Reach,
        curriculum: Curriculum,
        num_envs: int,
        *,
        backend: Backend,
        in_process: bool,
        max_failed_share: float,
        check_advancement_freq: int | None,
    ):
        set_check_interval(curriculum, check_advancement_freq)
        self.curriculum = curriculum
        self.num_envs = num_envs
        self._reach = reach
        self._num_changes = len(history_of(curriculum))
        self._checked = 0
        self._has_dead = False
        self.host = self._make_host(backend, in_process, max_failed_share)
        try:
            reach.connect_clients(self.host.clients())
        except AttributeError as error:
            self.host.close()
            raise DeliveryError(
                f"an env of the vector env cannot be connected ({error}). Wrap each env in "
                "CurriculumEnv(env, enable_local_tracking=False) before making the vector env."
            ) from error
        if isinstance(self.host, PushedHost):
            self.host.call = reach.call_all
            self.host.push()
        self._log_sync()

    def _make_host(self, backend: Backend, in_process: bool, max_failed_share: float) -> Host:
        makers: dict[str, Callable[..., Host]] = {
            "local": LocalHost,
            "shared": SharedHost,
            "pushed": PushedHost,
        }
        chosen = ("local" if in_process else "shared") if backend == "auto" else backend
        if chosen not in makers:
            raise ConfigError(
                f"backend must be 'auto', 'local', 'shared' or 'pushed'; got {backend!r}."
            )
        if chosen == "local" and not in_process:
            raise ConfigError(
                "backend='local' needs all envs in this process; these run in others. "
                "Use 'auto' or 'shared'."
            )
        return makers[chosen](self.curriculum, self.num_envs, max_failed_share=max_failed_share)

    # Every step.

    def collect(self, ended: bool = True) -> RecordArray:
        """Let the curriculum learn from what has ended, and log it."""
        before = self.curriculum.num_observed
        records = self.host.collect(ended)
        if len(records):
            self._log(records, before)
        return records

    def guard(self, call: Callable[[], Any]) -> Any:
        """Make a call into the vector env; if a worker has died, lose nothing and say so.

        Raises:
            WorkerDiedError: A worker has died. What it had finished has been observed, what it was
                playing is counted as aborted.
        """
        try:
            return call()
        except BROKEN_PIPES as error:
            raise self._mourn() from error

    def _mourn(self) -> WorkerDiedError:
        self._has_dead = True
        if not isinstance(self.host, PushedHost):
            self.collect()
        dead = self._dead_envs()
        aborted = self.host.bury(dead)
        logger.error("[VecEnv] Worker of env %s died; %d episodes aborted", dead, aborted)
        return WorkerDiedError(
            f"the worker of env {', '.join(map(str, dead)) or '(unknown)'} died. All finished "
            f"episodes were observed; {aborted} unfinished ones are counted as aborted. Close this "
            "vector env, make a new one, and restore a snapshot to continue."
        )

    def _dead_envs(self) -> list[int]:
        processes = self._reach.worker_processes()
        if len(processes) == self.num_envs:
            for process in processes:
                process.join(timeout=0.0)
            return [index for index, process in enumerate(processes) if not process.is_alive()]
        return self.host.find_dead()

    def close(self, close_envs: Callable[[], Any]) -> None:
        """Close envs and channel; ends also when a worker has died."""
        try:
            if self._has_dead:
                for process in self._reach.worker_processes():
                    process.kill()
                    process.join(timeout=5.0)
            else:
                close_envs()
        finally:
            if isinstance(self.host, PushedHost):
                self.host.call = None
            self.host.close()

    # Agreement.

    def check_agreement(self) -> int:
        """Ask every env for the version of its plan; return it if all agree with the host.

        Raises:
            AgreementError: An env has another version.
        """
        version = self.curriculum.plan.version
        require_agreement(version, self._reach.call_all("get_plan_version"))
        return version

    # Saving and resuming.

    def snapshot(self) -> Snapshot:
        """Return everything needed to continue exactly here."""
        return self.host.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Continue exactly where a snapshot was made; reset the vector env afterwards."""
        self.host.restore(snapshot)
        self._num_changes = len(history_of(self.curriculum))
        self._log_sync()

    # Saying what happened.

    def _log(self, records: RecordArray, before: int) -> None:
        if logger.isEnabledFor(logging.DEBUG):
            self._log_episodes(records, before)
        if isinstance(self.curriculum, Staged) and logger.isEnabledFor(logging.INFO):
            self._log_check(self.curriculum)
        changes = history_of(self.curriculum)
        for change in changes[self._num_changes :]:
            logger.info("[VecEnv] Curriculum moved: %s", change)
        if len(changes) > self._num_changes:
            self._num_changes = len(changes)
            self._log_sync()

    def _log_episodes(self, records: RecordArray, before: int) -> None:
        pool, legend = self.curriculum.pool, self.curriculum.legend()
        for number, row in enumerate(records.tolist(), start=1):
            record = Record(*row)
            label = pool.label_names[int(pool.label_indices[record.slot])]
            logger.debug(
                "[VecEnv] Env %d completed episode %d: stage=%s, success=%s, total_episodes=%d",
                record.env_index,
                record.episode_index + 1,
                legend.stage_of(label, self.curriculum.plan.dials),
                bool(record.success >= 0.5),
                before + number,
            )

    def _log_check(self, curriculum: Staged) -> None:
        checks = curriculum.num_observed // curriculum.config.check_interval_episodes
        if checks > self._checked:
            self._checked = checks
            report = curriculum.stage_report()
            logger.info(
                "[VecEnv] Advancement check at %d episodes: stage=%s, success_rate=%.2f%%, "
                "episodes=%d, can_advance=%s",
                curriculum.num_observed,
                report.stage,
                100 * report.success_rate,
                report.episodes,
                report.can_advance,
            )

    def _log_sync(self) -> None:
        if isinstance(self.curriculum, Staged):
            logger.info(
                "[VecEnv] Synced stage %r (mixing: %.1f%%) to all %d environments",
                self.curriculum.current_stage,
                100 * self.curriculum.mixing_ratio(),
                self.num_envs,
            )


def history_of(curriculum: Curriculum) -> list[Any]:
    """Return the changes of stage or phase that a curriculum has made."""
    return getattr(curriculum, "history", [])
