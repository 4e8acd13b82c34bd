"""Host and clients in different processes of one machine, over one shared segment.

The segment holds the plan and all mailboxes. A client is sent to its worker as a ticket, by fork,
forkserver or spawn alike, and attaches when it is first used. There is no lock to wait for.
A worker that is killed leaves its finished records behind, and nothing else.
"""

from typing import Any

from stepladder.arrays import Words
from stepladder.curricula.base import Curriculum
from stepladder.plans.plan import aligned_words
from stepladder.sync import mailbox
from stepladder.sync.client import Client
from stepladder.sync.host import Host
from stepladder.sync.mailbox import Mailboxes
from stepladder.sync.segment import Segment, Ticket


class SharedHost(Host):
    """The curriculum's side, for envs in other processes of the same machine."""

    def __init__(self, curriculum: Curriculum, num_envs: int, *, max_failed_share: float = 0.5):
        self._segment: Segment | None = None
        super().__init__(curriculum, num_envs, max_failed_share=max_failed_share)

    def _make_mails(self, num_words: int) -> Words:
        plan_words = len(self.curriculum.plan.block)
        # The mailboxes begin a cache line of their own.
        self._mails_start = (plan_words + 7) // 8 * 8
        self._segment = Segment.create(self._mails_start + self.num_envs * num_words)
        self.curriculum.move_plan(self._segment.words[:plan_words])
        return self._segment.words[self._mails_start :].reshape(self.num_envs, num_words)

    def client(self, env_index: int) -> "SharedClient":
        """Return the client of one env; it can be pickled."""
        self._check_env_index(env_index)
        assert self._segment is not None
        return SharedClient(
            self.curriculum,
            env_index,
            self._segment.ticket,
            plan_words=len(self.curriculum.plan.block),
            mails_start=self._mails_start,
        )

    def _undo_set_up(self) -> None:
        super()._undo_set_up()
        self._leave_segment()

    def _free(self) -> None:
        # What was counted stays readable after the memory is gone.
        self.mails = Mailboxes(self.mails.words.copy(), self._num_dials)
        self._leave_segment()

    def _leave_segment(self) -> None:
        """Move the plan out of the segment, if there is one, and let go of it."""
        if self._segment is not None:
            self.curriculum.move_plan(aligned_words(len(self.curriculum.plan.block)))
            self._segment.close()


class SharedClient(Client):
    """The env's side, in any process of the same machine."""

    def __init__(
        self,
        curriculum: Curriculum,
        env_index: int,
        ticket: Ticket,
        *,
        plan_words: int,
        mails_start: int,
    ):
        super().__init__(curriculum, env_index, ticket.host_pid)
        self._ticket = ticket
        self._plan_words = plan_words
        self._mails_start = mails_start
        self._segment: Segment | None = None

    def disconnect(self) -> None:
        """Let go of plan and mailbox, and of the memory if no other client here uses it."""
        super().disconnect()
        self._segment = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_segment": None}

    def _connect(self) -> tuple[Words, Words]:
        segment = self._segment = Segment.attach(self._ticket)
        size = mailbox.words_per_mailbox(self._num_dials)
        start = self._mails_start + self.env_index * size
        return segment.words[: self._plan_words], segment.words[start : start + size]
