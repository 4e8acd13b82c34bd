"""Compiled parts of the phased curriculum: count the episodes of a phase, switch phases.

Called by `phased`, which owns the arrays. What follows from a batch is noted as due in the same
call that counts it, and taken off the list in the same call that does it.
"""

from typing import Annotated, NamedTuple

from stepladder.arrays import Floats, Words
from stepladder.compiled import compiled, inlined, record_at
from stepladder.curricula.owner import PlainMethod
from stepladder.curricula.phased.settings import PHASE_DIALS
from stepladder.plans.kernels import begin_write, end_write
from stepladder.plans.layout import header_of
from stepladder.plans.record import RecordFields
from stepladder.records import Count, Fields, Limits, Records
from stepladder.stats.window import push

NOT_ENTERED = 2**62


class PhaseEvidence(Fields):
    """What is known of a phase."""

    num_episodes: Count
    num_steps: Count
    entry_version: Annotated[int, Limits(0, NOT_ENTERED)]
    """Version of the plan with which it was entered."""
    fill: int
    """Results in its window."""
    head: int
    """Where in the window the next one goes."""


class State(NamedTuple):
    """Everything that the method learns."""

    method: Records[PlainMethod]
    phases: Records[PhaseEvidence]
    windows: Annotated[Floats, Limits(0.0, 1.0 + 1e-9)]
    """The latest results of each phase; a phase may use only the beginning of its row."""


class PhaseDue(Fields):
    """What is due after records were counted."""

    ramps: int
    """Settings that change with the number of episodes."""
    switch: int
    """Perhaps a switch of phases."""


@compiled
def oldest_version(records: Records[RecordFields]) -> int:
    """Return the lowest plan version in a batch."""
    oldest = NOT_ENTERED
    for index in range(len(records)):
        oldest = min(oldest, records[index].plan_version)
    return oldest


@compiled
def count_phase(
    records: Records[RecordFields],
    state: State,
    phase: int,
    window_size: int,
    num_orphaned: int,
    due: Records[PhaseDue],
) -> None:
    """Count the episodes of one phase; note that what follows from them is due."""
    totals, own = state.method[0].totals, state.phases[phase]
    window = state.windows[phase][:window_size]
    totals.num_orphaned += num_orphaned
    due[0].ramps = 1
    due[0].switch = 1
    for index in range(len(records)):
        record = records[index]
        totals.num_observed += 1
        totals.num_steps += record.length
        own.num_episodes += 1
        own.num_steps += record.length
        if record.success == record.success:
            own.fill, own.head = push(window, own.fill, own.head, record.success)


@inlined
def _write_dials(block: Words, first_dial: int, phase: int, num_episodes: int) -> None:
    """Write the dials of a phased curriculum. Call between begin and end."""
    dials = record_at(block, header_of(block).dials_at + first_dial, PHASE_DIALS)
    dials.phase = phase
    dials.num_episodes = num_episodes


@compiled
def publish(
    block: Words, first_dial: int, state: State, phase: int, due: Records[PhaseDue]
) -> None:
    """Write how far the current phase has come, for settings that depend on it."""
    begin_write(block)
    _write_dials(block, first_dial, phase, state.phases[phase].num_episodes)
    due[0].ramps = 0
    end_write(block)


@compiled
def enter(
    block: Words, first_dial: int, state: State, due: Records[PhaseDue], phase: int, table: int
) -> None:
    """Switch phases: weights, phase and settings change in one write.

    Nothing is changed unless a switch is due, and none is due afterwards.
    """
    if due[0].switch == 0:
        return
    header, own = header_of(block), state.phases[phase]
    begin_write(block)
    # The version that readers will see when this write has ended.
    own.entry_version = (header.sequence + 1) >> 1
    _write_dials(block, first_dial, phase, own.num_episodes)
    header.table_at = table
    end_write(block)
    due[0].switch = 0
