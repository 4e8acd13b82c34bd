"""A mailbox per env: the draw being played, counters, and a ring of records.

The env's client writes, the host reads; nobody else. Both sides run these kernels over the same
words, which lie in shared memory, or in ordinary memory when host and client are one process. A
record becomes visible in one store, after everything it consists of: a client that is killed
leaves a record or none, never half a one.
"""

import numpy as np

from stepladder.compiled import compiled, load_acquire, store_release
from stepladder.curricula.kernels import Floats, Words, draw
from stepladder.curricula.record import UNBUILDABLE

# Written by the client.
M_POSTED, M_STARTED, M_ABORTED, M_PID, M_NEXT_EPISODE, M_WAITS = 0, 1, 2, 3, 4, 5
M_DRAW = 8
DRAW_WORDS = 8
# Written by the host.
M_TAKEN, M_REPLAY, M_CLOSED = 16, 17, 18
M_DIALS = 24

RECORD_WORDS = 10
MESSAGE_WORDS = 32
MESSAGE_BYTES = 8 * MESSAGE_WORDS
CAPACITY = 64
"""Records a mailbox holds before its client waits."""


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
) -> tuple[int, int, int, int, int, int, int]:
    """Begin an episode: draw from the plan, or take up the draw that a restore left behind.

    Returns:
        Slot, generation, task id, plan version, seed, tick and episode index; the slot is
        negative if nothing could be drawn, and then nothing has begun.
    """
    values = mail.view(np.float64)
    mail[M_PID] = pid
    if mail[M_REPLAY] > 0:
        mail[M_REPLAY] = 0
        for dial in range(len(dials)):
            dials[dial] = values[M_DIALS + dial]
        return (
            mail[M_DRAW],
            mail[M_DRAW + 1],
            mail[M_DRAW + 2],
            mail[M_DRAW + 3],
            mail[M_DRAW + 4],
            mail[M_DRAW + 5],
            mail[M_DRAW + 7],
        )
    episode = mail[M_NEXT_EPISODE]
    slot, generation, task_id, version, seed, tick = draw(block, env_index, episode, dials)
    if slot < 0:
        return slot, 0, 0, version, seed, tick, episode
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
    mail[M_STARTED] += 1
    return slot, generation, task_id, version, seed, tick, episode


@compiled
def post(
    mail: Words, ring: int, episode_return: float, length: int, success: float, outcome: int
) -> bool:
    """End the episode in flight with a record; False, with nothing changed, if there is no room."""
    posted = mail[M_POSTED]
    if posted - load_acquire(mail, M_TAKEN) >= CAPACITY:
        return False
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
    return True


@compiled
def drain(mails: Words, ring: int, records: Words) -> tuple[int, int]:
    """Move all posted records out, in env order; return how many, and how many unbuildable.

    Args:
        mails: All mailboxes, shape ``(num_envs, mailbox_words)``.
        ring: Where in a mailbox the records begin.
        records: Filled from the top, shape ``(num_envs * CAPACITY, RECORD_WORDS)``.
    """
    count, unbuildable = 0, 0
    for env_index in range(mails.shape[0]):
        mail = mails[env_index]
        posted, taken = load_acquire(mail, M_POSTED), mail[M_TAKEN]
        if posted == taken:
            continue
        while taken < posted:
            entry = ring + (taken % CAPACITY) * RECORD_WORDS
            for word in range(RECORD_WORDS):
                records[count, word] = mail[entry + word]
            unbuildable += records[count, 9] == UNBUILDABLE
            count += 1
            taken += 1
        store_release(mail, M_TAKEN, taken)
    return count, unbuildable


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
