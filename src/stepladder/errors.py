"""Every exception Stepladder raises on purpose, each with the fix in its message.

Lowest layer: imported by all, imports nothing of this package. The functions word what messages
have in common.

A message names the value received, the value expected and the next step. Classes that report
bad input also derive from the built-in exception a reader would expect (`ValueError`,
`TypeError`, `RuntimeError`), so that code without Stepladder handles them sensibly.
"""

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_SHOWN = 60
"""Characters of a value that a message shows."""


def shown(value: object) -> str:
    """Return how a message shows a value: on one line, short, whatever the value is."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except (AttributeError, OverflowError, RecursionError, TypeError, ValueError) as error:
        text = f"a {type(value).__name__} that cannot be shown ({type(error).__name__})"
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "1 task" and "2 tasks"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def nearest(name: object, known: "Iterable[str]") -> str:
    """Return a question about the known name that is nearest; nothing if none is near."""
    near = get_close_matches(name, list(known), n=1) if isinstance(name, str) else ()
    return f" Did you mean {near[0]!r}?" if near else ""


class StepladderError(Exception):
    """Base class: catch this to catch everything Stepladder raises on purpose."""


class ConfigError(StepladderError, ValueError):
    """A setting is missing, out of range or contradicts another."""

    problems: tuple[tuple[str, str], ...] = ()
    """Path and text of each problem, where the settings are named."""


class TaskError(StepladderError, ValueError):
    """A task or a source of tasks is malformed, or does not contain what was requested."""


class RecordError(StepladderError, ValueError):
    """A record of an episode is impossible: NaN, unknown slot, negative length."""


class SnapshotError(StepladderError, ValueError):
    """A saved state is damaged, of an unknown version, or belongs to other tasks."""


class RunError(StepladderError, RuntimeError):
    """A run's folder cannot be used: missing, damaged, of a newer version, or in use elsewhere."""


class SignalError(StepladderError, RuntimeError):
    """An episode ended without anything from which its success could be read."""


class DivergenceError(StepladderError, ArithmeticError):
    """A training cannot continue: a loss, a gradient or a weight is not finite."""

    update: int = 0
    """The update that could not be done, from 1."""


class DeliveryError(StepladderError, TypeError):
    """An env offers no way to receive a task."""


class BuildError(StepladderError, RuntimeError):
    """Too many tasks could not be built by the envs."""


class ChannelError(StepladderError, RuntimeError):
    """Something is wrong between the host and its clients."""


class NotConnectedError(ChannelError):
    """An env was reset before a vector wrapper gave it a client."""


class WrongProcessError(ChannelError):
    """A copy of a curriculum was used in a process that does not own it."""


class HostGoneError(ChannelError):
    """The host process has died, so records are not collected and plans not published any more."""


class StaleSegmentError(ChannelError):
    """A shared segment is not the one this client was made for."""


class AgreementError(ChannelError):
    """An env draws from another plan than the host published."""


class EnvError(StepladderError, RuntimeError):
    """An env has done what no env may do, or raised something that cannot leave its process."""


class EnvTimeoutError(StepladderError, TimeoutError):
    """An env has not come back from a step, reset or call within the time it was given."""

    env_index: int = -1
    """Which env it is."""


class WorkerDiedError(ChannelError):
    """A worker process of a vector env has died."""

    env_indices: list[int] | tuple[int, ...] = ()
    """The envs it had, where that is known."""

    was_restarted: bool = False
    """Whether another one has taken its place, so that the caller can continue."""


__all__ = [
    "AgreementError",
    "BuildError",
    "ChannelError",
    "ConfigError",
    "DeliveryError",
    "DivergenceError",
    "EnvError",
    "EnvTimeoutError",
    "HostGoneError",
    "NotConnectedError",
    "RecordError",
    "RunError",
    "SignalError",
    "SnapshotError",
    "StaleSegmentError",
    "StepladderError",
    "TaskError",
    "WorkerDiedError",
    "WrongProcessError",
]
