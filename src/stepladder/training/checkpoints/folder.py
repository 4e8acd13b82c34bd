"""One checkpoint of a training on disk: a folder in which every file is sealed with its checksum.

`store` says which folder is written, read or removed; here is what lies in it:

- ``weights.safetensors``: what is needed to act, and the description of the agent; usable by itself
- ``memory.safetensors``: all other tensors of the agent, where there are any
- ``envs.npz``: the envs and the curriculum
- ``trainer.npz``: the rest, with the numbers of the agent
- ``manifest.json``: version, step, run, and size and checksum of each file; written last

No file is ever changed. Nothing in it is pickle.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import stepladder
from stepladder.agents.base import WEIGHTS_PREFIX, AgentState, named_below
from stepladder.errors import SnapshotError
from stepladder.files import open_for_reading, read_json, require_folder, require_regular
from stepladder.files import sync as synced
from stepladder.saving.snapshot import Snapshot
from stepladder.training.checkpoints.tensor_files import (
    load_tensors,
    read_policy,
    save_policy,
    save_tensors,
)

SCHEMA = 2
"""Version of the layout of the folder; another is refused."""

PACKAGE = "stepladder"
MANIFEST = "manifest.json"
WEIGHTS_FILE = "weights.safetensors"
MEMORY_FILE = "memory.safetensors"
ENVS = "envs.npz"
TRAINER = "trainer.npz"

MOST_BYTES = 16 * 2**20
"""Largest manifest: a few lines, and the settings of the run."""

REQUIRED = frozenset({WEIGHTS_FILE, ENVS, TRAINER})


@dataclass
class TrainingCheckpoint:
    """Everything a training needs to continue exactly."""

    step: int
    """Steps that all envs have taken together."""

    agent: AgentState
    """Everything about the agent."""

    description: dict[str, Any]
    """What `Agent.description` returns; goes with the weights."""

    envs: Snapshot
    """The envs, their episodes and their curriculum."""

    trainer: Snapshot
    """The rest: counters, opponents, history of evaluations."""

    name: str = ""
    """What its run calls it, once it was saved: ``Run.resume(folder, checkpoint=name)``."""


@dataclass(frozen=True)
class Manifest:
    """What ``manifest.json`` says."""

    step: int
    run: dict[str, Any]
    """What tells the run from any other."""

    files: dict[str, tuple[int, str]]
    """Size and checksum of each file, by its name."""


def write_folder(folder: Path, checkpoint: TrainingCheckpoint, run: Mapping[str, Any]) -> None:
    """Make a folder with a checkpoint in it. All of it is on the disk when this returns.

    Args:
        folder: Must not exist.
        checkpoint: What to write.
        run: What tells its run from any other; plain JSON.

    Raises:
        OSError: The disk is full, or the folder cannot be written.
        SnapshotError: Something is not plain JSON, an array or a dense tensor.
    """
    folder.mkdir()
    agent = checkpoint.agent
    weights = named_below(WEIGHTS_PREFIX, agent.tensors)
    memory = {
        name: tensor
        for name, tensor in agent.tensors.items()
        if not name.startswith(WEIGHTS_PREFIX)
    }
    rest = {"step": checkpoint.step, "numbers": agent.numbers}
    try:
        save_policy(folder / WEIGHTS_FILE, checkpoint.description, weights)
        if memory:
            save_tensors(folder / MEMORY_FILE, memory, {})
        checkpoint.envs.save(folder / ENVS)
        Snapshot.of_parts(rest, trainer=checkpoint.trainer).save(folder / TRAINER)
    except (KeyError, TypeError, ValueError) as error:
        raise SnapshotError(
            f"the checkpoint of step {checkpoint.step} cannot be saved ({error}). "
            "It must consist of plain JSON, arrays and dense tensors."
        ) from error
    _write_manifest(folder, checkpoint.step, run)
    synced(folder)


def _write_manifest(folder: Path, step: int, run: Mapping[str, Any]) -> None:
    files = {
        path.name: {"size": path.stat().st_size, "sha256": _checksum(path)}
        for path in sorted(folder.iterdir())
    }
    document = {
        "package": PACKAGE,
        "schema": SCHEMA,
        "version": stepladder.__version__,
        "step": step,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "run": dict(run),
        "files": files,
    }
    path = folder / MANIFEST
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    synced(path)


def _checksum(path: Path) -> str:
    with open_for_reading(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_folder(folder: Path, manifest: Manifest) -> TrainingCheckpoint:
    """Return the checkpoint in a folder.

    Raises:
        SnapshotError: Something is missing or damaged; the message is the reason alone.
        OSError: Something cannot be read.
    """
    require_whole_files(folder, manifest, manifest.files)
    description, weights = read_policy(folder / WEIGHTS_FILE)
    tensors = {f"{WEIGHTS_PREFIX}{name}": tensor for name, tensor in weights.items()}
    if MEMORY_FILE in manifest.files:
        tensors.update(load_tensors(folder / MEMORY_FILE)[0])
    rest = Snapshot.load(folder / TRAINER)
    if rest.state.get("step") != manifest.step:
        raise SnapshotError(
            f"{MANIFEST} says step {manifest.step}, {TRAINER} says {rest.state.get('step')!r}"
        )
    return TrainingCheckpoint(
        step=manifest.step,
        agent=AgentState(rest.part("numbers").state, tensors),
        description=description,
        envs=Snapshot.load(folder / ENVS),
        trainer=rest.part("trainer"),
        name=folder.name,
    )


def read_weights(
    folder: Path, manifest: Manifest
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return what is needed to act, and look at nothing else; raises like `read_folder`."""
    require_whole_files(folder, manifest, [WEIGHTS_FILE])
    return read_policy(folder / WEIGHTS_FILE)


def require_whole_files(folder: Path, manifest: Manifest, names: Iterable[str]) -> None:
    """Raise unless files are as they were written."""
    for name in names:
        path = folder / name
        size, checksum = manifest.files[name]
        try:
            require_regular(path)
        except FileNotFoundError as error:
            raise SnapshotError(f"{name} is missing") from error
        found = path.stat().st_size
        if found != size:
            cut = " (cut off)" if found < size else ""
            raise SnapshotError(f"{name} has {found:,} bytes instead of {size:,}{cut}")
        if _checksum(path) != checksum:
            raise SnapshotError(f"{name} was changed or damaged: its checksum is wrong")


def read_manifest(folder: Path) -> Manifest:
    """Return what the manifest of a folder says.

    Raises:
        SnapshotError: It is missing, damaged, or of another schema; the reason alone.
        OSError: It cannot be read.
    """
    path = folder / MANIFEST
    try:
        require_folder(folder)
        document = read_json(path, MOST_BYTES)
    except FileNotFoundError as error:
        raise SnapshotError(f"{MANIFEST} is missing") from error
    except ValueError as error:
        raise SnapshotError(f"{MANIFEST} is damaged ({error})") from error
    if not isinstance(document, dict) or document.get("package") != PACKAGE:
        raise SnapshotError(f"{MANIFEST} was not written by Stepladder")
    if document.get("schema") != SCHEMA:
        raise SnapshotError(
            f"{MANIFEST} has schema {document.get('schema')!r} and this version reads {SCHEMA}: "
            f"it was written by version {document.get('version')} of Stepladder"
        )
    try:
        return _manifest(document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SnapshotError(f"{MANIFEST} is damaged ({error!r})") from error


def _manifest(document: Mapping[str, Any]) -> Manifest:
    step, run = document["step"], document["run"]
    files = {name: (seal["size"], seal["sha256"]) for name, seal in document["files"].items()}
    if type(step) is not int or not isinstance(run, dict):
        raise ValueError("step must be an integer and run an object")
    for name, (size, checksum) in files.items():
        if type(size) is not int or type(checksum) is not str:
            raise ValueError(f"{name} has size {size!r} and checksum {checksum!r}")
    # The names too: a file elsewhere is none of ours.
    if not REQUIRED <= files.keys() <= REQUIRED | {MEMORY_FILE}:
        raise ValueError(f"files are {sorted(files)}")
    return Manifest(step, run, files)
