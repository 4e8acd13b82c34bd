"""One opponent by name: an id of the archive, a file, a checkpoint or the folder of a run.

Whoever reads "caller:NAME" asks here: `league`, and evaluations.
"""

from dataclasses import replace
from pathlib import Path

from stepladder.errors import ConfigError, RunError, SnapshotError
from stepladder.training.checkpoints import load_policy
from stepladder.training.opponents.archive import Archive
from stepladder.training.opponents.entry import AGENT, read_entry
from stepladder.training.opponents.member import Member, require_finite


def find_opponent(name: str, archive: Archive | None = None) -> Member:
    """Return somebody to play against.

    Args:
        name: An id of the archive; else a path: a run (its newest checkpoint), a checkpoint, the
            folder of an archived agent, or a file with a policy.
        archive: Where ids are looked up, if anywhere.

    Raises:
        ConfigError: There is nobody of this name.
        SnapshotError: There is, but damaged.
    """
    if archive is not None and name in archive:
        return archive.load(name)
    path = Path(name)
    if not path.exists():
        among = "" if archive is None else f" and no agent in the archive {archive.folder}"
        raise ConfigError(
            f"opponent {name!r} is no file or folder{among}. Give a path, such as that of a run, "
            "or an id."
        )
    if (path / AGENT).is_file():
        # Results count nowhere: it is in another archive than that of this run.
        return replace(read_entry(path.resolve()).load(), is_archived=False)
    try:
        description, weights = load_policy(path)
    except RunError as error:
        raise SnapshotError(f"opponent {name!r} cannot be played: {error}") from error
    return require_finite(Member(name=name, description=description, weights=weights))
