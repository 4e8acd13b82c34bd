"""One collection after the other: records out of the mailboxes, into the curriculum, exactly once.

The lower half of `host.Host`. A backend copies what lies in the mailboxes; one compiled call then
takes it and notes the batch. From there on every step either stores what is known beforehand or can
be done again, and the note is deleted last. So Ctrl-C anywhere in between loses no finished episode
and counts none twice: the next call of this object completes the batch. docs/ARCHITECTURE.md has a
table of where an interrupt can come and what completes the work.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Flags, Words
from stepladder.compiled import direct
from stepladder.curricula.base import Curriculum
from stepladder.curricula.foreign import REFUSAL
from stepladder.curricula.intake import Intake, Listener, call_rest, is_running
from stepladder.errors import BuildError, ChannelError, RecordError, WrongProcessError
from stepladder.plans.record import RECORD_DTYPE, UNBUILDABLE, RecordArray
from stepladder.sync import mailbox, taking
from stepladder.sync.mailbox import Mailboxes
from stepladder.visible import visible

logger = logging.getLogger("stepladder.sync")

MAX_LAG = 8
"""Lags are counted one by one up to this, then together."""

MIN_DRAWS_TO_JUDGE = 20
"""No share of failed builds is judged before so many draws."""


class Failure(NamedTuple):
    """A task that an env could not build."""

    env_index: int
    slot: int
    generation: int
    reason: str


Collection = tuple[Intake, Sequence[Failure], int, int, list[Any]]
"""A batch out of the mailboxes, until all that follows from it is done.

Its records on their way into the curriculum; failures; episodes finished so far and draws that
failed so far, with those of this batch; an entry for each listener of the channel that was called.
A plain tuple, because one is made in nearly every step.
"""


class Collector(ABC):
    """Collects what envs have reported, and lets the curriculum learn from it."""

    curriculum: Curriculum
    num_envs: int
    max_failed_share: float
    is_closed: bool
    mails: Mailboxes

    def _set_up(self) -> None:
        num_envs = self.num_envs
        self._num_dials = self.curriculum.plan.num_dials
        self._num_failed = 0
        self._num_finished = 0
        self._last_reason = ""
        self._is_judged = False
        self._fatal: BuildError | None = None
        self._last_tick: Words = np.zeros(num_envs, dtype=np.int64)
        self._all_rows: Words = np.arange(num_envs)
        self._lags: Words = np.zeros(MAX_LAG + 1, dtype=np.int64)
        self._records: RecordArray = np.zeros(num_envs * mailbox.CAPACITY, RECORD_DTYPE)
        self._taken = taking.TakenBatch.zeros()
        """What `taking.admit` has noted of the batch that is being worked on; one record."""
        note = cast("npt.NDArray[Any]", self._taken)
        self._num_noted, self._num_unbuildable = note["count"], note["num_unbuildable"]
        """Fields of it, as Python reads and writes them."""
        self._intake = Intake()
        self._collection: Collection | None = None
        """How far that batch has come; None before the first of it is known."""
        self._listeners: tuple[Listener, ...] = ()
        self.is_unfinished = False
        """Whether a collection is going on, or was when an interrupt came."""
        words = self._make_mails(mailbox.words_per_mailbox(self._num_dials))
        self.mails = Mailboxes(words, self._num_dials)
        self.mails.heads["next_episode"] = self.curriculum.next_episode
        # Called after every step: looking at the types of all arguments takes longer than the work.
        self._take_posted = direct(
            *(taking.take, words, 0, self._records, self._all_rows),
            *(0, self._last_tick, self._lags, self._taken),
        )
        self._flagged_rows: Words = np.zeros_like(self._all_rows)
        self._take_flagged = direct(
            *(taking.take_flagged, words, 0, self._records, np.zeros(1, np.bool_)),
            *(self._flagged_rows, 0, self._last_tick, self._lags, self._taken),
        )

    @abstractmethod
    def _make_mails(self, num_words: int) -> Words:
        """Return zeroed mailboxes of shape ``(num_envs, num_words)``."""

    def _take(self, ended: bool, rows: Words | Flags | None, tick: int) -> int:
        """Take what was reported into `_records`, and note the batch; return how many they are.

        An interrupt comes before or after it; the note says which.
        """
        mails, rest = self.mails, (tick, self._last_tick, self._lags, self._taken)
        self._begin_collection()
        if rows is None:
            rows = self._all_rows
        elif rows.dtype == np.bool_:
            flags = cast("Flags", rows)
            return self._take_flagged(
                mails.words, mails.ring_at, self._records, flags, self._flagged_rows, *rest
            )
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        return self._take_posted(mails.words, mails.ring_at, self._records, rows, *rest)

    def _begin_collection(self) -> None:
        """Note that from here on an interrupt may leave something to do."""
        self._collection = None
        self.is_unfinished = True

    def _spread(self) -> None:  # noqa: B027, most backends have nothing to bring
        """Bring the plan to the clients, where they do not see it anyway."""

    def on_collected(self, listener: Listener) -> None:
        """Call a listener with every batch that is not empty, after all that follows from it."""
        self._listeners = (*self._listeners, listener)

    # Collecting.

    def collect(self, ended: bool = True, rows: Words | Flags | None = None) -> RecordArray:
        """Observe everything that has been reported, in env order, and publish the next plan.

        A collection that an interrupt (Ctrl-C) has broken off is completed first.

        Args:
            ended: Whether an episode may have ended since the last call. A backend that has to
                ask every env spares itself the trip when it is False.
            rows: Envs that may have reported, rising, or a flag for each env; by default all.
                What others have left is found when they report again, or when all are collected.

        Returns:
            The records observed, those of a collection completed here included; valid until the
            next call.

        Raises:
            BuildError: Too many tasks could not be built. All records have been observed.
        """
        if self.is_closed or self.curriculum.is_foreign:
            raise self._unusable()
        late = None
        if self.is_unfinished:
            if is_running(Collector._work_on, self):
                # A listener asks for it; whatever has come since is collected after this batch.
                return self._records[:0]
            late = self.complete()
        tick = self.curriculum.plan.tick + 1
        count = self._take(ended, rows, tick)
        records = self._work_on(count, tick) if count else self._records[:0]
        self._conclude()
        return records if late is None else np.concatenate([late, records])

    def complete(self) -> RecordArray:
        """Complete a collection that an interrupt (Ctrl-C) has broken off; return its records.

        `collect`, `snapshot`, `restore` and `close` do this by themselves.
        """
        records = self._records[:0]
        if is_running(Collector._work_on, self):
            return records
        count = self._num_noted.item(0)
        if count:
            records = self._work_on(count, int(self._taken["tick"][0])).copy()
        self._conclude()
        return records

    def _work_on(self, count: int, tick: int) -> RecordArray:
        """Do what is left of the batch that was taken; return the records that were observed.

        Args:
            count: Records in it.
            tick: Its number.
        """
        collection = self._collection
        if collection is None:
            collection = self._collection = self._begin(self._records[:count])
        intake, failures, num_finished, num_failed, called = collection
        if failures:
            # Their messages have been read.
            taking.release_failed(self.mails.words, self._records, self._taken)
        try:
            self.curriculum.take_in(intake)
        except RecordError:
            self._num_noted[0] = 0
            raise
        self._num_finished = num_finished
        self.curriculum.plan.header["tick"] = tick
        if failures:
            self._num_failed = num_failed
            self._quarantine_all(failures)
        if self._listeners and len(intake.records):
            call_rest(self._listeners, called, intake.records)
        self._num_noted[0] = 0
        return intake.records

    def _begin(self, records: RecordArray) -> Collection:
        failures: Sequence[Failure] = ()
        if self._num_unbuildable.item(0):
            failures = self._read_failures(records)
            records = records[records["outcome"] != UNBUILDABLE]
        # The one before is done, or there would be no other.
        intake = self._intake
        intake.records = records
        intake.is_done = False
        intake.notifying = None
        num_finished = self._num_finished + len(records)
        return intake, failures, num_finished, self._num_failed + len(failures), []

    def _conclude(self) -> None:
        """Do what does not depend on the last batch alone."""
        self._spread()
        if self._num_failed:
            self._conclude_failures()
        self.is_unfinished = False

    def _conclude_failures(self) -> None:
        fatal = self._fatal
        if fatal is not None:
            self._fatal = None
            raise fatal
        if not self._is_judged:
            self._judge_failures()

    def _unusable(self) -> ChannelError:
        if self.curriculum.is_foreign:
            return WrongProcessError(REFUSAL)
        return ChannelError("this channel is closed. Make a new one for the curriculum.")

    # Tasks that could not be built.

    def _read_failures(self, records: RecordArray) -> list[Failure]:
        """Pair each unbuildable record with its client's message."""
        failures: list[Failure] = []
        failed = records["outcome"] == UNBUILDABLE
        for env_index in np.unique(records["env_index"][failed]).tolist():
            number = int(self.mails.heads["taken"][env_index])
            for record in records[records["env_index"] == env_index]:
                if record["outcome"] == UNBUILDABLE:
                    text = self._message(env_index, number % mailbox.CAPACITY)
                    failures.append(
                        Failure(env_index, int(record["slot"]), int(record["generation"]), text)
                    )
                number += 1
        return failures

    def _message(self, env_index: int, position: int) -> str:
        # A message that was cut may end in the middle of a character.
        return (
            self.mails.messages[env_index, position].tobytes().rstrip(b"\0").decode(errors="ignore")
        )

    def _quarantine_all(self, failures: Sequence[Failure]) -> None:
        for failure in failures:
            try:
                # A second time, after an interrupt, it changes nothing.
                self._quarantine(failure)
            except BuildError as error:
                # The other tasks cannot be built either, and no env will report them again.
                self._fatal = self._fatal or error
        self._last_reason = failures[-1].reason
        self._is_judged = False

    def _quarantine(self, failure: Failure) -> None:
        pool = self.curriculum.pool
        # Not the task itself: it may be the source that cannot make it.
        name = pool.source.name(int(pool.task_ids[failure.slot]))
        if self.curriculum.quarantine(failure.slot, failure.generation, failure.reason):
            text = "Env %d could not build task %r (%s); it is quarantined."
            logger.warning(text, failure.env_index, name, visible(failure.reason))

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
                f"share of {self.max_failed_share} (last reason: {self._last_reason}). Fix the "
                "tasks or the env; see `curriculum.quarantined`."
            )
