"""Checkpoints with a folder of their own: saved whole or not at all, the oldest ones removed.

`training` keeps its agents so, and a loop of the user its own files.

A checkpoint counts once two things are there: its row in the database of the run, which says what
was logged before it, and then its folder, which appears complete. Whatever a kill leaves of
one alone is passed over, and removed by the next save. The best one so far is named in the database
once it is there, and is not removed to make room.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from stepladder.configs.checks import require_integer
from stepladder.files import is_real_folder, require_folder, sync
from stepladder.runs.checkpoint_files import (
    age,
    folder_name,
    folder_names,
    is_folder,
    is_unfinished,
    unfinished,
)
from stepladder.runs.reader import RunReader
from stepladder.runs.run_folder import CHECKPOINTS, naming
from stepladder.runs.run_writer import RunWriter
from stepladder.saving.snapshot import Snapshot


def save_with_folder(
    run: RunWriter,
    step: int,
    snapshot: Snapshot,
    write: Callable[[Path], None],
    *,
    keep: int = 2,
    is_best: bool = False,
) -> Path:
    """Save a checkpoint, then remove all but the newest few and the best.

    It is safe on disk when this returns. A kill at any moment leaves the older ones whole.

    Args:
        run: The run that is being written.
        step: When.
        snapshot: What goes into its file.
        write: Makes its folder, at a path where nothing is, and waits until it is on the disk.
        keep: How many of the newest checkpoints to keep, this one included.
        is_best: Whether this is the best one so far.

    Returns:
        The folder of the checkpoint. Its name is the name of the checkpoint in the run.

    Raises:
        RunError: It cannot be written, for want of space or permission; the older ones stay.
    """
    require_integer("keep", keep, 1)
    parent = run.folder / CHECKPOINTS
    with naming(run.folder):
        require_folder(parent)
        _remove_unfinished(parent)
        name = folder_name(parent, step)
        temporary, final = unfinished(parent, name), parent / name
        try:
            write(temporary)
            # Before the folder: a run cannot go back to a checkpoint that its database lacks.
            run.save_checkpoint(name, snapshot, step)
            temporary.rename(final)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        sync(parent)
        if is_best:
            run.mark_best(name)
        _remove_others(run, name, keep)
    return final


def find(run_folder: str | os.PathLike[str]) -> list[Path]:
    """Return the folders of all checkpoints of a run, newest first, whether whole or not."""
    parent = Path(run_folder) / CHECKPOINTS
    if not is_real_folder(parent):
        return []
    folders = [entry for entry in parent.iterdir() if is_folder(entry)]
    return sorted(folders, key=lambda folder: age(folder.name) or (0, 0), reverse=True)


def _remove_unfinished(parent: Path) -> None:
    """Remove what a killed process left. No other process is saving: the run is locked."""
    for entry in list(parent.iterdir()):
        if is_unfinished(entry):
            shutil.rmtree(entry)


def _remove_others(run: RunWriter, newest: str, keep: int) -> None:
    """Remove all checkpoints but the newest few and the best, and whatever is only half there."""
    reader = RunReader(run.folder)
    known = {name for name in reader.checkpoints() if age(name)}
    folders = [folder.name for folder in find(run.folder)]
    # Newer than the newest is what was left of a future that the run has gone back on.
    past = folders[folders.index(newest) :]
    kept = {*[name for name in past if name in known][:keep], reader.best_checkpoint()}
    for name in (known | folder_names(run.folder / CHECKPOINTS)).difference(kept):
        run.remove_checkpoint(name)
