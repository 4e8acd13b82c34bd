"""What a node agent does, whoever carries its messages: batches to the host, plans to the board.

One per machine, around its `board`. `pump` is one turn: move records to the outbox, send what the
host has not had, write the plan that comes back, and free what the host's snapshot holds. Whatever
is killed in between, the next turn of whoever takes over sends it again. Ray is in `actors` only.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stepladder.arrays import Words
from stepladder.cluster import outbox
from stepladder.cluster.board import (
    PREFIX,
    Board,
    BoardClient,
    folder_of_boards,
    remove_forgotten,
)
from stepladder.cluster.messages import Answer, Batch, PlanUpdate
from stepladder.cluster.outbox import OUTBOX

MAX_BATCH = 16_384
"""Records that one call carries at most."""

REAP_S = 0.5
"""Time between two looks for dead processes."""


@dataclass(frozen=True)
class Joined:
    """What the host tells a node that joins."""

    incarnation: int
    first_env: int
    client: BoardClient
    plan: PlanUpdate
    received: int
    """Records of the node that the host has; all of them are in its snapshot."""

    next_episode: int
    """First episode that no env has drawn with, so that draws of an earlier run do not repeat."""


Join = Callable[[str, int], Joined]
Send = Callable[[Batch], Answer]


class NodeSide:
    """The agent's work.

    Args:
        channel: Name of the channel; part of the name of the board.
        node: Ray's id of the machine.
        num_rows: Envs that can be played here at the same time.
        join: Asks the host for a place.
        deliver: Sends a batch to the host.
    """

    def __init__(self, channel: str, node: str, num_rows: int, join: Join, deliver: Send):
        self.node, self.num_rows = node, num_rows
        self._join, self._deliver = join, deliver
        self._path: Path = folder_of_boards() / f"{PREFIX}{channel}-{node[:16]}"
        self._texts: dict[int, str] = {}
        self._last_reap = 0.0
        self.num_batches = 0
        remove_forgotten()
        joined = join(node, num_rows)
        shape = replace(joined.client.shape, num_rows=num_rows)
        board = Board.reopen(self._path, shape)
        if board is None:
            board = Board.create(self._path, shape, joined.first_env)
            board.mails.heads["next_episode"] = joined.next_episode
        board.head["agent_pid"] = os.getpid()
        self.board = board
        self._take_over(joined)

    def _take_over(self, joined: Joined) -> None:
        self._client, self._incarnation = joined.client, joined.incarnation
        self.board.head["answered_ns"] = time.monotonic_ns()
        self._free(joined.received)
        self._sent = int(self.board.head["freed"])
        # No env has such counters, so all are reported again.
        self._told_heads: Words = np.full((self.num_rows, 3), -1, dtype=np.int64)
        numbers = self.board.mails.heads["next_episode"]
        numbers[:] = np.maximum(numbers, joined.next_episode)
        self._write(joined.plan)

    def rejoin(self) -> None:
        """Join a host that was restarted, or that does not know this agent yet."""
        self._take_over(self._join(self.node, self.num_rows))

    def _write(self, plan: PlanUpdate | None) -> None:
        if plan is not None:
            # Copies: what Ray has carried can only be read, and would be compiled for anew.
            places, values = plan.places.copy(), plan.values.copy()
            outbox.overwrite(self.board.plan, places, values, plan.sequence)
            self._serial = plan.serial

    def _free(self, durable: int) -> None:
        head = self.board.head
        head["freed"] = max(int(head["freed"]), durable)
        for number in [number for number in self._texts if number < durable]:
            del self._texts[number]

    def lease(self, pid: int, preferred: int | None = None) -> BoardClient:
        """Return a client for an env that a process of this machine plays."""
        return self._client.at(self.board, self.board.lease(pid, preferred))

    def pump(self) -> tuple[bool, float]:
        """Do one turn.

        Returns:
            Whether all that had been reported before is with the host; and how long to wait.
        """
        now = time.monotonic()
        if now - self._last_reap > REAP_S:
            self._last_reap = now
            self.board.discard_dead()
            self.board.keep()
        left, texts = self.board.move()
        self._texts |= texts
        batch, heads = self._batch(left > 0)
        answer = self._deliver(batch)
        self.num_batches += 1
        self.board.head["answered_ns"] = time.monotonic_ns()
        if answer.must_join:
            self.rejoin()
            return False, 0.0
        self._sent = answer.received
        self._told_heads = heads
        self._free(answer.durable)
        self._write(answer.plan)
        is_all = left == 0 and self._sent == int(self.board.head["filled"])
        return is_all, answer.delay_s if is_all else 0.0

    def _batch(self, is_full: bool) -> tuple[Batch, Words]:
        head, mails = self.board.head, self.board.mails.heads
        filled = int(head["filled"])
        last = min(filled, self._sent + MAX_BATCH)
        places = np.arange(self._sent, last) % OUTBOX
        # Aborted first: an env that begins another episode meanwhile has started it before.
        aborted = mails["aborted"].copy()
        heads = np.stack([mails["started"].copy(), aborted, mails["next_episode"].copy()], axis=1)
        changed = np.flatnonzero((heads != self._told_heads).any(axis=1))
        batch = Batch(
            self.node,
            self._incarnation,
            self._sent,
            self.board.records[places],
            self.board.numbers[places],
            {
                number - self._sent: text
                for number, text in self._texts.items()
                if self._sent <= number < last
            },
            np.concatenate([(changed + self.board.first_env)[:, None], heads[changed]], axis=1),
            int((mails["pid"] != 0).sum()),
            self._serial,
            is_full or filled - int(head["freed"]) > OUTBOX // 2,
        )
        return batch, heads

    def refresh(self, plan_since: Callable[[int], PlanUpdate | None]) -> int:
        """Write the plan as it is now to the board; return its version."""
        self._write(plan_since(self._serial))
        return int(self.board.plan[outbox.SEQUENCE_AT]) >> 1

    def about(self) -> dict[str, Any]:
        """Return what is on the board now."""
        head, mails = self.board.head, self.board.mails.heads
        return {
            "started": int(mails["started"].sum()),
            "aborted": int(mails["aborted"].sum()),
            "posted": int(mails["posted"].sum()),
            "filled": int(head["filled"]),
            "freed": int(head["freed"]),
            "plan_version": int(self.board.plan[outbox.SEQUENCE_AT]) >> 1,
            "num_envs": int((mails["pid"] != 0).sum()),
            "num_batches": self.num_batches,
            "pid": os.getpid(),
        }

    def close(self) -> None:
        """Refuse records from now on. Pump once more, then call `remove`."""
        self.board.mails.heads["closed"] = 1
        self.board.head["closed"] = 1

    def remove(self) -> None:
        """Take the board away."""
        self.board.remove()
