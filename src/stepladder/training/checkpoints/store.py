"""Checkpoints of a training: saved whole or not at all, and the newest whole one found again.

The training loop saves and resumes here; what plays is read by `saved_policy`. What lies in a
checkpoint is in `folder`.

How its folder and its row in the database of the run come about together is in
`runs.checkpoint_folders`.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from stepladder.errors import SnapshotError
from stepladder.runs import RunReader, RunWriter
from stepladder.runs.checkpoint_files import age
from stepladder.runs.checkpoint_folders import find, save_with_folder
from stepladder.runs.run_folder import RunInfo
from stepladder.saving.snapshot import Snapshot, difference
from stepladder.training.checkpoints.folder import (
    Manifest,
    TrainingCheckpoint,
    read_folder,
    read_manifest,
    write_folder,
)
from stepladder.visible import visible

logger = logging.getLogger("stepladder.training")

T = TypeVar("T")

TRAINING_KIND = "training"
"""The kind of a run that has such checkpoints."""

MUST_AGREE = ("agent", "curriculum", "env", "env_kwargs", "num_envs", "source", "tasks")
"""Settings of a run without which its checkpoints are of no use to it."""


def save(
    run: RunWriter,
    checkpoint: TrainingCheckpoint,
    *,
    curriculum: Snapshot | None,
    keep: int = 2,
    is_best: bool = False,
) -> Path:
    """Save a checkpoint, then remove all but the newest few and the best.

    It is safe on disk when this returns. A kill at any moment leaves the older ones whole.

    Args:
        run: The run that is being written.
        checkpoint: What to save; its tensors are only read, on whatever device they are.
        curriculum: What ``stepladder explain`` and ``stepladder watch`` read, where there is one.
        keep: How many of the newest checkpoints to keep, this one included.
        is_best: Whether this is the best one so far.

    Returns:
        The folder of the checkpoint. Its name is the name of the checkpoint in the run.

    Raises:
        RunError: It cannot be written, for want of space or permission; the older ones stay.
        SnapshotError: Something in it cannot be saved; the older ones stay.
    """
    identity = _identity(run.info)

    def write(folder: Path) -> None:
        write_folder(folder, checkpoint, identity)

    shown = Snapshot({}) if curriculum is None else curriculum
    return save_with_folder(run, checkpoint.step, shown, write, keep=keep, is_best=is_best)


def load(folder: str | os.PathLike[str]) -> TrainingCheckpoint:
    """Return the checkpoint in a folder.

    Raises:
        SnapshotError: Something is missing or damaged, or of another version.
    """
    path = Path(folder)
    return reading(path, lambda: read_folder(path, read_manifest(path)))


def load_newest(run_folder: str | os.PathLike[str]) -> tuple[TrainingCheckpoint, list[str]]:
    """Return the newest checkpoint of a run that is whole.

    Continue with ``Run.resume(run_folder, checkpoint=checkpoint.name)``.

    Returns:
        The checkpoint, and one line for each newer one: that it was refused, and why.

    Raises:
        SnapshotError: There is none, or each is broken.
        RunError: The folder holds no run.
    """
    return newest(Path(run_folder), read_folder)


def reading(path: Path, read: Callable[[], T]) -> T:
    """Return what is read at a path.

    Raises:
        SnapshotError: Nothing is there, or it is broken; the message names the path.
    """
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


def newest(run_folder: Path, read: Callable[[Path, Manifest], T]) -> tuple[T, list[str]]:
    """Read the newest checkpoint that can be read; say why newer ones cannot.

    Raises:
        SnapshotError: There is none, or each is broken.
    """
    reader = RunReader(run_folder)
    if reader.kind != TRAINING_KIND:
        raise SnapshotError(
            f"{run_folder} is a {reader.kind}, which has no policy that was trained here. Name a "
            "training."
        )
    while True:
        folders, refused = find(run_folder), list[str]()
        for folder in folders:
            try:
                manifest = read_manifest(folder)
                require_own(folder.name, manifest, reader)
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


def require_own(name: str, manifest: Manifest, reader: RunReader) -> None:
    """Raise unless a checkpoint was saved by this very run, and is still part of it.

    Raises:
        SnapshotError: It was not; the message is the reason alone.
    """
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
