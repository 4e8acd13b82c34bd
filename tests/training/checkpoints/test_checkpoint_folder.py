"""The folder of a checkpoint: all of it comes back, or a line says what is wrong with it."""

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from stepladder.curricula import Snapshot
from stepladder.errors import SnapshotError
from stepladder.training.checkpoints import load, read_policy
from stepladder.training.checkpoints.folder import write_folder
from training.checkpoints.checkpoint_scenes import DESCRIPTION, content, flip, make_checkpoint

FILES = ["envs.npz", "manifest.json", "memory.safetensors", "trainer.npz", "weights.safetensors"]
SEALED = [name for name in FILES if name != "manifest.json"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    write_folder(tmp_path / "here", make_checkpoint(7), {"seed": 1})
    return tmp_path / "here"


def edit(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_what_is_written_is_read(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == FILES
    checkpoint = load(folder)
    assert content(checkpoint) == content(make_checkpoint(7))
    assert checkpoint.name == "here"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["schema"], manifest["step"], manifest["run"]) == (2, 7, {"seed": 1})
    assert sorted(manifest["files"]) == SEALED
    for name, seal in manifest["files"].items():
        assert seal["size"] == (folder / name).stat().st_size
        assert len(seal["sha256"]) == 64


def test_the_weights_are_of_use_by_themselves(folder: Path) -> None:
    alone = folder.parent / "mine.safetensors"
    shutil.copy(folder / "weights.safetensors", alone)
    assert sorted(load_file(alone)) == ["actor.0.bias", "actor.0.weight"]
    for place in (folder, alone, str(alone)):
        saved = read_policy(place)
        assert saved.description == DESCRIPTION
        assert saved.weights["actor.0.bias"].tolist() == [7.0, 8.0, 9.0]


def test_an_agent_without_a_memory_leaves_no_file_for_it(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(3)
    checkpoint.agent.tensors = {"weights/a": torch.ones(2)}
    write_folder(tmp_path / "a", checkpoint, {})
    assert not (tmp_path / "a/memory.safetensors").exists()
    assert load(tmp_path / "a").agent.tensors.keys() == {"weights/a"}
    checkpoint.agent.tensors = {}
    write_folder(tmp_path / "b", checkpoint, {})
    assert content(load(tmp_path / "b")) == content(checkpoint)


def test_nothing_is_ever_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **settings: Any) -> None:
        raise AssertionError("pickle")

    for module, name in [(torch, "load"), (torch, "save"), (pickle, "load"), (pickle, "dump")]:
        monkeypatch.setattr(module, name, refuse)
    monkeypatch.setattr(pickle, "Unpickler", refuse)
    write_folder(tmp_path / "a", make_checkpoint(1), {})
    assert content(load(tmp_path / "a")) == content(make_checkpoint(1))


# Damage.


def reason(folder: Path) -> str:
    with pytest.raises(SnapshotError) as caught:
        load(folder)
    text = str(caught.value)
    start, end = f"{folder} cannot be used: ", ". Use another checkpoint."
    assert text.startswith(start)
    assert text.endswith(end)
    assert "\n" not in text
    return text[len(start) : -len(end)]


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert reason(folder) == f"{name} is missing"
    (folder / name).mkdir()
    assert reason(folder) == f"{folder / name}: it is a folder; expected a regular file"


@pytest.mark.parametrize("name", SEALED)
def test_a_file_of_another_length_is_named(folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:100])
    assert reason(folder) == f"{name} has 100 bytes instead of {len(data):,} (cut off)"
    (folder / name).write_bytes(data + b"1")
    assert reason(folder) == f"{name} has {len(data) + 1:,} bytes instead of {len(data):,}"


@pytest.mark.parametrize("name", SEALED)
@pytest.mark.parametrize("at", [0, 100, -1])
def test_a_single_flipped_bit_is_noticed(folder: Path, name: str, at: int) -> None:
    flip(folder / name, at)
    assert reason(folder) == f"{name} was changed or damaged: its checksum is wrong"


def test_files_of_another_checkpoint_are_noticed(folder: Path) -> None:
    write_folder(folder.with_name("other"), make_checkpoint(8), {"seed": 1})
    for name in SEALED:
        kept = (folder / name).read_bytes()
        shutil.copy(folder.with_name("other") / name, folder / name)
        assert reason(folder).startswith(name)
        (folder / name).write_bytes(kept)
    shutil.copy(folder / "envs.npz", folder / "trainer.npz")
    assert reason(folder).startswith("trainer.npz")


def test_weights_are_loaded_where_only_the_rest_is_damaged(folder: Path) -> None:
    for name in ("envs.npz", "memory.safetensors", "trainer.npz"):
        (folder / name).write_bytes(b"")
    assert read_policy(folder).description == DESCRIPTION
    flip(folder / "weights.safetensors")
    with pytest.raises(SnapshotError, match=r"weights\.safetensors was changed or damaged"):
        read_policy(folder)


@pytest.mark.parametrize("text", ["", "{", "\udcff", "[" * 100_000])
def test_a_damaged_manifest_is_told_as_such(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_bytes(text.encode(errors="surrogateescape"))
    assert reason(folder).startswith("manifest.json is damaged (")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"package": "other"}, "manifest.json was not written by Stepladder"),
        (
            {"schema": 3, "version": "9.9"},
            "manifest.json has schema 3 and this version reads 2: it was written by version 9.9 "
            "of Stepladder",
        ),
        (
            {"schema": 1, "version": "0.1.0"},
            "manifest.json has schema 1 and this version reads 2: it was written by version 0.1.0 "
            "of Stepladder",
        ),
        ({"step": 8}, "manifest.json says step 8, trainer.npz says 7"),
        ({"step": "7"}, "manifest.json is damaged ("),
        ({"run": None}, "manifest.json is damaged ("),
        ({"files": []}, "manifest.json is damaged ("),
        ({"files": {"weights.safetensors": {"size": 1, "sha256": ""}}}, "manifest.json is damaged"),
        ({"files": {name: {} for name in SEALED}}, "manifest.json is damaged ("),
    ],
)
def test_a_manifest_that_says_something_else_is_refused(
    folder: Path, changes: dict[str, Any], words: str
) -> None:
    edit(folder, **changes)
    assert reason(folder).startswith(words)


def test_a_manifest_cannot_send_us_elsewhere(folder: Path) -> None:
    files = json.loads((folder / "manifest.json").read_text())["files"]
    edit(folder, files={**files, "../../secret": {"size": 1, "sha256": "0"}})
    assert reason(folder).startswith("manifest.json is damaged (")


def test_what_is_no_checkpoint_is_told_as_such(tmp_path: Path) -> None:
    assert reason(tmp_path) == "manifest.json is missing"
    assert reason(tmp_path / "none") == "there is nothing of this name"
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(SnapshotError, match="cannot be used"):
            read_policy(place)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(SnapshotError, match="text is not a readable safetensors file"):
        read_policy(tmp_path / "text")


# What cannot be saved.


@pytest.mark.parametrize(
    "changes",
    [
        {"description": {"a": object()}},
        {"description": {"a": float("nan")}},
        {"envs": Snapshot({"a": float("inf")})},
        {"trainer": Snapshot({"a": {1, 2}})},
    ],
)
def test_what_is_not_plain_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    checkpoint = make_checkpoint(5)
    for name, value in changes.items():
        setattr(checkpoint, name, value)
    with pytest.raises(SnapshotError, match="the checkpoint of step 5 cannot be saved"):
        write_folder(tmp_path / "a", checkpoint, {})


@pytest.mark.parametrize("bad", [torch.ones(2, dtype=torch.complex128), "text"])
def test_what_safetensors_does_not_know_is_refused(tmp_path: Path, bad: Any) -> None:
    checkpoint = make_checkpoint(5)
    checkpoint.agent.tensors["memory/odd"] = bad
    with pytest.raises(SnapshotError, match="the checkpoint of step 5 cannot be saved"):
        write_folder(tmp_path / "a", checkpoint, {})
