"""The env's side of the channel: draw a task, report how it went.

Every env has one. `envs.CurriculumEnv` calls it; `host` reads what it leaves behind. A client
computes nothing about the curriculum: it draws from the plan and drops records into its mailbox.
The backends differ only in where plan and mailbox lie (`_connect`).
"""

import logging
import math
import time
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import direct
from stepladder.curricula.base import Curriculum, nothing_active
from stepladder.errors import BuildError, ChannelError, HostGoneError, RecordError
from stepladder.plans import kernels
from stepladder.plans.plan import header_record
from stepladder.plans.record import TERMINATED, TRUNCATED, UNBUILDABLE, Draw, as_draw
from stepladder.plans.status import (
    BEING_WRITTEN,
    DONE,
    NEVER_BEGAN,
    NOT_ADMITTED,
    NOTHING_ACTIVE,
)
from stepladder.sync import mailbox
from stepladder.sync.mailbox import Mailboxes
from stepladder.sync.process import current_pid, is_alive
from stepladder.tasks import Task

logger = logging.getLogger("stepladder.sync")

PATIENCE_S = 5.0
"""How long a client waits for the host before it says so in the log."""


CODE = ("_start", "_end")
"""Attributes of a client that hold machine code."""

MEMORY = ("_block", "_header", "_mail", "_box", "_head")
"""Attributes that hold memory of the channel, or None."""

MAX_CACHED_TASKS = 1024
"""Tasks a client keeps, so that a task drawn again need not be made again."""


class Client(ABC):
    """Draws tasks for one env and reports its episodes."""

    def __init__(self, curriculum: Curriculum, env_index: int, host_pid: int):
        self.env_index = env_index
        self.source = curriculum.pool.source
        self.legend = curriculum.legend()
        self.host_pid = host_pid
        self._num_dials = curriculum.plan.num_dials
        # Before what a backend adds: attributes go in this order, and views must go before memory.
        self._block: Words | None = None
        self._header: Any = None
        self._mail: Words | None = None
        self._box: Mailboxes | None = None
        self._head: Any = None
        self._dials: Floats = np.zeros(self._num_dials)
        self._tasks: dict[int, Task] = {}

    @abstractmethod
    def _connect(self) -> tuple[Words, Words]:
        """Return the plan's block and this env's mailbox, in this process."""

    def _open(self) -> tuple[Words, Words]:
        if self._block is None or self._mail is None:
            block, mail = self._connect()
            self._start = direct(mailbox.start, block, mail, 0, 0, self._dials)
            self._end = direct(mailbox.post, mail, 0, 0.0, 0, 0.0, 0)
            self._box = box = Mailboxes(mail[None], self._num_dials)
            self._ring, self._head = box.ring_at, box.heads[:1].reshape(())
            self._header = header_record(block)
            # Last: a client that has these is taken to have the rest.
            self._block, self._mail = block, mail
        return self._block, self._mail

    def disconnect(self) -> None:
        """Let go of plan and mailbox; the next use connects again."""
        vars(self).update(dict.fromkeys(MEMORY))

    def __getstate__(self) -> dict[str, Any]:
        # Memory and machine code do not travel; a client that was sent connects again.
        state = {name: self.__dict__[name] for name in self.__dict__ if name not in CODE}
        return {**state, **dict.fromkeys(MEMORY), "_tasks": {}}

    def draw(self) -> Draw:
        """Draw a task for the next episode; an episode still running counts as aborted.

        Raises:
            HostGoneError: The host died while it was writing the plan.
            BuildError: Every task is quarantined.
            ChannelError: The host has closed the channel.
        """
        block, mail = self._open()
        while True:
            draw = as_draw(
                Draw, self._start(block, mail, self.env_index, current_pid(), self._dials)
            )
            slot = draw[0]
            if slot >= 0:
                return draw
            if slot == NOT_ADMITTED:
                self._sign_in()
                continue
            self._check_host()
            if slot == NOTHING_ACTIVE:
                raise BuildError(nothing_active())
            time.sleep(1e-4)

    def _sign_in(self) -> None:
        """Say which process uses the mailbox from now on."""
        self._check_open()
        self._head["pid"] = current_pid()

    def _check_open(self) -> None:
        if self._head["closed"]:
            raise ChannelError(
                f"the channel of env {self.env_index} was closed by its host. "
                "Make a new one and connect the env to it."
            )

    def task(self, draw: Draw) -> Task:
        """Return the task of a draw just made, with the settings of this episode."""
        task = self._tasks.get(draw.task_id)
        if task is None:
            task = self.source.get(draw.task_id)
            if len(self._tasks) >= MAX_CACHED_TASKS:
                self._tasks.clear()
            self._tasks[draw.task_id] = task
        if not self.legend.has_settings:
            return task
        self._open()
        seed = int(self._header["seed"])
        return task.with_params(
            self.legend.settings(self._dials, seed, self.env_index, draw.episode_index)
        )

    def finish(
        self,
        *,
        success: float,
        episode_return: float = 0.0,
        length: int = 1,
        truncated: bool = False,
    ) -> None:
        """Report the end of the episode in flight. Waits while the mailbox is full.

        Raises:
            RecordError: A number is impossible. Then nothing was reported.
            HostGoneError: The host died, so the mailbox will never be emptied.
            ChannelError: The host has closed the channel.
        """
        fits = 0 <= success <= 1 or (math.isnan(success) and not self.legend.needs_success)
        if not math.isfinite(episode_return) or length < 0 or not fits:
            raise RecordError(
                f"env {self.env_index} reports return {episode_return}, length {length}, success "
                f"{success}; expected a finite return, a length of 0 or more and a success in "
                "[0, 1]. Nothing was reported; fix the env."
            )
        self._post(episode_return, length, success, TRUNCATED if truncated else TERMINATED)

    def fail(self, reason: str) -> None:
        """Report that the task in flight could not be built; the host will quarantine it."""
        self._open()
        assert self._box is not None
        text = reason.encode(errors="replace")[: mailbox.MESSAGE_BYTES]
        if self._is_full():
            self._wait_for_room()
        room = self._box.messages[0, int(self._head["posted"]) % mailbox.CAPACITY]
        room[:] = 0
        room[: len(text)] = np.frombuffer(text, dtype=np.uint8)
        self._post(0.0, 0, 0.0, UNBUILDABLE)

    def is_playing(self) -> bool:
        """Whether an episode is in flight."""
        return bool(mailbox.in_flight(self._open()[1]))

    def skip(self) -> None:
        """Take back a draw that will not be played, as if it had not been made."""
        _, mail = self._open()
        if not mailbox.in_flight(mail):
            raise self._never_began()
        self._head["started"] -= 1

    def abort(self) -> None:
        """Give up the episode in flight, if there is one; it counts as aborted."""
        _, mail = self._open()
        if mailbox.in_flight(mail):
            self._head["aborted"] += 1

    def _post(self, episode_return: float, length: int, success: float, outcome: int) -> None:
        _, mail = self._open()
        while True:
            status = self._end(mail, self._ring, episode_return, length, success, outcome)
            if status == DONE:
                return
            if status == NEVER_BEGAN:
                raise self._never_began()
            self._wait_for_room()

    def _never_began(self) -> RecordError:
        return RecordError(
            f"env {self.env_index} reports an episode that it never began: it has ended, or was "
            "not reset. Reset the env first (a client of its own: call draw())."
        )

    def _wait_for_room(self) -> None:
        """Wait until the host has collected something: a full mailbox never drops a record."""
        self._open()
        self._check_open()
        self._head["waits"] += 1
        if not self._can_wait():
            raise ChannelError(
                f"the mailbox of env {self.env_index} is full and cannot be emptied while this "
                "env is inside a step, so waiting would never end. Call host.collect() after every "
                "step, or use a vector wrapper, which does."
            )
        began, pause, warned = time.monotonic(), 2e-5, False
        while self._is_full():
            time.sleep(pause)
            pause = min(2 * pause, 1e-2)
            waited = time.monotonic() - began
            self._check_open()
            if waited > 0.1:
                self._check_host()
            if waited > PATIENCE_S and not warned:
                warned = True
                logger.warning(
                    "Env %d has waited %.0f s for the host to collect its records; it goes on "
                    "waiting. Does the training loop still step the vector wrapper?",
                    self.env_index,
                    waited,
                )

    def _is_full(self) -> bool:
        return int(self._head["posted"]) - int(self._head["taken"]) >= mailbox.CAPACITY

    def _can_wait(self) -> bool:
        """Whether the host can collect while this client waits."""
        return self.host_pid != current_pid()

    def _check_host(self) -> None:
        if not is_alive(self.host_pid):
            raise HostGoneError(
                f"the host process {self.host_pid} of env {self.env_index} is gone. "
                "Start training again; restore its last snapshot to continue."
            )

    # State of the plan.

    @property
    def last_dials(self) -> Floats:
        """What the plan's dials said at the last draw."""
        return self._dials

    def plan_version(self) -> int:
        """Return the version of the plan as it is now."""
        self._open()
        return int(self._header["sequence"]) >> 1

    def current_stage(self) -> str | None:
        """Return the stage in force now, if the curriculum has stages."""
        return self.legend.current_stage(self._read()[1])

    def current_phase(self) -> str | None:
        """Return the phase in force now, if the curriculum has phases."""
        return self.legend.current_phase(self._read()[1])

    def mixing_ratio(self, stage: str | None = None) -> float:
        """Return the mixing ratio of a stage as it is now; by default of the current one."""
        dials = self._read()[1]
        return self.legend.mixing_ratio(stage or self.legend.current_stage(dials) or "", dials)

    def stage_of(self, label: str) -> str:
        """Return the stage of a label, by the dials of the last draw."""
        return self.legend.stage_of(label, self._dials)

    def _read(self) -> tuple[int, Floats]:
        block, _ = self._open()
        dials = np.zeros(self._num_dials)
        version = kernels.read_dials(block, dials)
        while version == BEING_WRITTEN:
            self._check_host()
            time.sleep(1e-4)
            version = kernels.read_dials(block, dials)
        return version, dials
