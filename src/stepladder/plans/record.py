"""What goes out and what comes back: a draw and a record, one at a time or in batches.

A `Draw` is made from the plan by a client (or by `Curriculum.draw`); a `Record` is what one
finished episode reports. Batches are NumPy structured arrays with the same fields in the same
order, so that a mailbox in shared memory, a kernel and a Python caller agree without conversion.
"""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from stepladder.compiled import compiled
from stepladder.errors import RecordError
from stepladder.records import Count, Fields, Limits, Records

TERMINATED = 0
"""The episode reached an end of its own."""

TRUNCATED = 1
"""The episode was cut off, by a time limit or otherwise."""

UNBUILDABLE = 2
"""There was no episode: the env could not build the task."""

HOST_ENV = -1
"""The env index of draws that the host makes itself, outside any env."""


class DrawFields(Fields):
    """A draw in memory: the task one env plays for one episode, and the plan it came from."""

    slot: Count
    generation: Count
    task_id: Count
    plan_version: Count
    seed: int
    tick: Count
    env_index: int
    episode_index: Count


class RecordFields(Fields):
    """A record in memory: what one finished episode reports."""

    slot: Count
    generation: Count
    plan_version: Count
    tick: Count
    env_index: int
    episode_index: Count
    episode_return: float
    length: Count
    success: float
    outcome: Annotated[int, Limits(TERMINATED, UNBUILDABLE)]


DRAW_DTYPE, RECORD_DTYPE = DrawFields.dtype, RecordFields.dtype

RecordArray: TypeAlias = npt.NDArray[Any]
"""A structured array of dtype `RECORD_DTYPE`."""

DrawArray: TypeAlias = npt.NDArray[Any]
"""A structured array of dtype `DRAW_DTYPE`."""


class Draw(NamedTuple):
    """The task one env plays for one episode, and the plan it came from."""

    slot: int
    generation: int
    task_id: int
    plan_version: int
    seed: int
    tick: int
    env_index: int
    episode_index: int


as_draw: "Callable[[type[Draw], tuple[int, ...]], Draw]" = tuple.__new__  # type: ignore[reportUnknownMemberType]
"""Make a draw of a tuple of its fields; a third of the time that `Draw(…)` takes."""


class Record(NamedTuple):
    """What one finished episode reports.

    `success` lies in [0, 1]; NaN means that the env gives no such signal, which only curricula
    that do not need one accept.
    """

    slot: int
    generation: int
    plan_version: int
    tick: int
    env_index: int
    episode_index: int
    episode_return: float
    length: int
    success: float
    outcome: int

    @classmethod
    def of(
        cls,
        draw: Draw,
        *,
        success: float,
        episode_return: float = 0.0,
        length: int = 1,
        truncated: bool = False,
    ) -> "Record":
        """Make the record of the episode that played `draw`.

        Raises:
            RecordError: Success or return is not a number.
        """
        try:
            return cls(
                draw.slot,
                draw.generation,
                draw.plan_version,
                draw.tick,
                draw.env_index,
                draw.episode_index,
                float(episode_return),
                length,
                float(success),
                TRUNCATED if truncated else TERMINATED,
            )
        except (TypeError, ValueError) as error:
            raise RecordError(
                f"success {success!r} and return {episode_return!r} must be numbers; give NaN for "
                "a success that the env does not report."
            ) from error

    @property
    def truncated(self) -> bool:
        """Whether the episode was cut off rather than finished."""
        return self.outcome == TRUNCATED


def record_array(records: Iterable[Record]) -> RecordArray:
    """Pack records into one structured array."""
    return np.array([tuple(record) for record in records], dtype=RECORD_DTYPE)


@compiled
def pack_records(draws: DrawArray, numbers: npt.NDArray[np.float64], records: RecordArray) -> None:
    """Fill records from draws and from rows of successes, returns, lengths and truncations."""
    for index in range(len(draws)):
        draw, record = draws[index], records[index]
        record.slot = draw.slot
        record.generation = draw.generation
        record.plan_version = draw.plan_version
        record.tick = draw.tick
        record.env_index = draw.env_index
        record.episode_index = draw.episode_index
        record.success = numbers[0, index]
        record.episode_return = numbers[1, index]
        record.length = np.int64(numbers[2, index])
        record.outcome = np.int64(numbers[3, index])


@compiled
def is_bad(
    slot: int,
    num_slots: int,
    success: float,
    episode_return: float,
    length: int,
    needs_success: bool,
) -> bool:
    """Whether the numbers of a record are impossible."""
    known = success == success
    if slot < 0 or slot >= num_slots or length < 0 or not np.isfinite(episode_return):
        return True
    return (needs_success and not known) or (known and (success < 0.0 or success > 1.0))


@compiled
def first_bad_record(records: Records[RecordFields], num_slots: int, needs_success: bool) -> int:
    """Return the index of the first impossible record, or -1."""
    for index in range(len(records)):
        record = records[index]
        if record.outcome > 1 or record.outcome < 0:
            return index
        if is_bad(
            record.slot,
            num_slots,
            record.success,
            record.episode_return,
            record.length,
            needs_success,
        ):
            return index
    return -1


def refuse(records: RecordArray, index: int, num_slots: int) -> RecordError:
    """Say what is wrong with the record that `first_bad_record` found."""
    record = Record(*records[index].item())
    if not 0 <= record.slot < num_slots:
        problem = f"slot {record.slot} does not exist; expected 0 to {num_slots - 1}"
    elif record.length < 0:
        problem = f"length {record.length} is negative; expected the number of steps played"
    elif not np.isfinite(record.episode_return):
        problem = f"return {record.episode_return} is not finite"
    elif record.outcome not in (TERMINATED, TRUNCATED):
        problem = f"outcome {record.outcome} is neither TERMINATED (0) nor TRUNCATED (1)"
    elif np.isnan(record.success):
        problem = "success is NaN; this curriculum needs a number in [0, 1]"
    else:
        problem = f"success {record.success} lies outside [0, 1]"
    return RecordError(
        f"record {index} of {len(records)}: {problem}. Nothing was observed; "
        "correct this record and send the batch again."
    )
