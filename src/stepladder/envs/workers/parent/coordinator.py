"""Step all envs of a vector env over one memory: those of this process and those of workers.

Below `vector_env`, which has Gymnasium's interface; above `group` and `worker_pool`, which step.
Gives an order to the workers, carries it out for its own rows meanwhile, waits, and gathers the
messages. When a worker has died, `worker_restart` replaces it.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from stepladder.arrays import Flags
from stepladder.envs.types import EnvFunction, GymEnv, ResetOptions, RowInfo
from stepladder.envs.workers.arguments import WorkerSettings, batched_spaces
from stepladder.envs.workers.env_functions import EnvDescription
from stepladder.envs.workers.faults import noted
from stepladder.envs.workers.group import EnvGroup
from stepladder.envs.workers.memory import lanes
from stepladder.envs.workers.memory.layout import MemoryLayout, VectorArrays
from stepladder.envs.workers.memory.messages import fast_view
from stepladder.envs.workers.memory.row_split import RowSplit
from stepladder.envs.workers.memory.spaces import leaves_of
from stepladder.envs.workers.parent.env_caller import EnvCaller
from stepladder.envs.workers.parent.timeouts import HangWatch
from stepladder.envs.workers.parent.worker_handle import WorkerGoneError
from stepladder.envs.workers.parent.worker_pool import WorkerPool
from stepladder.envs.workers.parent.worker_restart import STEP_ORDER, Order, WorkerRestart
from stepladder.errors import ChannelError, EnvTimeoutError
from stepladder.sync.segment import Segment

logger = logging.getLogger("stepladder.envs")

POLL_S = 0.005
"""Interval between checks during a wait with a limit."""


class Coordinator:
    """Steps and resets rows, in whichever process their envs are."""

    def __init__(
        self, env_functions: Sequence[EnvFunction], split: RowSplit, settings: WorkerSettings
    ):
        self.split = split
        self.memory = VectorArrays(MemoryLayout())
        self._env_functions = env_functions
        self._settings = settings
        self._segment: Segment | None = None
        self._own_envs: dict[int, GymEnv] = {}
        self._groups: list[EnvGroup] = []
        self._flags: list[tuple[Flags, Flags]] = []
        self._own_progress = fast_view(np.zeros(1, dtype=np.int64))
        self._own_start = 0
        self._infos: list[RowInfo] = []
        self._resetting: list[int] | None = None
        """Workers that will answer the reset in flight; None if it was given as an order."""
        timeout_s = settings.timeout_s
        self._watch = None if timeout_s is None else HangWatch(timeout_s, self._position)
        self._pool = WorkerPool(env_functions, split, settings)

    @property
    def mode(self) -> AutoresetMode:
        """When an env that has ended is reset."""
        return self._pool.mode

    def open(self) -> None:
        """Start the workers and make all envs; if that fails, `abandon` undoes what was done."""
        self._pool.start()
        descriptions = self._make_envs()
        single, self.observation_space, self.action_space = batched_spaces(
            descriptions, self._settings.observation_mode
        )
        self.description = descriptions[0]._replace(observation_space=single)
        self._lay_out()
        self._set_up()

    def _make_envs(self) -> list[EnvDescription]:
        """Make this process's own envs while the workers make theirs; describe all, in order."""
        split = self.split
        for batch in range(split.num_batches):
            for row in split.of_parent(batch):
                try:
                    self._own_envs[row] = self._env_functions[row]()
                except Exception as error:  # passed on, with the index of the env
                    noted(error, row, f"raised while env {row} was made, in this process")
                    raise
        described = {row: EnvDescription.of(env) for row, env in self._own_envs.items()}
        for worker in range(split.num_workers):
            rows = split.all_of_worker(worker)
            described.update(zip(rows, self._pool.descriptions(worker), strict=True))
        return [described[row] for row in range(split.num_envs)]

    def _lay_out(self) -> None:
        layout = MemoryLayout(
            self.split.num_envs,
            self.split.num_workers,
            self.split.num_batches,
            leaves_of(self.description.observation_space),
            leaves_of(self.description.action_space),
        )
        if not self.split.num_workers:
            self.memory = VectorArrays(layout)
            return
        self._segment = Segment.create(layout.num_words)
        self.memory = VectorArrays(layout, self._segment.words)
        self._pool.attach(self.memory, self._segment.ticket)

    def _set_up(self) -> None:
        """Make the groups that step and what restarts workers."""
        split, memory = self.split, self.memory
        self._has_loose_actions = memory.loose_actions(range(0)) is not None
        self._groups = [self._own_group(batch) for batch in range(split.num_batches)]
        self.restarts = WorkerRestart(self._pool, memory, self._settings.on_worker_death)
        self.envs = EnvCaller(self._own_envs, self._pool)
        self._ended_rows = [self.restarts.ended[rows] for rows in split.batches]
        self._flags = [(memory.terminated[rows], memory.truncated[rows]) for rows in split.batches]

    def _own_group(self, batch: int) -> EnvGroup:
        rows = self.split.of_parent(batch)
        return EnvGroup(
            [self._own_envs[row] for row in rows],
            rows.start,
            self.memory,
            self.mode,
            on_info=lambda row, info: self._infos.append((row, info)),
            on_objects=None,
            progress=self._own_progress,
        )

    def _position(self) -> int:
        """Return the row that this process is stepping."""
        return self._own_start + self._own_progress[0]

    # Stepping and resetting.

    def begin_step(self, batch: int) -> None:
        """Have the workers step their rows of a batch, with the actions that lie in memory."""
        self.restarts.orders[batch] = STEP_ORDER
        split, objects = self.split, None
        if not split.num_workers:
            return
        if self._has_loose_actions:
            objects = [
                self.memory.loose_actions(split.of_worker(worker, batch))
                for worker in range(split.num_workers)
            ]
        self._pool.give(lanes.STEP_ROWS, batch, objects)

    def finish_step(self, batch: int) -> list[RowInfo]:
        """Step this process's own rows of a batch and wait for the others; return the infos."""
        error = self._do_own(batch, self._groups[batch].step)
        self._wait(batch)
        return self._gather(batch, error)

    def begin_reset(
        self, batch: int, mask: Flags, seeds: list[int | None] | None, options: ResetOptions
    ) -> None:
        """Have the workers reset the rows of a batch that are in the mask."""
        self.restarts.orders[batch] = Order(lanes.RESET_ROWS, seeds, options)
        self.memory.reset_mask[:] = mask
        self._resetting = None
        if seeds is not None or options:
            workers = range(self.split.num_workers)
            self._resetting = [w for w in workers if self._send(w, batch, "reset", seeds, options)]
        elif self.split.num_workers:
            # The usual reset, with autoreset disabled perhaps at every step: it needs no pipe.
            self._pool.give(lanes.RESET_ROWS, batch)

    def finish_reset(self, batch: int) -> list[RowInfo]:
        """Reset this process's own rows of a batch and wait for the others; return the infos."""
        order, group = self.restarts.orders[batch], self._groups[batch]
        error = self._do_own(batch, lambda: group.reset(order.seeds, order.options))
        if self._resetting is None:
            self._wait(batch)
        else:
            for worker in self._resetting:
                fault = self._take_answer(worker, batch)
                error = error or fault
        return self._gather(batch, error)

    def is_done_within(self, timeout_s: float) -> bool:
        """Wait at most so long; return whether all workers have no order left, or have died."""
        deadline = time.monotonic() + timeout_s
        for handle in self._pool.handles:
            for batch in range(self.split.num_batches):
                while not self._pool.is_done(handle.worker_index, batch):
                    if time.monotonic() > deadline:
                        return False
                    try:
                        handle.pump(POLL_S)
                    except WorkerGoneError:
                        break
        return True

    def own_envs(self) -> list[GymEnv]:
        """Return the envs of this process, in env order."""
        return [self._own_envs[row] for row in sorted(self._own_envs)]

    def _do_own(self, batch: int, work: Callable[[], None]) -> Exception | None:
        """Carry an order out for this process's own rows; return what an env has raised."""
        if not self._groups[batch].envs:
            return None
        self._own_start = self._groups[batch].rows.start
        self._own_progress[0] = 0
        try:
            if self._watch is None:
                work()
            else:
                self._watch.run(work)
        except EnvTimeoutError:
            raise
        except Exception as error:  # raised again when the workers are done
            self._groups[batch].forget()
            row = self._position()
            return noted(error, row, f"raised by env {row}, in this process")
        return None

    def _wait(self, batch: int) -> None:
        if not self.split.num_workers:
            return
        while True:
            try:
                self._pool.wait(batch)
                return
            except WorkerGoneError as gone:
                self.restarts.restart(gone.worker_index)

    def _gather(self, batch: int, error: Exception | None) -> list[RowInfo]:
        """Return the infos of an order that all have carried out, in env order.

        Raises:
            Exception: Whatever an env has raised; that of the first one.
        """
        infos, self._infos = self._infos, []
        del self.restarts.orders[batch]
        if self.split.num_workers and self._pool.have_messages(batch):
            # All of them before anything is raised: what is not taken now would be found later.
            for worker in range(self.split.num_workers):
                infos += self.memory.take_in(self._pool.gather(worker, batch))
                fault = self._pool.fault(worker, batch)
                error = error or fault
        if self.restarts.was_needed:
            error = self.restarts.gather(batch, infos) or error
        if error is not None:
            raise error
        if self.split.num_workers:
            # Kept, because a worker that dies may do so while it writes the next ones.
            np.logical_or(*self._flags[batch], out=self._ended_rows[batch])
        return infos

    def settle(self) -> None:
        """Wait for orders that were given and never gathered, and forget them."""
        for group in self._groups:
            group.settle()
        if self.restarts.orders:
            self._pool.settle()
        self.restarts.forget()
        self._infos = []

    def _send(self, worker: int, batch: int, *command: Any) -> bool:
        """Give a worker a command; return whether an answer will come.

        A worker that has died is restarted, and has then carried out what is pending.
        """
        try:
            self._pool.send(worker, batch, *command)
        except WorkerGoneError:
            self.restarts.restart(worker)
            return False
        return True

    def _take_answer(self, worker: int, batch: int) -> Exception | None:
        """Wait for a worker's answer; return what an env has raised."""
        try:
            self._pool.answer(worker, batch)
        except WorkerGoneError:
            self.restarts.restart(worker)
        except EnvTimeoutError:
            raise
        except Exception as fault:  # raised again when all have answered
            return fault
        return None

    def use_mode(self, mode: AutoresetMode) -> None:
        """Change the autoreset mode; for a vector env that has not been reset yet."""
        self._pool.use_mode(mode)
        for group in self._groups:
            group.mode = mode

    # The end.

    def close(self, timeout_s: float) -> None:
        """Close all envs, end all workers, whatever they do, and free the memory.

        Ctrl-C may interrupt it; then call it again.
        """
        for group in self._groups:
            # Unless the channel was closed first: then nothing can be reported.
            with suppress(ChannelError):
                group.settle()
        errors = self._pool.close(timeout_s)
        errors += self._close_own()
        self.restarts.listeners.clear()
        self._release()
        for error in errors:
            logger.error("[VecEnv] An env raised while it was closed", exc_info=error)

    def abandon(self) -> None:
        """Undo what `open` has done, as far as it came."""
        self._pool.abandon()
        self._close_own()
        self._release()

    def _release(self) -> None:
        """Drop all views of the memory, so that it is freed at once, unless the user has one.

        Explicitly, because reference cycles here would wait for the garbage collector.
        """
        if self._watch is not None:
            self._watch.close()
        self._groups = []
        self._flags = []
        self.memory.release()
        if self._segment is not None:
            self._segment.close()

    def _close_own(self) -> list[Exception]:
        errors: list[Exception] = []
        while self._own_envs:
            row, env = next(reversed(self._own_envs.items()))
            try:
                env.close()
            except Exception as error:  # logged when all are closed
                errors.append(noted(error, row, f"raised by env {row}, in this process"))
            # Not before: an env whose closing Ctrl-C has interrupted is closed again.
            del self._own_envs[row]
        return errors
