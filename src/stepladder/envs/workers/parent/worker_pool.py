"""The worker processes of a vector env: start them, give orders, wait, replace, end.

The parent's side of `lanes`. Deals with processes and lanes; what their rows mean is decided in
`coordinator` and, when a worker has died, in `worker_restart`.
"""

import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import util
from multiprocessing.context import BaseContext
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from stepladder.compiled import direct
from stepladder.cores import usable_cores
from stepladder.envs.types import EnvFunction
from stepladder.envs.workers.arguments import WorkerSettings, checked_autoreset_mode
from stepladder.envs.workers.child.worker import Assignment, EnvFunctions
from stepladder.envs.workers.env_functions import EnvDescription
from stepladder.envs.workers.faults import Fault, unpack_fault
from stepladder.envs.workers.memory import lanes
from stepladder.envs.workers.memory.layout import VectorArrays
from stepladder.envs.workers.memory.messages import WAKE, Message, read_messages
from stepladder.envs.workers.memory.row_split import RowSplit
from stepladder.envs.workers.parent.timeouts import ProgressClock
from stepladder.envs.workers.parent.worker_handle import (
    WORKER_CHECK_S,
    WorkerGoneError,
    WorkerHandle,
)
from stepladder.envs.workers.spinning import SpinLimit
from stepladder.errors import EnvTimeoutError, WorkerDiedError
from stepladder.sync.segment import Ticket

logger = logging.getLogger("stepladder.envs")

CLOSE_S = 5.0
"""How long all workers together may take to end by themselves."""


class WorkerPool:
    """The worker processes of one vector env.

    Args:
        env_functions: One per row of the vector env.
        split: Which rows each worker has.
        settings: Of the vector env.
    """

    def __init__(
        self, env_functions: Sequence[EnvFunction], split: RowSplit, settings: WorkerSettings
    ):
        self.split = split
        self.mode = checked_autoreset_mode(settings.autoreset_mode)
        self._timeout_s = settings.timeout_s
        self._env_functions = env_functions
        self._context: BaseContext = multiprocessing.get_context(settings.start_method)
        self._may_spin = split.num_workers < usable_cores()
        self._spin_limit = SpinLimit(self._may_spin)
        self._number = 0
        self.handles: list[WorkerHandle] = []
        # Also if `close` is never called, and before Python waits for processes that still run.
        self._end = util.Finalize(self, _end_all, args=(self.handles,), exitpriority=10)

    # Starting.

    def start(self) -> None:
        """Start all workers; whatever happens, `close` or `abandon` ends them."""
        if self.split.num_workers:
            # Here and not once more in every worker.
            lanes.prepare()
        for worker in range(self.split.num_workers):
            self.handles.append(WorkerHandle(worker))
            self._start(self.handles[worker])

    def _start(self, handle: WorkerHandle) -> None:
        worker, split = handle.worker_index, self.split
        assignment = Assignment(
            worker_index=worker,
            env_functions=EnvFunctions(
                [self._env_functions[row] for row in split.all_of_worker(worker)]
            ),
            rows=tuple(split.of_worker(worker, batch) for batch in range(split.num_batches)),
            mode=self.mode,
            may_spin=self._may_spin,
            parent_pid=os.getpid(),
            made_by_main_thread=threading.current_thread() is threading.main_thread(),
        )
        handle.start(self._context, assignment, self._timeout_s)

    def descriptions(self, worker: int) -> list[EnvDescription]:
        """Wait until a worker has made its envs; return their descriptions.

        Raises:
            WorkerDiedError: It has died meanwhile.
        """
        handle, rows = self.handles[worker], self.split.all_of_worker(worker)
        try:
            return handle.await_envs(rows, self._timeout_s)
        except WorkerGoneError:
            raise handle.died_at_start(rows) from None

    def attach(self, memory: VectorArrays, ticket: Ticket) -> None:
        """Send all workers the name of the memory."""
        self.memory = memory
        self._ticket = ticket
        self._give = direct(lanes.give, memory.lanes, 0, 0)
        self._have_messages = direct(lanes.have_messages, memory.lanes, 0)
        self._await_done = direct(lanes.await_done, memory.lanes, 0, 0)
        for handle in self.handles:
            try:
                handle.send((ticket, memory.layout))
                handle.is_ready = True
            except WorkerGoneError as error:
                raise WorkerDiedError(
                    f"worker {handle.worker_index} ended before it was given an order "
                    f"({handle.exit_reason}); its error output may say why. Make a new vector env."
                ) from error

    def replace(self, worker: int) -> None:
        """Start another worker in place of one that has died; its lanes are cleared.

        Raises:
            WorkerGoneError: It has died while it made its envs.
        """
        self.handles[worker].end()
        self.memory.lanes[worker] = 0
        self.memory.lanes["progress"][worker] = lanes.NOT_BEGUN
        # Stored before it is started: Ctrl-C must not leave a worker without a handle.
        handle = self.handles[worker] = WorkerHandle(worker)
        self._start(handle)
        handle.await_envs(self.split.all_of_worker(worker), self._timeout_s)
        handle.send((self._ticket, self.memory.layout))

    # Orders.

    def lane(self, worker: int, batch: int) -> np.void:
        """Return the record of a worker and batch; a change to it is seen by the worker."""
        return self.memory.lanes[worker, batch]

    def give(self, kind: int, batch: int, objects: list[Any] | None = None) -> None:
        """Give an order to all workers.

        Args:
            kind: What to do.
            batch: With which rows.
            objects: Per worker what belongs to the order and is not in an array, if anything is.
        """
        self._number += 1
        order = self._number * lanes.NUM_ORDER_KINDS + kind
        together = [] if objects is None else zip(self.handles, objects, strict=True)
        parts = [handle.packed(order, values) for handle, values in together]
        for handle in self.handles[: len(parts)]:
            handle.is_cut_off = True
        num_asleep = self._give(self.memory.lanes, batch, order)
        # Waiting for a worker that has died notices it; here it must not stop the others.
        if objects is not None:
            for handle, part in zip(self.handles, parts, strict=True):
                with suppress(WorkerGoneError):
                    handle.send_bytes(part)
        elif num_asleep:
            for handle in self.handles:
                if self.lane(handle.worker_index, 0)["worker_sleeps"]:
                    with suppress(WorkerGoneError):
                        handle.send_bytes(WAKE)

    def is_done(self, worker: int, batch: int) -> bool:
        """Whether a worker has no order of this batch left."""
        lane = self.lane(worker, batch)
        return bool(lane["done"] == lane["order"])

    def wait(self, batch: int) -> None:
        """Wait until all workers have carried out their order.

        Raises:
            WorkerGoneError: One has died before it had.
            EnvTimeoutError: An env hangs; its worker has been killed.
        """
        spin_limit = self._spin_limit
        spin_limit.begin()
        while True:
            worker = self._await_done(self.memory.lanes, batch, spin_limit.spins)
            if worker == lanes.NO_ENTRY:
                return
            if not spin_limit.may_continue():
                self._sleep_until_done(self.handles[worker], batch)

    def _sleep_until_done(self, handle: WorkerHandle, batch: int) -> None:
        """Wait in the kernel until a worker has carried out its order."""
        worker = handle.worker_index
        lanes.set_parent_sleeps(self.memory.lanes, worker, batch, 1)
        try:
            self._pump_until(handle, batch, lambda: self.is_done(worker, batch))
        finally:
            lanes.set_parent_sleeps(self.memory.lanes, worker, batch, 0)

    def _pump_until(self, handle: WorkerHandle, batch: int, is_over: Callable[[], bool]) -> None:
        """Receive from a worker until something is over, as long as there is progress."""
        clock = ProgressClock(self._timeout_s, lambda: self.progress(handle.worker_index, batch))
        while not is_over():
            if not handle.pump(WORKER_CHECK_S) and clock.is_over():
                raise self._give_up(handle, batch)

    def progress(self, worker: int, batch: int) -> int:
        """Return how many rows have carried out a worker's order, or `lanes.NOT_BEGUN`."""
        return int(self.lane(worker, batch)["progress"])

    def _give_up(self, handle: WorkerHandle, batch: int) -> EnvTimeoutError:
        """Kill a worker whose env hangs; return the error to raise."""
        assert self._timeout_s is not None
        progress = self.progress(handle.worker_index, batch)
        rows = self.split.of_worker(handle.worker_index, batch)
        if progress == lanes.NOT_BEGUN:
            return handle.kill_unresponsive(rows, self._timeout_s)
        return handle.kill_hung(rows.start + progress, self._timeout_s)

    def have_messages(self, batch: int) -> bool:
        """Whether any worker has left a message or failed."""
        return self._have_messages(self.memory.lanes, batch)

    def gather(self, worker: int, batch: int) -> list[Message]:
        """Return the messages of a worker for its present order.

        Those of a worker that has died are still there.
        """
        lane = self.lane(worker, batch)
        num_bytes, num_overflows = int(lane["message_bytes"]), int(lane["num_overflows"])
        messages = list(read_messages(self.memory.messages[worker, batch], num_bytes))
        if num_overflows:
            messages += self.handles[worker].overflows(int(lane["order"]), num_overflows)
            messages.sort(key=lambda message: message.row)
        return messages

    def forget_messages(self, worker: int, batch: int) -> None:
        """Do not let what has been gathered be gathered again."""
        lane = self.lane(worker, batch)
        lane["message_bytes"] = lane["num_overflows"] = 0

    def fault(self, worker: int, batch: int) -> Exception | None:
        """Return what an env has raised, if one has."""
        if not self.lane(worker, batch)["has_failed"]:
            return None
        return unpack_fault(self._reply(worker, batch), self.handles[worker].pid)

    # Commands.

    def send(self, worker: int, batch: int, name: str, *arguments: Any) -> None:
        """Give one worker a command; `answer` takes what comes back."""
        self._number += 1
        order = self._number * lanes.NUM_ORDER_KINDS + lanes.READ_COMMAND
        # First, for it may fail; and an order without its command leaves a worker waiting.
        handle = self.handles[worker]
        command = handle.packed(order, (name, *arguments))
        handle.is_cut_off = True
        lanes.give_one(self.memory.lanes, worker, batch, order)
        handle.send_bytes(command)

    def answer(self, worker: int, batch: int) -> Any:
        """Return the answer to a command.

        Raises:
            WorkerGoneError: The worker has died meanwhile.
            EnvTimeoutError: It has taken too long; it has been killed.
            Exception: Whatever an env has raised.
        """
        reply, handle = self._reply(worker, batch), self.handles[worker]
        if isinstance(reply, Fault):
            self.lane(worker, batch)["has_failed"] = 0
            raise unpack_fault(reply, handle.pid)
        return reply

    def _reply(self, worker: int, batch: int) -> Any:
        """Wait for the reply to the present order of a lane."""
        handle = self.handles[worker]
        order = int(self.lane(worker, batch)["order"])
        self._pump_until(handle, batch, lambda: handle.has_replied(order))
        return handle.take_reply(order)

    def ask(self, worker: int, batch: int, name: str, *arguments: Any) -> Any:
        """Give one worker a command and return its answer."""
        self.send(worker, batch, name, *arguments)
        return self.answer(worker, batch)

    def use_mode(self, mode: AutoresetMode) -> None:
        """Change the autoreset mode of all workers, those started later included."""
        self.mode = mode
        for handle in self.handles:
            self.ask(handle.worker_index, 0, "use_mode", mode)

    def settle(self) -> None:
        """Wait for what was begun and never waited for, and forget it."""
        for batch in range(self.split.num_batches):
            for handle in self.handles:
                if handle.is_alive() and not self.is_done(handle.worker_index, batch):
                    with suppress(WorkerGoneError):
                        # The interrupted call may not have woken it.
                        handle.send_bytes(WAKE)
                        self._sleep_until_done(handle, batch)
        for handle in self.handles:
            handle.forget()

    # The end.

    def close(self, timeout_s: float = CLOSE_S) -> list[Exception]:
        """End all workers, whatever they do; return what their envs raised while they were closed.

        Args:
            timeout_s: How long they may take to end by themselves, all together.
        """
        deadline = time.monotonic() + timeout_s
        errors: list[Exception] = []
        closing: list[WorkerHandle] = []
        for handle in self.handles:
            # A worker that Ctrl-C has kept from getting ready would not understand the command.
            if handle.is_ready and handle.is_alive():
                handle.forget()
                with suppress(WorkerGoneError):
                    self.send(handle.worker_index, 0, "close")
                    closing.append(handle)
        for handle in closing:
            with suppress(WorkerGoneError):
                faults = self._last_reply(handle, deadline)
                errors += [unpack_fault(fault, handle.pid) for fault in faults]
        for handle in closing:
            handle.process.join(timeout=max(0.1, deadline - time.monotonic()))
        self.abandon()
        return errors

    def _last_reply(self, handle: WorkerHandle, deadline: float) -> list[Fault]:
        """Return what a worker's envs raised while they were closed, if it replies in time."""
        order = int(self.lane(handle.worker_index, 0)["order"])
        while not handle.has_replied(order):
            left = deadline - time.monotonic()
            if not handle.pump(max(0.0, min(WORKER_CHECK_S, left))) and left <= 0:
                logger.warning(
                    "[VecEnv] Worker %d did not close its envs in time and is killed.",
                    handle.worker_index,
                )
                return []
        return handle.take_reply(order)

    def abandon(self) -> None:
        """End all workers at once; if Ctrl-C interrupts it, call it again."""
        _end_all(self.handles)
        self._end.cancel()


def _end_all(handles: list[WorkerHandle]) -> None:
    """End all processes that are left, and release them and their pipes."""
    for handle in handles:
        if handle.pid is not None:
            handle.process.kill()
    for handle in handles:
        handle.end()
