"""How a batch of records goes into a curriculum, exactly once, and how listeners hear of it.

Between `owner` and `turnover`. A batch is observed and passed to every listener. Ctrl-C can come
between any two lines and leave some of a batch observed, a change of stage half written or a
listener not called. An `Intake` says how far the batch has come, so that the next call completes
it first: nothing is lost, nothing is done twice. So a method's `_update` may be called again with a
batch of which it has observed a part: it does what is left.
"""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import call
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Floats
from stepladder.curricula.owner import PlanOwner
from stepladder.errors import ConfigError, RecordError
from stepladder.plans.record import (
    DRAW_DTYPE,
    RECORD_DTYPE,
    Draw,
    DrawArray,
    Record,
    RecordArray,
    pack_records,
    record_array,
    refuse,
)

Listener: TypeAlias = Callable[[RecordArray], object]
"""Called with every batch of records after the curriculum has been updated from it."""

ReplaceListener: TypeAlias = Callable[[int | None], object]
"""Called with the slot after another task came into it, or None if any slot may have changed."""


NO_RECORDS: RecordArray = np.zeros(0, dtype=RECORD_DTYPE)

NO_NUMBER = (OverflowError, TypeError, ValueError)
"""What NumPy and numba raise for a value that is not a number, or is too large."""


def is_running(method: Any, owner: object) -> bool:
    """Whether this is called from inside a method of an object.

    By the stack: a flag would stay set forever when an interrupt comes at the wrong moment.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code is method.__code__ and frame.f_locals["self"] is owner:
            return True
        frame = frame.f_back
    return False


class Intake:
    """One batch, and how far it has come. Its records must not change before it is done."""

    __slots__ = ("is_done", "notifying", "num_before", "outer", "records")

    def __init__(
        self,
        records: RecordArray = NO_RECORDS,
        num_before: int = 0,
        outer: "Intake | None" = None,
    ):
        self.records = records
        self.num_before = num_before
        """Records that the curriculum had observed before it."""
        self.outer = outer
        """The intake that is going on already: of the batch whose listener observes this one."""
        self.is_done = False
        self.notifying: tuple[tuple[Any, ...], list[Any]] | None = None
        """The listeners, and an entry for each that has returned; set when the first is called."""


class IntakeOwner(PlanOwner):
    """Takes in batches, and completes what an interrupt has left unfinished."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._listeners: tuple[Listener, ...] = ()
        self._on_replace: tuple[ReplaceListener | None, ...] = ()
        """Of each listener, in the same order."""
        self._due: Intake | None = None
        """The batch that is being taken in, or was when an interrupt came; None is neither."""
        # Room for one intake, one record and one batch: filling is quicker than making.
        self._own_intake = Intake()
        self._scratch: RecordArray = np.zeros(1, dtype=RECORD_DTYPE)
        self._batch: RecordArray = np.zeros(0, dtype=RECORD_DTYPE)
        self._numbers: Floats = np.zeros((4, 0))

    @abstractmethod
    def _update(self, records: RecordArray, num_done: int) -> int:
        """Learn from records; return a number below 0, or the index of a bad one.

        Nothing has changed then. After an interrupt it is called again with the same records.

        Args:
            records: The batch.
            num_done: How many of them are observed already, by `totals`. What follows from
                the last of these may still have to be done.
        """

    def _complete(self) -> None:
        """Complete what was begun outside of `_update`, before anything else happens."""

    # Observing.

    def observe(self, records: Record | Iterable[Record] | RecordArray) -> None:
        """Learn from finished episodes, in the order given; changes the plan in place.

        After an interrupt (Ctrl-C) in this call, either all of the batch is observed and passed to
        every listener, or nothing of it: `finish` completes what was begun, and `num_observed`
        says which it was. Do not change the array before.

        Raises:
            RecordError: A record is impossible. Then none of the batch was observed.
        """
        if self._due is not None:
            self.finish()
        self._observe(self._as_batch(records))

    def report(
        self,
        draw: Draw,
        success: float,
        episode_return: float = 0.0,
        length: int = 1,
        truncated: bool = False,
    ) -> None:
        """Observe one episode; the same as observing its record, and faster.

        Raises:
            RecordError: A number is impossible. Then nothing was observed.
        """
        if self._due is not None:
            self.finish()
        try:
            self._scratch[0] = (
                draw.slot,
                draw.generation,
                draw.plan_version,
                draw.tick,
                draw.env_index,
                draw.episode_index,
                episode_return,
                length,
                success,
                truncated,
            )
        except NO_NUMBER:
            # The general way says what is wrong with it.
            self.observe(
                Record.of(
                    draw,
                    success=success,
                    episode_return=episode_return,
                    length=length,
                    truncated=truncated,
                )
            )
        else:
            self._observe(self._scratch)

    def report_batch(
        self,
        draws: DrawArray,
        successes: npt.ArrayLike,
        episode_returns: npt.ArrayLike = 0.0,
        lengths: npt.ArrayLike = 1,
        truncated: npt.ArrayLike = False,
    ) -> None:
        """Observe the episodes of a batch of draws, in their order.

        Args:
            draws: What `draw_batch` returned.
            successes: In [0, 1], one per draw or one for all; so are the others.
            episode_returns: Returns.
            lengths: Env steps.
            truncated: Whether the episodes were cut off.

        Raises:
            RecordError: A number is impossible, or there are not as many as draws. Then nothing
                was observed.
        """
        self.finish()
        if getattr(draws, "dtype", None) != DRAW_DTYPE or draws.ndim != 1:
            raise RecordError(
                f"draws must be what `draw_batch` returned; got a {type(draws).__name__}. "
                "Report single draws with `report`."
            )
        if len(self._batch) != len(draws):
            self._batch = np.zeros(len(draws), dtype=RECORD_DTYPE)
            self._numbers = np.zeros((4, len(draws)))
        numbers, records = self._numbers, self._batch
        try:
            numbers[0], numbers[1], numbers[2] = successes, episode_returns, lengths
            numbers[3] = truncated
        except NO_NUMBER as error:
            raise RecordError(
                f"the results do not fit {len(draws)} draws ({error}). "
                "Give one number per draw, or one for all."
            ) from error
        pack_records(draws, numbers, records)
        self._observe(records)

    def _as_batch(self, records: Record | Iterable[Record] | RecordArray) -> RecordArray:
        if isinstance(records, np.ndarray):
            batch = cast(RecordArray, records)
            if batch.dtype != RECORD_DTYPE or batch.ndim != 1:
                raise RecordError(
                    f"records have dtype {batch.dtype} and {batch.ndim} dimensions; expected "
                    "RECORD_DTYPE and one. Make them with `record_array`."
                )
            # Kernels are compiled for contiguous, aligned memory.
            return batch if batch.flags.carray else batch.copy()
        try:
            if isinstance(records, Record):
                self._scratch[0] = records
                return self._scratch
            return record_array(records)
        except NO_NUMBER as error:
            raise RecordError(
                f"a record holds a value that is not a number ({error}). "
                "Make records with `Record.of(draw, success=…)`."
            ) from error

    @property
    def num_observed(self) -> int:
        """Records observed so far."""
        return self._num_observed.item(0)

    @property
    def num_steps(self) -> int:
        """Env steps in all records observed so far."""
        return int(self.totals["num_steps"][0])

    @property
    def num_orphaned(self) -> int:
        """Results of tasks that were replaced before they arrived; credited to no task."""
        return int(self.totals["num_orphaned"][0])

    # Taking in.

    def take_in(self, intake: Intake) -> None:
        """Observe the batch of an intake and pass it to all listeners, once.

        For channels. An interrupt may stop this anywhere: call it again with the same intake, or
        leave it to whatever is called next.

        Raises:
            RecordError: A record is impossible. Then none of the batch was observed.
        """
        if self._due is not None:
            self.finish()
        if not intake.is_done:
            intake.num_before = self._num_observed.item(0)
            intake.outer = self._due
            self._due = intake
            self._take_in_rest(intake, 0)

    def _observe(self, records: RecordArray) -> None:
        """Take in a batch that was not collected by a channel."""
        due = self._due
        intake = self._own_intake if due is None else Intake()
        intake.records = records
        intake.num_before = self._num_observed.item(0)
        intake.outer = due
        intake.notifying = None
        self._due = intake
        if self._listeners:
            self._take_in_rest(intake, 0)
            return
        # The same, a little faster: this is what a single report does.
        bad = self._update(records, 0)
        self._due = due
        if bad >= 0:
            raise refuse(records, bad, self.pool.num_slots)

    def _take_in_rest(self, intake: Intake, num_done: int) -> None:
        records = intake.records
        bad = self._update(records, num_done)
        if bad >= 0:
            self._due = intake.outer
            raise refuse(records, bad, self.pool.num_slots)
        if self._listeners and len(records):
            if intake.notifying is None:
                intake.notifying = self._listeners, []
            call_rest(*intake.notifying, records)
        intake.is_done = True
        self._due = intake.outer

    def finish(self) -> None:
        """Complete what an interrupt (Ctrl-C) has left unfinished, if anything.

        Every method that draws, observes, changes or saves does this first. Inside a listener it
        does nothing: the batch that it was called with is not unfinished, it is going on.

        Raises:
            RecordError: A record of the batch that was interrupted is impossible. None of that
                batch was observed.
        """
        due = self._due
        if due is None or is_running(IntakeOwner._take_in_rest, self):
            return
        self._complete()
        self._take_in_rest(due, self._num_observed.item(0) - due.num_before)
        self.finish()

    def _begin_work(self) -> None:
        """Note that something changes outside of an update; `finish` completes it if need be."""
        self._due = Intake(num_before=self._num_observed.item(0), outer=self._due)

    def _end_work(self) -> None:
        """Note that what `_begin_work` announced is done."""
        assert self._due is not None
        self._due = self._due.outer

    # Telling.

    def add_listener(
        self, listener: Listener, *, on_replace: ReplaceListener | None = None
    ) -> None:
        """Call a listener with every record observed from now on, each exactly once.

        Add it to the outermost curriculum: those inside the phases of a `Phased` call no listeners.
        Listeners are not part of snapshots, and no copy in another process has any.

        An interrupt (Ctrl-C) between two listeners leaves the second one to the next call. One
        that is interrupted itself is called again with the same batch; it can tell by
        `num_observed`, which is the same both times.

        Args:
            listener: Called after each successful update with the batch, dtype `RECORD_DTYPE`.
                The array is valid during the call only. What it raises reaches the caller that
                reported; the records have been observed all the same, and the other listeners
                are passed on by the next call.
            on_replace: Called with a slot after another task came into it, which may be during
                the update and so before listeners get the batch; with None after a `restore`.
        """
        self.finish()
        if listener in self._listeners:
            raise ConfigError(
                f"{listener!r} listens already and would count everything twice. Add it once."
            )
        listeners, on_replaces = (*self._listeners, listener), (*self._on_replace, on_replace)
        self._listeners, self._on_replace = listeners, on_replaces

    def remove_listener(self, listener: Listener) -> None:
        """Stop calling a listener."""
        self.finish()
        if listener not in self._listeners:
            raise ConfigError(f"{listener!r} does not listen to this curriculum. Add it first.")
        at = self._listeners.index(listener)
        listeners = self._listeners[:at] + self._listeners[at + 1 :]
        on_replaces = self._on_replace[:at] + self._on_replace[at + 1 :]
        self._listeners, self._on_replace = listeners, on_replaces

    def _restored(self) -> None:
        self._notify_replaced(None, [])

    def _notify_replaced(self, slot: int | None, returned: list[Any]) -> None:
        calls = [on_replace for on_replace in self._on_replace if on_replace is not None]
        call_rest(calls, returned, slot)


_call = cast("Callable[[Callable[[Any], object], Any], object]", call)


def call_rest(listeners: Sequence[Callable[[Any], object]], returned: list[Any], news: Any) -> None:
    """Call those listeners that have not been called yet, in order.

    `returned` has an entry for each that has returned; it is changed in place.
    """
    try:
        # One call of compiled code, not a loop: a listener that returns is counted at that moment,
        # and no interrupt comes in between.
        returned.extend(map(_call, listeners[len(returned) :], repeat(news)))
    except Exception:  # raised again; a failing listener is not called again, unlike after Ctrl-C
        returned.append(None)
        raise
