"""Several threads at one batch of envs, from inside compiled code.

Between `batch`, which steps a vector env, and the kernels of the games. A round is one vector step,
cut into chunks of rows; whoever is free takes the next chunk. The caller works too, and waits only
for chunks that a helper has begun: a helper that sleeps, or that a fork has left behind, costs
nothing but its share of the work.

Refused: numba's own parallel loops. Their pools may not be used from two threads, or from a process
that was forked, and end it if they are.
"""

import os
import threading
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.compiled import (
    compiled,
    direct,
    fetch_add,
    inlined,
    load_acquire,
    pause,
    store_release,
    swap_if,
    yield_core,
)

Words = npt.NDArray[np.int64]

# Each in a cache line of its own.
NEXT, LIMIT, DONE, EPOCH, NUM_CHUNKS, IS_ALONE = 0, 8, 16, 24, 32, 40
ASLEEP, LANE = 48, 8
"""From here on one word per helper, so many words apart."""

NONE_LEFT, OUT_OF_DATE = -1, -2
"""Instead of a chunk: there is none now; the arguments have changed, so ask for them anew."""

HELPER_SPINS = 10_000
"""Looks for a chunk before a helper goes to sleep: about as long as it takes to wake it."""

LOOKS_BEFORE_YIELD = 1024
"""Who has looked so often whether a chunk is done, longer than one takes, waits for a helper that
may be waiting for this very core."""

WINDOW = 64
"""Rounds that are timed together."""

WINDOWS_BETWEEN_TRIALS = 32
"""After so many windows one is played the other way, with helpers or without."""

GAIN = 0.95
"""The other way must take at most this share of the time to be preferred."""

MEMORY = 0.7
"""Weight of what was known about a way when another window of it has been timed."""


@inlined
def open_round(control: Words) -> None:
    """Put all chunks of a round up for work. Called by the caller only."""
    store_release(control, LIMIT, control[LIMIT] + control[NUM_CHUNKS])


@inlined
def take_chunk(control: Words, epoch: int) -> int:
    """Take the next chunk of this round: its number, or a negative one if there is none."""
    limit = load_acquire(control, LIMIT)
    # After the limit: who sees a new round also sees that its arguments are others.
    if load_acquire(control, EPOCH) != epoch:
        return OUT_OF_DATE
    while True:
        ticket = load_acquire(control, NEXT)
        if ticket >= limit:
            return NONE_LEFT
        if swap_if(control, NEXT, ticket, ticket + 1):
            return ticket % control[NUM_CHUNKS]


@inlined
def end_chunk(control: Words) -> None:
    """Say that a chunk is done."""
    fetch_add(control, DONE, 1)


@compiled
def await_round(control: Words) -> None:
    """Wait until every chunk is done. Called by the caller only, when none is left to take."""
    looks = 0
    while load_acquire(control, DONE) < control[LIMIT]:
        looks += 1
        pause()
        if looks > LOOKS_BEFORE_YIELD:
            yield_core()


@inlined
def may_help(control: Words, num_spins: int) -> bool:
    """Whether to look for chunks: the caller always may."""
    return num_spins == 0 or load_acquire(control, IS_ALONE) == 0


class Clock:
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
        known = self._seconds[self.is_alone]
        took = self._in_window
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


class Team:
    """The caller's thread and its helpers.

    Args:
        num_threads: Threads that may work at once, the caller's included.
        num_rows: Rows of the batch.
        rows_per_chunk: Rows that are taken together.
    """

    def __init__(self, num_threads: int, num_rows: int, rows_per_chunk: int):
        self.num_threads = max(1, min(num_threads, -(-num_rows // rows_per_chunk)))
        self.rows_per_chunk = rows_per_chunk if self.num_threads > 1 else num_rows
        self.control: Words = np.zeros(ASLEEP + LANE * self.num_threads, dtype=np.int64)
        self.control[NUM_CHUNKS] = -(-num_rows // self.rows_per_chunk)
        self._work: Callable[..., None] | None = None
        self._arguments: tuple[Any, ...] = ()
        self._pid = os.getpid()
        self._helpers: list[tuple[threading.Thread, threading.Lock]] = []
        self._is_closed = False
        self._clock = Clock()

    def prepare(self, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Work with this kernel and these arguments from the next round on.

        Args:
            work: Called as ``work(control, epoch, num_spins, *arguments)``. With ``num_spins`` of
                0 it opens a round and works until the round is done; with more it works as a
                helper, until it has looked so often for a chunk without finding one.
            arguments: What else the kernel needs; arrays are shared by all threads.
        """
        # Its machine code: looking at the types of so many arrays would take longer than a step.
        self._work = direct(work, self.control, 0, 0, *arguments)
        self._arguments = arguments
        store_epoch(self.control, int(self.control[EPOCH]) + 1)

    def play_round(self) -> None:
        """Do one round: every chunk once."""
        assert self._work is not None
        if self.num_threads == 1:
            self._work(self.control, int(self.control[EPOCH]), 0, *self._arguments)
            return
        if not self._clock.is_alone:
            self._call_helpers()
        began = time.perf_counter()
        self._work(self.control, int(self.control[EPOCH]), 0, *self._arguments)
        if self._clock.count(time.perf_counter() - began):
            self.control[IS_ALONE] = self._clock.is_alone

    def _call_helpers(self) -> None:
        if self._pid != os.getpid():
            # A fork has none of its parent's threads.
            self._pid = os.getpid()
            self._helpers = []
        while len(self._helpers) < self.num_threads - 1:
            self._start_helper(len(self._helpers))
        for number, (_, bell) in enumerate(self._helpers):
            if self.control[ASLEEP + LANE * number]:
                ring(bell)

    def _start_helper(self, number: int) -> None:
        bell = threading.Lock()
        bell.acquire()
        self.control[ASLEEP + LANE * number] = 0
        helper = threading.Thread(
            target=self._help, args=(number, bell), name=f"stepladder-game-{number}", daemon=True
        )
        self._helpers.append((helper, bell))
        helper.start()

    def _help(self, number: int, bell: threading.Lock) -> None:
        while not self._is_closed:
            # The epoch first: arguments newer than it are refused and fetched again.
            epoch = int(self.control[EPOCH])
            work, arguments = self._work, self._arguments
            assert work is not None
            work(self.control, epoch, HELPER_SPINS, *arguments)
            # Let go of the arrays, which may be large and may be out of date when this wakes.
            del work, arguments
            self.control[ASLEEP + LANE * number] = 1
            bell.acquire()
            self.control[ASLEEP + LANE * number] = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> "Team":
        twin = object.__new__(Team)
        twin.__dict__.update(self.__dict__)
        twin.control = self.control.copy()
        twin._arguments = deepcopy(self._arguments, memo)
        twin._helpers, twin._clock = [], Clock()
        twin.control[IS_ALONE] = 0
        return twin

    def close(self) -> None:
        """End the helpers."""
        self._is_closed = True
        helpers, self._helpers = self._helpers, []
        if self._pid != os.getpid():
            return
        for helper, bell in helpers:
            ring(bell)
            # A helper itself may be the one that collects a forgotten vector env.
            while helper.is_alive() and helper is not threading.current_thread():
                ring(bell)
                helper.join(timeout=0.001)


def ring(bell: threading.Lock) -> None:
    """Wake the helper that waits for a bell; if it does not, it will find it rung."""
    if bell.locked():
        bell.release()


@compiled
def store_epoch(control: Words, epoch: int) -> None:
    """Tell helpers that the arguments have changed."""
    store_release(control, EPOCH, epoch)
