"""Tensors on disk: every bit comes back, nothing is copied for nothing, rubbish is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from stepladder.errors import SnapshotError
from stepladder.training.checkpoints import tensor_files
from stepladder.training.checkpoints.tensor_files import (
    load_tensors,
    read_policy,
    save_policy,
    save_tensors,
)

PARAMETER = torch.nn.Parameter(torch.rand(2, 3))
FLAT = torch.arange(12.0)
TENSORS: dict[str, torch.Tensor] = {
    "nan": torch.tensor([float("nan"), -0.0, float("inf"), 1e-45]),
    "scalar": torch.tensor(7),
    "empty": torch.zeros(0, 3),
    "flags": torch.tensor([True, False, True]),
    "bytes": torch.arange(5, dtype=torch.uint8),
    "half": torch.tensor([0.1], dtype=torch.float16),
    "bfloat": torch.tensor([0.1], dtype=torch.bfloat16),
    "double": torch.tensor([1 / 3], dtype=torch.float64),
    "large": torch.tensor([2**62 + 1]),
    "transposed": torch.arange(6).reshape(2, 3).T,
    "strided": torch.arange(10)[::3],
    "parameter": PARAMETER,
    "again": PARAMETER,
    "all of it": FLAT,
    "one part": FLAT[:6],
    "another": FLAT[4:],
}


def bits(tensor: torch.Tensor) -> tuple[Any, ...]:
    flat = tensor.detach().contiguous().reshape(-1)
    return tensor.dtype, tuple(tensor.shape), flat.view(torch.uint8).tolist()


def test_every_tensor_comes_back_bit_for_bit(tmp_path: Path) -> None:
    save_tensors(tmp_path / "a.safetensors", TENSORS, {"who": "me"})
    loaded, metadata = load_tensors(tmp_path / "a.safetensors")
    assert metadata == {"format": "pt", "who": "me"}
    assert loaded.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert bits(loaded[name]) == bits(tensor), name
    # Each has memory of its own, and none is the file.
    memories = {tensor.untyped_storage().data_ptr() for tensor in loaded.values() if tensor.numel()}
    assert len(memories) == len(TENSORS) - 1
    (tmp_path / "a.safetensors").write_bytes(b"")
    assert bits(loaded["another"]) == bits(FLAT[4:])


def test_a_tensor_on_the_cpu_is_written_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: dict[str, torch.Tensor] = {}

    def noting(tensors: dict[str, torch.Tensor], path: Path, metadata: dict[str, str]) -> None:
        written.update(tensors)
        save_file(tensors, path, metadata)

    monkeypatch.setattr(tensor_files, "save_file", noting)
    memory = torch.rand(1000)
    save_tensors(tmp_path / "a.safetensors", {"memory": memory, "part": memory[:10]}, {})
    assert written["memory"].data_ptr() == memory.data_ptr()
    assert written["part"].data_ptr() != memory.data_ptr()


def test_a_policy_can_be_loaded_by_anybody(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_policy(path, {"type": "PPO", "größe": [1]}, {"a.weight": torch.ones(2)})
    assert read_policy(path)[0] == {"type": "PPO", "größe": [1]}
    assert load_file(path)["a.weight"].tolist() == [1.0, 1.0]
    assert path.stat().st_mode & 0o777 == tmp_path.stat().st_mode & 0o666
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({}, r"does not say which agent its weights belong to: its metadata has \['format'\]"),
        ({"description": "[1]"}, "does not say which agent"),
        ({"description": "{"}, "has a damaged description"),
        ({"description": "[" * 100_000}, "has a damaged description"),
    ],
)
def test_weights_of_nobody_are_refused(
    tmp_path: Path, metadata: dict[str, str], words: str
) -> None:
    save_tensors(tmp_path / "a.safetensors", {"a": torch.ones(2)}, metadata)
    with pytest.raises(SnapshotError, match=words):
        read_policy(tmp_path / "a.safetensors")


@pytest.mark.parametrize("cut", [0, 4, 8, 30, -1])
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.safetensors"
    save_policy(path, {}, {"a": torch.ones(2)})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(SnapshotError, match=r"a\.safetensors is not a readable safetensors file"):
        load_tensors(path)


@pytest.mark.parametrize("content", [b"rubbish" * 9, json.dumps({}).encode(), b"\x80\x04K\x01."])
def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(SnapshotError, match="a is not a readable safetensors file"):
        load_tensors(tmp_path / "a")


def test_what_is_no_dense_tensor_is_refused(tmp_path: Path) -> None:
    indices, values = torch.tensor([[0, 2]]), torch.ones(2)
    sparse = torch.sparse_coo_tensor(indices, values, (4,), check_invariants=True)
    for bad in (sparse, [1.0], None):
        with pytest.raises(ValueError, match="'bad' is not a dense tensor"):
            save_tensors(tmp_path / "a", {"bad": bad}, {})  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"a\.safetensors cannot be written"):
        save_tensors(tmp_path / "none/a.safetensors", {"a": torch.ones(1)}, {})
