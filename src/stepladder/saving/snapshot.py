"""A saved state: JSON and arrays, versioned, in one file, without pickle.

Made by `Curriculum.snapshot` and by the channels in `sync`; a run writes it to disk. The file is a
NumPy ``.npz`` archive (see `archive_file`) whose entry ``state`` holds the JSON as bytes. It is
written to a temporary name and renamed, so a crash leaves either the old file or the new one.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from stepladder.errors import SnapshotError, shown
from stepladder.files import parsed_json
from stepladder.saving.archive_file import read_arrays, write_arrays

SCHEMA = 2
"""Version of the layout of every snapshot; a higher one is refused."""


@dataclass(frozen=True)
class Snapshot:
    """Everything needed to continue as if nothing had happened."""

    state: dict[str, Any]
    """Plain JSON."""

    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict[str, npt.NDArray[Any]])
    """Arrays by name; names may contain slashes."""

    place: str = field(default="the snapshot", compare=False)
    """Where it comes from, for messages: a file, or a part of one."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to `path`, replacing an older file in one step."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"schema": SCHEMA, "state": self.state}, allow_nan=False)
        state = np.frombuffer(text.encode(), dtype=np.uint8)
        arrays = {f"array/{name}": array for name, array in self.arrays.items()}
        write_arrays(target, {"state": state, **arrays})
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Snapshot":
        """Read a file written by `save`.

        Raises:
            SnapshotError: The file is missing, damaged, or of a newer schema.
        """
        try:
            found = read_arrays(path)
            document = parsed_json(found["state"].tobytes())
            schema, state = document["schema"], document.get("state")
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise SnapshotError(
                f"{os.fspath(path)} is not a readable snapshot ({error}). "
                "Use an older snapshot, or start without one."
            ) from error
        arrays = {
            name.removeprefix("array/"): array
            for name, array in found.items()
            if name.startswith("array/")
        }
        if schema != SCHEMA:
            raise SnapshotError(
                f"{os.fspath(path)} has snapshot schema {schema!r}; this version reads {SCHEMA}. "
                "Load it with the version of Stepladder that wrote it."
            )
        if not isinstance(state, dict):
            raise SnapshotError(f"{os.fspath(path)} has no state. Use an older snapshot.")
        return cls(cast(dict[str, Any], state), arrays, os.fspath(path))

    def part(self, name: str) -> "Snapshot":
        """Return the snapshot that was nested under `name`."""
        state = self.state.get(name)
        if not isinstance(state, dict):
            raise SnapshotError(
                f"{self.place} has no part {name!r}; it has {sorted(self.state)}. "
                "It was made by something else."
            )
        prefix = f"{name}/"
        return Snapshot(
            cast(dict[str, Any], state),
            {
                key.removeprefix(prefix): array
                for key, array in self.arrays.items()
                if key.startswith(prefix)
            },
            f"part {name!r} of {self.place}",
        )

    @classmethod
    def of_parts(cls, state: dict[str, Any], **parts: "Snapshot") -> "Snapshot":
        """Nest snapshots under names, beside other state."""
        merged = dict(state)
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, part in parts.items():
            merged[name] = part.state
            arrays.update({f"{name}/{key}": array for key, array in part.arrays.items()})
        return cls(merged, arrays)


def require_snapshot(snapshot: Any) -> None:
    """Raise unless something is a snapshot."""
    if not isinstance(snapshot, Snapshot):
        raise SnapshotError(
            f"expected a Snapshot; got {snapshot!r}. Read a file with Snapshot.load(path) first."
        )


def difference(saved: Any, present: Any, path: str = "") -> str | None:
    """Return the first difference between two JSON values in words, or None.

    Example:
        >>> difference({"a": {"b": 1}}, {"a": {"b": 2}})
        'a.b was 1 and is now 2'
    """
    if isinstance(saved, dict) and isinstance(present, dict):
        left, right = cast("dict[str, Any]", saved), cast("dict[str, Any]", present)
        for key in sorted(left.keys() | right.keys()):
            inner = f"{path}.{key}" if path else key
            if found := difference(left.get(key, "absent"), right.get(key, "absent"), inner):
                return found
        return None
    if isinstance(saved, list) and isinstance(present, list):
        olds, news = cast(list[Any], saved), cast(list[Any], present)
        if len(olds) != len(news):
            return f"{path or 'it'} had {len(olds)} entries and now has {len(news)}"
        for index, (old, new) in enumerate(zip(olds, news, strict=True)):
            if found := difference(old, new, f"{path}[{index}]"):
                return found
        return None
    if saved == present:
        return None
    was, now = shown(cast("object", saved)), shown(cast("object", present))
    return f"{path or 'it'} was {was} and is now {now}"
