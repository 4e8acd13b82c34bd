"""Several threads step one batch of envs, from inside compiled code.

Between `batch`, which steps a vector env, and the kernels of the games. A round is one vector step,
cut into chunks of rows; each free thread takes the next chunk. The caller works too, and waits only
for chunks that a helper has begun: a helper that sleeps, or that is missing after a fork, costs
only its share of the work.

Not used: numba's own parallel loops. Their pools may not be used from two threads, or from a
process that was forked, and end it if they are.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Annotated, Any

from stepladder.arrays import Words
from stepladder.compiled import (
    bare,
    direct,
    fetch_add,
    inlined,
    load_acquire,
    pause,
    store_release,
    swap_if,
    yield_core,
)
from stepladder.records import Fields, Records, Shape


class CacheLine(Fields):
    """One number in its own cache line."""

    value: int
    padding: Annotated[Words, Shape(7)]


class Control(Fields):
    """What caller and helpers share. Chunks are numbered over all rounds."""

    next: CacheLine
    """The next chunk to take."""
    limit: CacheLine
    """The first chunk of the round after this one."""
    done: CacheLine
    """Chunks that are done."""
    epoch: CacheLine
    """Raised whenever the kernel's arguments change."""
    num_chunks: CacheLine
    """Of one round."""
    is_alone: CacheLine
    """Whether helpers are to leave the work to the caller."""


NONE_LEFT, OUT_OF_DATE = -1, -2
"""Instead of a chunk: there is none now; the arguments have changed and must be fetched again."""

HELPER_SPINS = 10_000
"""Looks for a chunk before a helper goes to sleep: about as long as it takes to wake it."""

LOOKS_BEFORE_YIELD = 1024
"""Looks whether a chunk is done, longer than one takes, before the caller yields its core: the
helper may be waiting for this core."""

WINDOW = 64
"""Rounds that are timed together."""

WINDOWS_BETWEEN_TRIALS = 32
"""Every so many windows, one is played the other way: with helpers or without."""

GAIN = 0.95
"""The other way must take at most this share of the time to be preferred."""

MEMORY = 0.7
"""Weight of the earlier windows of a way when another one has been timed."""


@inlined
def _take_chunk(control: Records[Control], epoch: int) -> int:
    shared = control[0]
    limit = load_acquire(shared.limit, "value")
    # After the limit: a thread that sees a new round also sees that its arguments have changed.
    if load_acquire(shared.epoch, "value") != epoch:
        return OUT_OF_DATE
    while True:
        chunk = load_acquire(shared.next, "value")
        if chunk >= limit:
            return NONE_LEFT
        if swap_if(shared.next, "value", chunk, chunk + 1):
            return chunk % shared.num_chunks.value


@bare
def next_chunk(control: Records[Control], epoch: int, num_spins: int) -> int:
    """Take the next chunk of this round: its number, or a negative one if there is none.

    Args:
        control: One record.
        epoch: That of the arguments which the thread works with.
        num_spins: Looks for a chunk before a helper gives up; 0 for the caller.
    """
    for _ in range(num_spins + 1):
        if num_spins > 0 and load_acquire(control[0].is_alone, "value") != 0:
            return NONE_LEFT
        chunk = _take_chunk(control, epoch)
        if chunk != NONE_LEFT:
            return chunk
        if num_spins > 0:
            pause()
    return NONE_LEFT


@inlined
def open_round(control: Records[Control], num_spins: int) -> None:
    """Offer all chunks of a round, if this is the caller."""
    if num_spins == 0:
        shared = control[0]
        store_release(shared.limit, "value", shared.limit.value + shared.num_chunks.value)


@inlined
def end_chunk(control: Records[Control]) -> None:
    """Count a chunk as done."""
    fetch_add(control[0].done, "value", 1)


@bare
def await_round(control: Records[Control], num_spins: int) -> None:
    """Wait until every chunk is done, if this is the caller."""
    shared, looks = control[0], 0
    while num_spins == 0 and load_acquire(shared.done, "value") < shared.limit.value:
        looks += 1
        pause()
        if looks > LOOKS_BEFORE_YIELD:
            yield_core()


class RoundTimer:
    """Finds out whether rounds are quicker with helpers or without.

    Where other processes need the cores, a helper that has begun a chunk may lose its core for
    milliseconds, and the round waits for it. So both ways are timed now and then.
    """

    def __init__(self) -> None:
        self.is_alone = False
        """Whether rounds are played without helpers at present."""
        self._prefers_alone = False
        self._seconds: list[float | None] = [None, None]
        """Of a window with helpers and of one without, as far as known."""
        self._in_window = 0.0
        self._num_rounds = 0
        self._num_windows = 0

    def count(self, seconds: float) -> bool:
        """Add a round; return whether the way to play may have changed."""
        self._in_window += seconds
        self._num_rounds += 1
        if self._num_rounds < WINDOW:
            return False
        known, took = self._seconds[self.is_alone], self._in_window
        self._seconds[self.is_alone] = (
            took if known is None else MEMORY * known + (1.0 - MEMORY) * took
        )
        self._in_window, self._num_rounds = 0.0, 0
        self._num_windows += 1
        together, alone = self._seconds
        if together is not None and alone is not None:
            chosen, other = (alone, together) if self._prefers_alone else (together, alone)
            self._prefers_alone ^= other < GAIN * chosen
        is_trial = self._num_windows % WINDOWS_BETWEEN_TRIALS == 0
        self.is_alone = self._prefers_alone ^ is_trial
        return True


class _Helper:
    """A thread, and how to wake it."""

    def __init__(self, number: int, work: Callable[["_Helper"], None]):
        self.is_asleep = False
        self._bell = threading.Lock()
        self._bell.acquire()
        self.thread = threading.Thread(
            target=work, args=(self,), name=f"stepladder-game-{number}", daemon=True
        )

    def sleep(self) -> None:
        self.is_asleep = True
        self._bell.acquire()
        self.is_asleep = False

    def wake(self) -> None:
        """Wake the thread; if it does not sleep yet, it will wake at once."""
        if self._bell.locked():
            self._bell.release()


class Team:
    """The caller's thread and its helpers.

    Args:
        num_threads: Threads that may work at once, the caller's included.
        num_rows: Rows of the batch.
        rows_per_chunk: Rows that are taken together.
    """

    def __init__(self, num_threads: int, num_rows: int, rows_per_chunk: int):
        self._num_rows = num_rows
        self.num_threads = max(1, min(num_threads, -(-num_rows // rows_per_chunk)))
        self.rows_per_chunk = rows_per_chunk if self.num_threads > 1 else num_rows
        self.control = Control.zeros()
        self.control["num_chunks"]["value"] = -(-num_rows // self.rows_per_chunk)
        self._order: tuple[Any, ...] = ()
        """Epoch, kernel and its arguments: one value, so that a helper never mixes two orders."""
        self._pid = os.getpid()
        self._helpers: list[_Helper] = []
        self._is_closed = False
        self._timer = RoundTimer()

    def prepare(self, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Work with this kernel and these arguments from the next round on.

        Args:
            work: Called as ``work(control, epoch, num_spins, *arguments)``. With ``num_spins`` of
                0 it opens a round and works until the round is done; with more it works as a
                helper, until it has looked so often for a chunk without finding one.
            arguments: What else the kernel needs; arrays are shared by all threads.
        """
        # Its machine code: looking at the types of so many arrays would take longer than a step.
        kernel = direct(work, self.control, 0, 0, *arguments)
        epoch = int(self.control["epoch"]["value"][0]) + 1
        self._order = (epoch, kernel, arguments)
        self.control["epoch"]["value"] = epoch

    def play_round(self) -> None:
        """Do one round: every chunk once."""
        epoch, kernel, arguments = self._order
        if self.num_threads == 1:
            kernel(self.control, epoch, 0, *arguments)
            return
        if not self._timer.is_alone:
            self._call_helpers()
        began = time.perf_counter()
        kernel(self.control, epoch, 0, *arguments)
        if self._timer.count(time.perf_counter() - began):
            self.control["is_alone"]["value"] = self._timer.is_alone

    def _call_helpers(self) -> None:
        if self._pid != os.getpid():
            # A fork has none of its parent's threads.
            self._pid = os.getpid()
            self._helpers = []
        while len(self._helpers) < self.num_threads - 1:
            self._helpers.append(_Helper(len(self._helpers), self._help))
            self._helpers[-1].thread.start()
        for helper in self._helpers:
            if helper.is_asleep:
                helper.wake()

    def _help(self, helper: _Helper) -> None:
        while not self._is_closed:
            epoch, kernel, arguments = self._order
            kernel(self.control, epoch, HELPER_SPINS, *arguments)
            # The arrays may be large, and out of date when this thread wakes.
            del kernel, arguments
            helper.sleep()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Team":
        """Return a team of as many threads, to be prepared."""
        return Team(self.num_threads, self._num_rows, self.rows_per_chunk)

    def close(self) -> None:
        """End the helpers."""
        self._is_closed = True
        helpers, self._helpers = self._helpers, []
        if self._pid != os.getpid():
            return
        for helper in helpers:
            helper.wake()
            # A helper itself may be the one that collects a forgotten vector env.
            while helper.thread.is_alive() and helper.thread is not threading.current_thread():
                helper.wake()
                helper.thread.join(timeout=0.001)
