"""Compiled parts of the phased curriculum: count the episodes of a phase, switch phases.

Called by `phased`, which owns the arrays. What follows from a batch is noted as due in the same
call that counts it, and taken off the list in the same call that does it.
"""
# pyright: reportReturnType=false, reportArgumentType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

import numpy as np

from stepladder.compiled import compiled
from stepladder.plans.kernels import (
    H_DIALS,
    H_SEQUENCE,
    H_TABLE,
    Floats,
    Words,
    begin_write,
    end_write,
)
from stepladder.plans.record import RecordArray
from stepladder.stats.window import push

# Dials, from the first one of this curriculum.
D_PHASE, D_EPISODES = 0, 1

# Columns of the counts per phase.
EPISODES, STEPS, ENTRY_VERSION, FILL, HEAD = 0, 1, 2, 3, 4
NUM_COUNTS = 5
NOT_ENTERED = 2**62

# What is due after records were counted: settings that change with them, perhaps a switch.
RAMPS, SWITCH = 0, 1
NUM_DUE = 2


@compiled
def oldest_version(records: RecordArray) -> int:
    """Return the lowest plan version in a batch."""
    oldest = NOT_ENTERED
    for index in range(len(records)):
        oldest = min(oldest, records[index].plan_version)
    return oldest


@compiled
def count_phase(
    records: RecordArray,
    counts: Words,
    window: Floats,
    counters: Words,
    num_orphaned: int,
    due: Words,
) -> None:
    """Count the episodes of one phase; note that what follows from them is due."""
    counters[2] += num_orphaned
    due[:] = 1
    for index in range(len(records)):
        counters[0] += 1
        counters[1] += records[index].length
        counts[EPISODES] += 1
        counts[STEPS] += records[index].length
        if records[index].success == records[index].success:
            counts[FILL], counts[HEAD] = push(
                window, counts[FILL], counts[HEAD], records[index].success
            )


@compiled
def publish(block: Words, first_dial: int, phase: int, episodes: int, due: Words) -> None:
    """Write how far the current phase has come, for settings that depend on it."""
    begin_write(block)
    write_dials(block, first_dial, phase, episodes)
    due[RAMPS] = 0
    end_write(block)


@compiled
def write_dials(block: Words, first_dial: int, phase: int, episodes: int) -> None:
    """Write the dials of a phased curriculum. Call between begin and end."""
    dials = block.view(np.float64)[block[H_DIALS] + first_dial :]
    dials[D_PHASE] = phase
    dials[D_EPISODES] = episodes


@compiled
def enter(block: Words, first_dial: int, counts: Words, due: Words, index: int, table: int) -> None:
    """Switch phases: weights, phase and settings change in one write.

    Nothing is changed unless a switch is due, and none is due afterwards.
    """
    if due[SWITCH] == 0:
        return
    begin_write(block)
    # The version that readers will see when this write has ended.
    counts[index, ENTRY_VERSION] = (block[H_SEQUENCE] + 1) >> 1
    write_dials(block, first_dial, index, counts[index, EPISODES])
    block[H_TABLE] = table
    end_write(block)
    due[SWITCH] = 0
