"""Checkpoints of a training: saved whole or not at all, and the newest whole one found again.

The training loop saves and resumes here; evaluation, `watch` and opponents get
policies from `load_policy`. What lies in a checkpoint is in `folder`.

A checkpoint counts once two things are there: its row in the database of the run, which says what
was logged before it, and then its folder, which appears complete. Whatever a kill leaves of
one alone is passed over, and removed by the next save.
"""

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch

from stepladder.configs.checks import require_integer
from stepladder.errors import SnapshotError
from stepladder.files import is_real_folder, require_folder
from stepladder.runs import Run, RunReader
from stepladder.runs.checkpoint_files import (
    age,
    folder_name,
    folder_names,
    is_folder,
    is_unfinished,
    unfinished,
)
from stepladder.runs.run_folder import CHECKPOINTS, CONFIG, RunInfo, naming
from stepladder.saving.snapshot import Snapshot, difference
from stepladder.training.checkpoints.folder import (
    Manifest,
    TrainingCheckpoint,
    read_folder,
    read_manifest,
    read_weights,
    write_folder,
)
from stepladder.training.checkpoints.tensor_files import read_policy, sync
from stepladder.visible import visible

logger = logging.getLogger("stepladder.training")

T = TypeVar("T")

Policy = tuple[dict[str, Any], dict[str, torch.Tensor]]
"""The description of an agent, and its weights by name, on the CPU."""

MUST_AGREE = ("agent", "curriculum", "env", "env_kwargs", "num_envs", "source", "tasks")
"""Settings of a run without which its checkpoints are of no use to it."""


def save(
    run: Run, checkpoint: TrainingCheckpoint, *, curriculum: Snapshot | None, keep: int = 2
) -> Path:
    """Save a checkpoint, then remove all but the newest few.

    It is safe on disk when this returns. A kill at any moment leaves the older ones whole.

    Args:
        run: The run that is being written.
        checkpoint: What to save; its tensors are only read, on whatever device they are.
        curriculum: What ``stepladder explain`` and ``stepladder watch`` read, where there is one.
        keep: How many checkpoints to keep, this one included.

    Returns:
        The folder of the checkpoint. Its name is the name of the checkpoint in the run.

    Raises:
        RunError: It cannot be written, for want of space or permission; the older ones stay.
        SnapshotError: Something in it cannot be saved; the older ones stay.
    """
    require_integer("keep", keep, 1)
    parent = run.folder / CHECKPOINTS
    with naming(run.folder):
        require_folder(parent)
        _remove_unfinished(parent)
        name = folder_name(parent, checkpoint.step)
        temporary, final = unfinished(parent, name), parent / name
        try:
            write_folder(temporary, checkpoint, _identity(run.info))
            # Before the folder: a run cannot go back to a checkpoint that its database lacks.
            shown = Snapshot({}) if curriculum is None else curriculum
            run.save_checkpoint(name, shown, checkpoint.step)
            temporary.rename(final)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        sync(parent)
        _remove_others(run, name, keep)
    return final


def find(run_folder: str | os.PathLike[str]) -> list[Path]:
    """Return the folders of all checkpoints of a run, newest first, whether whole or not."""
    parent = Path(run_folder) / CHECKPOINTS
    if not is_real_folder(parent):
        return []
    folders = [entry for entry in parent.iterdir() if is_folder(entry)]
    return sorted(folders, key=lambda folder: age(folder.name) or (0, 0), reverse=True)


def load(folder: str | os.PathLike[str]) -> TrainingCheckpoint:
    """Return the checkpoint in a folder.

    Raises:
        SnapshotError: Something is missing or damaged, or of another version.
    """
    path = Path(folder)
    return _reading(path, lambda: read_folder(path, read_manifest(path)))


def load_newest(run_folder: str | os.PathLike[str]) -> tuple[TrainingCheckpoint, list[str]]:
    """Return the newest checkpoint of a run that is whole.

    Continue with ``Run.resume(run_folder, checkpoint=checkpoint.name)``.

    Returns:
        The checkpoint, and one line for each newer one: that it was refused, and why.

    Raises:
        SnapshotError: There is none, or each is broken.
        RunError: The folder holds no run.
    """
    return _newest(Path(run_folder), read_folder)


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Return what a player needs: the description of an agent, and its weights.

    Args:
        path: The folder of a run, for its newest whole checkpoint; the folder of a checkpoint; or a
            file such as its ``weights.safetensors``.

    Raises:
        SnapshotError: There is none, or it is broken.
        RunError: The run is.
    """
    place = Path(path)
    if (place / CONFIG).exists():
        return _newest(place, read_weights)[0]
    if place.is_dir():
        # A link that the user names stands for its target.
        named = place.resolve()
        return _reading(place, lambda: read_weights(named, read_manifest(named)))
    return _reading(place, lambda: read_policy(place))


def _reading(path: Path, read: Callable[[], T]) -> T:
    try:
        if not path.exists():
            raise SnapshotError("there is nothing of this name")
        return read()
    except (OSError, SnapshotError) as error:
        raise SnapshotError(
            f"{path} cannot be used: {_reason(error)}. Use another checkpoint."
        ) from error


def _reason(error: Exception) -> str:
    """Return why something is refused, on one line, to go into a longer one."""
    return " ".join(str(error).split()).rstrip(".")


def _newest(run_folder: Path, read: Callable[[Path, Manifest], T]) -> tuple[T, list[str]]:
    """Read the newest checkpoint that can be read; say why newer ones cannot."""
    reader = RunReader(run_folder)
    while True:
        folders, refused = find(run_folder), list[str]()
        for folder in folders:
            try:
                manifest = read_manifest(folder)
                _require_own(folder.name, manifest, reader)
                found = read(folder, manifest)
                for reason in refused:
                    logger.warning("%s; %s is used instead.", visible(reason), folder.name)
                return found, refused
            except (OSError, SnapshotError) as error:
                refused.append(f"{folder.name} was refused: {_reason(error)}")
        # A running training may have replaced them meanwhile.
        if find(run_folder) == folders:
            raise SnapshotError(
                f"the run {run_folder} has no checkpoint of a training that can be used"
                f"{''.join(f'; {reason}' for reason in refused)}. Start a new run."
            )


def _require_own(name: str, manifest: Manifest, reader: RunReader) -> None:
    """Raise unless a checkpoint was saved by this very run, and is still part of it."""
    for key, value in _identity(reader.info).items():
        foreign = difference(manifest.run.get(key), value, key)
        if foreign:
            raise SnapshotError(f"it belongs to another run: {foreign}")
    if (age(name) or (None,))[0] != manifest.step:
        raise SnapshotError(f"it is the checkpoint of step {manifest.step}")
    if name not in reader.checkpoints():
        raise SnapshotError("the database of the run does not know it")


def _identity(info: RunInfo) -> dict[str, Any]:
    """Say what tells a run from any other, with what its checkpoints depend on first."""
    settings = {name: info.config.get(name) for name in MUST_AGREE}
    return {**settings, "seed": info.seed, "created": info.created}


def _remove_unfinished(parent: Path) -> None:
    """Remove what a killed process left. No other process is saving: the run is locked."""
    for entry in list(parent.iterdir()):
        if is_unfinished(entry):
            shutil.rmtree(entry)


def _remove_others(run: Run, newest: str, keep: int) -> None:
    """Remove all checkpoints but the newest few, and whatever is only half there."""
    known = {name for name in RunReader(run.folder).checkpoints() if age(name)}
    folders = [folder.name for folder in find(run.folder)]
    # Newer than the newest is what was left of a future that the run has gone back on.
    past = folders[folders.index(newest) :]
    kept = [name for name in past if name in known][:keep]
    for name in (known | folder_names(run.folder / CHECKPOINTS)).difference(kept):
        run.remove_checkpoint(name)
