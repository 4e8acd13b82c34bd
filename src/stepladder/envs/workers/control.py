"""The words through which parent and workers tell each other what is to do and what is done.

One lane of words per worker and batch, in shared memory. The parent writes an order and reads what
is done; the worker the other way round; nobody else. Whoever waits spins for a bounded time and
then says that it sleeps; the other side, after its own word is visible, looks whether somebody has
to be woken through the pipe. Used by `crew` (the parent) and `worker`.
"""

import numpy as np
import numpy.typing as npt

from stepladder.compiled import (
    UNKNOWN_CPU,
    compiled,
    current_cpu,
    direct,
    fence_all,
    load_acquire,
    pause,
    store_release,
)

Words = npt.NDArray[np.int64]

# Written by the parent.
ORDER, PARENT_SLEEPS, PARENT_CPU = 0, 1, 2
# Written by the worker, in another cache line; all but the first cleared by the parent's order.
DONE, PROGRESS, MESSAGE_BYTES, NUM_OVERFLOWS, HAS_FAILED = 8, 9, 10, 11, 12
WORKER_SLEEPS, WORKER_CPU = 16, 17
"""Only in the first lane of a worker: it waits for all its lanes at once."""

LANE_WORDS = 24
"""Three cache lines."""

STEP, RESET, ASK, KINDS = 0, 1, 2, 4
"""Kinds of order: step the rows; reset the rows of the mask; read a command from the pipe.

An order is a number that rises, times `KINDS`, plus its kind.
"""

NOBODY = -1

NOT_BEGUN = -1
"""Progress of an order of which no row has been begun."""


@compiled
def give_one(words: Words, lane: int, order: int) -> None:
    """Give an order to one lane."""
    words[lane + PROGRESS] = NOT_BEGUN
    words[lane + MESSAGE_BYTES] = 0
    words[lane + NUM_OVERFLOWS] = 0
    words[lane + HAS_FAILED] = 0
    store_release(words, lane + ORDER, order)


@compiled
def give(words: Words, num_workers: int, num_batches: int, batch: int, order: int) -> int:
    """Give one order to all workers; return how many of them sleep and have to be woken."""
    cpu = current_cpu()
    for worker in range(num_workers):
        lane = (worker * num_batches + batch) * LANE_WORDS
        words[lane + PARENT_CPU] = cpu
        give_one(words, lane, order)
    # Without it the flags could be read before the orders are visible, and a worker that falls
    # asleep at this moment would be seen awake, and see no order.
    fence_all()
    asleep = 0
    for worker in range(num_workers):
        asleep += load_acquire(words, worker * num_batches * LANE_WORDS + WORKER_SLEEPS)
    return asleep


@compiled
def await_order(words: Words, worker: int, num_batches: int, spins: int) -> int:
    """Wait for an order; return the batch of the oldest one not done, or `NOBODY`."""
    first = worker * num_batches * LANE_WORDS
    for _ in range(spins):
        found, oldest = NOBODY, 0
        for batch in range(num_batches):
            lane = first + batch * LANE_WORDS
            order = load_acquire(words, lane + ORDER)
            if order != words[lane + DONE] and (found == NOBODY or order < oldest):
                found, oldest = batch, order
        if found != NOBODY:
            words[first + WORKER_CPU] = current_cpu()
            return found
        pause()
    return NOBODY


@compiled
def is_crowded(words: Words, worker: int, num_batches: int, batch: int) -> bool:
    """Whether a worker with an order runs on the core of its parent or of an earlier worker."""
    size = num_batches * LANE_WORDS
    cpu = words[worker * size + WORKER_CPU]
    if cpu == UNKNOWN_CPU:
        return False
    if cpu == words[worker * size + batch * LANE_WORDS + PARENT_CPU]:
        return True
    crowd = 0
    for other in range(worker):
        crowd += words[other * size + WORKER_CPU] == cpu
    return crowd > 0


@compiled
def finish(words: Words, lane: int, order: int) -> int:
    """Say that an order is done; return whether the parent sleeps and has to be woken."""
    store_release(words, lane + DONE, order)
    fence_all()
    return load_acquire(words, lane + PARENT_SLEEPS)


@compiled
def await_done(words: Words, num_workers: int, num_batches: int, batch: int, spins: int) -> int:
    """Wait until all workers have done their order; return the first that has not, or `NOBODY`."""
    worker = 0
    for _ in range(spins):
        while worker < num_workers:
            lane = (worker * num_batches + batch) * LANE_WORDS
            if load_acquire(words, lane + DONE) != words[lane + ORDER]:
                break
            worker += 1
        if worker == num_workers:
            return NOBODY
        pause()
    return worker


@compiled
def have_spoken(words: Words, num_workers: int, num_batches: int, batch: int) -> bool:
    """Whether any worker has said something, or failed, while it carried out its order."""
    said = 0
    for worker in range(num_workers):
        lane = (worker * num_batches + batch) * LANE_WORDS
        said |= words[lane + MESSAGE_BYTES] | words[lane + NUM_OVERFLOWS] | words[lane + HAS_FAILED]
    return said != 0


@compiled
def say_asleep(words: Words, flag: int, asleep: int) -> None:
    """Say that one sleeps from now on, or no longer; look once more before really sleeping."""
    store_release(words, flag, asleep)
    fence_all()


def prepare() -> None:
    """Compile everything here, or load it; what is forked later need not."""
    words = np.zeros(LANE_WORDS, dtype=np.int64)
    for kernel, num_numbers in (
        (give_one, 2),
        (give, 4),
        (await_order, 3),
        (is_crowded, 3),
        (finish, 2),
        (await_done, 4),
        (have_spoken, 3),
        (say_asleep, 2),
    ):
        direct(kernel, words, *[0] * num_numbers)
