"""An exception's way from an env to the user, whichever process the env is in.

The user gets the env's own exception, with its own type, so that it is caught in the same way with
any number of workers; a note names the env and holds the traceback of the process it was raised in.
Packed by `worker`, unpacked by `worker_pool`; `coordinator` adds the note for the parent's rows.
"""

import pickle
import traceback
from dataclasses import dataclass

from stepladder.envs.workers.memory.messages import pickled
from stepladder.errors import EnvError

NO_ENV = -1
"""Index of an exception that was raised before an env was called."""


@dataclass(frozen=True)
class Fault:
    """An exception that was raised in another process."""

    env_index: int
    exception: bytes | None
    """Pickled; None if it could not be."""

    summary: str
    trace: str


def pack_fault(env_index: int, error: Exception) -> Fault:
    """Prepare an exception to be sent to the parent."""
    trace = "".join(traceback.format_exception(error))
    # Not from the exception itself, whose message may be made by code that fails as well.
    summary = "".join(traceback.format_exception_only(error)).strip()
    try:
        # A class of the main program, which may have been sent here by value, goes back so.
        is_of_main = type(error).__module__ == "__main__"
        packed = pickled(error) if is_of_main else pickle.dumps(error)
        # Many exceptions can be pickled but not be made again from what was pickled.
        pickle.loads(packed)
    except Exception:  # whatever a foreign class raises while it is pickled
        return Fault(env_index, None, summary, trace)
    return Fault(env_index, packed, summary, trace)


def unpack_fault(fault: Fault, pid: int | None) -> Exception:
    """Return the exception to raise here."""
    source, by = f"env {fault.env_index}", f"by env {fault.env_index}"
    if fault.env_index == NO_ENV:
        source, by = f"worker process {pid}", "before an env was called,"
    error: Exception = EnvError(f"{source} raised {fault.summary}")
    if fault.exception is not None:
        error = pickle.loads(fault.exception)
    note = f"raised {by} in worker process {pid}; there:\n{fault.trace.rstrip()}"
    return noted(error, fault.env_index, note)


def noted(error: Exception, env_index: int, note: str) -> Exception:
    """Add to an exception which env raised it, and return it."""
    error.add_note(note)
    error.env_index = env_index  # type: ignore[attr-defined]
    return error
