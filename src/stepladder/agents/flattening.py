"""A nested state as plain JSON and tensors by name, and back.

Used by `base` when an agent is saved: JSON goes into one file, tensors into another.
"""

from collections.abc import Mapping
from typing import Any

import torch


def flatten(value: Any, prefix: str, tensors: dict[str, torch.Tensor]) -> Any:
    """Return a nested state as plain JSON, with its tensors put aside under names.

    Args:
        value: Dicts, lists, numbers, texts and tensors.
        prefix: Of the names.
        tensors: Where tensors are put; changed in place.
    """
    if isinstance(value, torch.Tensor):
        tensors[prefix] = value.detach()
        return {"tensor": prefix}
    if isinstance(value, Mapping):
        # JSON has no keys but texts, and optimisers number their parameters.
        pairs = [[key, flatten(entry, f"{prefix}{key}.", tensors)] for key, entry in value.items()]
        return {"pairs": pairs}
    if isinstance(value, list | tuple):
        entries = [
            flatten(entry, f"{prefix}{index}.", tensors) for index, entry in enumerate(value)
        ]
        return {"entries": entries, "is_tuple": isinstance(value, tuple)}
    return value


def unflatten(value: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    """Return what `flatten` was given."""
    if not isinstance(value, Mapping):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "pairs" in value:
        return {key: unflatten(entry, tensors) for key, entry in value["pairs"]}
    entries = [unflatten(entry, tensors) for entry in value["entries"]]
    return tuple(entries) if value["is_tuple"] else entries
