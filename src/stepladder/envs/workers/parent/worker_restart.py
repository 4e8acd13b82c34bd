"""Replace a worker that has died, and decide what state its rows are in.

Part of `coordinator`. What a worker wrote before it died is valid, row by row. A row between two
episodes has lost nothing. An episode in flight is lost: the next step of its row ends it as
truncated, so that a training loop sees an ending like any other.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from gymnasium.vector import AutoresetMode

from stepladder.envs.types import Flags, Info, ResetOptions, RowInfo
from stepladder.envs.workers.arguments import OnDeath
from stepladder.envs.workers.group import ENDED, LOST, LOST_INFO
from stepladder.envs.workers.memory import lanes
from stepladder.envs.workers.memory.layout import Memory
from stepladder.envs.workers.memory.messages import INFO, Message
from stepladder.envs.workers.parent.worker_handle import WorkerGoneError
from stepladder.envs.workers.parent.worker_pool import WorkerPool
from stepladder.errors import EnvTimeoutError, WorkerDiedError

logger = logging.getLogger("stepladder.envs")

DYING_S = 0.2
"""How long a process may take to end after its pipe has broken."""

MAX_DEATHS = 3
"""Times a worker may die in a row, without an episode in between that has ended normally."""

LONG_LIFE_S = 60.0
"""After this time without a death the count begins again at zero."""


@dataclass(frozen=True)
class Order:
    """An order that has been given and not been gathered yet."""

    kind: int
    seeds: list[int | None] | None = None
    options: ResetOptions = None


STEP_ORDER = Order(lanes.STEP)


@dataclass
class InFlight:
    """What has been begun and not been gathered yet, by batch."""

    ended: Flags
    """Per row whether it is between two episodes, as of the last gathering."""

    orders: dict[int, Order] = field(default_factory=dict)
    recovered: dict[int, list[Message]] = field(default_factory=dict)
    """Messages of workers that have died, and of their successors."""

    errors: dict[int, Exception] = field(default_factory=dict)
    """Exceptions of envs in such workers."""

    def clear(self) -> None:
        """Forget it all."""
        self.orders.clear()
        self.recovered.clear()
        self.errors.clear()


class WorkerRestart:
    """Replaces workers that have died."""

    def __init__(self, pool: WorkerPool, memory: Memory, in_flight: InFlight, on_death: OnDeath):
        self.listeners: list[Callable[[list[int]], None]] = []
        """Called with the rows of a worker that was restarted, before they are played again."""
        self.is_going_on = False
        self._pool = pool
        self._shares = pool.shares
        self._memory = memory
        self._in_flight = in_flight
        self._on_death: OnDeath = on_death
        self._deaths = [0] * pool.shares.num_workers
        self._last_death = [0.0] * pool.shares.num_workers

    def restart_dead(self) -> None:
        """Replace workers that have died since the last order."""
        for handle in list(self._pool.handles):
            if not (handle.is_ready and handle.is_alive()):
                self.restart(handle.worker_index)

    @property
    def was_needed(self) -> bool:
        """Whether a worker that died has not finished an episode since, or has left messages."""
        in_flight = self._in_flight
        return bool(in_flight.recovered or in_flight.errors) or any(self._deaths)

    def note_endings(self, batch: int, infos: Sequence[RowInfo]) -> None:
        """Reset the count of deaths of workers in which an episode has ended normally."""
        lost = {row for row, info in infos if tells_of_death(info)}
        ended = self._memory.terminated | self._memory.truncated
        for worker, num_deaths in enumerate(self._deaths):
            rows = self._shares.of_worker(worker, batch)
            if num_deaths and any(ended[row] and row not in lost for row in rows):
                self._deaths[worker] = 0

    def restart(self, worker: int) -> None:
        """Replace a worker that has died, and let the new one continue its orders.

        Raises:
            WorkerDiedError: ``on_worker_death`` is ``"raise"``, or it dies repeatedly.
        """
        self._count_death(worker)
        states, unfinished = self._recover(worker)
        self.is_going_on = True
        try:
            while True:
                self._restore_observations(worker, unfinished)
                try:
                    self._take_over(worker, states, unfinished)
                    return
                except WorkerGoneError:
                    self._count_death(worker)
        finally:
            self.is_going_on = False

    def _count_death(self, worker: int) -> None:
        handle = self._pool.handles[worker]
        # One that was being started and still runs has not died: Ctrl-C came.
        was_interrupted = handle.is_cut_off or (not handle.is_ready and handle.is_running(DYING_S))
        handle.kill()
        rows = self._shares.all_of_worker(worker)
        if was_interrupted:
            names = ", ".join(map(str, rows))
            logger.warning("[VecEnv] The worker of env %s was interrupted. It is restarted.", names)
            return
        now = time.monotonic()
        if now - self._last_death[worker] > LONG_LIFE_S:
            self._deaths[worker] = 0
        self._last_death[worker] = now
        self._deaths[worker] += 1
        died = f"the worker of env {', '.join(map(str, rows))} died ({handle.exit_reason})"
        if self._on_death == "raise" or self._deaths[worker] > MAX_DEATHS:
            raise self._given_up(died, rows)
        logger.warning(
            "[VecEnv] T%s. It is restarted; episodes that it had not finished end as truncated.",
            died[1:],
        )

    def _take_over(
        self, worker: int, states: list[list[int]], unfinished: list[tuple[int, int]]
    ) -> None:
        """Start a worker and let it do what its predecessor has not; forget that when it has."""
        self._pool.replace(worker)
        for restarted in self.listeners:
            restarted(self._shares.all_of_worker(worker))
        self._pool.ask(worker, 0, "adopt", states, self._memory.loose_observations())
        while unfinished:
            self._repeat(worker, *unfinished[0])
            del unfinished[0]
        self._pool.handles[worker].is_ready = True

    def _given_up(self, died: str, rows: list[int]) -> WorkerDiedError:
        again = f", {MAX_DEATHS + 1} times in a row" if self._on_death == "restart" else ""
        error = WorkerDiedError(
            f"{died}{again}. Its error output shows the cause. Fix the env; then close "
            "this vector env and make a new one."
        )
        error.env_indices = rows
        return error

    def _recover(self, worker: int) -> tuple[list[list[int]], list[tuple[int, int]]]:
        """Collect what a dead worker has left.

        Returns:
            Per batch what its rows are in; and each batch whose order it had not carried out, with
            the number of rows that it had.
        """
        pool, in_flight = self._pool, self._in_flight
        states: list[list[int]] = []
        unfinished: list[tuple[int, int]] = []
        for batch in range(self._shares.num_batches):
            order = in_flight.orders.get(batch)
            messages = [] if order is None else pool.gather(worker, batch)
            num_done = self._num_rows_done(worker, batch, order, messages)
            states.append(self._states(worker, batch, num_done))
            if order is None:
                continue
            first = self._shares.of_worker(worker, batch).start
            # Rows that are done again send their messages again.
            valid = [message for message in messages if message.row < first + num_done]
            self._take_in(batch, valid)
            with suppress(WorkerGoneError):
                fault = pool.fault(worker, batch)
                if fault is not None:
                    in_flight.errors.setdefault(batch, fault)
            if not pool.is_done(worker, batch):
                unfinished.append((batch, num_done))
        return states, unfinished

    def _num_rows_done(
        self, worker: int, batch: int, order: Order | None, messages: Sequence[Message]
    ) -> int:
        """Return how many rows have carried out an order that has not been gathered yet."""
        rows = self._shares.of_worker(worker, batch)
        if order is None:
            return 0
        if self._pool.is_done(worker, batch):
            return len(rows)
        if order.kind != lanes.STEP:
            # A reset is done again as a whole.
            return 0
        progress = self._pool.progress(worker, batch)
        # An info is the last thing that is written of a row, after all its numbers.
        written = [message.row - rows.start + 1 for message in messages if message.kind == INFO]
        return max([0, progress, *written])

    def _restore_observations(self, worker: int, unfinished: Sequence[tuple[int, int]]) -> None:
        """Put back the last whole observations of rows that have not carried out their step.

        A worker dies at any moment: while it writes a row, or before it could say that it has.
        """
        for batch, num_done in unfinished:
            # One that had not begun may have died while it kept them, and has written nothing.
            if self._pool.progress(worker, batch) != lanes.NOT_BEGUN:
                rows = self._shares.of_worker(worker, batch)
                for written, kept in self._memory.kept(slice(rows.start + num_done, rows.stop)):
                    np.copyto(written, kept)

    def _take_in(self, batch: int, messages: Sequence[Message]) -> None:
        """Keep infos until they are gathered; put the parts of observations where they belong.

        These at once: the next worker is given them together with what lies in the arrays.
        """
        recovered = self._in_flight.recovered.setdefault(batch, [])
        for message in messages:
            if message.kind == INFO:
                recovered.append(message)
            else:
                self._memory.put_objects(message.row, message.value)

    def _states(self, worker: int, batch: int, num_done: int) -> list[int]:
        memory = self._memory
        return states_after_death(
            self._shares.of_worker(worker, batch),
            num_done,
            mode=self._pool.mode,
            ended_before=self._in_flight.ended,
            ended_now=memory.terminated | memory.truncated,
        )

    def _repeat(self, worker: int, batch: int, num_done: int) -> None:
        """Have a new worker carry out the rest of an order that its predecessor died over."""
        pool, in_flight = self._pool, self._in_flight
        order = in_flight.orders[batch]
        if order.kind == lanes.STEP:
            rows = self._shares.of_worker(worker, batch)
            command = ("step_from", num_done, self._memory.loose_actions(rows))
        else:
            command = ("reset", order.seeds, order.options)
        try:
            pool.ask(worker, batch, *command)
        except (WorkerGoneError, EnvTimeoutError):
            raise
        except Exception as error:  # raised again when all workers are done
            in_flight.errors.setdefault(batch, error)
        self._take_in(batch, pool.gather(worker, batch))
        pool.forget_messages(worker, batch)


def tells_of_death(info: Info) -> bool:
    """Whether an info says that an episode was lost with its worker."""
    key = next(iter(LOST_INFO))
    final = info.get("final_info")
    return key in info or (isinstance(final, dict) and key in final)


def states_after_death(
    rows: Sequence[int],
    num_done: int,
    *,
    mode: AutoresetMode,
    ended_before: Flags,
    ended_now: Flags,
) -> list[int]:
    """Return what the rows of a dead worker are in.

    Args:
        rows: Its rows of one batch.
        num_done: How many of them had carried out the step in flight; 0 if there is none.
        mode: When an env that has ended is reset.
        ended_before: Per row of the vector env whether it was between two episodes.
        ended_now: The same after the step in flight, for rows that have done it.
    """
    if mode == AutoresetMode.SAME_STEP:
        # A row that ended was reset within the step, so all of them were in an episode.
        return [LOST] * len(rows)
    return [
        ENDED if (ended_now if number < num_done else ended_before)[row] else LOST
        for number, row in enumerate(rows)
    ]
