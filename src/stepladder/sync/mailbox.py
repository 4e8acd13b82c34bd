"""A mailbox per env: the draw being played, counters, and a ring of records.

Between one client and the host. Both run these kernels over the same words, which lie in shared
memory, or in ordinary memory when host and client are one process. The client writes draws, records
and its counters; the host writes how many records it has taken, and whether the channel is closed.
The host touches a client's counters only when the client is dead, or before it plays. A record
becomes visible in one store, after all its fields: a client that is killed leaves a whole record or
none.
"""

from typing import Annotated, Any, cast

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Floats, Words
from stepladder.compiled import bare, inlined, load_acquire, record_at, store_release
from stepladder.plans.kernels import draw
from stepladder.plans.record import (
    RECORD_DTYPE,
    DrawFields,
    RecordArray,
    RecordFields,
)
from stepladder.plans.status import DONE, NEVER_BEGAN, NO_ROOM, NOT_ADMITTED
from stepladder.records import Count, Fields, Limits, Shape
from stepladder.saving.saved_array import Part, SavedArray

CAPACITY = 64
"""Records a mailbox holds before its client waits."""

MESSAGE_BYTES = 256
"""Room for the reason why a task could not be built, one for each record."""


class Head(Fields):
    """The first words of a mailbox.

    What the client and what the host writes in every episode lies in different cache lines.
    """

    posted: Count
    """Records that the client has left, ever."""
    started: Count
    aborted: Count
    pid: Count
    next_episode: Count
    waits: Count
    client_reserved: Annotated[Words, Shape(2)]
    draw: DrawFields
    """What is being played."""
    taken: Count
    """Records that the host has taken, ever."""
    replay: Annotated[int, Limits(0, 1)]
    """Whether the draw is to be played again: set by a restore, cleared by the client."""
    closed: Annotated[int, Limits(0, 1)]
    host_reserved: Annotated[Words, Shape(5)]


HEAD = Head.dtype
HEAD_WORDS, RECORD_WORDS = Head.num_words, RecordFields.num_words


class Mailboxes:
    """The mailboxes of some envs as words, and the parts of them by name.

    Args:
        words: Shape ``(num_envs, words_per_mailbox(num_dials))``.
        num_dials: Dials of the plan.
    """

    def __init__(self, words: Words, num_dials: int):
        self.words = words
        self.ring_at = HEAD_WORDS + num_dials
        """The word of a mailbox at which its records begin."""
        messages_at = self.ring_at + CAPACITY * RECORD_WORDS
        self.heads: npt.NDArray[Any] = words[:, :HEAD_WORDS].view(HEAD)[:, 0]
        """The head of each, a `Head`."""
        self.dials: Floats = words[:, HEAD_WORDS : self.ring_at].view(np.float64)
        """What the plan's dials said at the last draw."""
        self.rings: RecordArray = cast(
            "Any", words[:, self.ring_at : messages_at].view(RECORD_DTYPE)
        )
        self.messages: npt.NDArray[np.uint8] = (
            words[:, messages_at : messages_at + CAPACITY * MESSAGE_BYTES // 8]
            .view(np.uint8)
            .reshape(len(words), CAPACITY, MESSAGE_BYTES)
        )

    def copy_steady(self) -> "Mailboxes":
        """Copy each mailbox as it was at one moment, though its client may be playing."""
        copies = Mailboxes(self.words.copy(), self.dials.shape[1])
        counted = ["posted", "started", "aborted"]
        while (differ := copies.heads[counted] != self.heads[counted]).any():
            copies.words[differ] = self.words[differ]
        return copies

    def without_empty_rings(self) -> Words:
        """Return the words of all mailboxes up to their rings; all of them if a record waits."""
        is_empty = np.array_equal(self.heads["posted"], self.heads["taken"])
        return self.words[:, : self.ring_at].copy() if is_empty else self.words

    def saved_arrays(
        self, num_slots: int, num_tasks: int, dial_parts: tuple[Part, ...], has_rings: bool
    ) -> list[SavedArray]:
        """Describe mailboxes as they are saved.

        Args:
            num_slots: Slots that a draw can name.
            num_tasks: Tasks that it can name.
            dial_parts: What the dials can be.
            has_rings: Whether records wait in them, and are saved too.
        """
        num_envs = len(self.words)
        limits = {
            "draw.slot": (0, num_slots - 1),
            "draw.task_id": (0, max(0, num_tasks - 1)),
            "draw.env_index": (0, num_envs - 1),
            "closed": (0, 0),
        }
        described = [
            SavedArray("heads", self.heads, Head.parts(limits)),
            SavedArray("dials", self.dials, dial_parts),
        ]
        if has_rings:
            # What waits is checked by `problem_of`; the rest is old, or was never written.
            anything = (
                Part("", "success", -np.inf, np.inf),
                Part("", "episode_return", -np.inf, np.inf),
            )
            described += [
                SavedArray("rings", self.rings, anything),
                SavedArray("messages", self.messages),
            ]
        return described

    def problem_of(
        self, heads: npt.NDArray[Any], rings: RecordArray | None, num_slots: int
    ) -> str | None:
        """Return why saved mailboxes cannot have been filled by clients, or None.

        Args:
            heads: Each number is possible by itself.
            rings: The saved rings, if records wait.
            num_slots: Slots that a record can name.
        """
        taken, posted = heads["taken"], heads["posted"]
        own = np.where(heads["started"] > 0, np.arange(len(heads)), 0)
        problems = [
            Part(name, ..., low, high).problem(values)
            for name, values, low, high in (
                ("records waiting", posted - taken, 0, 0 if rings is None else CAPACITY),
                ("episodes in flight", heads["started"] - heads["aborted"] - posted, 0, 1),
                ("env of the draw", heads["draw"]["env_index"], own, own),
            )
        ]
        if rings is not None and not any(problems):
            ahead = (np.arange(CAPACITY) - taken[:, None]) % CAPACITY
            is_waiting = ahead < (posted - taken)[:, None]
            records, envs = rings[is_waiting], np.nonzero(is_waiting)[0]
            known = records[~np.isnan(records["success"])]
            limits = {"slot": (0, num_slots - 1), "env_index": (envs, envs)}
            problems += [part.problem(records) for part in RecordFields.parts(limits)]
            problems.append(Part("episode return", "episode_return").problem(records))
            problems.append(Part("success", "success", 0.0, 1.0).problem(known))
        return next(filter(None, problems), None)


def words_per_mailbox(num_dials: int) -> int:
    """Return the size of one mailbox, a multiple of a cache line."""
    words = HEAD_WORDS + num_dials + CAPACITY * (RECORD_WORDS + MESSAGE_BYTES // 8)
    return (words + 7) // 8 * 8


@inlined
def head_of(mail: Words) -> Head:
    """Return the head of a mailbox."""
    return record_at(mail, 0, HEAD)


@inlined
def entry_of(mail: Words, ring: int, number: int) -> RecordFields:
    """Return the place of a mailbox's record with a number."""
    return record_at(mail, ring + (number % CAPACITY) * RECORD_WORDS, RECORD_DTYPE)


@bare
def in_flight(mail: Words) -> bool:
    """Whether an episode has begun and neither ended nor been given up.

    Not a flag of its own: whenever the client is killed, the three counters agree.
    """
    head = head_of(mail)
    return head.started - head.aborted - head.posted > 0


@bare
def start(
    block: Words, mail: Words, env_index: int, pid: int, dials: Floats
) -> tuple[int, int, int, int, int, int, int, int]:
    """Begin an episode: draw from the plan, or take up the draw that a restore left behind.

    Returns:
        All fields of a draw; the slot is negative if nothing could be drawn, and then nothing has
        begun.
    """
    head, values = head_of(mail), mail.view(np.float64)
    drawn = head.draw
    if head.pid != pid or head.closed > 0:
        return NOT_ADMITTED, 0, 0, 0, 0, 0, env_index, 0
    if head.replay > 0:
        head.replay = 0
        # If the restored episode was ended or aborted without a draw, there is nothing to replay.
        if in_flight(mail):
            for dial in range(len(dials)):
                dials[dial] = values[HEAD_WORDS + dial]
            return (
                drawn.slot,
                drawn.generation,
                drawn.task_id,
                drawn.plan_version,
                drawn.seed,
                drawn.tick,
                env_index,
                drawn.episode_index,
            )
    episode = head.next_episode
    slot, generation, task_id, version, seed, tick = draw(block, env_index, episode, dials)
    if slot < 0:
        return slot, 0, 0, version, seed, tick, env_index, episode
    if in_flight(mail):
        head.aborted += 1
    drawn.slot = slot
    drawn.generation = generation
    drawn.task_id = task_id
    drawn.plan_version = version
    drawn.seed = seed
    drawn.tick = tick
    drawn.env_index = env_index
    drawn.episode_index = episode
    for dial in range(len(dials)):
        values[HEAD_WORDS + dial] = dials[dial]
    head.next_episode = episode + 1
    # Visible after all of the above, or a kill in between would leave two episodes in flight.
    store_release(head, "started", head.started + 1)
    return slot, generation, task_id, version, seed, tick, env_index, episode


@bare
def post(
    mail: Words, ring: int, episode_return: float, length: int, success: float, outcome: int
) -> int:
    """End the episode in flight with a record.

    Returns:
        `DONE`; or, with nothing changed, `NO_ROOM` (also if the channel is closed) or
        `NEVER_BEGAN`.
    """
    head = head_of(mail)
    drawn = head.draw
    if not in_flight(mail):
        return NEVER_BEGAN
    posted = head.posted
    if posted - load_acquire(head, "taken") >= CAPACITY or head.closed > 0:
        return NO_ROOM
    entry = entry_of(mail, ring, posted)
    entry.slot = drawn.slot
    entry.generation = drawn.generation
    entry.plan_version = drawn.plan_version
    entry.tick = drawn.tick
    entry.env_index = drawn.env_index
    entry.episode_index = drawn.episode_index
    entry.episode_return = episode_return
    entry.length = length
    entry.success = success
    entry.outcome = outcome
    store_release(head, "posted", posted + 1)
    return DONE
