"""What the host does with mailboxes: copies the records out of them and counts them as emptied.

Between `mailbox`, whose words these kernels read, and `collector`, which calls them. Nothing counts
as taken before `admit`, so a collection that is interrupted loses nothing.
"""

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Words
from stepladder.compiled import bare, compiled, load_acquire, store_release
from stepladder.plans.record import UNBUILDABLE, RecordFields
from stepladder.records import Fields, Records
from stepladder.sync.counts import measure_staleness
from stepladder.sync.mailbox import entry_of, head_of


class TakenBatch(Fields):
    """What the host notes of the records that it has taken and not finished with."""

    count: int
    """Records in it; 0 when nothing is left to do."""
    num_unbuildable: int
    """Records that say that a task could not be built."""
    tick: int
    """Number of the collection."""
    is_unread: int
    """Whether messages of the unbuildable ones are still to be read."""


@compiled
def set_taken(mail: Words, taken: int) -> None:
    """Note how many records the host has taken, where the host cannot write itself."""
    head_of(mail).taken = taken


@bare
def drain(mails: Words, ring: int, records: Records[RecordFields], rows: Words) -> tuple[int, int]:
    """Copy all posted records of some envs; return how many, and how many unbuildable.

    Nothing counts as taken before `admit`.

    Args:
        mails: The words of all mailboxes.
        ring: Where in a mailbox the records begin.
        records: Filled from the beginning; room for ``num_envs * CAPACITY``.
        rows: Whose mailboxes, in this order.
    """
    count, num_unbuildable = 0, 0
    for env_index in rows:
        mail = mails[env_index]
        head = head_of(mail)
        posted, taken = load_acquire(head, "posted"), head.taken
        while taken < posted:
            records[count] = entry_of(mail, ring, taken)
            num_unbuildable += records[count].outcome == UNBUILDABLE
            count += 1
            taken += 1
    return count, num_unbuildable


@bare
def admit(
    mails: Words,
    records: Records[RecordFields],
    count: int,
    num_unbuildable: int,
    tick: int,
    last: Words,
    histogram: Words,
    taken: Records[TakenBatch],
) -> None:
    """Take the records that were copied: count their mailboxes as emptied, and note the batch.

    One call, so an interrupt comes before or after it. A mailbox with unbuildable records does not
    count as emptied yet: its client could write over their messages, which are read later.

    Args:
        mails: The words of all mailboxes.
        records: The records, those of one env next to each other.
        count: How many there are.
        num_unbuildable: How many of them say that a task could not be built.
        tick: Number of this collection; it and the next two as for `measure_staleness`.
        last: Changed in place.
        histogram: Changed in place.
        taken: The note of the batch, one record. Changed in place.
    """
    measure_staleness(records, count, tick, last, histogram)
    _release(mails, records, count, False)
    note = taken[0]
    note.count = count
    note.num_unbuildable = num_unbuildable
    note.tick = tick
    note.is_unread = num_unbuildable > 0


@bare
def take(
    mails: Words,
    ring: int,
    records: Records[RecordFields],
    rows: Words,
    tick: int,
    last: Words,
    histogram: Words,
    taken: Records[TakenBatch],
) -> int:
    """Copy all posted records of some envs, and take them; return how many there are.

    `drain` and `admit` in one call; they explain the arguments.
    """
    count, num_unbuildable = drain(mails, ring, records, rows)
    if count > 0:
        admit(mails, records, count, num_unbuildable, tick, last, histogram, taken)
    return count


@bare
def take_flagged(
    mails: Words,
    ring: int,
    records: Records[RecordFields],
    flags: npt.NDArray[np.bool_],
    rows: Words,
    tick: int,
    last: Words,
    histogram: Words,
    taken: Records[TakenBatch],
) -> int:
    """Do the same for the envs with a flag; `rows` has room for the numbers of all of them."""
    num_rows = 0
    for env_index in range(len(flags)):
        if flags[env_index]:
            rows[num_rows] = env_index
            num_rows += 1
    return take(mails, ring, records, rows[:num_rows], tick, last, histogram, taken)


@compiled
def release_failed(
    mails: Words, records: Records[RecordFields], taken: Records[TakenBatch]
) -> None:
    """Count mailboxes as emptied whose messages have been read; once for each batch."""
    note = taken[0]
    if note.is_unread > 0:
        note.is_unread = 0
        _release(mails, records, note.count, True)


@compiled
def _release(mails: Words, records: Records[RecordFields], count: int, with_failures: bool) -> None:
    """Count mailboxes as emptied: those with unbuildable records among theirs, or the others."""
    start = 0
    while start < count:
        env_index, end, num_unbuildable = records[start].env_index, start, 0
        while end < count and records[end].env_index == env_index:
            num_unbuildable += records[end].outcome == UNBUILDABLE
            end += 1
        if (num_unbuildable > 0) == with_failures:
            head = head_of(mails[env_index])
            store_release(head, "taken", head.taken + end - start)
        start = end
