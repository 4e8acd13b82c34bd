"""A node's board: the plan and the mailboxes of all envs of one machine, in memory that they share.

Made by the machine's node agent (`node`); envs attach with a `BoardClient`. It is laid out like the
segment of `sync.shared`, with an outbox behind it. Unlike that segment it has a name, so that an
agent that was killed and started again finds the records, and envs go on as if nothing happened.
"""

import mmap
import os
import secrets
import tempfile
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stepladder.arrays import Words
from stepladder.cluster import outbox
from stepladder.cluster.outbox import BOARD_HEAD, OUTBOX, BoardHead
from stepladder.curricula.base import Curriculum
from stepladder.errors import ChannelError, HostGoneError, StaleSegmentError
from stepladder.plans.record import RECORD_DTYPE, UNBUILDABLE, RecordArray, RecordFields
from stepladder.sync import mailbox
from stepladder.sync.client import Client
from stepladder.sync.mailbox import Mailboxes
from stepladder.sync.process import current_pid, is_alive

MAGIC = 0x53544550_4E4F4445
"""Marks a board of ours."""

PATIENCE_S = 60.0
"""How long an env waits for an agent and a host that do not answer before it raises."""

PREFIX = "stepladder-board-"

FORGOTTEN_S = 600.0
"""A board that nobody uses is removed after so long."""


@dataclass(frozen=True)
class BoardShape:
    """How large a board is; the same for all nodes of a channel."""

    num_rows: int
    plan_words: int
    num_dials: int

    @property
    def mails_at(self) -> int:
        """The word at which the mailboxes begin, a cache line of its own."""
        return BoardHead.num_words + (self.plan_words + 7) // 8 * 8

    @property
    def outbox_at(self) -> int:
        """The word at which the outbox begins."""
        return self.mails_at + self.num_rows * mailbox.words_per_mailbox(self.num_dials)

    @property
    def num_words(self) -> int:
        """All words of the board."""
        return self.outbox_at + OUTBOX * (RecordFields.num_words + 1)


def folder_of_boards() -> Path:
    """Return where boards lie: in memory where there is a place for that."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())


class Board:
    """The words of a board, and the parts of them by name."""

    def __init__(self, words: Words, shape: BoardShape, path: Path):
        self.words, self.shape, self.path = words, shape, path
        self.head: Any = words[: BoardHead.num_words].view(BOARD_HEAD).reshape(())
        self.plan = words[BoardHead.num_words : BoardHead.num_words + shape.plan_words]
        size = mailbox.words_per_mailbox(shape.num_dials)
        mails = words[shape.mails_at : shape.outbox_at].reshape(shape.num_rows, size)
        self.mails = Mailboxes(mails, shape.num_dials)
        end = shape.outbox_at + OUTBOX * RecordFields.num_words
        self.records: RecordArray = words[shape.outbox_at : end].view(RECORD_DTYPE)
        self.numbers = words[end : end + OUTBOX]

    @classmethod
    def reopen(cls, path: Path, shape: BoardShape) -> "Board | None":
        """Return the board that an agent before this one has left, or None.

        What it had moved without noting it in the mailboxes is noted now.
        """
        try:
            board = cls(_map(path, shape), shape, path)
        except (OSError, StaleSegmentError):
            return None
        board._release(int(board.head["freed"]))
        return board

    @classmethod
    def create(cls, path: Path, shape: BoardShape, first_env: int) -> "Board":
        """Make a board, for this user alone.

        Raises:
            ChannelError: There is no room for it.
        """
        size = 8 * shape.num_words
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            path.unlink()
            raise ChannelError(
                f"{path.parent} has no room for {size / 2**20:.0f} MiB ({error.strerror}), which "
                f"the plan and {shape.num_rows} envs of this node need. Make it larger, or pass a "
                "smaller envs_per_node."
            ) from error
        finally:
            os.close(descriptor)
        board = cls(_map(path, shape, is_new=True), shape, path)
        head = board.head
        head["first_env"], head["num_rows"] = first_env, shape.num_rows
        head["plan_words"], head["num_dials"] = shape.plan_words, shape.num_dials
        head["nonce"], head["answered_ns"] = secrets.randbits(62), time.monotonic_ns()
        head["magic"] = MAGIC
        return board

    @property
    def nonce(self) -> int:
        """The random number by which clients recognise the board."""
        return int(self.head["nonce"])

    @property
    def first_env(self) -> int:
        """Global index of the env in row 0."""
        return int(self.head["first_env"])

    def move(self) -> tuple[int, dict[int, str]]:
        """Move records from the mailboxes to the outbox.

        Returns:
            How many did not fit; and why tasks could not be built, by the number in the outbox of
            the record that says so.
        """
        first, texts = int(self.head["filled"]), {}
        left = outbox.move(
            self.words, self.mails.words, self.mails.ring_at, self.records, self.numbers
        )
        places = np.arange(first, int(self.head["filled"]))
        for place in places[self.records["outcome"][places % OUTBOX] == UNBUILDABLE].tolist():
            row = int(self.records["env_index"][place % OUTBOX]) - self.first_env
            position = int(self.numbers[place % OUTBOX]) % mailbox.CAPACITY
            text = self.mails.messages[row, position].tobytes().rstrip(b"\0")
            texts[place] = text.decode(errors="ignore")
        self._release(first)
        return left, texts

    def _release(self, first: int) -> None:
        outbox.release(self.words, self.mails.words, self.records, self.numbers, first)

    def lease(self, pid: int, preferred: int | None = None) -> int:
        """Give a row to a process; the episode of a dead one that had it counts as aborted.

        Raises:
            ChannelError: All rows are in use.
        """
        pids = self.mails.heads["pid"].tolist()
        rows = range(len(pids))
        if preferred is not None and 0 <= preferred < len(pids):
            rows = (preferred, *rows)
        alive = {one: is_alive(one) for one in set(pids) if one}
        for row in rows:
            if not pids[row] or not alive[pids[row]]:
                self.discard(row)
                self.mails.heads["pid"][row] = pid
                return row
        raise ChannelError(
            f"all {len(pids)} rows of this node are in use by other envs. Pass a larger "
            "envs_per_node."
        )

    def discard(self, row: int) -> None:
        """Count the running episode of a row that nobody uses as aborted."""
        if mailbox.in_flight(self.mails.words[row]):
            self.mails.heads["aborted"][row] += 1
        self.mails.heads["pid"][row] = 0

    def discard_dead(self) -> int:
        """Free the rows of processes that have died; return how many there were."""
        pids = self.mails.heads["pid"].tolist()
        dead = {pid for pid in set(pids) if pid and not is_alive(pid)}
        rows = [row for row, pid in enumerate(pids) if pid in dead]
        for row in rows:
            self.discard(row)
        return len(rows)

    def keep(self) -> None:
        """Say that the board is in use, or `remove_forgotten` takes it for one that is not."""
        with suppress(FileNotFoundError):
            os.utime(self.path)

    def remove(self) -> None:
        """Take the name away; the memory goes with the last process that uses it."""
        with suppress(FileNotFoundError):
            self.path.unlink()


def remove_forgotten() -> None:
    """Remove boards of this user whose agent and envs are gone, and that are old."""
    for path in folder_of_boards().glob(f"{PREFIX}*"):
        try:
            status = path.stat()
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < FORGOTTEN_S:
                continue
            head: Any = np.fromfile(path, BOARD_HEAD, 1)
            if len(head) == 1 and not is_alive(int(head["agent_pid"][0])):
                path.unlink()
        except OSError:
            continue


def _map(path: Path, shape: BoardShape, is_new: bool = False) -> Words:
    size = 8 * shape.num_words
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.getuid() or status.st_size != size:
            raise StaleSegmentError(f"{path} is not a board of this channel. Make a new one.")
        words: Words = np.frombuffer(mmap.mmap(descriptor, size), dtype=np.int64)
    finally:
        os.close(descriptor)
    if not is_new and int(words[0]) != MAGIC:
        raise StaleSegmentError(f"{path} is not a board of this channel. Make a new one.")
    return words


class _Mapping:
    """Words of a board, which all clients of a process share."""

    def __init__(self, words: Words):
        self.words = words


_mapped: "weakref.WeakValueDictionary[tuple[str, int], _Mapping]" = weakref.WeakValueDictionary()


class BoardClient(Client):
    """The env's side, in any process of the machine whose board it is.

    Made without a place by the host (`template`); the node agent gives it one.
    """

    def __init__(self, curriculum: Curriculum, shape: BoardShape):
        super().__init__(curriculum, 0, 0)
        self.shape = shape
        self._path, self._nonce, self._row = "", 0, 0
        self._is_over = False
        self._mapping: _Mapping | None = None

    def at(self, board: Board, row: int) -> "BoardClient":
        """Return this client for a row of a board."""
        client = object.__new__(type(self))
        client.__setstate__(self.__getstate__())
        client.env_index = board.first_env + row
        client.shape = replace(self.shape, num_rows=board.shape.num_rows)
        client._path, client._nonce, client._row = str(board.path), board.nonce, row
        return client

    def _connect(self) -> tuple[Words, Words]:
        if self._is_over:
            raise ChannelError(
                f"env {self.env_index} was closed and has given its row back. Make a new env."
            )
        key = (self._path, self._nonce)
        mapping = _mapped.get(key)
        if mapping is None:
            try:
                mapping = _Mapping(_map(Path(self._path), self.shape))
            except OSError as error:
                raise HostGoneError(
                    f"the board of env {self.env_index} is gone ({error}): its channel was "
                    "closed, or its node agent runs on another machine. Start training again."
                ) from error
            _mapped[key] = mapping
        self._mapping = mapping
        words, shape = mapping.words, self.shape
        self._board_head: Any = words[: BoardHead.num_words].view(BOARD_HEAD).reshape(())
        start = shape.mails_at + self._row * mailbox.words_per_mailbox(shape.num_dials)
        end = start + mailbox.words_per_mailbox(shape.num_dials)
        plan = words[BoardHead.num_words : BoardHead.num_words + shape.plan_words]
        return plan, words[start:end]

    def disconnect(self) -> None:
        """Give the row back: an episode in flight counts as aborted."""
        if self._mail is not None and self._head["pid"] == current_pid():
            self.abort()
            self._head["pid"] = 0
            self._is_over = True
        self._board_head = None
        self._mapping = None
        super().disconnect()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_mapping": None, "_board_head": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Arrays that Ray has carried can only be read.
        vars(self).update({**state, "_dials": np.zeros(state["_num_dials"])})

    def _check_host(self) -> None:
        silent_s = (time.monotonic_ns() - int(self._board_head["answered_ns"])) / 1e9
        if silent_s > PATIENCE_S:
            raise HostGoneError(
                f"the host of env {self.env_index} has not answered for {silent_s:.0f} s, so its "
                "records cannot be collected. Is the process that started the channel still "
                "running? Start training again from its last snapshot."
            )
