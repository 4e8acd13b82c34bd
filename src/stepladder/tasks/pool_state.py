"""What a snapshot of a pool holds, and how a damaged or foreign one is found out.

Written by `pool.Pool.snapshot`, read by `pool.Pool.restore`; in between it lies in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from stepladder.configs.documents import to_plain
from stepladder.errors import SnapshotError, TaskError
from stepladder.saving.saved_array import Part, SavedArray
from stepladder.tasks.difference import name_difference
from stepladder.tasks.plain import canonical_json, digest, whole_number
from stepladder.tasks.source import Source
from stepladder.tasks.task import MAX_SEED

VERSION = 1
"""Version of the layout written here; no other is read."""

PLACE = "the snapshot of the pool"
MAX_ID = 2**63 - 1

_ARRAYS = ("task_ids", "generations", "waiting")
_FIELDS = ("version", "seed", "cursor", "num_slots", "source", "fingerprint")


@dataclass(frozen=True, kw_only=True)
class PoolState:
    """Everything a pool needs to go on as if it had never stopped."""

    seed: int
    """Seed of the order in which tasks come in."""

    cursor: int
    """Next position in that order."""

    num_slots: int
    """Number of slots."""

    source: dict[str, Any]
    """Description of the source."""

    fingerprint: str
    """Fingerprint of the source."""

    task_ids: NDArray[np.int64]
    """Shape ``(num_slots,)``."""

    generations: NDArray[np.int64]
    """Shape ``(num_slots,)``."""

    waiting: NDArray[np.int64]
    """Ids outside the pool in the order they come in, if the pool keeps a queue; else empty."""

    def split(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the plain part and the arrays."""
        plain = {"version": VERSION} | {
            name: getattr(self, name) for name in _FIELDS if name != "version"
        }
        return plain, {name: getattr(self, name) for name in _ARRAYS}

    def check(
        self,
        *,
        num_slots: int,
        num_tasks: int | None,
        num_positions: int,
        num_waiting: int,
        place: str = PLACE,
    ) -> None:
        """Raise SnapshotError unless this state fits a pool.

        Args:
            num_slots: Number of slots of the pool.
            num_tasks: Number of tasks of its source, or None.
            num_positions: Length of the order in which tasks come in.
            num_waiting: Length of the queue of tasks outside.
            place: Where it was saved, for messages.
        """
        if self.num_slots != num_slots:
            raise SnapshotError(
                f"The snapshot has {self.num_slots} slots and this pool {num_slots}. Make the pool "
                f"with capacity={self.num_slots}."
            )
        last_id = MAX_ID if num_tasks is None else num_tasks - 1
        for name, length, part in (
            ("task_ids", num_slots, Part.count("task", high=last_id)),
            ("generations", num_slots, Part.count("generation")),
            ("waiting", num_waiting, Part.count("task", high=last_id)),
        ):
            like = np.zeros(length, dtype=np.int64)
            SavedArray(name, like, (part,)).read({name: getattr(self, name)}, place)
        whole_number(self.cursor, "The snapshot's cursor", 0, num_positions, SnapshotError)
        ids = np.concatenate([self.task_ids, self.waiting])
        unique, counts = np.unique(ids, return_counts=True)
        if unique.size < ids.size:
            raise _damaged(f"task {unique[counts > 1][0]} appears more than once", place)


def read_state(
    state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], place: str = PLACE
) -> PoolState:
    """Put a snapshot together again after checking that each part is there and of its type.

    Raises:
        SnapshotError: If a part is missing, malformed or of another version.
    """
    for part, names, found in (("state", _FIELDS, state), ("arrays", _ARRAYS, arrays)):
        if not isinstance(cast("object", found), Mapping):
            raise _damaged(f"its {part} is a {type(found).__name__}, expected a mapping", place)
        missing = [name for name in names if name not in found]
        if missing:
            raise _damaged(f"its {part} lacks {missing[0]!r}", place)
    if state["version"] != VERSION:
        raise SnapshotError(
            f"The snapshot of the pool has version {state['version']!r}; this Stepladder reads "
            f"{VERSION}. Use the Stepladder that wrote it."
        )
    for name in _ARRAYS:
        SavedArray(name, np.zeros(0, dtype=np.int64), max_length=MAX_ID).read(arrays, place)
    if not isinstance(state["source"], dict) or not isinstance(state["fingerprint"], str):
        raise _damaged("its source is not described by an object and a fingerprint", place)
    return PoolState(
        seed=whole_number(state["seed"], "The snapshot's seed", 0, MAX_SEED, SnapshotError),
        cursor=whole_number(state["cursor"], "The snapshot's cursor", 0, 2**63, SnapshotError),
        num_slots=whole_number(state["num_slots"], "Its num_slots", 1, 2**63, SnapshotError),
        source=cast("dict[str, Any]", state["source"]),
        fingerprint=state["fingerprint"],
        **{name: arrays[name] for name in _ARRAYS},
    )


def check_source(saved: PoolState, source: Source) -> None:
    """Raise SnapshotError, naming the difference, if a snapshot is of another task set."""
    try:
        described = to_plain(saved.source, "description")
    except TaskError as error:
        raise _damaged(f"its source is malformed: {error}") from error
    if digest(canonical_json(described)) != saved.fingerprint:
        raise _damaged("the description of its source does not match its fingerprint")
    if saved.fingerprint != source.fingerprint():
        difference = name_difference(described, to_plain(source.describe(), "description"))
        raise SnapshotError(
            f"The snapshot belongs to another task set ({difference}). Restore it with the source "
            "it was taken with, or start afresh."
        )


def _damaged(reason: str, place: str = PLACE) -> SnapshotError:
    return SnapshotError(
        f"{place[0].upper()}{place[1:]} is damaged: {reason}. Restore an earlier snapshot."
    )
