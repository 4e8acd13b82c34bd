"""Levels kept as files, one sub-folder per label.

A source for the pool. The folder is listed once, when the source is made; what a file holds is
read when its task is first used, and only the most recent files stay in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np

from stepladder.errors import TaskError
from stepladder.files import parsed_json, read_bytes
from stepladder.tasks.source import LabelledSource, TaskCache
from stepladder.tasks.task import Task


class FolderSource(LabelledSource):
    """Tasks read from ``root/label/file`` or ``root/label/generator/file``.

    A task is named by its path below the root, and labelled by the first folder of that path.
    Labels, and files within a label, are in order of name. Names that start with a dot are
    skipped.
    """

    def __init__(
        self,
        root: str | Path,
        pattern: str = "*",
        loader: Callable[[Path], Mapping[str, Any]] | None = None,
        cache_size: int = 1000,
    ) -> None:
        """List the folder; no file is read yet.

        Args:
            root: The folder that holds one sub-folder per label.
            pattern: Which file names to take, in shell style, such as ``"*.json"``.
            loader: Reads one file into parameters. Without one, ``.json`` files must hold an
                object, and the text of any other file becomes the parameter "level".
            cache_size: Most tasks kept in memory.

        Raises:
            TaskError: If the root or one of its sub-folders has no task, or files are where
                they have no label.
        """
        self.root = Path(root).absolute()
        self._pattern = pattern
        self._loader = load_level if loader is None else loader
        self._cache = TaskCache(cache_size)
        found = self._list_files()
        self._labels = list(dict.fromkeys(label for label, *_ in found))
        positions = {label: position for position, label in enumerate(self._labels)}
        self._label_indices = np.array([positions[label] for label, *_ in found], dtype=np.int64)
        self._paths = ["/".join(path) for path in found]
        self._digest = self._digest_of_sizes()

    @property
    def num_tasks(self) -> int:
        """Number of files listed."""
        return len(self._paths)

    @property
    def num_cached(self) -> int:
        """Number of tasks in memory now."""
        return len(self._cache)

    def get(self, task_id: int) -> Task:
        """Return the task of a file, reading it unless it is still in memory.

        The parameters are what the loader returned, plus "path" (below the root, with forward
        slashes) and, for a file in a folder within the label's folder, that folder's name as
        "generator".

        Raises:
            TaskError: If the id is unknown, or the file cannot be read; the file is named.
        """
        return self._cache.get(self.check_id(task_id), self._load)

    def name(self, task_id: int) -> str:
        """Return the path below the root; reads no file."""
        return self._paths[self.check_id(task_id)]

    def describe(self) -> dict[str, Any]:
        """Return the counts and a digest of all paths and file sizes as first listed.

        The root is left out, so that a folder may be moved. So is the content of the files:
        an edit that keeps a file's size goes unnoticed.
        """
        return {
            "kind": "folder",
            "num_tasks": self.num_tasks,
            "label_counts": self._label_counts(),
            "digest": self._digest,
        }

    def _list_files(self) -> list[tuple[str, ...]]:
        """Return the path of each file below the root as (label, file) or with a folder between."""
        found: list[tuple[str, ...]] = []
        for place, folders, files in os.walk(self.root, onerror=_refuse_folder, followlinks=True):
            folder = Path(place)
            path = folder.relative_to(self.root).parts
            folders[:] = [name for name in folders if not name.startswith(".")]
            # A broken link counts as a file, so that it is reported and not skipped.
            taken = [name for name in files if not name.startswith(".")]
            taken = sorted(name for name in taken if fnmatchcase(name, self._pattern))
            if not path:
                self._check_root(folders, taken)
            elif len(path) == 2 and folders:
                raise TaskError(
                    f"{folder / min(folders)} is too deep: files are taken from root/label/ and "
                    "root/label/generator/ only. Move its files up."
                )
            elif not taken and not folders:
                raise TaskError(
                    f"{folder} has no file that matches {self._pattern!r}. Add one, or remove the "
                    "folder."
                )
            found += [(*path, name) for name in taken]
        return sorted(found)

    def _check_root(self, folders: list[str], files: list[str]) -> None:
        if files:
            more = f" and {len(files) - 5} more" if len(files) > 5 else ""
            raise TaskError(
                f"{', '.join(files[:5])}{more} in {self.root} would have no label: a task's label "
                "is its sub-folder. Move each into a sub-folder, or narrow the pattern "
                f"{self._pattern!r}."
            )
        if not folders:
            raise TaskError(
                f"{self.root} has no sub-folder; one per label is needed. Add a folder with at "
                f"least one file that matches {self._pattern!r}."
            )

    def _digest_of_sizes(self) -> str:
        hasher = hashlib.blake2b(digest_size=16)
        for path in self._paths:
            try:
                size = (self.root / path).stat().st_size
            except OSError as error:
                raise _unreadable(self.root / path, error) from error
            hasher.update(json.dumps([path, size]).encode())
        return hasher.hexdigest()

    def _load(self, task_id: int) -> Task:
        path = self._paths[task_id]
        file = self.root / path
        label, *folders, _ = path.split("/")
        extra = {"path": path} | ({"generator": folders[0]} if folders else {})
        try:
            params: Any = self._loader(file)
            if not isinstance(params, Mapping):
                raise TaskError(f"its loader returned a {type(params).__name__}, not a mapping")
            taken = sorted(extra.keys() & params.keys())
            if taken:
                raise TaskError(f"its parameter {taken[0]!r} is one the source itself sets")
            return Task(path, label, {**cast("Mapping[str, Any]", params), **extra})
        except (OSError, ValueError, RecursionError) as error:
            raise _unreadable(file, error) from error


def load_level(file: Path) -> Mapping[str, Any]:
    """Read a file the default way: a JSON object by its suffix, else text as "level"."""
    # Files may be links: a user may have put a folder of levels together that way.
    content = read_bytes(file, follow=True)
    if file.suffix.lower() != ".json":
        return {"level": content.decode()}
    params = parsed_json(content)
    if not isinstance(params, dict):
        raise TaskError(f"it holds a JSON {type(params).__name__}, not an object")
    return cast("dict[str, Any]", params)


def _refuse_folder(error: OSError) -> NoReturn:
    raise TaskError(
        f"{error.filename} cannot be listed: {error.strerror}. Give the path of a readable folder."
    ) from error


def _unreadable(file: Path, error: Exception) -> TaskError:
    reason = str(error).rstrip(".")
    return TaskError(f"The task file {file} cannot be used: {reason}. Correct or remove the file.")
