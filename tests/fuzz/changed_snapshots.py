"""What the fuzzers of snapshots share: how a snapshot is changed, in memory or as a file."""

from pathlib import Path

import numpy as np

from fuzz.mutations import change_array, change_bytes, change_json
from stepladder.curricula import Snapshot


def change_snapshot(snapshot: Snapshot, rng: np.random.Generator, folder: Path) -> Snapshot:
    """Return a snapshot with one thing changed; raises what loading a changed file raises."""
    kind = rng.random()
    if kind < 0.1:
        path = snapshot.save(folder / "changed.npz")
        path.write_bytes(change_bytes(path.read_bytes(), rng))
        return Snapshot.load(path)
    if kind < 0.35:
        return Snapshot(change_json(snapshot.state, rng), dict(snapshot.arrays))
    arrays, names = dict(snapshot.arrays), sorted(snapshot.arrays)
    name = str(rng.choice(names))
    if kind < 0.38:
        del arrays[name]
    elif kind < 0.42:
        other = str(rng.choice(names))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    else:
        arrays[name] = change_array(arrays[name], rng)
    return Snapshot(snapshot.state, arrays)
