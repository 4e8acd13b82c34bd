"""The curriculum's side of the channel: collect records, let the curriculum learn, publish.

The vector wrappers in `envs` own one and call `collect` after every vector step; how a collection
goes is in `collector`. The backends (`local`, `shared`, `pushed`) say where the mailboxes lie and
how they are emptied; what happens to the records is the same for all, so the backend does not
change the course of a run.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from stepladder.closing import Closing
from stepladder.configs.checks import require_share
from stepladder.curricula.base import Curriculum
from stepladder.curricula.foreign import ForeignCurriculum
from stepladder.errors import ConfigError, SnapshotError, TaskError
from stepladder.saving.saved_array import MAX_COUNT, Part, SavedArray, copy_arrays, restore_arrays
from stepladder.saving.saved_fields import read_count
from stepladder.saving.snapshot import Snapshot, require_snapshot
from stepladder.sync import mailbox
from stepladder.sync.client import Client
from stepladder.sync.collector import Collector
from stepladder.sync.counts import EpisodeCounts, Staleness
from stepladder.sync.mailbox import Mailboxes
from stepladder.sync.process import is_alive

CallAll = Callable[..., "list[Any]"]
"""Calls a method of every env's client, given its name and arguments; returns all answers."""


class Host(Collector, Closing):
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
                "Auto(tasks)."
            )
        if isinstance(num_envs, bool) or int(num_envs) != num_envs or num_envs < 1:
            raise ConfigError(
                f"num_envs must be an integer of at least 1; got {num_envs!r}. Make at least one "
                "env."
            )
        require_share("max_failed_share", max_failed_share)
        self.curriculum = curriculum
        self.num_envs = int(num_envs)
        self.max_failed_share = max_failed_share
        self.is_closed = False
        try:
            curriculum.claim(self)
            self._set_up()
        except BaseException:
            self._undo_set_up()
            raise

    def _undo_set_up(self) -> None:
        """Give back what a constructor that fails has taken."""
        self.curriculum.release(self)

    reaches_processes = True
    """Whether envs may run in other processes."""

    collects_without_envs = True
    """Whether records can be collected without calling the envs, also those of a dead worker."""

    def use_calls(self, call: CallAll | None) -> None:
        """Take a way to call every client, or None to stop; only some backends need one."""

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

    # What has happened so far.

    @property
    def counts(self) -> EpisodeCounts:
        """What became of every draw so far."""
        # Aborted first: a client that starts again meanwhile must not count as aborted only.
        aborted = int(self.mails.heads["aborted"].sum())
        started = int(self.mails.heads["started"].sum())
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
        return int(self.mails.heads["posted"][env_index])

    def find_dead(self) -> list[int]:
        """Return the envs whose process has died."""
        pids = self.mails.heads["pid"].tolist()
        alive = {pid: is_alive(pid) for pid in set(pids) if pid}
        return [env_index for env_index, pid in enumerate(pids) if pid and not alive[pid]]

    def discard_dead(self, env_indices: list[int]) -> int:
        """Count the running episodes of dead envs as aborted; return how many there were.

        Collect first: what dead envs have finished is still in their mailboxes.
        """
        discarded = 0
        for env_index in env_indices:
            self._check_env_index(env_index)
            if mailbox.in_flight(self.mails.words[env_index]):
                self.mails.heads["aborted"][env_index] += 1
                discarded += 1
            self.mails.heads["pid"][env_index] = 0
        return discarded

    # Saving and resuming.

    def snapshot(self) -> Snapshot:
        """Return everything needed to continue exactly here, episodes in flight included.

        An episode in flight is saved as its draw: after `restore` the env plays the same task
        with the same seed from its beginning, unless the envs have been saved as well.
        """
        self.collect()
        saved = self.mails.copy_steady()
        saved.heads["pid"] = 0
        has_rings = not np.array_equal(saved.heads["posted"], saved.heads["taken"])
        return Snapshot.of_parts(
            {"num_failed": self._num_failed, "num_finished": self._num_finished},
            curriculum=self.curriculum.snapshot(),
            channel=Snapshot(
                {"num_envs": self.num_envs},
                copy_arrays([*self._counted_arrays(), *self._described(saved, has_rings)]),
            ),
        )

    def restore(self, snapshot: Snapshot, *, in_flight: bool = False) -> None:
        """Continue exactly where `snapshot` was made. Reset the envs afterwards.

        Args:
            snapshot: What `snapshot` returned.
            in_flight: Whether the envs themselves go on in the middle of their episodes; then they
                need no reset, and their next one draws again.

        Raises:
            SnapshotError: The snapshot does not fit. Then nothing has changed.
        """
        channel = self.check_fits(snapshot)
        described = [*self._counted_arrays(), *self.checked_mails(channel)]
        num_failed, num_finished = (
            read_count(snapshot.state.get(name), f"{name} of {snapshot.place}")
            for name in ("num_failed", "num_finished")
        )
        num_taken = int(channel.arrays["heads"]["taken"].sum())
        if num_taken != num_failed + num_finished:
            raise SnapshotError(
                f"num_finished and num_failed of {snapshot.place} are {num_finished} and "
                f"{num_failed}; expected {num_taken} together, as many as the mailboxes say. Use "
                "an older one."
            )
        self.complete()
        self.curriculum.restore(snapshot.part("curriculum"))
        self._num_failed, self._num_finished = num_failed, num_finished
        heads = self.mails.heads
        pids = heads["pid"].copy()
        restore_arrays(described, channel.arrays, channel.place)
        heads["pid"] = pids
        if not in_flight:
            heads["replay"] = heads["started"] - heads["aborted"] - heads["posted"] > 0
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
                f"{snapshot.place} was made with {saved!r} envs and this channel has "
                f"{self.num_envs}. Use the same number; draws belong to an env."
            )
        # Before the mailboxes, which name slots of these very tasks.
        self.curriculum.check_fits(snapshot.part("curriculum"))
        return channel

    def _counted_arrays(self) -> list[SavedArray]:
        return [
            SavedArray("last_tick", self._last_tick, (Part.count("tick"),)),
            SavedArray("lags", self._lags, (Part.count("draws", high=2**53),)),
        ]

    def _described(self, mails: Mailboxes, has_rings: bool) -> list[SavedArray]:
        pool = self.curriculum.pool
        return mails.saved_arrays(
            pool.num_slots,
            min(MAX_COUNT, pool.source.id_limit),
            self.curriculum.dial_parts(),
            has_rings,
        )

    def checked_mails(self, channel: Snapshot) -> list[SavedArray]:
        """Describe the saved mailboxes if they can have been ours; nothing changes.

        Raises:
            SnapshotError: They cannot.
        """
        has_rings = "rings" in channel.arrays
        described = self._described(self.mails, has_rings)
        for one in (*self._counted_arrays(), *described):
            one.read(channel.arrays, channel.place)
        heads, rings = channel.arrays["heads"], channel.arrays.get("rings")
        pool = self.curriculum.pool
        problem = self.mails.problem_of(heads, rings, pool.num_slots)
        try:
            pool.source.check_ids(heads["draw"]["task_id"])
        except TaskError as error:
            problem = str(error)
        if problem is not None:
            raise SnapshotError(
                f"the mailboxes of {channel.place}: {problem}. They are damaged; use an older one."
            )
        return described

    def _spread_restored(self) -> None:
        """Bring the restored mailboxes to clients that cannot see them."""
        self._spread()

    # The end.

    def _end_block(self, error: BaseException | None) -> None:
        self.close()

    def close(self) -> None:
        """Collect what is left and let go of the curriculum, which can then be used elsewhere.

        After an interrupt (Ctrl-C) in here the channel is still open: close it again.
        """
        if self.is_closed or self.curriculum.is_foreign:
            return
        # Before the last collection: an episode that ends later is refused, not lost.
        self.mails.heads["closed"] = 1
        try:
            self.collect()
        except Exception:  # goes on as it is, when the curriculum is free
            self._let_go()
            raise
        self._let_go()

    def _let_go(self) -> None:
        # The next channel of this curriculum must not draw the same numbers again.
        self.curriculum.next_episode = int(self.mails.heads["next_episode"].max())
        try:
            self._free()
        except Exception:  # goes on as it is, with the channel closed
            self._end()
            raise
        self._end()

    def _end(self) -> None:
        self.curriculum.release(self)
        self.is_closed = True

    def _free(self) -> None:
        """Give back what the backend holds."""
