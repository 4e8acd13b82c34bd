"""Checks of this machine."""

from collections.abc import Iterator

from stepladder.diagnosis.finding import Told, check, error, note, warning
from stepladder.diagnosis.machine import SHARED_MEMORY, Machine

LARGE_SHARE = 0.5
"""Share of the shared memory from which leftovers are an error: the next vector env may not fit."""

NOTICED_SHARE = 0.05
"""Share below which leftovers are nothing but untidy."""


@check("memory-left-over", "machine")
def left_over(machine: Machine) -> Iterator[Told]:
    """Shared memory of processes that have ended fills this machine."""
    found = machine.left_over
    if not found:
        return
    num_bytes = sum(one.num_bytes for one in found)
    names = " ".join(f"{SHARED_MEMORY}/{one.name}" for one in found[:5])
    share = num_bytes / machine.memory_bytes if machine.memory_bytes else 0.0
    tell = note if share < NOTICED_SHARE else warning
    yield (error if share >= LARGE_SHARE else tell)(
        f"{len(found)} pieces of shared memory that no process uses take "
        f"{num_bytes / 2**20:,.1f} MiB, {share:.1%} of all that there is; expected none",
        f"If nothing of yours still needs them: rm {names}{' …' if len(found) > 5 else ''}",
    )


CHECKS = (left_over,)
