"""What every compiled method does with a batch of records, whatever its rule is.

Called by the kernels of the methods. A method has a rule for one result (`observe_one`); checking
the batch, counting it, leaving out results of tasks that were replaced, and keeping readers out of
the plan in the meantime is the same for all and written here once. Everything is compiled into its
caller. `simulator.loops` puts the same rules into a loop that plays whole runs in compiled code.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from stepladder.arrays import Words
from stepladder.compiled import compiled, inlined
from stepladder.curricula.pooled.pooling import Cell
from stepladder.curricula.targeting import follow_target
from stepladder.plans.kernels import begin_write, end_write
from stepladder.plans.layout import slot_of, table_of
from stepladder.plans.record import RecordFields, first_bad_record
from stepladder.plans.status import DONE, TO_REPLACE
from stepladder.records import Count, Fields, Limits, Records, Shape

MAX_NOTED = 64


class CompiledRule(NamedTuple):
    """Kernels of a method for the compiled simulator; each takes first what `kernel_state` returns.

    That is block, table, state and constants. Both must be compiled functions of a module, so that
    numba can keep the loop on disk.
    """

    observe_one: Callable[..., None]
    """Learns from one valid episode, given its slot, success and return."""

    settle: Callable[..., int]
    """Ends a batch of episodes; returns `status.TO_REPLACE` if a task should make room for
    another, else `status.DONE`."""

    changes_plan: bool = True
    """Whether the kernels write to the plan; then readers are kept away during a round."""


class Totals(Fields):
    """What a curriculum has seen so far."""

    num_observed: Count
    """Records observed."""
    num_steps: Count
    """Env steps in them."""
    num_orphaned: Count
    """Results of tasks that were replaced before they arrived; credited to no task."""
    target: Cell
    """Success on tasks that count, if some do."""


class Noted(Fields):
    """Slots to replace; one may be there more than once."""

    count: Annotated[int, Limits(0, MAX_NOTED)]
    slots: Annotated[Words, Shape(MAX_NOTED)]


@inlined
def count_record(
    block: Words,
    table: int,
    totals: Totals,
    slot: int,
    generation: int,
    length: int,
    success: float,
) -> bool:
    """Count a record; return whether the task that was played is still in its slot.

    Every method calls it once for each record. If there is a target, the plan follows the success
    on it; a record without success changes nothing there.
    """
    totals.num_observed += 1
    totals.num_steps += length
    if generation != slot_of(block, slot).generation:
        totals.num_orphaned += 1
        return False
    if table_of(block, table).targets_at > 0 and success == success:
        follow_target(block, table, totals.target, slot, success)
    return True


@compiled
def note(noted: Noted, slot: int) -> None:
    """Put a slot on the list, unless the list is full."""
    if noted.count < MAX_NOTED:
        noted.slots[noted.count] = slot
        noted.count += 1


@inlined
def settle_noted(block: Words, table: int, state: Any, constants: Any) -> int:
    """Say whether tasks are to be replaced: for methods whose shares do not depend on a batch."""
    return TO_REPLACE if state.method[0].noted.count > 0 else DONE


@inlined
def observe_batch(
    observe_one: Callable[..., None],
    settle: Callable[..., int],
    block: Words,
    table: int,
    state: Any,
    constants: Any,
    records: Records[RecordFields],
    needs_success: bool,
) -> int:
    """Let a rule learn from every result of a batch, in one write.

    Args:
        observe_one: The rule; called with block, table, state, constants, slot, success, return.
        settle: Called with block, table, state and constants after the last one; says what follows.
        block: The plan.
        table: The method's weight table in it.
        state: The method's arrays; ``method[0]`` has `Totals`. Changed in place.
        constants: Its settings and tables.
        records: The batch.
        needs_success: Whether each must say how successful the episode was.

    Returns:
        `DONE`, `TO_REPLACE`, or the index of an impossible record with nothing changed.
    """
    bad = first_bad_record(records, len(state.tasks), needs_success)
    if bad >= 0 or len(records) == 0:
        return bad
    totals = state.method[0].totals
    begin_write(block)
    for index in range(len(records)):
        record = records[index]
        slot, success, episode_return = record.slot, record.success, record.episode_return
        if count_record(block, table, totals, slot, record.generation, record.length, success):
            observe_one(block, table, state, constants, slot, success, episode_return)
    status = settle(block, table, state, constants)
    end_write(block)
    return status
