"""The curriculum's side of the channel: collect records, let the curriculum learn, publish.

The vector wrappers in `envs` own one and call `collect` after every vector step. The backends
(`local`, `shared`, `pushed`) say where the mailboxes lie and how they are emptied; what happens
to the records is the same for all, so that a run does the same whatever carries it.
"""

import logging
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self, cast

import numpy as np

from stepladder.curricula import kernels
from stepladder.curricula.base import Curriculum
from stepladder.curricula.config import require_share
from stepladder.curricula.foreign import REFUSAL, ForeignCurriculum
from stepladder.curricula.kernels import Words
from stepladder.curricula.record import RECORD_DTYPE, UNBUILDABLE, RecordArray
from stepladder.curricula.snapshot import Snapshot, matching, require_snapshot
from stepladder.errors import (
    BuildError,
    ChannelError,
    ConfigError,
    SnapshotError,
    WrongProcessError,
)
from stepladder.sync import mailbox
from stepladder.sync.client import Client
from stepladder.sync.counts import EpisodeCounts, Staleness
from stepladder.sync.process import is_alive

logger = logging.getLogger("stepladder.sync")

MAX_LAG = 8
"""Lags are counted one by one up to this, then together."""

MIN_DRAWS_TO_JUDGE = 20
"""No share of failed builds is judged before so many draws."""


class Host(ABC):
    """Owns the channel between one curriculum and the clients of `num_envs` envs.

    Args:
        curriculum: The curriculum. It must belong to this process.
        num_envs: Number of envs, each with a client of its own.
        max_failed_share: Share of draws that may turn out unbuildable before `collect` raises.
    """

    def __init__(self, curriculum: Curriculum, num_envs: int, *, max_failed_share: float = 0.5):
        if not isinstance(cast("object", curriculum), Curriculum | ForeignCurriculum):
            raise ConfigError(
                f"expected a curriculum; got {curriculum!r}. Make one of your tasks first, such as "
                "Uniform(tasks)."
            )
        if isinstance(num_envs, bool) or int(num_envs) != num_envs or num_envs < 1:
            raise ConfigError(
                f"num_envs must be a whole number of at least 1; got {num_envs!r}. Make at least "
                "one env."
            )
        require_share("max_failed_share", max_failed_share)
        self.curriculum = curriculum
        self.num_envs = int(num_envs)
        self.max_failed_share = max_failed_share
        self.is_closed = self._has_let_go = False
        try:
            curriculum.claim(self)
            self._set_up()
        except BaseException:
            self._undo_set_up()
            raise

    def _undo_set_up(self) -> None:
        """Give back what a constructor that fails has taken."""
        self.curriculum.release(self)

    def _set_up(self) -> None:
        num_envs = self.num_envs
        self._num_dials = self.curriculum.plan.num_dials
        self._ring = mailbox.M_DIALS + self._num_dials
        self._num_failed = 0
        self._num_finished = 0
        self._last_reason = ""
        self._is_judged = False
        self._last_tick: Words = np.zeros(num_envs, dtype=np.int64)
        self._all_rows: Words = np.arange(num_envs)
        self._lags: Words = np.zeros(MAX_LAG + 1, dtype=np.int64)
        self._drained: Words = np.zeros(
            (num_envs * mailbox.CAPACITY, mailbox.RECORD_WORDS), dtype=np.int64
        )
        self._records: RecordArray = self._drained.reshape(-1).view(RECORD_DTYPE)
        self.mails = self._make_mails(mailbox.mailbox_words(self._num_dials))
        self.mails[:, mailbox.M_NEXT_EPISODE] = self.curriculum.next_episode

    @abstractmethod
    def _make_mails(self, num_words: int) -> Words:
        """Return zeroed mailboxes of shape ``(num_envs, num_words)``."""

    @abstractmethod
    def client(self, env_index: int) -> Client:
        """Return the client of one env; send it to the process that runs the env."""

    def clients(self) -> list[Client]:
        """Return one client per env, in env order."""
        return [self.client(env_index) for env_index in range(self.num_envs)]

    def _check_env_index(self, env_index: int) -> None:
        if not 0 <= env_index < self.num_envs:
            raise ConfigError(
                f"env {env_index} does not exist; this channel has envs 0 to {self.num_envs - 1}."
            )

    def _gather(self, ended: bool, rows: Words | None) -> tuple[int, int]:
        """Fill the drained words; return how many records, and how many of them unbuildable."""
        rows = self._all_rows if rows is None else rows
        return mailbox.drain(self.mails, self._ring, self._drained, rows)

    def _spread(self) -> None:  # noqa: B027, most backends have nothing to bring
        """Bring the plan to the clients, where they do not see it anyway."""

    def collect(self, ended: bool = True, rows: Words | None = None) -> RecordArray:
        """Observe everything that has been reported, in env order, and publish the next plan.

        Args:
            ended: Whether an episode may have ended since the last call. A backend that has to
                ask every env spares itself the trip when it is False.
            rows: Envs that may have reported, rising; by default all. What others have left is
                found when they report again, or when all are collected.

        Returns:
            The records observed; valid until the next call.

        Raises:
            BuildError: Too many tasks could not be built. All records have been observed.
        """
        if self.is_closed or self.curriculum.is_foreign:
            raise self._unusable()
        count, unbuildable = self._gather(ended, rows)
        records = self._records[:count]
        failures: list[tuple[int, int, int, str]] = []
        if count:
            block = self.curriculum.plan.block
            tick = int(block[kernels.H_TICK]) + 1
            mailbox.measure_staleness(self._drained, count, tick, self._last_tick, self._lags)
            if unbuildable:
                failures = self._failures(records)
                records = records[records["outcome"] != UNBUILDABLE]
            self.curriculum.observe(records)
            self._num_finished += len(records)
            block[kernels.H_TICK] = tick
        try:
            if failures:
                self._quarantine_all(failures)
        finally:
            self._spread()
        if failures:
            self._last_reason, self._is_judged = failures[-1][3], False
        if self._num_failed and not self._is_judged:
            self._judge_failures()
        return records

    def _unusable(self) -> ChannelError:
        if self.curriculum.is_foreign:
            return WrongProcessError(REFUSAL)
        return ChannelError("this channel is closed. Make a new one for the curriculum.")

    def _failures(self, records: RecordArray) -> list[tuple[int, int, int, str]]:
        """Pair each unbuildable record with its client's message; then empty those mailboxes."""
        failures: list[tuple[int, int, int, str]] = []
        failed = records["outcome"] == UNBUILDABLE
        for env_index in np.unique(records["env_index"][failed]).tolist():
            number = int(self.mails[env_index, mailbox.M_TAKEN])
            for record in records[records["env_index"] == env_index]:
                if record["outcome"] == UNBUILDABLE:
                    text = self._message(env_index, number % mailbox.CAPACITY)
                    failures.append(
                        (env_index, int(record["slot"]), int(record["generation"]), text)
                    )
                number += 1
            self.mails[env_index, mailbox.M_TAKEN] = number
        return failures

    def _message(self, env_index: int, position: int) -> str:
        start = self._ring + mailbox.CAPACITY * mailbox.RECORD_WORDS
        start += position * mailbox.MESSAGE_WORDS
        words = self.mails[env_index, start : start + mailbox.MESSAGE_WORDS]
        # A message that was cut may end in the middle of a character.
        return words.tobytes().rstrip(b"\0").decode(errors="ignore")

    def _quarantine_all(self, failures: list[tuple[int, int, int, str]]) -> None:
        self._num_failed += len(failures)
        fatal: BuildError | None = None
        for env_index, slot, generation, reason in failures:
            try:
                self._quarantine(env_index, slot, generation, reason)
            except BuildError as error:
                # The other tasks cannot be built either, and nobody will report them again.
                fatal = fatal or error
        if fatal is not None:
            raise fatal

    def _quarantine(self, env_index: int, slot: int, generation: int, reason: str) -> None:
        pool = self.curriculum.pool
        # Not the task itself: it may be the source that cannot make it.
        name = pool.source.name(int(pool.task_ids[slot]))
        if self.curriculum.quarantine(slot, generation, reason):
            logger.warning(
                "Env %d could not build task %r (%s); it is quarantined.", env_index, name, reason
            )

    def _judge_failures(self) -> None:
        """Raise if too large a share of all draws could not be built.

        Judged from `MIN_DRAWS_TO_JUDGE` draws on: once then, and again with each later failure.
        """
        played = self._num_finished + self._num_failed
        if played < MIN_DRAWS_TO_JUDGE:
            return
        self._is_judged = True
        if self._num_failed > self.max_failed_share * played:
            raise BuildError(
                f"{self._num_failed} of {played} draws could not be built, more than the allowed "
                f"share of {self.max_failed_share} (last reason: {self._last_reason}). Mend the "
                "tasks or the env; see `curriculum.quarantined`."
            )

    # What has happened so far.

    @property
    def counts(self) -> EpisodeCounts:
        """What became of every draw so far."""
        # Aborted first: a client that starts anew meanwhile must not count as aborted only.
        aborted = int(self.mails[:, mailbox.M_ABORTED].sum())
        started = int(self.mails[:, mailbox.M_STARTED].sum())
        gone = self._num_finished + aborted + self._num_failed
        return EpisodeCounts(started, self._num_finished, aborted, self._num_failed, started - gone)

    @property
    def staleness(self) -> Staleness:
        """How far the plans of all draws lagged behind."""
        total = int(self._lags.sum())
        used = np.flatnonzero(self._lags)
        return Staleness(
            float((self._lags * np.arange(len(self._lags))).sum() / total) if total else 0.0,
            int(used[-1]) if len(used) else 0,
            tuple(self._lags.tolist()),
        )

    def episodes_of(self, env_index: int) -> int:
        """Return how many episodes an env has reported, those it could not build included."""
        self._check_env_index(env_index)
        return int(self.mails[env_index, mailbox.M_POSTED])

    def find_dead(self) -> list[int]:
        """Return the envs whose process has died."""
        pids = self.mails[:, mailbox.M_PID].tolist()
        alive = {pid: is_alive(pid) for pid in set(pids) if pid}
        return [env_index for env_index, pid in enumerate(pids) if pid and not alive[pid]]

    def bury(self, env_indices: list[int]) -> int:
        """Count the running episodes of dead envs as aborted; return how many there were.

        Collect first: what the dead have finished is still in their mailboxes.
        """
        buried = 0
        for env_index in env_indices:
            self._check_env_index(env_index)
            mail = self.mails[env_index]
            if mailbox.in_flight(mail):
                mail[mailbox.M_ABORTED] += 1
                buried += 1
            mail[mailbox.M_PID] = 0
        return buried

    # Saving and resuming.

    def snapshot(self) -> Snapshot:
        """Return everything needed to continue exactly here, episodes in flight included.

        An episode in flight is saved as its draw: after `restore` the env plays the same task
        with the same seed from its beginning, unless the envs have been saved as well.
        """
        self.collect()
        heads = mailbox.without_empty_rings(mailbox.copy_steady(self.mails), self._ring)
        heads[:, mailbox.M_PID] = 0
        return Snapshot.of_parts(
            {"num_failed": self._num_failed, "num_finished": self._num_finished},
            curriculum=self.curriculum.snapshot(),
            channel=Snapshot(
                {"num_envs": self.num_envs},
                {"heads": heads, "last_tick": self._last_tick.copy(), "lags": self._lags.copy()},
            ),
        )

    def restore(self, snapshot: Snapshot, *, in_flight: bool = False) -> None:
        """Continue exactly where `snapshot` was made. Reset the envs afterwards.

        Args:
            snapshot: What `snapshot` returned.
            in_flight: Whether the envs themselves go on in the middle of their episodes; then they
                need no reset, and their next one draws anew.

        Raises:
            SnapshotError: The snapshot does not fit. Then nothing has changed.
        """
        channel = self.check_fits(snapshot)
        heads = self._checked_heads(channel)
        last_tick = matching(channel.arrays, "last_tick", self._last_tick)
        lags = matching(channel.arrays, "lags", self._lags)
        num_failed, num_finished = (
            _count(snapshot, name) for name in ("num_failed", "num_finished")
        )
        self.curriculum.restore(snapshot.part("curriculum"))
        self._num_failed, self._num_finished = num_failed, num_finished
        self._last_tick[:], self._lags[:] = last_tick, lags
        pids = self.mails[:, mailbox.M_PID].copy()
        self.mails[:, : heads.shape[1]] = heads
        self.mails[:, mailbox.M_PID] = pids
        if not in_flight:
            for mail in self.mails:
                mail[mailbox.M_REPLAY] = mailbox.in_flight(mail)
        self._spread_restored()

    def check_fits(self, snapshot: Snapshot) -> Snapshot:
        """Raise unless a snapshot is one of a channel with as many envs; return that part of it."""
        if self.is_closed:
            raise self._unusable()
        require_snapshot(snapshot)
        if "channel" not in snapshot.state:
            raise SnapshotError(
                "this snapshot was made by a curriculum alone, without its envs. Restore it with "
                "curriculum.restore(snapshot), before envs are connected."
            )
        channel = snapshot.part("channel")
        saved = channel.state.get("num_envs")
        if saved != self.num_envs:
            raise SnapshotError(
                f"the snapshot was made with {saved} envs and this channel has {self.num_envs}. "
                "Use the same number; draws belong to an env."
            )
        return channel

    def _checked_heads(self, channel: Snapshot) -> Words:
        """Return the saved mailboxes, with or without their rings, if they can have been ours."""
        saved = channel.arrays.get("heads")
        is_whole = saved is not None and saved.shape == self.mails.shape
        heads = matching(
            channel.arrays, "heads", self.mails if is_whole else self.mails[:, : self._ring]
        )
        if not mailbox.are_possible(heads, is_whole, self.curriculum.pool.num_slots):
            raise SnapshotError("the mailboxes in the snapshot are damaged. Use an older one.")
        return heads

    def _spread_restored(self) -> None:
        """Bring the restored mailboxes to clients that cannot see them."""
        self._spread()

    # The end.

    def close(self) -> None:
        """Collect what is left and let go of the curriculum, which can then be used elsewhere."""
        if self._has_let_go or self.curriculum.is_foreign:
            return
        # Before the last collection: an episode that ends later is refused, not lost.
        self.mails[:, mailbox.M_CLOSED] = 1
        try:
            if not self.is_closed:
                self.collect()
        finally:
            self.is_closed = True
            # Whoever carries the curriculum next must not draw the same numbers again.
            self.curriculum.next_episode = int(self.mails[:, mailbox.M_NEXT_EPISODE].max())
            self.curriculum.release(self)
            self._free()
            self._has_let_go = True

    def _free(self) -> None:  # noqa: B027, most backends hold nothing
        """Give back what the backend holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _count(snapshot: Snapshot, name: str) -> int:
    value = snapshot.state.get(name)
    if not isinstance(value, int) or value < 0:
        raise SnapshotError(
            f"{name} of the snapshot is {value!r}; expected a count. Use an older snapshot."
        )
    return value
