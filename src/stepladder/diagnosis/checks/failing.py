"""Checks of envs that cannot be examined to the end, and of what they leave behind."""

from collections.abc import Iterator

from stepladder.diagnosis.evidence import EnvEvidence, Trouble, TroubleKind
from stepladder.diagnosis.finding import Told, check, error, note, warning
from stepladder.errors import shown

MANY_LINES = 200
"""Printed lines from which they are worth a warning."""


def _of_kind(env: EnvEvidence, kind: TroubleKind) -> Iterator[tuple[Trouble, str]]:
    for one in env.troubles:
        if one.kind == kind:
            place = f" ({one.where})" if one.where else ""
            task = f" with task {one.tasks[0]!r}" if one.tasks else ""
            yield one, f"{task}{place}"


@check("env-not-made", "env")
def not_made(env: EnvEvidence) -> Iterator[Told]:
    """The env, its tasks, a wrapper or the curriculum cannot be made."""
    for one, place in _of_kind(env, "not made"):
        yield error(
            f"{env.name} cannot be made: {one.text}{place}",
            "Correct the name and --env-kwargs, install what it needs, or fix its code.",
        )


@check("env-raises", "env")
def raises(env: EnvEvidence) -> Iterator[Told]:
    """The env raises an exception while it is played."""
    for one, place in _of_kind(env, "raised"):
        yield error(f"while {one.probe}{place}: {one.text}", "Fix the env where it raises this.")


@check("env-dies", "env")
def dies(env: EnvEvidence) -> Iterator[Told]:
    """The env ends its process: a crash, an exit, a signal."""
    for one, place in _of_kind(env, "died"):
        yield error(
            f"while {one.probe}{place}: {one.text}; an env must return, or raise an exception",
            "Remove calls that exit; for a crash, look at the library that the env uses.",
        )


@check("env-hangs", "env")
def hangs(env: EnvEvidence) -> Iterator[Told]:
    """The env does not come back in time."""
    for one, place in _of_kind(env, "hung"):
        yield error(
            f"while {one.probe}{place}: {one.text}",
            "Find out what it waits for; if it is only slow, give --limit-s more seconds.",
        )


@check("no-delivery", "env")
def no_delivery(env: EnvEvidence) -> Iterator[Told]:
    """There are tasks, and the env offers no way to receive one."""
    for one, _ in _of_kind(env, "no delivery"):
        yield error(one.text, "Add set_task(task) to the env, or give --deliver module:function.")


@check("prints", "env")
def prints(env: EnvEvidence) -> Iterator[Told]:
    """The env prints while it is played."""
    if env.num_printed and not any(one.kind in ("died", "hung") for one in env.troubles):
        tell = warning if env.num_printed >= MANY_LINES else note
        first = shown(env.printed.strip().partition("\n")[0])
        yield tell(
            f"{env.num_printed} lines were printed, the first: {first}; expected none",
            "Remove the print, or use logging: all envs of a training write over its progress.",
        )


@check("memory-left-by-env", "env")
def memory_left(env: EnvEvidence) -> Iterator[Told]:
    """Shared memory stays behind when the env is closed and its process has ended."""
    if env.memory_left:
        yield error(
            f"shared memory stays behind: {', '.join(env.memory_left[:4])} (removed now); "
            "expected none after close()",
            "Unlink it in the env's close(): SharedMemory(...).unlink().",
        )


@check("processes-left-by-env", "env")
def processes_left(env: EnvEvidence) -> Iterator[Told]:
    """Processes stay behind when the env is closed and its process has ended."""
    was_killed = any(one.kind in ("died", "hung") for one in env.troubles)
    if env.processes_left and not was_killed:
        yield error(
            f"{len(env.processes_left)} processes stay behind: {shown(env.processes_left[0])} "
            "(ended now); expected none after close()",
            "End them in the env's close(), or start them as daemons.",
        )


CHECKS = (
    *(not_made, no_delivery, raises, dies, hangs, prints),
    *(memory_left, processes_left),
)
