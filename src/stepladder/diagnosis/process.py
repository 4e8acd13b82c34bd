"""Code of the user in a process of its own: with a time limit, and nothing left of it afterwards.

Between `examination` and `child`. The child has a session of its own; when it has ended, was killed
or has taken too long, everything that it started is ended, and shared memory whose names it or its
children held is removed.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

import cloudpickle

from stepladder.diagnosis import machine
from stepladder.diagnosis.child import ExaminationOrder, is_users
from stepladder.diagnosis.evidence import EnvEvidence, Trouble

MARK = "STEPLADDER_DOCTOR"
"""Environment variable by which processes are known that the child started."""

PROGRAM = "from stepladder.diagnosis.child import main; main()"

GRACE_S = 2.0
"""How long a child may take longer than its limit, which it keeps by itself if it can."""

STARTING_S = 120.0
"""How long a process may take until it answers at all."""

ENDING_S = 1.0
"""How long what it has started may take to end."""

MOST_PRINTED = 2_000
"""Characters that are kept of what is printed."""


class Output:
    """What a process prints: counted, and the beginning kept."""

    def __init__(self, stream: IO[bytes]):
        self.num_lines, self.text = 0, ""
        self._stream = stream
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        with suppress(OSError, ValueError):
            while chunk := os.read(self._stream.fileno(), 65_536):
                self.num_lines += chunk.count(b"\n")
                if len(self.text) < MOST_PRINTED:
                    self.text += chunk.decode(errors="replace")[:MOST_PRINTED]

    def end(self) -> None:
        """Wait for what is still in the pipe; close it."""
        self._thread.join(1.0)
        self._stream.close()


class Child:
    """A process that examines an env."""

    def __init__(self, order: ExaminationOrder, hash_seed: int):
        self._mark = f"{os.getpid()}-{id(self)}-{time.time_ns()}"
        self._stacks = tempfile.NamedTemporaryFile("r", prefix="doctor-")  # noqa: SIM115
        here, there = Pipe()
        self._connection: Connection = here
        self._limit_s = STARTING_S
        try:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-c", PROGRAM),
                    *(str(there.fileno()), self._stacks.name),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[there.fileno()],
                start_new_session=True,
                env={
                    **os.environ,
                    MARK: self._mark,
                    # Sets of texts have another order with another one.
                    "PYTHONHASHSEED": str(hash_seed),
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    "SDL_VIDEODRIVER": os.environ.get("SDL_VIDEODRIVER", "dummy"),
                },
            )
        except BaseException:
            here.close()
            raise
        finally:
            there.close()
        stream = self.process.stdout
        assert stream is not None
        self.output = Output(stream)
        self.memory: set[str] = set()
        with suppress(BrokenPipeError, ConnectionResetError):
            self._connection.send(sys.path)
            self._connection.send_bytes(cloudpickle.dumps(order))

    def results(self) -> Iterator[tuple[str, Any]]:
        """Yield parts of the evidence as they come; if the process ends too early, why."""
        probe = "starting a process"
        while True:
            try:
                if not self._wait():
                    yield "trouble", self._trouble("hung", probe, self._limit_text())
                    return
                part, value = self._connection.recv()
            except (EOFError, OSError):
                self._join()
                stack = self._stack()
                hung = stack.startswith("Timeout")
                text = self._limit_text() if hung else self._ending()
                yield "trouble", self._trouble("hung" if hung else "died", probe, text)
                return
            self.memory |= machine.memory_held_by(self._family())
            if part == "end":
                return
            if part == "begin":
                probe, self._limit_s = value
            elif part == "memory":
                self.memory |= value
            else:
                yield part, value

    def _wait(self) -> bool:
        """Wait for a message; meanwhile note which shared memory there is."""
        deadline = time.monotonic() + self._limit_s + GRACE_S
        while time.monotonic() < deadline:
            if self._connection.poll(0.5):
                return True
            self.memory |= machine.memory_held_by(self._family())
        return False

    def end(self) -> list[str]:
        """End the process and all that it started; return the names of those that were left."""
        self._connection.close()
        self._join()
        if self.process.poll() is None:
            self.process.kill()
            self._join()
        names = self._left()
        deadline = time.monotonic() + ENDING_S
        while names and time.monotonic() < deadline:
            # What is about to end by itself was not left behind.
            time.sleep(0.05)
            names = self._left()
        for pid in self._family():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.output.end()
        self._stacks.close()
        return names

    def _left(self) -> list[str]:
        """Return the command lines of what is still there, but for Python's own helpers."""
        pids = [pid for pid in self._family() if not machine.is_helper_of_python(pid)]
        return [name for pid in pids if (name := machine.name_of_process(pid))]

    def _family(self) -> list[int]:
        """Return the processes that the child has started, itself included."""
        return machine.processes_marked(f"{MARK}={self._mark}")

    def _join(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)

    def _limit_text(self) -> str:
        return f"no answer within {self._limit_s:g} s"

    def _ending(self) -> str:
        code = self.process.returncode
        if code is None:
            return "it closed the connection"
        if code < 0:
            return f"the process was ended by {signal.Signals(-code).name}"
        return f"the process ended with exit code {code}"

    def _stack(self) -> str:
        with suppress(OSError):
            return Path(self._stacks.name).read_text(errors="replace")
        return ""

    def _trouble(self, kind: Any, probe: str, text: str) -> Trouble:
        return Trouble(kind=kind, probe=probe, text=text, where=_place_in(self._stack()))


def _place_in(stack: str) -> str:
    """Return the innermost line of the user's code in what the fault handler has written."""
    for line in stack.splitlines():
        words = line.strip().split('"')
        if len(words) == 3 and words[0] == "File " and is_users(words[1]):
            rest = words[2].removeprefix(", ").replace(" in ", ", in ")
            return f"{Path(words[1]).name} {rest}"
    return ""


@contextmanager
def children(*orders: ExaminationOrder) -> Iterator[list[Child]]:
    """Start a process per order; afterwards nothing of any of them is left."""
    started: list[Child] = []
    try:
        for hash_seed, order in enumerate(orders):
            started.append(Child(order, hash_seed))
        yield started
    finally:
        for child in started:
            child.end()


def examine_env(
    order: ExaminationOrder, evidence: EnvEvidence, other: ExaminationOrder | None
) -> None:
    """Examine an env in processes of its own, and complete the evidence.

    Args:
        order: Of the examination.
        evidence: Completed in place, whatever happens.
        other: Of a second process, which runs until the first one is done.
    """
    before = machine.memory_names()
    orders = (order,) if other is None else (order, other)
    with children(*orders) as (child, *others):
        second = threading.Thread(target=_take_digests, args=(others, evidence), daemon=True)
        second.start()
        for part, value in child.results():
            if part == "trouble":
                evidence.troubles.append(value)
            else:
                evidence.give(part, value)
        second.join(order.limit_s)
        left = child.end()
        evidence.processes_left = tuple(left)
        evidence.num_printed, evidence.printed = child.output.num_lines, child.output.text
        memory = (child.memory | {name for one in others for name in one.memory}) - before
    evidence.memory_left = tuple(sorted(machine.remove_memory(memory)))


def _take_digests(others: list[Child], evidence: EnvEvidence) -> None:
    for other in others:
        for part, value in other.results():
            if part == "repeats":
                evidence.elsewhere = value
