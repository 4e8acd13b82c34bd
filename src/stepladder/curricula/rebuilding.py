"""Build a curriculum again from a snapshot and its tasks.

Used to explain a run and to resume it: the settings of the curriculum, its seed and the size of its
pool are in the snapshot, its tasks are not. The registry says which class the settings belong to.
"""

from typing import Any

from stepladder.curricula.base import Curriculum
from stepladder.curricula.registry import config_from_json
from stepladder.errors import SnapshotError
from stepladder.saving.snapshot import Snapshot
from stepladder.tasks import Pool, Source
from stepladder.tasks.plain import whole_number
from stepladder.tasks.task import MAX_SEED


def rebuilt(snapshot: Snapshot, source: Source) -> Curriculum:
    """Return the curriculum that a snapshot was made of.

    Raises:
        SnapshotError: The snapshot is damaged, or was made with other tasks.
        ConfigError: Its settings make no sense.
    """
    config = config_from_json(snapshot.state.get("config"), "the curriculum of the checkpoint")
    seed = _number(snapshot.state.get("seed"), "seed")
    pool = snapshot.part("pool")
    capacity = _number(pool.state.get("num_slots"), "num_slots")
    # A pool takes memory for every slot; the file must have had as many.
    saved = pool.arrays.get("task_ids")
    if saved is None or saved.shape != (capacity,):
        found = "missing" if saved is None else f"of shape {list(saved.shape)}"
        raise SnapshotError(
            f"the checkpoint's pool has {capacity} slots, and its array 'task_ids' is {found}. Use "
            "an older checkpoint."
        )
    curriculum = config.make(Pool(source, capacity, seed), seed=seed)
    curriculum.restore(snapshot)
    return curriculum


def _number(value: Any, name: str) -> int:
    return whole_number(value, f"The checkpoint's {name}", 0, MAX_SEED, SnapshotError)
