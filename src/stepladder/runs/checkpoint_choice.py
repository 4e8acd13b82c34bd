"""Which checkpoint of a run is meant: the last, the best so far, or that of a step.

Of checkpoints with a folder of their own, such as those of a training. Used by all that read one:
policies, ``stepladder eval`` and ``watch``, and a run that is continued.
"""

from stepladder.errors import ConfigError, SnapshotError, shown
from stepladder.runs.checkpoint_files import age, is_folder
from stepladder.runs.reader import RunReader
from stepladder.runs.run_folder import CHECKPOINTS

LAST, BEST = "last", "best"
"""Words for the newest checkpoint that is whole, and for the best one so far."""


def checkpoint_named(reader: RunReader, checkpoint: str | int) -> str:
    """Return the name of the best checkpoint of a run, or of the one of a step.

    Raises:
        ConfigError: It is asked for by something else.
        SnapshotError: There is none.
    """
    if checkpoint == BEST:
        best = reader.best_checkpoint()
        if best is None:
            raise SnapshotError(
                f"the run {reader.folder} has no best checkpoint: none of its evaluations was "
                "followed by one yet. Ask for the last one, or wait for the first evaluation."
            )
        return best
    if isinstance(checkpoint, bool) or not isinstance(checkpoint, int):
        raise ConfigError(
            f"a checkpoint is 'last', 'best' or a step such as 16384; got {shown(checkpoint)}."
        )
    names = names_by_step(reader)
    if checkpoint not in names:
        best = reader.best_checkpoint()
        last = max(names, default=None)
        listed = [
            f"{step:,}" + " (best)" * (name == best) + " (last)" * (step == last)
            for step, name in names.items()
        ]
        raise SnapshotError(
            f"the run {reader.folder} has no checkpoint of step {checkpoint:,}; it has "
            f"{', '.join(listed) or 'none'}. Choose one of them."
        )
    return names[checkpoint]


def names_by_step(reader: RunReader) -> dict[int, str]:
    """Return the names of all checkpoints that are there, by their steps; the later of two."""
    folder, found = reader.folder / CHECKPOINTS, dict[int, str]()
    for name in reader.checkpoints():
        known = age(name)
        if known is not None and is_folder(folder / name):
            found[known[0]] = name
    return found
