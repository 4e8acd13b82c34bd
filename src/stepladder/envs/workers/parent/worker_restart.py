"""Replace a worker that has died, and decide what state its rows are in.

Part of `coordinator`. What a worker wrote before it died is valid, row by row. A row between two
episodes has lost nothing. An episode in flight is lost: the next step of its row ends it as
truncated, so that a training loop sees an ending like any other.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from gymnasium.vector import AutoresetMode

from stepladder.arrays import Flags
from stepladder.envs.types import Info, ResetOptions, RowInfo
from stepladder.envs.workers.arguments import OnDeath
from stepladder.envs.workers.group import LOST_INFO
from stepladder.envs.workers.memory import lanes
from stepladder.envs.workers.memory.layout import VectorArrays
from stepladder.envs.workers.memory.messages import INFO_MESSAGE, Message
from stepladder.envs.workers.parent.worker_handle import WorkerGoneError
from stepladder.envs.workers.parent.worker_pool import WorkerPool
from stepladder.errors import EnvTimeoutError, WorkerDiedError
from stepladder.plans.status import ENDED, LOST

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


STEP_ORDER = Order(lanes.STEP_ROWS)


class WorkerRestart:
    """Replaces workers that have died."""

    def __init__(self, pool: WorkerPool, memory: VectorArrays, on_death: OnDeath):
        self.listeners: list[Callable[[list[int]], None]] = []
        """Called with the rows of a worker that was restarted, before they are played again."""
        self.is_going_on = False
        self.orders: dict[int, Order] = {}
        """By batch, the order that has been given and not been gathered yet."""
        self.ended: Flags = np.ones(pool.split.num_envs, dtype=np.bool_)
        """Per row whether it is between two episodes, as of the last gathering."""
        self._pool = pool
        self._split = pool.split
        self._memory = memory
        self._on_death: OnDeath = on_death
        self._recovered: dict[int, list[RowInfo]] = {}
        """By batch, infos from workers that have died, and from their successors."""
        self._errors: dict[int, Exception] = {}
        """By batch, exceptions of envs in such workers."""
        self._deaths = [0] * pool.split.num_workers
        self._last_death = [0.0] * pool.split.num_workers

    def restart_dead(self) -> None:
        """Replace workers that have died since the last order."""
        for handle in list(self._pool.handles):
            if not (handle.is_ready and handle.is_alive()):
                self.restart(handle.worker_index)

    @property
    def was_needed(self) -> bool:
        """Whether a worker that died has not finished an episode since, or has left messages."""
        return bool(self._recovered or self._errors) or any(self._deaths)

    def gather(self, batch: int, infos: list[RowInfo]) -> Exception | None:
        """Add the infos of workers that have died; return an exception of their envs.

        Also resets the count of deaths of workers in which an episode has ended normally.
        """
        infos += self._recovered.pop(batch, [])
        infos.sort(key=lambda info: info[0])
        lost = {row for row, info in infos if reports_death(info)}
        ended = self._memory.terminated | self._memory.truncated
        for worker, num_deaths in enumerate(self._deaths):
            rows = self._split.of_worker(worker, batch)
            if num_deaths and any(ended[row] and row not in lost for row in rows):
                self._deaths[worker] = 0
        return self._errors.pop(batch, None)

    def forget(self) -> None:
        """Forget all orders and what came of them."""
        self.orders.clear()
        self._recovered.clear()
        self._errors.clear()

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
        # A worker that was being started and still runs has not died: Ctrl-C came.
        was_interrupted = handle.is_cut_off or (not handle.is_ready and handle.is_running(DYING_S))
        handle.kill()
        rows = self._split.all_of_worker(worker)
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
            again = f", {MAX_DEATHS + 1} times in a row" if self._on_death == "restart" else ""
            error = WorkerDiedError(
                f"{died}{again}. Its error output shows the cause. Fix the env; then close "
                "this vector env and make a new one."
            )
            error.env_indices = rows
            raise error
        logger.warning(
            "[VecEnv] T%s. It is restarted; episodes that it had not finished end as truncated.",
            died[1:],
        )

    def _take_over(
        self, worker: int, states: list[list[int]], unfinished: list[tuple[int, int]]
    ) -> None:
        """Start a worker and let it do what its predecessor has left undone."""
        self._pool.replace(worker)
        for restarted in self.listeners:
            restarted(self._split.all_of_worker(worker))
        self._pool.ask(worker, 0, "adopt", states, self._memory.loose_observations())
        while unfinished:
            self._repeat(worker, *unfinished[0])
            del unfinished[0]
        self._pool.handles[worker].is_ready = True

    def _recover(self, worker: int) -> tuple[list[list[int]], list[tuple[int, int]]]:
        """Collect what a dead worker has left.

        Returns:
            Per batch the states of its rows; and each batch whose order it had not carried out,
            with the number of rows that it had.
        """
        pool = self._pool
        ended_now = self._memory.terminated | self._memory.truncated
        states: list[list[int]] = []
        unfinished: list[tuple[int, int]] = []
        for batch in range(self._split.num_batches):
            rows, order = self._split.of_worker(worker, batch), self.orders.get(batch)
            messages = [] if order is None else pool.gather(worker, batch)
            num_done = self._num_rows_done(worker, batch, order, messages)
            if pool.mode == AutoresetMode.SAME_STEP:
                # A row that ended was reset within the step, so all of them were in an episode.
                states.append([LOST] * len(rows))
            else:
                ended = [*ended_now[rows[:num_done]], *self.ended[rows[num_done:]]]
                states.append([ENDED if has_ended else LOST for has_ended in ended])
            if order is None:
                continue
            # Rows that are done again send their messages again.
            valid = [message for message in messages if message.row < rows.start + num_done]
            # At once: the next worker is given the loose parts of observations with the arrays.
            self._recovered.setdefault(batch, []).extend(self._memory.take_in(valid))
            with suppress(WorkerGoneError):
                fault = pool.fault(worker, batch)
                if fault is not None:
                    self._errors.setdefault(batch, fault)
            if not pool.is_done(worker, batch):
                unfinished.append((batch, num_done))
        return states, unfinished

    def _num_rows_done(
        self, worker: int, batch: int, order: Order | None, messages: Sequence[Message]
    ) -> int:
        """Return how many rows have carried out an order that has not been gathered yet."""
        rows = self._split.of_worker(worker, batch)
        if order is None:
            return 0
        if self._pool.is_done(worker, batch):
            return len(rows)
        if order.kind != lanes.STEP_ROWS:
            # A reset is done again as a whole.
            return 0
        progress = self._pool.progress(worker, batch)
        # An info is the last thing that is written of a row, after all its numbers.
        written = [
            message.row - rows.start + 1 for message in messages if message.kind == INFO_MESSAGE
        ]
        return max([0, progress, *written])

    def _restore_observations(self, worker: int, unfinished: Sequence[tuple[int, int]]) -> None:
        """Put back the last complete observations of rows that have not carried out their step.

        A worker can die at any moment: while it writes a row, or before it marks the row as done.
        """
        for batch, num_done in unfinished:
            # A worker that had not begun has written no row, but may have died during the copy.
            if self._pool.progress(worker, batch) != lanes.NOT_BEGUN:
                rows = self._split.of_worker(worker, batch)
                for written, kept in self._memory.kept(slice(rows.start + num_done, rows.stop)):
                    np.copyto(written, kept)

    def _repeat(self, worker: int, batch: int, num_done: int) -> None:
        """Have a new worker carry out the rest of an order of its predecessor."""
        pool, order = self._pool, self.orders[batch]
        if order.kind == lanes.STEP_ROWS:
            rows = self._split.of_worker(worker, batch)
            command = ("step_from", num_done, self._memory.loose_actions(rows))
        else:
            command = ("reset", order.seeds, order.options)
        try:
            pool.ask(worker, batch, *command)
        except (WorkerGoneError, EnvTimeoutError):
            raise
        except Exception as error:  # raised again when all workers are done
            self._errors.setdefault(batch, error)
        infos = self._memory.take_in(pool.gather(worker, batch))
        self._recovered.setdefault(batch, []).extend(infos)
        pool.forget_messages(worker, batch)


def reports_death(info: Info) -> bool:
    """Whether an info marks an episode that was lost with its worker."""
    key = next(iter(LOST_INFO))
    final = info.get("final_info")
    return key in info or (isinstance(final, dict) and key in final)
