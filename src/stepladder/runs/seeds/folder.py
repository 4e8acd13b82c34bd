"""The folder of several seeds: ``seeds.json``, and an ordinary run for each seed.

`training.seeds` writes it; commands that get such a folder in place of a run find the runs here.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepladder.errors import RunError
from stepladder.files import read_json, replacing
from stepladder.runs.reopening import lock_run
from stepladder.runs.run_folder import CONFIG, SEEDS_FILE, WRITTEN_BY, clear, describe, naming

SCHEMA = 1
"""Version of the layout of the folder; another is refused."""

SEEDS_LOCK = "seeds.lock"

_KINDS: Mapping[str, tuple[Any, str]] = {
    "seeds": (list, "a list"),
    "config": (dict, "an object"),
    "initial_weights": (str | None, "text, or null"),
    "created": (str, "a date"),
    "version": (str, "a version"),
    "git_commit": (str | None, "a commit, or null"),
}
"""Type of each entry of ``seeds.json``."""


@dataclass(frozen=True, kw_only=True)
class SeedsInfo:
    """What ``seeds.json`` says."""

    seeds: tuple[int, ...]
    config: dict[str, Any]
    """Settings of the first seed; those of the others differ in the seed alone."""

    initial_weights: str | None
    """Where all of them begin, if not with random weights."""

    created: str
    """When they began, as ISO 8601 in UTC."""

    version: str
    """Version of Stepladder that made the folder."""

    git_commit: str | None
    """Commit checked out in the working directory, where there is one."""

    @classmethod
    def of(
        cls, seeds: Sequence[int], config: dict[str, Any], initial_weights: str | None = None
    ) -> "SeedsInfo":
        """Return the description of new seeds."""
        about = describe("training", config, list(seeds))
        return cls(
            seeds=tuple(seeds),
            config=about.config,
            initial_weights=initial_weights,
            created=about.created,
            version=about.version,
            git_commit=about.git_commit,
        )

    def write(self, folder: Path) -> None:
        """Write ``seeds.json`` in one step."""
        text = json.dumps({"package": WRITTEN_BY, "schema": SCHEMA, **vars(self)}, indent=2)
        with replacing(folder / SEEDS_FILE) as file:
            file.write(text.encode() + b"\n")

    @classmethod
    def read(cls, folder: Path) -> "SeedsInfo":
        """Read the ``seeds.json`` of a folder.

        Raises:
            RunError: There is none, or it is damaged, not ours, or of another schema.
        """
        path = folder / SEEDS_FILE
        with naming(folder):
            if not os.path.lexists(path):
                raise RunError(
                    f"{folder} has no {SEEDS_FILE}, so it does not hold several seeds. Name a "
                    "folder that stepladder train --seeds has made."
                )
            try:
                document = read_json(path)
            except ValueError as error:
                raise _damaged(path, str(error)) from error
        if not isinstance(document, dict) or document.get("package") != WRITTEN_BY:
            raise _damaged(path, "it was not written by Stepladder")
        if document.get("schema") != SCHEMA:
            raise RunError(
                f"{path} has schema {document.get('schema')!r}; this version reads {SCHEMA}. "
                f"Use version {document.get('version')} of Stepladder, which wrote it."
            )
        fields: dict[str, Any] = {name: document.get(name) for name in cls.__dataclass_fields__}
        for name, (kind, words) in _KINDS.items():
            if not isinstance(fields[name], kind):
                raise _damaged(path, f"{name} must be {words}")
        seeds = fields["seeds"]
        is_whole = all(type(seed) is int and seed >= 0 for seed in seeds)
        if not is_whole or not seeds or len(set(seeds)) < len(seeds):
            raise _damaged(path, "seeds must be different integers, at least one")
        return cls(**{**fields, "seeds": tuple(seeds)})


def refuse_unless_free_for(parent: Path, seeds: Sequence[int], overwrite: bool) -> None:
    """Raise unless these seeds may be trained in a folder.

    Raises:
        RunError: It holds something else, or seeds that are not to be replaced.
    """
    with naming(parent):
        if not parent.exists():
            return
        if not parent.is_dir():
            raise RunError(f"{parent} is a file. Choose a new or empty folder.")
        if not holds_seeds(parent):
            others = sorted({entry.name for entry in parent.iterdir()} - {SEEDS_LOCK})
            if others:
                raise RunError(
                    f"{parent} is not empty and does not hold several seeds: it has {others[0]!r}. "
                    "Choose a new or empty folder."
                )
            return
    old = SeedsInfo.read(parent).seeds
    if not overwrite:
        raise RunError(
            f"{parent} holds seeds of a training already. Choose another folder with --out, "
            f"replace them with --overwrite, or continue them: stepladder train --resume {parent}"
        )
    if left := sorted(set(old) - set(seeds)):
        raise RunError(
            f"{parent} also holds seed {left[0]}, which would be left of another training. Choose "
            "another folder, or remove this one."
        )


def holds_seeds(folder: Path) -> bool:
    """Whether a folder holds several seeds of a training."""
    return os.path.lexists(folder / SEEDS_FILE)


def seed_folder(parent: Path, seed: int) -> Path:
    """Return the folder of the run of a seed."""
    return parent / f"seed-{seed}"


def runs_of(parent: Path) -> dict[int, Path]:
    """Return the runs of all seeds that have begun, by seed."""
    folders = {seed: seed_folder(parent, seed) for seed in SeedsInfo.read(parent).seeds}
    return {seed: one for seed, one in folders.items() if os.path.lexists(one / CONFIG)}


def remove_runs(parent: Path) -> None:
    """Remove the runs of all seeds in a folder, if it holds any, and nothing else.

    Raises:
        RunError: Another process writes one of them.
    """
    for folder in runs_of(parent).values() if holds_seeds(parent) else ():
        lock = lock_run(folder)
        try:
            with naming(folder):
                clear(folder)
                (folder / CONFIG).unlink()
        finally:
            lock.release()


def with_runs_of_seeds(folders: Sequence[Path]) -> list[Path]:
    """Return folders with those that hold several seeds replaced by the runs of these.

    Raises:
        RunError: None of the seeds has begun.
    """
    found: list[Path] = []
    for folder in folders:
        runs = list(runs_of(folder).values()) if holds_seeds(folder) else [folder]
        if not runs:
            raise RunError(
                f"none of the seeds in {folder} has begun. Start them with: stepladder train "
                f"--resume {folder}"
            )
        found += runs
    return found


def _damaged(path: Path, reason: str) -> RunError:
    return RunError(f"{path} is damaged ({reason}). Restore it from a copy.")
