"""What a node agent does with records: moves them out of mailboxes, whoever is killed meanwhile.

Kernels over a node's `board`, called by `node`; and the host's side of it, which puts the records
that have travelled into mailboxes of its own. A record is named by its env and its number among the
records of that env, so one that was sent twice is recognised whoever was killed in between.
"""

from stepladder.arrays import Words
from stepladder.compiled import compiled, load_acquire, record_at, store_release
from stepladder.plans.layout import HEADER, header_of
from stepladder.plans.record import RecordFields
from stepladder.records import Count, Fields, Records
from stepladder.sync import mailbox
from stepladder.sync.mailbox import entry_of, head_of

OUTBOX = 65_536
"""Records that wait on a node until the host has them in a snapshot."""

SEQUENCE_AT = int(HEADER.fields["sequence"][1]) // 8  # type: ignore[index]
"""The word of a plan that is odd while it is being written."""

NO_GAP = -1


class BoardHead(Fields):
    """The first words of a board."""

    magic: int
    nonce: int
    first_env: Count
    """Global index of the env in row 0."""
    num_rows: Count
    plan_words: Count
    num_dials: Count
    filled: Count
    """Records ever put into the outbox."""
    freed: Count
    """Of these, the ones that a snapshot of the host holds; their room is free."""
    answered_ns: int
    """When the host last answered the agent, by the monotonic clock of the machine."""
    closed: int
    agent_pid: int
    reserved_1: int
    reserved_2: int
    reserved_3: int
    reserved_4: int
    reserved_5: int


BOARD_HEAD = BoardHead.dtype


@compiled
def move(
    board: Words, mails: Words, ring: int, records: Records[RecordFields], numbers: Words
) -> int:
    """Move what is in the mailboxes to the outbox, in env order; return how many did not fit.

    A kill at any line is repaired by `release`: all records count as moved in one store, after
    which `release` tells the mailboxes.

    Args:
        board: The words of the board, whose head counts the outbox.
        mails: The words of all its mailboxes.
        ring: Where in a mailbox the records begin.
        records: The outbox, a ring.
        numbers: Beside each of its records, which of its env's records it is.
    """
    head = record_at(board, 0, BOARD_HEAD)
    filled, freed, left = head.filled, head.freed, 0
    for row in range(len(mails)):
        own = head_of(mails[row])
        posted, taken = load_acquire(own, "posted"), own.taken
        while taken < posted and filled - freed < OUTBOX:
            records[filled % OUTBOX] = entry_of(mails[row], ring, taken)
            numbers[filled % OUTBOX] = taken
            taken += 1
            filled += 1
        left += posted - taken
    store_release(head, "filled", filled)
    return left


@compiled
def release(
    board: Words, mails: Words, records: Records[RecordFields], numbers: Words, first: int
) -> None:
    """Note in mailboxes what has been moved out of them since the outbox had `first` records.

    Twice changes nothing: an agent that begins does it for all that a killed one may have left out.
    """
    head = record_at(board, 0, BOARD_HEAD)
    for place in range(first, head.filled):
        row = records[place % OUTBOX].env_index - head.first_env
        own = head_of(mails[row])
        own_number = numbers[place % OUTBOX]
        if own.taken <= own_number:
            store_release(own, "taken", own_number + 1)


@compiled
def overwrite(block: Words, places: Words, values: Words, sequence: int) -> None:
    """Bring a plan up to date: some of its words, and what its sequence is then.

    Also repairs a plan that a killed agent was writing.
    """
    header = header_of(block)
    store_release(header, "sequence", header.sequence | 1)
    # The same as before the writes of the host: readers that see one of them see the odd number.
    for index in range(len(places)):
        if places[index] != SEQUENCE_AT:
            store_release(block, places[index], values[index])
    store_release(header, "sequence", sequence)


@compiled
def put(
    mails: Words,
    ring: int,
    records: Records[RecordFields],
    numbers: Words,
    start: int,
    end: int,
    num_repeats: Words,
) -> tuple[int, int]:
    """Put records that have come from nodes into the host's mailboxes, as if posted there.

    Args:
        mails: The words of the host's mailboxes.
        ring: Where in a mailbox the records begin.
        records: The records, those of an env in their order.
        numbers: Which of its env's records each is.
        start: The first one to put.
        end: The one after the last.
        num_repeats: Counts records that the host has had already; one word, changed in place.

    Returns:
        The first record for which there is no room, or `end`; and the first whose predecessor is
        missing, or `NO_GAP`.
    """
    for index in range(start, end):
        mail = mails[records[index].env_index]
        head = head_of(mail)
        if numbers[index] < head.posted:
            num_repeats[0] += 1
            continue
        if numbers[index] > head.posted:
            return index, index
        if head.posted - head.taken >= mailbox.CAPACITY:
            return index, NO_GAP
        place = entry_of(mail, ring, head.posted)
        record = records[index]
        place.slot = record.slot
        place.generation = record.generation
        place.plan_version = record.plan_version
        place.tick = record.tick
        place.env_index = record.env_index
        place.episode_index = record.episode_index
        place.episode_return = record.episode_return
        place.length = record.length
        place.success = record.success
        place.outcome = record.outcome
        head.posted += 1
    return end, NO_GAP
