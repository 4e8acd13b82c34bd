"""The host of a cluster: its mailboxes are filled by what nodes send, and can become more.

Inside `service`. How a record is observed is the business of `sync.collector`, as everywhere.
"""

from collections import deque
from collections.abc import Mapping

import numpy as np

from stepladder.arrays import Words
from stepladder.cluster import outbox
from stepladder.cluster.board import BoardClient, BoardShape
from stepladder.cluster.messages import PlanUpdate
from stepladder.cluster.outbox import NO_GAP, SEQUENCE_AT
from stepladder.errors import ChannelError
from stepladder.plans.record import RECORD_DTYPE, UNBUILDABLE, RecordArray
from stepladder.sync import mailbox
from stepladder.sync.host import Host
from stepladder.sync.mailbox import Mailboxes

LOST_REASON = "the reason was lost with a node agent that was killed"


class ClusterHost(Host):
    """The curriculum's side of a channel whose envs are on many machines."""

    def _make_mails(self, num_words: int) -> Words:
        self._reported: Words = np.zeros(self.num_envs, dtype=np.int64)
        return np.zeros((self.num_envs, num_words), dtype=np.int64)

    def client(self, env_index: int) -> BoardClient:
        """Return a client without a place; the node agent of the env gives it one."""
        self._check_env_index(env_index)
        shape = BoardShape(1, len(self.curriculum.plan.block), self._num_dials)
        return BoardClient(self.curriculum, shape)

    @property
    def board_words(self) -> tuple[int, int]:
        """Words of the plan, and numbers beside it: what the shape of a board depends on."""
        return len(self.curriculum.plan.block), self._num_dials

    def grow(self, num_more: int) -> int:
        """Make room for more envs; return the index of the first of them."""
        self.collect()
        first = self.num_envs
        self.num_envs = first + num_more
        more = np.zeros((num_more, self.mails.words.shape[1]), dtype=np.int64)
        self.mails = Mailboxes(np.concatenate([self.mails.words, more]), self._num_dials)
        self.mails.heads["next_episode"][first:] = self.curriculum.next_episode
        self._reported = np.concatenate([self._reported, np.zeros(num_more, dtype=np.int64)])
        self._last_tick = np.concatenate([self._last_tick, np.zeros(num_more, dtype=np.int64)])
        self._all_rows = np.arange(self.num_envs)
        self._flagged_rows = np.zeros_like(self._all_rows)
        self._records = np.zeros(self.num_envs * mailbox.CAPACITY, RECORD_DTYPE)
        return first

    def note_heads(self, heads: Words) -> None:
        """Take over counters of envs, one row each: env, started, aborted, next episode."""
        envs, own = heads[:, 0], self.mails.heads
        self._reported[envs] = heads[:, 1]
        own["aborted"][envs], own["next_episode"][envs] = heads[:, 2], heads[:, 3]
        self._settle(envs)

    def _settle(self, envs: Words) -> None:
        """Count episodes as started whose records are here, and one that may be running.

        What a node has reported runs ahead of the records that it has sent.
        """
        own = self.mails.heads
        most = own["aborted"][envs] + own["posted"][envs] + 1
        own["started"][envs] = started = np.minimum(self._reported[envs], most)
        own["draw"]["env_index"][envs] = np.where(started > 0, envs, 0)

    def receive(self, records: RecordArray, numbers: Words, texts: Mapping[int, str]) -> int:
        """Observe records that nodes have sent, by env and episode; return how many were repeats.

        Args:
            records: The records, those of an env in their order.
            numbers: Which of its env's records each is.
            texts: Why a task could not be built, by position.

        Raises:
            ChannelError: A record is missing before one of them, or one is not of an env here.
        """
        envs = records["env_index"]
        if len(envs) and (envs.min() < 0 or envs.max() >= self.num_envs):
            raise ChannelError(
                f"a node sent a record of env {envs.max()}; this channel has envs 0 to "
                f"{self.num_envs - 1}. Start the channel again."
            )
        order = np.lexsort((numbers, envs))
        records, numbers = records[order], np.ascontiguousarray(numbers[order])
        stops = [*(np.flatnonzero(records["outcome"] == UNBUILDABLE) + 1).tolist(), len(records)]
        repeats, start = np.zeros(1, dtype=np.int64), 0
        rows = np.unique(envs)
        for stop in stops:
            while start < stop:
                start, gap = outbox.put(
                    self.mails.words, self.mails.ring_at, records, numbers, start, stop, repeats
                )
                if gap != NO_GAP:
                    raise ChannelError(
                        f"record {numbers[gap]} of env {records['env_index'][gap]} came before its "
                        "predecessors. Start the channel again from its last snapshot."
                    )
                if start < stop:
                    self.collect(rows=rows)
            if stop and records["outcome"][stop - 1] == UNBUILDABLE:
                text = texts.get(int(order[stop - 1]), LOST_REASON).encode()
                env, number = int(records["env_index"][stop - 1]), int(numbers[stop - 1])
                room = self.mails.messages[env, number % mailbox.CAPACITY]
                room[:] = 0
                room[: len(text)] = np.frombuffer(text, dtype=np.uint8)[: len(room)]
        self.collect(rows=rows)
        self._settle(rows)
        return int(repeats[0])

    def _spread_restored(self) -> None:
        self._reported = self.mails.heads["started"].copy()

    def discard_envs(self, first: int, count: int) -> int:
        """Count the running episodes of envs whose node is gone as aborted; return their number."""
        heads = self.mails.heads[first : first + count]
        running = heads["started"] - heads["aborted"] - heads["posted"]
        heads["aborted"] += running
        return int(running.sum())


class PlanLog:
    """What has changed in a plan since each of its last updates, for nodes that have an older one.

    A node is sent the words that changed since the update it has; all of them, where too many have.
    """

    def __init__(self, block: Words):
        self.serial = 1
        self._last = block.copy()
        self._changes: deque[tuple[int, Words]] = deque()
        self._num_words = 0

    def note(self, block: Words) -> None:
        """Note what has changed since the last call."""
        changed = np.flatnonzero(block != self._last)
        if not len(changed):
            return
        self.serial += 1
        self._last[changed] = block[changed]
        self._changes.append((self.serial, changed))
        self._num_words += len(changed)
        while self._num_words > len(block) // 2 and self._changes:
            self._num_words -= len(self._changes.popleft()[1])

    def since(self, serial: int) -> PlanUpdate | None:
        """Return what a node with this update lacks; None if nothing."""
        if serial == self.serial:
            return None
        sequence = int(self._last[SEQUENCE_AT])
        parts = [places for number, places in self._changes if number > serial]
        if serial and len(parts) == self.serial - serial:
            places = np.unique(np.concatenate(parts))
            return PlanUpdate(self.serial, sequence, places, self._last[places])
        return PlanUpdate(self.serial, sequence, np.arange(len(self._last)), self._last.copy())
