"""The record through which parent and one worker exchange orders, and the kernels that use it.

Shared memory holds one record, a lane, per worker and batch. The parent writes an order and reads
what is done; the worker does the reverse; no other process writes. A side that waits spins for a
bounded time and then marks that it sleeps. The other side checks that mark after its own value is
visible, and wakes the sleeper through the pipe. Used by `parent.worker_pool` and `child.worker`.
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

_FIELDS = {
    # Written by the parent.
    "order": 0,
    "parent_sleeps": 8,
    "parent_cpu": 16,
    # Written by the worker. All but the first are cleared by the parent with each order.
    "done": 64,
    "progress": 72,
    "message_bytes": 80,
    "num_overflows": 88,
    "has_failed": 96,
    # Written by the worker, and only in its lane of batch 0: it waits for all batches at once.
    "worker_sleeps": 128,
    "worker_cpu": 136,
}
"""Where each field begins. Fields of different writers lie in different cache lines."""

LANE_DTYPE = np.dtype(
    {
        "names": list(_FIELDS),
        "formats": [np.int64] * len(_FIELDS),
        "offsets": list(_FIELDS.values()),
        "itemsize": 192,
    },
    align=True,
)
"""One lane: three cache lines."""

Lanes = npt.NDArray[np.void]
"""All lanes, with shape ``(num_workers, num_batches)``."""

STEP_ROWS, RESET_ROWS, READ_COMMAND, NUM_ORDER_KINDS = 0, 1, 2, 4
"""Kinds of order: step the rows; reset the rows of the mask; read a command from the pipe.

An order is a number that rises, times `NUM_ORDER_KINDS`, plus its kind.
"""

NO_ENTRY = -1
"""No batch has an order; no worker is still busy."""

NOT_BEGUN = -1
"""Progress of an order of which no row has been begun."""


@compiled
def give_one(lanes: Lanes, worker: int, batch: int, order: int) -> None:
    """Give an order to one worker."""
    lane = lanes[worker, batch]
    lane["progress"] = NOT_BEGUN
    lane["message_bytes"] = 0
    lane["num_overflows"] = 0
    lane["has_failed"] = 0
    store_release(lanes["order"][worker], batch, order)


@compiled
def give(lanes: Lanes, batch: int, order: int) -> int:
    """Give one order to all workers; return how many of them sleep and must be woken."""
    cpu = current_cpu()
    for worker in range(len(lanes)):
        lanes[worker, batch]["parent_cpu"] = cpu
        give_one(lanes, worker, batch, order)
    # Without it the marks could be read before the orders are visible, and a worker that falls
    # asleep at this moment would be seen awake, and see no order.
    fence_all()
    sleeps = lanes["worker_sleeps"][:, 0]
    num_asleep = 0
    for worker in range(len(lanes)):
        num_asleep += load_acquire(sleeps, worker)
    return num_asleep


@compiled
def await_order(lanes: Lanes, worker: int, spins: int) -> int:
    """Wait for an order; return the batch of the oldest one that is not done, or `NO_ENTRY`."""
    for _ in range(spins):
        if _oldest_order(lanes, worker) != NO_ENTRY:
            lanes[worker, 0]["worker_cpu"] = current_cpu()
            # Again: an older order may have come to a batch that was read before this one came.
            return _oldest_order(lanes, worker)
        pause()
    return NO_ENTRY


@compiled
def _oldest_order(lanes: Lanes, worker: int) -> int:
    """Return the batch of the oldest order that was there when the first batch was read."""
    orders, done = lanes["order"][worker], lanes["done"][worker]
    found, oldest = NO_ENTRY, 0
    for batch in range(len(orders)):
        order = load_acquire(orders, batch)
        if order != done[batch] and (found == NO_ENTRY or order < oldest):
            found, oldest = batch, order
    return found


@compiled
def is_crowded(lanes: Lanes, worker: int, batch: int) -> bool:
    """Whether a worker with an order runs on the core of its parent or of an earlier worker."""
    cpu = lanes[worker, 0]["worker_cpu"]
    if cpu == UNKNOWN_CPU:
        return False
    if cpu == lanes[worker, batch]["parent_cpu"]:
        return True
    num_sharing = 0
    for other in range(worker):
        num_sharing += lanes[other, 0]["worker_cpu"] == cpu
    return num_sharing > 0


@compiled
def finish(lanes: Lanes, worker: int, batch: int, order: int) -> int:
    """Mark an order as done; return whether the parent sleeps and must be woken."""
    store_release(lanes["done"][worker], batch, order)
    fence_all()
    return load_acquire(lanes["parent_sleeps"][worker], batch)


@compiled
def await_done(lanes: Lanes, batch: int, spins: int) -> int:
    """Wait until all workers are done; return the first that is not, or `NO_ENTRY`."""
    orders, done = lanes["order"][:, batch], lanes["done"][:, batch]
    worker = 0
    for _ in range(spins):
        while worker < len(lanes):
            if load_acquire(done, worker) != orders[worker]:
                break
            worker += 1
        if worker == len(lanes):
            return NO_ENTRY
        pause()
    return worker


@compiled
def have_messages(lanes: Lanes, batch: int) -> bool:
    """Whether any worker has left a message, or failed, while it carried out its order."""
    found = 0
    for worker in range(len(lanes)):
        lane = lanes[worker, batch]
        found |= lane["message_bytes"] | lane["num_overflows"] | lane["has_failed"]
    return found != 0


@compiled
def set_parent_sleeps(lanes: Lanes, worker: int, batch: int, sleeps: int) -> None:
    """Mark whether the parent sleeps; look once more before really sleeping."""
    store_release(lanes["parent_sleeps"][worker], batch, sleeps)
    fence_all()


@compiled
def set_worker_sleeps(lanes: Lanes, worker: int, sleeps: int) -> None:
    """Mark whether a worker sleeps; look once more before really sleeping."""
    store_release(lanes["worker_sleeps"][worker], 0, sleeps)
    fence_all()


def prepare() -> None:
    """Compile everything here, or load it; a worker that is forked later need not."""
    lanes = np.zeros((1, 1), dtype=LANE_DTYPE)
    for kernel, num_integers in (
        (give_one, 3),
        (give, 2),
        (await_order, 2),
        (is_crowded, 2),
        (finish, 3),
        (await_done, 2),
        (have_messages, 1),
        (set_parent_sleeps, 3),
        (set_worker_sleeps, 2),
    ):
        direct(kernel, lanes, *[0] * num_integers)
