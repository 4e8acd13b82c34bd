"""The worker process: build its envs, then wait for orders and carry them out.

Started by `worker_handle`. Orders come through `lanes`; commands, which are rare, through a pipe,
which also wakes a worker that sleeps. A worker ends on request or when its parent has
ended, whatever its envs do.
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from multiprocessing.connection import Connection
from typing import Any

from gymnasium.vector import AutoresetMode

from stepladder.compiled import direct
from stepladder.envs.types import GymEnv, ResetOptions
from stepladder.envs.workers.child.cpu_affinity import CpuAffinity
from stepladder.envs.workers.child.parent_watch import end_with_parent
from stepladder.envs.workers.env_functions import EnvDescription, apply_to
from stepladder.envs.workers.faults import NO_ENV, Fault, pack_fault
from stepladder.envs.workers.group import EnvGroup
from stepladder.envs.workers.main_program import known_to_worker, pickled_for
from stepladder.envs.workers.memory import lanes
from stepladder.envs.workers.memory.layout import MemoryLayout, VectorArrays
from stepladder.envs.workers.memory.messages import (
    COMMAND_DATA,
    INFO_MESSAGE,
    MESSAGE_MARK,
    OBJECTS_MESSAGE,
    REPLY,
    WAKE,
    MessageWriter,
    fast_view,
    pickled,
)
from stepladder.envs.workers.spinning import SpinLimit
from stepladder.errors import ConfigError
from stepladder.sync.segment import Segment, Ticket


class EnvFunctions:
    """Functions that make envs; can be sent to another process, lambdas included."""

    def __init__(self, functions: Sequence[Any]):
        self._functions: list[Any] | bytes = list(functions)

    def __getstate__(self) -> bytes:
        # Only a worker that was not forked gets them like this.
        return pickled_for(self._functions, known_to_worker("spawn"))

    def __setstate__(self, state: bytes) -> None:
        self._functions = state

    def load(self) -> list[Any]:
        """Return the functions; called late, when errors can be sent to the parent.

        Raises:
            ConfigError: One of them is not found here.
        """
        if isinstance(self._functions, list):
            return self._functions
        try:
            return pickle.loads(self._functions)
        except AttributeError as error:
            raise ConfigError(
                f"a worker that imported the main program did not find in it what makes its envs "
                f"({error}). Define it at the top level of the program, or of a module."
            ) from error


@dataclass(frozen=True)
class Assignment:
    """Which envs a worker has, and which process is its parent."""

    worker_index: int
    env_functions: EnvFunctions
    rows: tuple[range, ...]
    """Per batch the rows of its envs."""

    mode: AutoresetMode
    may_spin: bool
    parent_pid: int
    made_by_main_thread: bool


def main(assignment: Assignment, pipe: Connection) -> None:
    """Run a worker until it is asked to end."""
    # Ctrl-C goes to the whole group of processes; the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        # A fork does not copy PyTorch's pool of threads; an operation that uses it would hang.
        torch.set_num_threads(1)
    end_with_parent(assignment.parent_pid, assignment.made_by_main_thread)
    worker = Worker(assignment, pipe)
    try:
        if worker.build():
            worker.serve()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        # The parent is gone, so there is no one to report to.
        os._exit(1)


class Worker:
    """The envs of one worker process, and the orders that it carries out."""

    def __init__(self, assignment: Assignment, pipe: Connection):
        self._assignment = assignment
        self._pipe = pipe
        self._rows = list(chain(*assignment.rows))
        self.envs: list[GymEnv] = []
        """In the order of `_rows`."""

    def build(self) -> bool:
        """Make the envs and describe them to the parent; return whether all could be made."""
        # From here on the parent allows each env its time.
        self._pipe.send_bytes(WAKE)
        try:
            for make in self._assignment.env_functions.load():
                self.envs.append(make())
                self._pipe.send_bytes(WAKE)
            answer = pickled([EnvDescription.of(env) for env in self.envs])
        except Exception as error:  # forwarded to the parent, which raises it
            row = self._rows[min(len(self.envs), len(self._rows) - 1)]
            self._pipe.send_bytes(pickle.dumps(pack_fault(row, error)))
            return False
        self._pipe.send_bytes(answer)
        self._attach(*self._pipe.recv())
        return True

    def _attach(self, ticket: Ticket, layout: MemoryLayout) -> None:
        self._segment = Segment.attach(ticket)
        memory = self._memory = VectorArrays(layout, self._segment.words)
        self._worker_index = self._assignment.worker_index
        self._lanes = memory.lanes[self._worker_index]
        self._orders = fast_view(self._lanes["order"])
        self._progress = fast_view(self._lanes["progress"])
        self._writers = [
            MessageWriter(lane, room, self._pipe.send_bytes)
            for lane, room in zip(self._lanes, memory.messages[self._worker_index], strict=True)
        ]
        envs = iter(self.envs)
        self._groups = [
            EnvGroup(
                list(islice(envs, len(rows))),
                rows.start,
                memory,
                self._assignment.mode,
                on_info=partial(writer.write, INFO_MESSAGE),
                on_objects=partial(writer.write, OBJECTS_MESSAGE),
                progress=self._progress[batch : batch + 1],
            )
            for batch, (rows, writer) in enumerate(
                zip(self._assignment.rows, self._writers, strict=True)
            )
        ]
        self._finish = direct(lanes.finish, memory.lanes, 0, 0, 0)
        self._await_order = direct(lanes.await_order, memory.lanes, 0, 0)
        self._objects_come = any(not leaf.is_array for leaf in layout.actions)

    # Waiting.

    def serve(self) -> None:
        """Carry out orders until asked to end."""
        spin_limit = SpinLimit(self._assignment.may_spin)
        all_lanes, worker_index = self._memory.lanes, self._worker_index
        await_order = self._await_order
        is_crowded = direct(lanes.is_crowded, all_lanes, 0, 0)
        cpu_affinity = CpuAffinity()
        is_open = True
        while is_open:
            batch = await_order(all_lanes, worker_index, spin_limit.spins)
            if batch == lanes.NO_ENTRY and not spin_limit.may_continue():
                batch = self._sleep()
            if batch != lanes.NO_ENTRY:
                if is_crowded(all_lanes, worker_index, batch):
                    of_workers = all_lanes["worker_cpu"][:, 0].tolist()
                    of_parent = int(self._lanes[batch]["parent_cpu"])
                    cpu_affinity.move_to_free_core({*of_workers, of_parent})
                is_open = self._carry_out(batch)
                spin_limit.begin()

    def _sleep(self) -> int:
        """Sleep until the parent sends; return the batch with an order, or `NO_ENTRY`."""
        all_lanes, worker_index = self._memory.lanes, self._worker_index
        lanes.set_worker_sleeps(all_lanes, worker_index, 1)
        batch = self._await_order(all_lanes, worker_index, 1)
        if batch == lanes.NO_ENTRY:
            # Either a `WAKE`, which is dropped, or a command that belongs to an order.
            self._pipe.poll(None)
            batch = self._await_order(all_lanes, worker_index, 1)
            if batch == lanes.NO_ENTRY:
                self._pipe.recv_bytes()
        lanes.set_worker_sleeps(all_lanes, worker_index, 0)
        return batch

    def _receive(self, order: int) -> Any:
        """Return what belongs to an order; drop the rest, which belongs to interrupted orders."""
        while True:
            data = self._pipe.recv_bytes()
            if data and MESSAGE_MARK.unpack_from(data) == (COMMAND_DATA, order):
                return pickle.loads(memoryview(data)[MESSAGE_MARK.size :])

    # Working.

    def _carry_out(self, batch: int) -> bool:
        """Carry out the order of a lane; return whether to go on after it."""
        order = self._orders[batch]
        kind = order % lanes.NUM_ORDER_KINDS
        group = self._groups[batch]
        self._writers[batch].begin(order)
        is_open = True
        try:
            if kind == lanes.STEP_ROWS:
                if self._objects_come:
                    self._take_objects(group.rows, self._receive(order))
                group.step()
            elif kind == lanes.RESET_ROWS:
                group.reset()
            else:
                name, *arguments = self._receive(order)
                is_open = name != "close"
                value = getattr(self, f"_do_{name}")(batch, *arguments)
                self._pipe.send_bytes(MESSAGE_MARK.pack(REPLY, order) + pickled(value))
        except Exception as error:  # forwarded to the parent, which raises it
            self._fail(batch, order, error)
        if self._finish(self._memory.lanes, self._worker_index, batch, order):
            self._pipe.send_bytes(WAKE)
        # After that, so that the parent does not wait for it.
        group.keep()
        return is_open

    def _fail(self, batch: int, order: int, error: Exception) -> None:
        group = self._groups[batch]
        env_index = getattr(error, "env_index", None)
        if env_index is None:
            progress = self._progress[batch]
            has_begun = progress != lanes.NOT_BEGUN
            env_index = group.rows.start + progress if has_begun else NO_ENV
        self._lanes[batch]["has_failed"] = 1
        fault = pickle.dumps(pack_fault(env_index, error))
        self._pipe.send_bytes(MESSAGE_MARK.pack(REPLY, order) + fault)

    def _take_objects(self, rows: slice, columns: list[list[Any]]) -> None:
        """Take over the leaves of actions that are not arrays."""
        loose = [column for column in self._memory.actions if isinstance(column, list)]
        for column, values in zip(loose, columns, strict=True):
            column[rows] = values

    # Commands.

    def _do_reset(self, batch: int, seeds: list[int | None] | None, options: ResetOptions) -> None:
        self._groups[batch].reset(seeds, options)

    def _do_step_from(self, batch: int, start: int, objects: list[list[Any]] | None) -> None:
        if objects is not None:
            self._take_objects(self._groups[batch].rows, objects)
        self._groups[batch].step(start)

    def _do_use_mode(self, batch: int, mode: AutoresetMode) -> None:
        for group in self._groups:
            group.mode = mode

    def _do_adopt(self, batch: int, states: list[list[int]], objects: list[list[Any]]) -> None:
        """Continue the rows of a worker that has died."""
        for group, of_group in zip(self._groups, states, strict=True):
            group.states[:] = of_group
        loose = self._memory.loose_observations()
        for column, values in zip(loose, objects, strict=True):
            column[:] = values
        for group in self._groups:
            group.keep()

    def _do_apply(
        self,
        batch: int,
        rows: list[int],
        function: Callable[..., Any],
        arguments: list[Sequence[Any]],
    ) -> list[Any]:
        results: list[Any] = []
        for row, given in zip(rows, arguments, strict=True):
            # So that the parent can name an env that hangs.
            self._progress[batch] = row - self._groups[batch].rows.start
            env = self.envs[self._rows.index(row)]
            results.append(apply_to(env, row, function, given))
        return results

    def _do_close(self, batch: int) -> list[Fault]:
        """Close all envs; return what they raised."""
        faults: list[Fault] = []
        for row, env in zip(self._rows, self.envs, strict=True):
            try:
                env.close()
            except Exception as error:  # logged by the parent when all are closed
                faults.append(pack_fault(row, error))
        return faults
