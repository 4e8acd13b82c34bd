"""What this machine has: cores, shared memory with a name, and who holds it.

Read by `process`, which leaves nothing behind, and by the checks of the machine. Linux only; where
there is no ``/proc`` nothing is known, and nothing is found.
"""

import os
import re
import stat
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stepladder.cores import usable_cores

SHARED_MEMORY = Path("/dev/shm")
PROCESSES = Path("/proc")

KNOWN_NAMES = re.compile(r"(psm_|wnsm_|stepladder-|torch_\d|sem\.mp-)")
"""Names that Python's multiprocessing, PyTorch and this library give."""

SETTLED_S = 60.0
"""Age from which memory that nobody uses is not on its way from one process to another."""

_TRACKERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


@dataclass(frozen=True)
class LeftOver:
    """Shared memory that no process uses."""

    name: str
    num_bytes: int


@dataclass(frozen=True)
class Machine:
    """This machine."""

    num_cores: int
    left_over: tuple[LeftOver, ...]
    """Of this user, with a name that a library of Python gives."""

    memory_bytes: int
    """Room for shared memory; 0 if it is not known."""


def look() -> Machine:
    """Look at this machine."""
    room = os.statvfs(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else None
    return Machine(
        num_cores=usable_cores(),
        left_over=tuple(_left_over()),
        memory_bytes=0 if room is None else room.f_blocks * room.f_frsize,
    )


def memory_names() -> set[str]:
    """Return the names of all shared memory."""
    if not SHARED_MEMORY.is_dir():
        return set()
    with suppress(OSError):
        return {entry.name for entry in SHARED_MEMORY.iterdir()}
    return set()


def memory_held_by(pids: Iterable[int]) -> set[str]:
    """Return the names of the shared memory that processes have mapped or open."""
    held: set[str] = set()
    for pid in pids:
        folder = PROCESSES / str(pid)
        with suppress(OSError):
            for line in (folder / "maps").read_text(errors="replace").splitlines():
                held.add(line[line.find("/") :] if "/" in line else "")
        with suppress(OSError):
            for entry in (folder / "fd").iterdir():
                with suppress(OSError):
                    held.add(os.readlink(entry))
    prefix = f"{SHARED_MEMORY}/"
    # What was removed while it was open has another ending.
    return {path.removeprefix(prefix) for path in held if path.startswith(prefix)}


def remove_memory(names: Collection[str]) -> list[str]:
    """Remove shared memory of these names, if it is still there and this user's; return which."""
    removed: list[str] = []
    for name in names:
        path = SHARED_MEMORY / name
        with suppress(OSError):
            found = path.lstat()
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid():
                path.unlink()
                removed.append(name)
    return removed


def processes_marked(mark: str) -> list[int]:
    """Return the processes of this user that have a setting in their environment."""
    found: list[int] = []
    wanted = mark.encode()
    for pid in _pids():
        with suppress(OSError):
            if wanted in (PROCESSES / str(pid) / "environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def name_of_process(pid: int) -> str:
    """Return the command line of a process; empty if it is gone or ending."""
    with suppress(OSError):
        words = (PROCESSES / str(pid) / "cmdline").read_bytes().split(b"\0")
        return " ".join(word.decode(errors="replace") for word in words if word)
    return ""


def is_helper_of_python(pid: int) -> bool:
    """Whether a process ends by itself when those that it helps have ended."""
    name = name_of_process(pid)
    return any(tracker in name for tracker in _TRACKERS)


def _left_over() -> Iterable[LeftOver]:
    if not SHARED_MEMORY.is_dir() or not PROCESSES.is_dir():
        return
    ours: list[LeftOver] = []
    with suppress(OSError):
        for entry in SHARED_MEMORY.iterdir():
            with suppress(OSError):
                found = entry.lstat()
                is_file = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()
                is_old = time.time() - found.st_mtime > SETTLED_S
                if is_file and is_old and KNOWN_NAMES.match(entry.name):
                    ours.append(LeftOver(entry.name, found.st_size))
    if ours:
        held = memory_held_by(_pids())
        yield from (one for one in ours if one.name not in held)


def _pids() -> list[int]:
    if not PROCESSES.is_dir():
        return []
    with suppress(OSError):
        return [int(entry.name) for entry in PROCESSES.iterdir() if entry.name.isdigit()]
    return []
