"""How a damaged or foreign snapshot of a pool is recognised before anything is restored.

Used by `pool.Pool.restore`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from stepladder.configs.documents import to_plain
from stepladder.errors import SnapshotError, TaskError
from stepladder.saving.saved_array import Part, SavedArray
from stepladder.saving.snapshot import difference
from stepladder.tasks.plain import canonical_json, checked_integer, digest
from stepladder.tasks.source import MAX_SOURCE_TASKS, Source
from stepladder.tasks.task import MAX_SEED

POOL_STATE_VERSION = 1
"""Version of the snapshot; another one is refused."""

_FIELDS = ("version", "seed", "cursor", "num_slots", "source", "fingerprint")
_ARRAYS = ("task_ids", "generations", "waiting")
_MAX_LABELS_NAMED = 5


def check_state(
    state: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    source: Source,
    *,
    num_slots: int,
    num_positions: int,
    has_queue: bool,
    place: str,
) -> None:
    """Raise SnapshotError unless a snapshot fits a pool.

    Args:
        state: The plain part of the snapshot.
        arrays: Its arrays.
        source: The source of the pool.
        num_slots: Number of slots of the pool.
        num_positions: Length of the order in which tasks come in.
        has_queue: Whether the tasks outside wait in a queue, which is saved.
        place: Where the snapshot was saved, for messages.
    """
    for part, names, found in (("state", _FIELDS, state), ("arrays", _ARRAYS, arrays)):
        if not isinstance(cast("object", found), Mapping):
            raise _damaged(f"its {part} is a {type(found).__name__}, expected a mapping", place)
        missing = [name for name in names if name not in found]
        if missing:
            raise _damaged(f"its {part} lacks {missing[0]!r}", place)
    if state["version"] != POOL_STATE_VERSION:
        raise SnapshotError(
            f"The snapshot of the pool has version {state['version']!r}; this Stepladder reads "
            f"{POOL_STATE_VERSION}. Use the Stepladder that wrote it."
        )
    # First: numbers that do not fit are explained by other tasks.
    check_source(state, source, place)
    for name, low, high in (
        ("seed", 0, MAX_SEED),
        ("cursor", 0, num_positions),
        ("num_slots", 1, MAX_SOURCE_TASKS),
    ):
        checked_integer(state[name], f"The snapshot's {name}", low, high, SnapshotError)
    if state["num_slots"] != num_slots:
        raise SnapshotError(
            f"The snapshot has {state['num_slots']} slots and this pool {num_slots}. Make the pool "
            f"with capacity={state['num_slots']}."
        )
    _check_arrays(arrays, source, num_slots, num_positions if has_queue else 0, place)
    ids = np.concatenate([arrays["task_ids"], arrays["waiting"]])
    unique, counts = np.unique(ids, return_counts=True)
    if unique.size < ids.size:
        raise _damaged(f"task {unique[counts > 1][0]} appears more than once", place)


def _check_arrays(
    arrays: Mapping[str, NDArray[Any]], source: Source, num_slots: int, num_queued: int, place: str
) -> None:
    """Check each array; unless 0, `num_queued` is the number of ids in a slot or in the queue."""

    def read(name: str, length: int, part: Part) -> None:
        SavedArray(name, np.zeros(length, dtype=np.int64), (part,)).read(arrays, place)

    read("task_ids", num_slots, Part.count("task", high=source.id_limit - 1))
    try:
        source.check_ids(arrays["task_ids"])
    except TaskError as error:
        raise _damaged(f"it holds a task that cannot be: {error}", place) from error
    read("generations", num_slots, Part.count("generation"))
    # Edits take slots, but never wait.
    num_inside = int(np.count_nonzero(arrays["task_ids"] < num_queued))
    own = Part.count("task", high=(source.num_tasks or MAX_SOURCE_TASKS) - 1)
    read("waiting", num_queued - num_inside, own)


def check_source(state: Mapping[str, Any], source: Source, place: str) -> None:
    """Raise SnapshotError, naming the difference, if a snapshot is of another task set."""
    fingerprint = state["fingerprint"]
    if not isinstance(state["source"], dict) or not isinstance(fingerprint, str):
        raise _damaged("its source is not described by an object and a fingerprint", place)
    try:
        described = to_plain(state["source"], "description")
    except TaskError as error:
        raise _damaged(f"its source is malformed: {error}", place) from error
    if digest(canonical_json(described)) != fingerprint:
        raise _damaged("the description of its source does not match its fingerprint", place)
    if fingerprint != source.fingerprint():
        found = name_difference(described, to_plain(source.describe(), "description"))
        raise SnapshotError(
            f"The snapshot belongs to another task set ({found}). Restore it with the source "
            "it was taken with, or start without it."
        )


def name_difference(saved: dict[str, Any], current: dict[str, Any]) -> str:
    """Return how two descriptions of sources differ: numbers of tasks, else the first field."""
    found: list[str] = []
    if saved.get("num_tasks") != current.get("num_tasks"):
        was, now = (
            "no end" if one.get("num_tasks") is None else one["num_tasks"]
            for one in (saved, current)
        )
        found.append(f"number of tasks: {was} in the snapshot, {now} here")
    before, after = saved.get("label_counts"), current.get("label_counts")
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        labels = [one for one in dict.fromkeys([*old, *new]) if old.get(one) != new.get(one)]
        found += [
            f"label {label!r}: {old.get(label, 0)} tasks in the snapshot, {new.get(label, 0)} here"
            for label in labels[:_MAX_LABELS_NAMED]
        ]
        if len(labels) > _MAX_LABELS_NAMED:
            found.append(f"{len(labels) - _MAX_LABELS_NAMED} more labels differ")
    if not found and isinstance(saved.get("digest"), str) and "digest" in current:
        # Of lists: a digest does not say what was there.
        return "names, parameters or seeds of tasks have changed"
    return "; ".join(found) or str(difference(saved, current))


def _damaged(reason: str, place: str) -> SnapshotError:
    return SnapshotError(
        f"{place[0].upper()}{place[1:]} is damaged: {reason}. Restore an earlier snapshot."
    )
