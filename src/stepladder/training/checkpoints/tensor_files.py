"""Tensors on disk, with safetensors: a public format that cannot contain code.

`folder` keeps an agent this way, and `opponents` other agents. A policy is
such a file whose metadata says what plays with these weights.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from stepladder.errors import SnapshotError
from stepladder.files import parsed_json, require_regular, sync

DESCRIPTION = "description"
"""Where the metadata of a policy has the agent's description, as JSON."""


def save_tensors(
    path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]
) -> None:
    """Write tensors from any device, in place of an older file or of nothing, in one step.

    Tensors on the CPU are written where they lie; only those that are scattered or share memory
    with another one are copied, once. The file is safe on disk when this returns.

    Raises:
        OSError: The disk is full, or the file cannot be written.
        ValueError: Something is not a dense tensor.
        KeyError: A tensor is of a type that safetensors does not know.
    """
    try:
        # "pt" is what other readers of safetensors expect of a file with torch's tensors.
        save_file(_apart(tensors), path, metadata={"format": "pt", **metadata})
    except SafetensorError as error:
        raise OSError(f"{path.name} cannot be written: {error}") from error
    # Readable by all who may read the folder; safetensors makes it readable by its owner only.
    path.chmod(path.parent.stat().st_mode & 0o666)
    sync(path)


def load_tensors(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Return the tensors of a file, on the CPU, and its metadata.

    Raises:
        SnapshotError: The file is damaged, or something else.
    """
    try:
        # What follows maps the file, whatever it is. That its tensors fit into it, without gaps and
        # without overlap, is checked there before memory is taken.
        require_regular(path.resolve(strict=True))
        with safe_open(path, framework="pt") as file:
            # Copied, for what comes out is a view of the file, with the alignment it has there:
            # sums over it may come out differently in the last bit.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            return tensors, file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise SnapshotError(f"{path.name} is not a readable safetensors file ({error})") from error


def save_policy(
    path: Path, description: Mapping[str, Any], weights: Mapping[str, torch.Tensor]
) -> None:
    """Write what a player needs, as `save_tensors` does.

    Args:
        path: The file.
        description: What `Agent.description` returns.
        weights: What `Agent.weights` returns.
    """
    save_tensors(path, weights, {DESCRIPTION: json.dumps(description, allow_nan=False)})


def read_policy(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return the description and the weights that `save_policy` wrote.

    Raises:
        SnapshotError: The file is damaged, or does not describe the agent of these weights.
    """
    tensors, metadata = load_tensors(path)
    try:
        description = parsed_json(metadata.get(DESCRIPTION, "null"))
    except ValueError as error:
        raise SnapshotError(f"{path.name} has a damaged description ({error})") from error
    if not isinstance(description, dict):
        raise SnapshotError(
            f"{path.name} does not say which agent its weights belong to: its metadata has "
            f"{sorted(metadata)} and must have {DESCRIPTION!r}"
        )
    return description, tensors


def _apart(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return tensors as safetensors needs them: on the CPU, contiguous, without shared memory."""
    seen: set[int] = set()
    prepared: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
            raise ValueError(f"{name!r} is not a dense tensor")
        plain = tensor.detach().cpu().contiguous()
        memory = plain.untyped_storage().data_ptr()
        prepared[name] = plain.clone() if memory in seen else plain
        seen.add(memory)
    return prepared
