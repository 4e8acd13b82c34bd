"""What a worker process does: build its envs, then wait for orders and carry them out.

Started by `crew`. Orders come through the words of `control`; commands, which are rare, through a
pipe, which is also what wakes a worker that sleeps. A worker ends when it is told to or when its
parent is gone, whatever its envs do.
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode

from stepladder.compiled import direct
from stepladder.envs.workers import control
from stepladder.envs.workers.calls import apply_to
from stepladder.envs.workers.elbow_room import ElbowRoom
from stepladder.envs.workers.faults import NO_ENV, Fault, pack_fault
from stepladder.envs.workers.group import EnvGroup, Options
from stepladder.envs.workers.mains import known_to_worker, pickled_for
from stepladder.envs.workers.memory import Layout, Memory, fast_view
from stepladder.envs.workers.messages import (
    BELL,
    COMMAND,
    INFO,
    MARK,
    OBJECTS,
    REPLY,
    Writer,
    pickled,
)
from stepladder.envs.workers.spinning import Patience
from stepladder.envs.workers.watch import end_with_parent
from stepladder.errors import ConfigError
from stepladder.sync.segment import Segment, Ticket


class EnvFunctions:
    """Functions that make envs, fit to travel to another process, lambdas included."""

    def __init__(self, functions: Sequence[Any]):
        self._functions: list[Any] | bytes = list(functions)

    def __getstate__(self) -> bytes:
        # Only a worker that is no fork gets them like this.
        return pickled_for(self._functions, known_to_worker("spawn"))

    def __setstate__(self, state: bytes) -> None:
        self._functions = state

    def load(self) -> list[Any]:
        """Return the functions; not before somebody can be told what goes wrong over it.

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
    """Which envs a worker has, and who its parent is."""

    worker_index: int
    env_functions: EnvFunctions
    first_rows: tuple[int, ...]
    """Per batch the row of its first env."""

    sizes: tuple[int, ...]
    """Per batch how many envs."""

    mode: AutoresetMode
    may_spin: bool
    parent_pid: int
    made_by_main_thread: bool


@dataclass(frozen=True)
class Attachment:
    """Where the memory is, and how it is laid out."""

    ticket: Ticket
    layout: Layout


def describe(env: gym.Env[Any, Any]) -> dict[str, Any]:
    """Return what a vector env has to know of an env."""
    return {
        "observation_space": env.observation_space,
        "action_space": env.action_space,
        "metadata": env.metadata,
        "render_mode": env.render_mode,
    }


def main(assignment: Assignment, pipe: Connection) -> None:
    """Run a worker until it is told to end."""
    # Ctrl-C goes to the whole group of processes; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _calm_torch()
    end_with_parent(assignment.parent_pid, assignment.made_by_main_thread)
    worker = Worker(assignment, pipe)
    try:
        if worker.build():
            worker.serve()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        # The parent is gone, and nobody is left to tell.
        os._exit(1)


def _calm_torch() -> None:
    """Keep PyTorch, where a fork has brought it along, from waiting for threads that are not here.

    Its pool of threads stays behind in the parent; the first operation that wants it would hang.
    """
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


class Worker:
    """The envs of one worker process, and how it is told what to do."""

    def __init__(self, assignment: Assignment, pipe: Connection):
        self._assignment = assignment
        self._pipe = pipe
        self.envs: list[gym.Env[Any, Any]] = []

    def build(self) -> bool:
        """Make the envs and tell the parent what they are; return whether it went well."""
        # From here on an env is at work, and has the time that the parent allows each of them.
        self._pipe.send_bytes(BELL)
        try:
            for make in self._assignment.env_functions.load():
                self.envs.append(make())
                self._pipe.send_bytes(BELL)
            answer = pickled([describe(env) for env in self.envs])
        except Exception as error:  # forwarded to the parent, which raises it
            self._pipe.send_bytes(pickle.dumps(pack_fault(self._row_of(len(self.envs)), error)))
            return False
        self._pipe.send_bytes(answer)
        self._attach(self._pipe.recv())
        return True

    def _row_of(self, number: int) -> int:
        """Return the row of the env with this number among the worker's own."""
        for first, size in zip(self._assignment.first_rows, self._assignment.sizes, strict=True):
            if number < size:
                return first + number
            number -= size
        return number

    def _attach(self, attachment: Attachment) -> None:
        segment = Segment.attach(attachment.ticket)
        memory = self._memory = Memory(attachment.layout, segment.words)
        self._segment = segment
        words = fast_view(memory.words)
        self._words = words
        num_batches = attachment.layout.num_batches
        self._first_lane = self._assignment.worker_index * num_batches * control.LANE_WORDS
        self._groups: list[EnvGroup] = []
        self._writers: list[Writer] = []
        start = 0
        for batch in range(num_batches):
            stop = start + self._assignment.sizes[batch]
            self._add_group(batch, self.envs[start:stop])
            start = stop
        self._finish = direct(control.finish, memory.words, 0, 0)
        self._await_order = direct(control.await_order, memory.words, 0, 0, 0)
        self._objects_come = any(not leaf.is_array for leaf in attachment.layout.actions)

    def _add_group(self, batch: int, envs: Sequence[gym.Env[Any, Any]]) -> None:
        lane = self._lane(batch)
        number = self._assignment.worker_index * len(self._assignment.sizes) + batch
        writer = Writer(self._words, lane, self._memory.messages[number], self._pipe.send_bytes)
        progress = lane + control.PROGRESS
        self._writers.append(writer)
        self._groups.append(
            EnvGroup(
                envs,
                self._assignment.first_rows[batch],
                self._memory,
                self._assignment.mode,
                tell_info=lambda row, info: writer.write(INFO, row, info),
                tell_objects=lambda row, values: writer.write(OBJECTS, row, values),
                progress=self._words[progress : progress + 1],
            )
        )

    def _lane(self, batch: int) -> int:
        return self._first_lane + batch * control.LANE_WORDS

    # Waiting.

    def serve(self) -> None:
        """Carry out orders until told to end."""
        patience = Patience(self._assignment.may_spin)
        words, worker_index = self._memory.words, self._assignment.worker_index
        num_batches, await_order = len(self._groups), self._await_order
        is_crowded = direct(control.is_crowded, words, 0, 0, 0)
        elbow_room = ElbowRoom()
        is_open = True
        while is_open:
            batch = await_order(words, worker_index, num_batches, patience.spins)
            if batch == control.NOBODY and not patience.go_on():
                batch = self._sleep()
            if batch != control.NOBODY:
                if is_crowded(words, worker_index, num_batches, batch):
                    elbow_room.look_for(self._cores_in_use(batch))
                is_open = self._carry_out(batch)
                patience.begin()

    def _cores_in_use(self, batch: int) -> set[int]:
        """Return the cores on which the parent and the other workers run."""
        size = len(self._groups) * control.LANE_WORDS
        workers = range(self._memory.layout.num_workers)
        others = {self._words[worker * size + control.WORKER_CPU] for worker in workers}
        return others | {self._words[self._lane(batch) + control.PARENT_CPU]}

    def _sleep(self) -> int:
        """Wait in the kernel until the parent rings; return the batch to work on, or `NOBODY`."""
        flag = self._first_lane + control.WORKER_SLEEPS
        words, worker_index = self._memory.words, self._assignment.worker_index
        control.say_asleep(words, flag, 1)
        batch = self._await_order(words, worker_index, len(self._groups), 1)
        if batch == control.NOBODY:
            # A bell, which has done its work by waking us, or a command that belongs to an order.
            self._pipe.poll(None)
            batch = self._await_order(words, worker_index, len(self._groups), 1)
            if batch == control.NOBODY:
                self._pipe.recv_bytes()
        control.say_asleep(words, flag, 0)
        return batch

    def _receive(self, order: int) -> Any:
        """Return what belongs to an order; drop bells, and what belonged to interrupted orders."""
        while True:
            data = self._pipe.recv_bytes()
            if data and MARK.unpack_from(data) == (COMMAND, order):
                return pickle.loads(memoryview(data)[MARK.size :])

    # Working.

    def _carry_out(self, batch: int) -> bool:
        """Carry out the order of a lane; return whether to go on after it."""
        lane = self._lane(batch)
        order = self._words[lane + control.ORDER]
        kind = order % control.KINDS
        group = self._groups[batch]
        self._writers[batch].begin(order)
        is_open = True
        try:
            if kind == control.STEP:
                if self._objects_come:
                    self._take_objects(group.rows, self._receive(order))
                group.step()
            elif kind == control.RESET:
                group.reset()
            else:
                name, *arguments = self._receive(order)
                is_open = name != "close"
                value = getattr(self, f"_do_{name}")(batch, *arguments)
                self._pipe.send_bytes(MARK.pack(REPLY, order) + pickled(value))
        except Exception as error:  # forwarded to the parent, which raises it
            self._fail(batch, order, error)
        if self._finish(self._memory.words, lane, order):
            self._pipe.send_bytes(BELL)
        # When the parent can go on already, so that it waits for nothing.
        group.keep()
        return is_open

    def _fail(self, batch: int, order: int, error: Exception) -> None:
        lane, group = self._lane(batch), self._groups[batch]
        env_index = getattr(error, "env_index", None)
        if env_index is None:
            progress = self._words[lane + control.PROGRESS]
            is_asked = progress != control.NOT_BEGUN
            env_index = group.rows.start + progress if is_asked else NO_ENV
        self._words[lane + control.HAS_FAILED] = 1
        fault = pickle.dumps(pack_fault(env_index, error))
        self._pipe.send_bytes(MARK.pack(REPLY, order) + fault)

    def _take_objects(self, rows: slice, columns: list[list[Any]]) -> None:
        """Take over the leaves of actions that are no arrays."""
        loose = [column for column in self._memory.actions if isinstance(column, list)]
        for column, values in zip(loose, columns, strict=True):
            column[rows] = values

    # Commands.

    def _do_reset(self, batch: int, seeds: list[int | None] | None, options: Options) -> None:
        self._groups[batch].reset(seeds, options)

    def _do_step_from(self, batch: int, start: int, objects: list[list[Any]] | None) -> None:
        if objects is not None:
            self._take_objects(self._groups[batch].rows, objects)
        self._groups[batch].step(start)

    def _do_use_mode(self, batch: int, mode: AutoresetMode) -> None:
        for group in self._groups:
            group.mode = mode

    def _do_adopt(self, batch: int, states: list[list[int]], objects: list[list[Any]]) -> None:
        """Take up rows where another worker, which has died, has left them."""
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
            # So that the parent can say which one hangs.
            self._words[self._lane(batch) + control.PROGRESS] = row - self._groups[batch].rows.start
            results.append(apply_to(self._env_of(row), row, function, given))
        return results

    def _do_close(self, batch: int) -> list[Fault]:
        """Close all envs; return what they raised, each by itself."""
        faults: list[Fault] = []
        for number, env in enumerate(self.envs):
            try:
                env.close()
            except Exception as error:  # logged by the parent when all are closed
                faults.append(pack_fault(self._row_of(number), error))
        return faults

    def _env_of(self, row: int) -> gym.Env[Any, Any]:
        for group in self._groups:
            if group.rows.start <= row < group.rows.stop:
                return group.envs[row - group.rows.start]
        raise IndexError(row)
