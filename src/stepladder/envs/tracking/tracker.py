"""Track all episodes of a vector env: connect every env, collect after every step, lose nothing.

Used by `vector` (Gymnasium) and `sb3` (Stable-Baselines3), which differ only in how they call an
env (`EnvAccess`). Owns the host. What the curriculum did is logged by `curriculum_log`.
"""

import logging
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from stepladder.arrays import Array
from stepladder.curricula.base import Curriculum
from stepladder.envs.tracking.check_interval import apply_check_interval
from stepladder.envs.tracking.curriculum_log import CurriculumLog
from stepladder.envs.tracking.tracked import EnvAccess
from stepladder.errors import (
    BuildError,
    ChannelError,
    DeliveryError,
    WorkerDiedError,
)
from stepladder.plans.record import RECORD_DTYPE, RecordArray
from stepladder.saving.snapshot import Snapshot
from stepladder.sync import Client
from stepladder.sync.pushed import require_agreement
from stepladder.sync.registry import host_class

if TYPE_CHECKING:
    from stepladder.envs.tracking.score_reporter import ScoreReporter

logger = logging.getLogger("stepladder.envs")

T = TypeVar("T")

_NO_RECORDS: RecordArray = np.zeros(0, dtype=RECORD_DTYPE)

BROKEN_PIPES = (EOFError, ConnectionError)
"""What a vector env raises when one of its workers has died."""

RESTORED = "a snapshot was restored, and the envs still play what they played before"
BROKEN_OFF = "the last step was interrupted: some envs have stepped, and others have not"
"""Why the envs must be reset before the next step."""

REAP_S = 1.0
"""How long a worker whose pipe has broken may take to be gone."""


class Tracker:
    """Tracks all episodes of a vector env for one curriculum.

    Args:
        envs: The vector wrapper, through which envs are called.
        curriculum: The curriculum.
        num_envs: How many envs there are.
        backend: How plans and records travel: a name of `sync.BACKENDS`, or ``auto``.
        in_process: Whether all envs are in this process.
        reports_deaths: Whether the vector env says itself when a worker has died; otherwise a
            broken pipe is taken for it.
        max_failed_share: Share of draws that may turn out unbuildable before a step raises.
        check_interval_episodes: For stages: episodes between checks.
    """

    def __init__(
        self,
        envs: EnvAccess,
        curriculum: Curriculum,
        num_envs: int,
        *,
        backend: str,
        in_process: bool,
        reports_deaths: bool = False,
        max_failed_share: float,
        check_interval_episodes: int | None,
    ):
        self.curriculum = curriculum
        self.num_envs = num_envs
        # The wrapper owns the tracker: a second reference would keep both until garbage collection.
        self._envs: EnvAccess = weakref.proxy(envs)
        self._in_process = in_process
        self._reports_deaths = reports_deaths
        self._has_dead = False
        self._num_explained = 0
        self._has_warned = False
        self._must_reset = ""
        self._is_in_step = False
        self.reporter: ScoreReporter | None = None
        """Called with every step if a trainer gives scores of episodes; it attaches itself."""
        try:
            make_host = host_class(backend, in_process)
            self.host = make_host(curriculum, num_envs, max_failed_share=max_failed_share)
            # After the host, which refuses what is not a curriculum.
            self._log = CurriculumLog(curriculum, num_envs)
            self.host.on_collected(self._log.count)
            apply_check_interval(curriculum, check_interval_episodes)
            self._connect()
            self._log.catch_up()
        except BaseException:
            if "host" in self.__dict__:
                self._close_host()
            raise

    def _connect(self) -> None:
        try:
            self._envs.connect(self.host)
        except AttributeError as error:
            raise DeliveryError(
                f"an env of the vector env cannot be connected ({error}). Wrap each env in "
                "CurriculumEnv(env, enable_local_tracking=False) before making the vector env."
            ) from error
        except BROKEN_PIPES as error:
            raise WorkerDiedError(
                "a worker died while its env was being connected; what it died of is on its error "
                "output. An env that tracks by itself cannot be connected: pass "
                "enable_local_tracking=False to CurriculumEnv."
            ) from error
        self.host.use_calls(partial(self._call_all, "curriculum_call"))

    def _call_all(self, method: str, *args: Any) -> list[Any]:
        return self._watch(lambda: self._envs.call_all(method, *args))

    # Every step.

    def reset(self, call: Callable[[], T], rows: Array | None = None) -> T:
        """Reset the vector env by a call; from here on the envs play what was drawn for them.

        `rows` says which envs the call resets; None is all.
        """
        if self._is_in_step:
            self._catch_up()
        result = self.guard(call)
        self._must_reset = ""
        self.collect(may_have_reset=True)
        if self.reporter is not None:
            self.reporter.note_reset(rows)
        return result

    def collect(self, num_ended: int = 0, *, may_have_reset: bool = False) -> RecordArray:
        """Let the curriculum learn from what has ended, and log it.

        Args:
            num_ended: Episodes that the vector env said have ended since the last call.
            may_have_reset: Whether an env may have been reset since then without one ending; it
                may have tasks to report that it could not build.
        """
        if not (num_ended or may_have_reset):
            return _NO_RECORDS
        records = self.host.collect(rows=self._envs.reporting_rows())
        if len(records) < num_ended:
            self._warn_of_unreported(num_ended - len(records))
        # Of a batch that the training loop has not received yet; it will see them end then.
        elif len(records) > num_ended:
            self._num_explained += len(records) - num_ended
        return records

    def _warn_of_unreported(self, num_unreported: int) -> None:
        """Warn, once, of endings without a record, unless it came earlier or a worker died."""
        explained = min(num_unreported, self._num_explained)
        self._num_explained -= explained
        if num_unreported > explained and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "[VecEnv] %d episodes ended that CurriculumEnv did not see end, so they count as "
                "aborted and teach nothing. A wrapper around CurriculumEnv (a time limit?) cuts "
                "them off: put it inside CurriculumEnv instead.",
                num_unreported - explained,
            )

    def begin_step(self) -> bool:
        """Get ready for a step of all envs; return whether the one before did not come to its end.

        An interrupt (Ctrl-C) has broken it off then, or an error. What had ended in it has been
        observed when this returns.

        Raises:
            ChannelError: The envs must be reset first.
        """
        self.check_ready()
        was_in_step = self._is_in_step
        if was_in_step:
            self._catch_up()
        self._is_in_step = True
        return was_in_step

    def break_off(self) -> None:
        """Note that an interrupt came in the middle of the vector env's own step."""
        self._must_reset = BROKEN_OFF

    def end_step(self) -> None:
        """Note that a step of all envs has come to its end, and what ended in it was observed."""
        self._is_in_step = False

    def _catch_up(self) -> None:
        """Observe what a step left in the mailboxes that did not come to its end."""
        self.host.collect()
        self._is_in_step = False

    def check_ready(self) -> None:
        """Raise unless the envs play what the curriculum thinks they play."""
        if self._must_reset:
            raise ChannelError(f"{self._must_reset}. Reset the vector env first.")

    def guard(self, call: Callable[[], T]) -> T:
        """Make a call into the vector env; if a worker has died, lose nothing and say so.

        Raises:
            WorkerDiedError: A worker has died. What it had finished has been observed, what it was
                playing is counted as aborted.
        """
        if self.host.is_unfinished:
            self.host.complete()
        return self._watch(call)

    def _watch(self, call: Callable[[], T]) -> T:
        """Do what `guard` says, also in the middle of a collection."""
        if self._has_dead:
            raise WorkerDiedError(
                "a worker of this vector env has died. Close it, make a new one, and restore a "
                "snapshot to continue."
            )
        try:
            return call()
        except WorkerDiedError as error:
            if error.was_restarted:
                raise
            raise self._handle_dead_worker() from error
        except BROKEN_PIPES as error:
            if self._in_process or self._reports_deaths:
                # No worker has died: the env itself lost a connection of its own.
                raise
            raise self._handle_dead_worker() from error
        except BuildError:
            # The env has given up; the host has not heard of the tasks yet.
            if self.host.collects_without_envs:
                self.collect(may_have_reset=True)
            raise

    def replace_dead(self, env_indices: list[int]) -> list[Client]:
        """Return new clients for the envs of a worker that has died.

        Episodes that it had finished are observed here; those in flight are counted as aborted.
        """
        self.collect(may_have_reset=True)
        # The training loop will see these end, but no record reports them.
        self._num_explained += self.host.discard_dead(env_indices)
        return [self.host.client(env_index) for env_index in env_indices]

    def _handle_dead_worker(self) -> WorkerDiedError:
        """Count what the worker was playing as aborted; return the error to raise."""
        self._has_dead = True
        dead = self._await_dead()
        try:
            if self.host.collects_without_envs:
                self.collect(may_have_reset=True)
        finally:
            aborted = self.host.discard_dead(dead)
            logger.error("[VecEnv] Worker of env %s died; %d episodes aborted", dead, aborted)
        finished = (
            "All finished episodes were observed;"
            if self.host.collects_without_envs
            else "Episodes finished in the same step are lost, for they had not been pulled yet;"
        )
        return WorkerDiedError(
            f"the worker of env {', '.join(map(str, dead)) or '(unknown)'} died. {finished} "
            f"{aborted} unfinished ones are counted as aborted. If it raised an error, its error "
            "output shows it; fix that first. Then close this vector env, make a new one, and "
            "restore a snapshot to continue."
        )

    def _await_dead(self) -> list[int]:
        """Return the envs whose worker is gone; a pipe breaks a moment before its process ends."""
        deadline = time.monotonic() + REAP_S
        while not (dead := self._dead_envs()) and time.monotonic() < deadline:
            time.sleep(0.005)
        return dead

    def _dead_envs(self) -> list[int]:
        processes = self._envs.worker_processes()
        if len(processes) == self.num_envs:
            return [index for index, process in enumerate(processes) if not process.is_alive()]
        return self.host.find_dead()

    def close(self, close_envs: Callable[[], object]) -> None:
        """Close envs and channel; ends also when a worker has died."""
        if self.host.is_closed:
            close_envs()
            self._close_host()
            return
        try:
            if not (self._has_dead or self._in_process) and self._dead_envs():
                self._handle_dead_worker()
            if not self._has_dead:
                try:
                    self.guard(close_envs)
                except WorkerDiedError:
                    # It has been counted and logged; what is left to do is done below.
                    self._has_dead = True
            if self._has_dead:
                self._end_workers(close_envs)
        finally:
            self._close_host()

    def _end_workers(self, close_envs: Callable[[], object]) -> None:
        """End the workers that are left: the conversation with them is broken off."""
        processes = self._envs.worker_processes()
        for process in processes:
            process.kill()
            process.join(timeout=5.0)
        self.host.discard_dead(list(range(self.num_envs)))
        if processes:
            self._envs.drop_workers()
        else:
            close_envs()

    def _close_host(self) -> None:
        self.host.use_calls(None)
        self.host.close()

    # Agreement.

    def check_agreement(self) -> int:
        """Ask every env for the version of its plan; return it if all agree with the host.

        Raises:
            AgreementError: An env has another version.
        """
        version = self.curriculum.plan.version
        require_agreement(version, self._call_all("get_plan_version"))
        return version

    # Saving and resuming.

    @property
    def continues_in_flight(self) -> bool:
        """Whether the envs can go on in the middle of their episodes after a restore."""
        return self._envs.can_save_envs()

    def snapshot(self, *, in_flight: bool = False) -> Snapshot:
        """Return everything needed to continue exactly here."""
        snapshot = self.host.snapshot()
        envs = self._envs.save_envs(in_flight=in_flight and self.continues_in_flight)
        parts = {} if envs is None else {"envs": envs}
        if self.reporter is not None:
            parts["scores"] = self.reporter.snapshot()
        if not parts:
            return snapshot
        own = Snapshot.of_parts(snapshot.state, **parts)
        return Snapshot(own.state, {**snapshot.arrays, **own.arrays})

    def restore(self, snapshot: Snapshot, *, in_flight: bool = False) -> bool:
        """Continue exactly where a snapshot was made.

        Returns:
            Whether the envs go on where they were; otherwise reset the vector env.
        """
        channel = self.host.check_fits(snapshot)
        goes_on, give_back = False, None
        if "envs" in snapshot.state:
            envs = snapshot.part("envs")
            goes_on = in_flight and self.continues_in_flight and "games" in envs.state
            self.host.checked_mails(channel)
            heads = channel.arrays["heads"]
            give_back = self._envs.read_envs(envs, in_flight=goes_on, heads=heads)
        give_scores_back = self._read_scores(snapshot, goes_on)
        self.host.restore(snapshot, in_flight=goes_on)
        give_scores_back()
        self._must_reset = RESTORED
        # Made again, so that no env remembers failures that the snapshot does not know of.
        self._connect()
        if give_back is not None and give_back():
            self._must_reset = ""
        self._log.catch_up(self.host.counts.finished)
        return not self._must_reset

    def _read_scores(self, snapshot: Snapshot, goes_on: bool) -> Callable[[], object]:
        """Check what a reporter of scores has saved; return a function that gives it back."""
        if self.reporter is None:
            return lambda: None
        if "scores" not in snapshot.state and not goes_on:
            return self.reporter.start_anew
        return self.reporter.read(snapshot.part("scores"), in_flight=goes_on)


def release_processes(processes: Sequence[BaseProcess]) -> None:
    """Close the descriptors of processes that have ended; one can still ask how they have."""
    for process in processes:
        # Not the process itself: that would refuse to say anything from then on.
        popen: Any = getattr(process, "_popen", None)
        if popen is not None and popen.poll() is not None:
            popen.close()
