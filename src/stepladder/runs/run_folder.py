"""The folder of a run: which files it holds, and what its ``config.json`` says.

`RunWriter` makes or clears a folder here before it opens the database; `RunReader` checks here
that a folder has a run. ``config.json`` makes a folder a run: it is the first file written, always
as a whole, and the last one that is replaced.
"""

import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import stepladder
from stepladder.configs.documents import to_plain
from stepladder.errors import ConfigError, RunError
from stepladder.files import is_real_folder, read_json, replacing, require_folder
from stepladder.runs.checkpoint_files import is_folder, is_unfinished

SCHEMA = 1
"""Version of the layout of a run's folder and of its ``config.json``; another is refused."""

CONFIG = "config.json"
DATABASE = "run.sqlite"
RUN_LOCK = "run.lock"
SEEDS_FILE = "seeds.json"
"""In the folder that holds the runs of several seeds (`runs.seeds`)."""
CHECKPOINTS = "checkpoints"

WRITTEN_BY = "stepladder"
"""Marks our ``config.json``; others are refused."""

_KINDS: Mapping[str, tuple[Any, str]] = {
    "kind": (str, "a word"),
    "config": (dict, "an object"),
    "seed": (int | list | None, "an integer, several, or null"),
    "created": (str, "a date"),
    "version": (str, "a version"),
    "git_commit": (str | None, "a commit, or null"),
}
"""Type of each entry of ``config.json``."""

_OWN_DATABASE = tuple(DATABASE + suffix for suffix in ("", "-wal", "-shm", "-journal"))
_LEFT_OVER = re.compile(rf"{re.escape(RUN_LOCK)}|\.{re.escape(CONFIG)}\.\d+\.part")
_CHECKPOINT_FILE = re.compile(r".+\.\d+\.npz|\..+\.npz\.\d+\.part")


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What ``config.json`` says about a run."""

    kind: str
    """``"simulation"``, ``"training"`` or any other word."""

    config: dict[str, Any]
    """The settings with which the run can be repeated; plain JSON."""

    seed: int | list[int] | None
    """The seed, or several, or None."""

    created: str
    """When the run began, as ISO 8601 in UTC."""

    version: str
    """Version of Stepladder that made the run."""

    git_commit: str | None
    """Commit checked out in the working directory, where there is one."""

    def write(self, folder: Path) -> None:
        """Write ``config.json`` in one step, replacing an older one."""
        text = json.dumps({"package": WRITTEN_BY, "schema": SCHEMA, **vars(self)}, indent=2)
        with replacing(folder / CONFIG) as file:
            file.write(text.encode() + b"\n")

    @classmethod
    def read(cls, folder: Path) -> "RunInfo":
        """Read the ``config.json`` of a run.

        Raises:
            RunError: There is none, or it is damaged, not ours, or of another schema.
        """
        path = folder / CONFIG
        with naming(folder):
            if not folder.is_dir():
                raise RunError(f"{folder} is not a folder. Give the folder of a run.")
            if not os.path.lexists(path):
                if os.path.lexists(folder / SEEDS_FILE):
                    raise RunError(
                        f"{folder} holds the runs of several seeds. Name one of them, such as "
                        f"{_one_of(folder)}."
                    )
                raise RunError(
                    f"{folder} has no run: it has no {CONFIG}. Give the folder of a run."
                )
            document = _read(path)
        if document["schema"] != SCHEMA:
            raise RunError(
                f"{path} has schema {document['schema']!r}; this version reads {SCHEMA}. "
                f"Use version {document.get('version')} of Stepladder, which wrote it."
            )
        fields: dict[str, Any] = {name: document.get(name) for name in cls.__dataclass_fields__}
        for name, (kind, words) in _KINDS.items():
            if not isinstance(fields[name], kind) or isinstance(fields[name], bool):
                raise RunError(
                    f"{path} is damaged: {name} must be {words}; got {repr(fields[name])[:80]}. "
                    "Restore the file from a copy."
                )
        return cls(**fields)


def _one_of(folder: Path) -> Path:
    """Return the first run in a folder of several seeds."""
    return min((one.parent for one in folder.glob(f"seed-*/{CONFIG}")), default=folder / "seed-0")


def _read(path: Path) -> dict[str, Any]:
    try:
        document = read_json(path)
    except ValueError as error:
        raise RunError(f"{path} is damaged ({error}). Restore it from a copy.") from error
    if (
        not isinstance(document, dict)
        or document.get("package") != WRITTEN_BY
        or "schema" not in document
    ):
        raise RunError(
            f"{path} was not written by Stepladder, so {path.parent} has no run. "
            "Give the folder of a run, or choose a new or empty folder for one."
        )
    return document


def describe(kind: str, config: Mapping[str, Any], seed: int | Sequence[int] | None) -> RunInfo:
    """Return the description of a new run.

    Raises:
        ConfigError: The kind is not one word, or the config or the seed is not plain JSON.
    """
    if not isinstance(kind, str) or not re.fullmatch(r"[\w-]+", kind):
        raise ConfigError(f"kind must be one word, such as 'training'; got {kind!r}.")
    if not isinstance(config, Mapping):
        raise ConfigError(f"config must be a mapping of settings; got {config!r}.")
    plain_config = to_plain(config, "config", error=ConfigError)
    plain_seed = to_plain(seed, "seed", error=ConfigError)
    seeds = plain_seed if isinstance(plain_seed, list) else [plain_seed]
    if plain_seed is not None and not all(type(one) is int for one in seeds):
        raise ConfigError(f"seed must be an integer, a list of integers or None; got {seed!r}.")
    return RunInfo(
        kind=kind,
        config=plain_config,
        seed=plain_seed,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=stepladder.__version__,
        git_commit=current_commit(),
    )


def current_commit() -> str | None:
    """Return the commit that is checked out in the working directory, or None."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--verify", "HEAD"],
            capture_output=True,
            text=True,
            timeout=2,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@contextmanager
def naming(folder: Path) -> Iterator[None]:
    """Turn what the file system or the database refuses into one line that names the folder."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise RunError(
            f"the run {folder} cannot be used ({error}). Check the path, its permissions and the "
            "space on the disk."
        ) from error


def holds_run(folder: Path) -> bool:
    """Whether a folder holds a run; if not, it is missing or empty and can take one.

    Raises:
        RunError: Something else is there, or a run of another version.
    """
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise RunError(f"{folder} is a file. Choose a new or empty folder.")
    if os.path.lexists(folder / CONFIG):
        RunInfo.read(folder)
        return True
    others = sorted(
        entry.name for entry in folder.iterdir() if not _LEFT_OVER.fullmatch(entry.name)
    )
    if others:
        raise RunError(
            f"{folder} is not empty and has no run: it has {others[0]!r}. "
            "Choose a new or empty folder."
        )
    return False


def refuse_unless_free(folder: Path, overwrite: bool) -> None:
    """Raise unless a new run may be made in a folder."""
    if holds_run(folder) and not overwrite:
        raise RunError(
            f"{folder} holds a run already. Choose another folder, continue it with Run.resume, "
            "or give overwrite=True to replace it."
        )


def clear(folder: Path) -> None:
    """Remove the files of an older run, and nothing that it did not write.

    ``config.json`` stays until a new one takes its place: a kill in between leaves a folder that is
    still known to be a run, which can be overwritten again.
    """
    checkpoints = folder / CHECKPOINTS
    if os.path.lexists(checkpoints):
        # Before anything is removed: what a link leads to is not part of this run.
        require_folder(checkpoints)
        for entry in checkpoints.iterdir():
            if is_folder(entry) or is_unfinished(entry):
                shutil.rmtree(entry)
            elif _CHECKPOINT_FILE.fullmatch(entry.name) and not is_real_folder(entry):
                # Of a link, the link alone.
                entry.unlink()
    for name in _OWN_DATABASE:
        (folder / name).unlink(missing_ok=True)
