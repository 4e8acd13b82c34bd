"""One agent of an archive as files: what ``agent.json`` says, and its weights.

Written and read by `archive`. The weights are a policy as in any
checkpoint (`training.checkpoints.tensor_files`), checked against a digest before they are used.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stepladder.errors import SnapshotError
from stepladder.files import open_for_reading, read_json, require_folder
from stepladder.training.checkpoints.tensor_files import read_policy, save_policy
from stepladder.training.opponents.files import replace_file
from stepladder.training.opponents.member import SPACES, Member, require_finite
from stepladder.training.opponents.ratings import BASELINES

AGENT, ENTRY_WEIGHTS = "agent.json", "weights.safetensors"
PACKAGE, SCHEMA = "stepladder", 1

MOST_BYTES = 16 * 2**20
"""Largest ``agent.json``: a description of spaces and layers, which takes a few kilobytes."""

AGENT_ID = re.compile(r"\w[\w.+=-]{0,150}", re.ASCII)
"""Allowed names of agents, which are names of folders."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An agent of an archive, without its weights."""

    agent_id: str
    """The name of its folder."""

    description: Mapping[str, Any]
    """What `Agent.description` returned."""

    origin: str
    """The run it comes from."""

    step: int
    """Env steps it had learnt from."""

    tags: tuple[str, ...]
    """Words to find it by."""

    created: str
    """When it was added, as ISO 8601 in UTC."""

    folder: Path = Path()
    """Where its files are."""

    digest: str = ""
    """Of the file with its weights."""

    def load(self) -> Member:
        """Return it with its weights.

        Raises:
            SnapshotError: They are missing or damaged.
        """
        path = self.folder / ENTRY_WEIGHTS
        if digest_of(path) != self.digest:
            raise SnapshotError(f"{path} is damaged: its digest is wrong. Restore it from a copy.")
        try:
            _, weights = read_policy(path)
        except SnapshotError as error:
            raise SnapshotError(f"{path} cannot be used: {error}. Use another agent.") from error
        return require_finite(
            Member(
                name=self.agent_id,
                description=self.description,
                weights=weights,
                step=self.step,
                is_archived=True,
            )
        )


def id_of(member: Member, origin: str) -> str:
    """Return a readable id that is unique for every agent.

    Args:
        member: The agent.
        origin: The run it comes from.
    """
    text = json.dumps([dict(member.description), origin, member.step], sort_keys=True)
    hasher = hashlib.sha256(text.encode())
    for name, tensor in sorted(member.weights.items()):
        hasher.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        hasher.update(tensor.numpy().tobytes())
    kind = re.sub(r"\W", "", str(member.description.get("type", "")).lower())
    return f"{kind or 'agent'}-{member.step}-{hasher.hexdigest()[:12]}"


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, as 64 hex digits."""
    try:
        with open_for_reading(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def write_entry(folder: Path, entry: Entry, member: Member) -> None:
    """Write the files of an agent into a new folder."""
    folder.mkdir()
    save_policy(folder / ENTRY_WEIGHTS, member.description, member.weights)
    fields = {name: value for name, value in asdict(entry).items() if name in _FIELDS}
    document = {
        "package": PACKAGE,
        "schema": SCHEMA,
        "digest": digest_of(folder / ENTRY_WEIGHTS),
        **fields,
    }
    replace_file(folder / AGENT, json.dumps(document, indent=2).encode() + b"\n")


_FIELDS = {"description": dict, "origin": str, "step": int, "tags": list, "created": str}
"""The fields of ``agent.json``, beside its schema and a digest of the weights."""


def read_entry(folder: Path) -> Entry:
    """Read the description of an agent from its folder.

    Raises:
        SnapshotError: It holds no agent, or a damaged one; the message says which.
    """
    if not AGENT_ID.fullmatch(folder.name) or folder.name in BASELINES:
        raise SnapshotError(f"{folder.name!r} cannot be the name of an agent. Rename the folder.")
    path = folder / AGENT
    try:
        require_folder(folder)
        document = read_json(path, MOST_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from error
    except ValueError as error:
        raise SnapshotError(f"{path} is damaged ({error}). Restore it from a copy.") from error
    if not isinstance(document, dict) or document.get("package") != PACKAGE:
        raise SnapshotError(f"{path} was not written by Stepladder. Move it elsewhere.")
    if document.get("schema") != SCHEMA:
        raise SnapshotError(
            f"{path} has schema {document.get('schema')!r}; this version reads {SCHEMA}. Use the "
            "Stepladder that wrote it."
        )
    for name, kind in {**_FIELDS, "digest": str}.items():
        if not isinstance(document.get(name), kind):
            raise SnapshotError(f"{path} is damaged: {name} is {document.get(name)!r}.")
    if any(part not in document["description"] for part in ("type", *SPACES)):
        raise SnapshotError(f"{path} does not describe an agent. Remove it.")
    return Entry(
        agent_id=folder.name,
        folder=folder,
        digest=document["digest"],
        tags=tuple(map(str, document["tags"])),
        **{name: document[name] for name in _FIELDS if name != "tags"},
    )


def _unreadable(path: Path, error: OSError) -> SnapshotError:
    return SnapshotError(f"{path} cannot be read ({error.strerror}). Restore it, or remove it.")
