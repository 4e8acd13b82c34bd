"""A mailbox per env: the draw being played, counters, and a ring of records.

The env's client writes, the host reads; nobody else. Both sides run these kernels over the same
words, which lie in shared memory, or in ordinary memory when host and client are one process. A
record becomes visible in one store, after everything it consists of: a client that is killed
leaves a record or none, never half a one.
"""

import numpy as np

from stepladder.compiled import compiled, load_acquire, store_release
from stepladder.plans.kernels import Floats, Words, draw
from stepladder.plans.record import RECORD_DTYPE, UNBUILDABLE
from stepladder.saving.saved_array import Part

# Written by the client.
M_POSTED, M_STARTED, M_ABORTED, M_PID, M_NEXT_EPISODE, M_WAITS = 0, 1, 2, 3, 4, 5
M_DRAW = 8
# Written by the host.
M_TAKEN, M_REPLAY, M_CLOSED = 16, 17, 18
M_DIALS = 24

RECORD_WORDS = 10
MESSAGE_WORDS = 32
MESSAGE_BYTES = 8 * MESSAGE_WORDS
CAPACITY = 64
"""Records a mailbox holds before its client waits."""

# What the host notes of the batch that is pending: records in it, those that say that a task could
# not be built, its number, and whether messages of those are still to be read.
N_COUNT, N_UNBUILDABLE, N_TICK, N_UNREAD = 0, 1, 2, 3
NOTE_WORDS = 4

NOT_ADMITTED = -3
"""Drawn slot when the mailbox is closed, or the process is not the one that used it last."""


POSTED, NO_ROOM, NEVER_BEGAN = 1, 0, -1
"""What came of an attempt to post."""


def mailbox_words(num_dials: int) -> int:
    """Return the size of one mailbox; a whole number of cache lines."""
    words = M_DIALS + num_dials + CAPACITY * (RECORD_WORDS + MESSAGE_WORDS)
    return (words + 7) // 8 * 8


@compiled
def in_flight(mail: Words) -> bool:
    """Whether an episode has begun and neither ended nor been given up.

    Not a flag of its own: whenever the client is killed, the three counters agree.
    """
    return mail[M_STARTED] - mail[M_ABORTED] - mail[M_POSTED] > 0


@compiled
def start(
    block: Words, mail: Words, env_index: int, pid: int, dials: Floats
) -> tuple[int, int, int, int, int, int, int, int]:
    """Begin an episode: draw from the plan, or take up the draw that a restore left behind.

    Returns:
        All fields of a draw; the slot is negative if nothing could be drawn, and then nothing has
        begun.
    """
    values = mail.view(np.float64)
    if mail[M_PID] != pid or mail[M_CLOSED] > 0:
        return NOT_ADMITTED, 0, 0, 0, 0, 0, env_index, 0
    if mail[M_REPLAY] > 0:
        mail[M_REPLAY] = 0
        # Whoever ended or gave up the restored episode without drawing it has nothing to replay.
        if in_flight(mail):
            for dial in range(len(dials)):
                dials[dial] = values[M_DIALS + dial]
            return (
                mail[M_DRAW],
                mail[M_DRAW + 1],
                mail[M_DRAW + 2],
                mail[M_DRAW + 3],
                mail[M_DRAW + 4],
                mail[M_DRAW + 5],
                env_index,
                mail[M_DRAW + 7],
            )
    episode = mail[M_NEXT_EPISODE]
    slot, generation, task_id, version, seed, tick = draw(block, env_index, episode, dials)
    if slot < 0:
        return slot, 0, 0, version, seed, tick, env_index, episode
    if in_flight(mail):
        mail[M_ABORTED] += 1
    mail[M_DRAW] = slot
    mail[M_DRAW + 1] = generation
    mail[M_DRAW + 2] = task_id
    mail[M_DRAW + 3] = version
    mail[M_DRAW + 4] = seed
    mail[M_DRAW + 5] = tick
    mail[M_DRAW + 6] = env_index
    mail[M_DRAW + 7] = episode
    for dial in range(len(dials)):
        values[M_DIALS + dial] = dials[dial]
    mail[M_NEXT_EPISODE] = episode + 1
    # Visible after all of the above, or a kill in between would leave two episodes in flight.
    store_release(mail, M_STARTED, mail[M_STARTED] + 1)
    return slot, generation, task_id, version, seed, tick, env_index, episode


@compiled
def post(
    mail: Words, ring: int, episode_return: float, length: int, success: float, outcome: int
) -> int:
    """End the episode in flight with a record.

    Returns:
        `POSTED`; or, with nothing changed, `NO_ROOM` (also if the channel is closed) or
        `NEVER_BEGAN`.
    """
    if not in_flight(mail):
        return NEVER_BEGAN
    posted = mail[M_POSTED]
    if posted - load_acquire(mail, M_TAKEN) >= CAPACITY or mail[M_CLOSED] > 0:
        return NO_ROOM
    entry = ring + (posted % CAPACITY) * RECORD_WORDS
    values = mail.view(np.float64)
    mail[entry] = mail[M_DRAW]
    mail[entry + 1] = mail[M_DRAW + 1]
    mail[entry + 2] = mail[M_DRAW + 3]
    mail[entry + 3] = mail[M_DRAW + 5]
    mail[entry + 4] = mail[M_DRAW + 6]
    mail[entry + 5] = mail[M_DRAW + 7]
    values[entry + 6] = episode_return
    mail[entry + 7] = length
    values[entry + 8] = success
    mail[entry + 9] = outcome
    store_release(mail, M_POSTED, posted + 1)
    return POSTED


@compiled
def drain(mails: Words, ring: int, records: Words, rows: Words) -> tuple[int, int]:
    """Copy all posted records of some envs; return how many, and how many unbuildable.

    Nothing counts as taken before `admit`.

    Args:
        mails: All mailboxes, shape ``(num_envs, mailbox_words)``.
        ring: Where in a mailbox the records begin.
        records: Filled from the top, shape ``(num_envs * CAPACITY, RECORD_WORDS)``.
        rows: Whose mailboxes, in this order.
    """
    count, unbuildable = 0, 0
    for env_index in rows:
        mail = mails[env_index]
        posted, taken = load_acquire(mail, M_POSTED), mail[M_TAKEN]
        while taken < posted:
            entry = ring + (taken % CAPACITY) * RECORD_WORDS
            for word in range(RECORD_WORDS):
                records[count, word] = mail[entry + word]
            unbuildable += records[count, 9] == UNBUILDABLE
            count += 1
            taken += 1
    return count, unbuildable


@compiled
def admit(
    mails: Words,
    records: Words,
    count: int,
    unbuildable: int,
    tick: int,
    last: Words,
    histogram: Words,
    note: Words,
) -> None:
    """Take records that were copied over: from here on they are the host's, and noted as pending.

    One call that no interrupt divides. A mailbox with unbuildable ones among them does not count
    as emptied yet: its client could write over their messages, which nobody has read.

    Args:
        mails: All mailboxes.
        records: Words of the records, those of one env next to each other.
        count: How many there are.
        unbuildable: How many of them say that a task could not be built.
        tick: Number of this collection.
        last: As for `measure_staleness`. Changed in place.
        histogram: As for `measure_staleness`. Changed in place.
        note: What is pending, by word. Changed in place.
    """
    measure_staleness(records, count, tick, last, histogram)
    _release(mails, records, count, False)
    note[N_COUNT] = count
    note[N_UNBUILDABLE] = unbuildable
    note[N_TICK] = tick
    note[N_UNREAD] = unbuildable


@compiled
def release_failed(mails: Words, records: Words, note: Words) -> None:
    """Count mailboxes as emptied whose messages have been read; once for each batch."""
    if note[N_UNREAD] > 0:
        note[N_UNREAD] = 0
        _release(mails, records, note[N_COUNT], True)


@compiled
def _release(mails: Words, records: Words, count: int, with_failures: bool) -> None:
    """Count mailboxes as emptied: those with unbuildable records among theirs, or the others."""
    start = 0
    while start < count:
        env_index, end, unbuildable = records[start, 4], start, 0
        while end < count and records[end, 4] == env_index:
            unbuildable += records[end, 9] == UNBUILDABLE
            end += 1
        if (unbuildable > 0) == with_failures:
            store_release(mails[env_index], M_TAKEN, mails[env_index, M_TAKEN] + end - start)
        start = end


@compiled
def measure_staleness(records: Words, count: int, tick: int, last: Words, histogram: Words) -> None:
    """Count by how many collections the plan of each draw lagged behind.

    An env draws after its previous episode has ended. If the records of that moment had been
    collected before the draw, the draw is fresh.

    Args:
        records: Words of the records just collected.
        count: How many there are.
        tick: Number of this collection.
        last: Per env the collection that took its previous record. Changed in place.
        histogram: Draws by lag; the last entry counts all larger ones. Changed in place.
    """
    for index in range(count):
        env_index = records[index, 4]
        lag = max(0, last[env_index] - records[index, 3])
        histogram[min(lag, len(histogram) - 1)] += 1
        last[env_index] = tick


# Saving and resuming.


def copy_steady(mails: Words) -> Words:
    """Copy each mailbox as it was at one moment, though its client may be playing."""
    copies = mails.copy()
    for mail, copied in zip(mails, copies, strict=True):
        while not np.array_equal(copied[:M_PID], mail[:M_PID]):
            copied[:] = mail
    return copies


def without_empty_rings(mails: Words, ring: int) -> Words:
    """Return all mailboxes up to their rings; or whole, if something waits in one."""
    is_empty = np.array_equal(mails[:, M_POSTED], mails[:, M_TAKEN])
    return mails[:, :ring].copy() if is_empty else mails


def head_parts(num_slots: int, num_tasks: int) -> tuple[Part, ...]:
    """Describe saved mailboxes, dials and rings apart.

    Args:
        num_slots: Slots that a draw can name.
        num_tasks: Tasks that it can name.
    """
    return (
        Part.count("number of episodes", np.s_[:, :M_PID]),
        Part.count("process", np.s_[:, M_PID]),
        Part.count("next episode", np.s_[:, M_NEXT_EPISODE]),
        Part.count("waits", np.s_[:, M_WAITS]),
        Part.count("slot drawn", np.s_[:, M_DRAW], num_slots - 1),
        Part.count("generation drawn", np.s_[:, M_DRAW + 1]),
        Part.count("task drawn", np.s_[:, M_DRAW + 2], max(0, num_tasks - 1)),
        Part.count("plan version", np.s_[:, M_DRAW + 3]),
        Part.count("tick", np.s_[:, M_DRAW + 5]),
        Part.count("env", np.s_[:, M_DRAW + 6]),
        Part.count("episode", np.s_[:, M_DRAW + 7]),
        Part.count("records taken", np.s_[:, M_TAKEN]),
        Part.count("whether to replay", np.s_[:, M_REPLAY], 1),
        Part.count("whether it is closed", np.s_[:, M_CLOSED], 0),
    )


def problem_of(heads: Words, ring: int, dial_parts: tuple[Part, ...], num_slots: int) -> str | None:
    """Return why saved mailboxes cannot have been filled by clients, or None.

    Args:
        heads: All mailboxes, with or without their rings; each number is possible by itself.
        ring: Where in a mailbox the records begin.
        dial_parts: What the dials can be.
        num_slots: Slots that a record can name.
    """
    waiting = heads[:, M_POSTED] - heads[:, M_TAKEN]
    playing = heads[:, M_STARTED] - heads[:, M_ABORTED] - heads[:, M_POSTED]
    room = CAPACITY if heads.shape[1] > ring else 0
    own = np.where(heads[:, M_STARTED] > 0, np.arange(len(heads)), 0)
    for name, values, low, high in (
        ("records waiting", waiting, 0, room),
        ("episodes in flight", playing, 0, 1),
        ("env of the draw", heads[:, M_DRAW + 6], own, own),
    ):
        problem = Part(name, ..., low, high).problem(values)
        if problem is not None:
            return problem
    dials = heads[:, M_DIALS:ring].view(np.float64)
    problems = (part.problem(dials) for part in dial_parts)
    return next(filter(None, problems), None) or (
        _problem_of_records(heads, ring, num_slots) if room else None
    )


def _problem_of_records(heads: Words, ring: int, num_slots: int) -> str | None:
    """Return why records that wait in their rings cannot be observed, or None."""
    taken, posted = heads[:, [M_TAKEN]], heads[:, [M_POSTED]]
    is_waiting = (np.arange(CAPACITY) - taken) % CAPACITY < posted - taken
    words = heads[:, ring : ring + CAPACITY * RECORD_WORDS].copy()
    records = words.view(RECORD_DTYPE)[is_waiting]
    envs = np.nonzero(is_waiting)[0]
    told = records[~np.isnan(records["success"])]
    problems = (
        Part.count("slot of a record", "slot", num_slots - 1).problem(records),
        Part.count("generation of a record", "generation").problem(records),
        Part.count("version of a record", "plan_version").problem(records),
        Part.count("tick of a record", "tick").problem(records),
        Part("env of a record", "env_index", envs, envs).problem(records),
        Part.count("episode of a record", "episode_index").problem(records),
        Part("return of a record", "episode_return").problem(records),
        Part.count("length of a record", "length").problem(records),
        Part("success of a record", "success", 0.0, 1.0).problem(told),
        Part.count("outcome of a record", "outcome", UNBUILDABLE).problem(records),
    )
    return next(filter(None, problems), None)
