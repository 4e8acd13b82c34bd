"""What plays, from a run, a checkpoint or a file: the newest, the best so far, or that of a step.

Between `store`, which knows the checkpoints of a run, and those that let a policy play: `policies`,
opponents, ``stepladder eval`` and ``watch``.
"""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from stepladder.errors import ConfigError, SnapshotError, shown
from stepladder.runs import RunReader
from stepladder.runs.checkpoint_choice import BEST, LAST, checkpoint_named
from stepladder.runs.checkpoint_files import age
from stepladder.runs.run_folder import CHECKPOINTS, CONFIG
from stepladder.training.checkpoints.folder import Manifest, read_manifest, read_weights
from stepladder.training.checkpoints.store import newest, reading, require_own
from stepladder.training.checkpoints.tensor_files import read_policy as read_policy_file


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedPolicy:
    """What plays, as it was saved, and where it comes from."""

    description: dict[str, Any]
    """What `Agent.description` returned."""

    weights: dict[str, torch.Tensor]
    """By name, on the CPU."""

    checkpoint: str | None = None
    """Name of its checkpoint; None for a file by itself."""

    run_folder: Path | None = None
    """The run that it belongs to, if any."""

    @property
    def step(self) -> int | None:
        """Env steps of training when it was saved, if that is known."""
        found = None if self.checkpoint is None else age(self.checkpoint)
        return None if found is None else found[0]


def read_policy(path: str | os.PathLike[str], checkpoint: str | int = LAST) -> SavedPolicy:
    """Return what a player needs: the description of an agent, and its weights.

    Args:
        path: The folder of a run; the folder of a checkpoint; or a file such as its
            ``weights.safetensors``.
        checkpoint: Of a run: ``"last"``, the newest that is whole; ``"best"``; or its step.

    Raises:
        ConfigError: Such a checkpoint is asked for of a path that is one itself.
        SnapshotError: There is none, or it is broken.
        RunError: The run is.
    """
    place = Path(path)
    if (place / CONFIG).exists():
        if checkpoint != LAST:
            return _chosen(place, checkpoint)
        return newest(place, lambda folder, manifest: _policy_in(folder, manifest, place))[0]
    if checkpoint != LAST:
        raise ConfigError(
            f"{path} is not a run, so it has no checkpoint {shown(checkpoint)} to choose. Name a "
            "run, or leave the checkpoint out."
        )
    # A link that the user names stands for its target.
    named = place.resolve()
    if place.is_dir():
        run = _run_around(named)
        return reading(place, lambda: _policy_in(named, read_manifest(named), run))
    run = _run_around(named.parent)
    description, weights = reading(place, lambda: read_policy_file(place))
    name = None if run is None else named.parent.name
    return SavedPolicy(description=description, weights=weights, checkpoint=name, run_folder=run)


def _policy_in(folder: Path, manifest: Manifest, run: Path | None) -> SavedPolicy:
    description, weights = read_weights(folder, manifest)
    return SavedPolicy(
        description=description, weights=weights, checkpoint=folder.name, run_folder=run
    )


def _run_around(folder: Path) -> Path | None:
    """Return the run whose checkpoint a folder is; None if it lies elsewhere."""
    run = folder.parent.parent
    is_inside = folder.parent.name == CHECKPOINTS and (run / CONFIG).is_file()
    return run if is_inside else None


def _chosen(run_folder: Path, checkpoint: str | int) -> SavedPolicy:
    """Return the policy of the best checkpoint of a run, or of the one of a step."""
    reader = RunReader(run_folder)
    while True:
        name = checkpoint_named(reader, checkpoint)
        folder = run_folder / CHECKPOINTS / name
        try:
            return reading(folder, partial(_own_policy, folder, reader))
        except SnapshotError:
            # A running training may have found a better one meanwhile.
            if checkpoint != BEST or reader.best_checkpoint() == name:
                raise


def _own_policy(folder: Path, reader: RunReader) -> SavedPolicy:
    manifest = read_manifest(folder)
    require_own(folder.name, manifest, reader)
    return _policy_in(folder, manifest, reader.folder)
