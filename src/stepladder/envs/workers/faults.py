"""An exception's way from an env to the user, whichever process the env lives in.

The user gets the env's own exception, with its own type, so that the number of workers changes
nothing about how it is caught; a note names the env and carries the traceback of the process it was
raised in. Packed by `worker`, unpacked by `pool`; `coordinator` adds the note for the parent's
share.
"""

import pickle
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stepladder.envs.workers.memory.messages import pickled
from stepladder.errors import EnvError

NO_ENV = -1
"""Index of an exception that was raised before an env was asked."""


@dataclass(frozen=True)
class Fault:
    """An exception that was raised in another process."""

    env_index: int
    exception: bytes | None
    """Pickled; None if it could not be."""

    summary: str
    trace: str


def pack_fault(env_index: int, error: Exception) -> Fault:
    """Make an exception fit to travel."""
    trace = "".join(traceback.format_exception(error))
    # Not from the exception itself, whose message may be made by code that fails as well.
    summary = "".join(traceback.format_exception_only(error)).strip()
    try:
        packed = pickled(error) if _is_of_main(error) else pickle.dumps(error)
        # Many exceptions can be pickled but not be made again from what was pickled.
        pickle.loads(packed)
    except Exception:  # whatever a foreign class raises while it is pickled
        return Fault(env_index, None, summary, trace)
    return Fault(env_index, packed, summary, trace)


def _is_of_main(error: Exception) -> bool:
    """Whether a class of the main program, which may have come here as a whole, goes back so."""
    return type(error).__module__ == "__main__"


def unpack_fault(fault: Fault, pid: int | None) -> Exception:
    """Return the exception to raise here."""
    error: Exception = (
        EnvError(
            f"worker process {pid} raised {fault.summary}"
            if fault.env_index == NO_ENV
            else f"env {fault.env_index} raised {fault.summary}"
        )
        if fault.exception is None
        else pickle.loads(fault.exception)
    )
    who = "before an env was asked," if fault.env_index == NO_ENV else f"by env {fault.env_index}"
    where = f"raised {who} in worker process {pid}"
    return noted(error, fault.env_index, f"{where}; there:\n{fault.trace.rstrip()}")


def noted(error: Exception, env_index: int, note: str) -> Exception:
    """Say on an exception which env raised it."""
    error.add_note(note)
    error.env_index = env_index  # type: ignore[attr-defined]
    return error


@contextmanager
def naming_env(row: int) -> Iterator[None]:
    """Say of what is raised inside which env it was."""
    try:
        yield
    except Exception as error:  # goes on as it is, and says whose it is
        noted(error, row, f"raised while env {row} was made, in this process")
        raise
