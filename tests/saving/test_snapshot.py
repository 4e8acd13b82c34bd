"""Snapshots on disk: what is written is read, a crash leaves the old file, damage is found out."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import differences
from stepladder.curricula import Snapshot
from stepladder.errors import SnapshotError
from stepladder.saving.snapshot import SCHEMA, difference

SNAPSHOT = Snapshot(
    {"a": 1, "part": {"b": [1, 2.5, None, "é"]}},
    {"x": np.arange(3), "part/deep/y": np.array([[0.1, np.nan]]), "part/z": np.zeros(0)},
)


def write_document(path: Path, document: Any) -> Path:
    """Write a file like `save` does, with whatever in place of the JSON."""
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    np.savez(path, state=np.frombuffer(text, dtype=np.uint8))
    return path


def test_what_is_saved_is_loaded(tmp_path: Path):
    path = SNAPSHOT.save(tmp_path / "state.npz")
    assert path == tmp_path / "state.npz"
    assert differences(Snapshot.load(path), SNAPSHOT) == []
    assert differences(Snapshot.load(os.fspath(path)), SNAPSHOT) == []


def test_the_file_name_is_taken_as_it_is(tmp_path: Path):
    SNAPSHOT.save(tmp_path / "state")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_an_older_file_is_replaced(tmp_path: Path):
    SNAPSHOT.save(tmp_path / "state.npz")
    newer = Snapshot({"a": 2})
    newer.save(tmp_path / "state.npz")
    assert Snapshot.load(tmp_path / "state.npz") == newer


@pytest.mark.parametrize("failure", ["fsync", "savez", "replace"])
def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(
    failure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = SNAPSHOT.save(tmp_path / "state.npz")

    def interrupt(*arguments: Any, **keywords: Any) -> None:
        raise KeyboardInterrupt

    target = {"fsync": (os, "fsync"), "savez": (np, "savez"), "replace": (Path, "replace")}
    with monkeypatch.context() as patch:
        patch.setattr(*target[failure], interrupt)
        with pytest.raises(KeyboardInterrupt):
            Snapshot({"a": "new"}, {"x": np.ones(1000)}).save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.npz"]
    assert differences(Snapshot.load(path), SNAPSHOT) == []


def test_the_new_file_is_whole_before_it_takes_the_old_ones_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[Snapshot] = []
    rename = Path.replace

    def look_first(self: Path, target: Path) -> Path:
        seen.append(Snapshot.load(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", look_first)
    SNAPSHOT.save(tmp_path / "state.npz")
    assert differences(seen[0], SNAPSHOT) == []


@pytest.mark.parametrize("state", [{"a": np.nan}, {"a": np.inf}, {"a": object()}])
def test_what_is_not_plain_json_cannot_be_saved(state: dict[str, Any], tmp_path: Path):
    with pytest.raises((TypeError, ValueError)):
        Snapshot(state).save(tmp_path / "state.npz")
    assert list(tmp_path.iterdir()) == []


def test_arrays_of_objects_cannot_be_saved(tmp_path: Path):
    with pytest.raises(ValueError, match="Object arrays"):
        Snapshot({}, {"x": np.array([object()])}).save(tmp_path / "state.npz")
    assert list(tmp_path.iterdir()) == []


def test_pickles_are_never_loaded(tmp_path: Path):
    path = tmp_path / "state.npz"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(SnapshotError, match="not a readable snapshot"):
        Snapshot.load(path)
    np.savez(path, state=np.array([{"a": 1}], dtype=object))
    with pytest.raises(SnapshotError, match="not a readable snapshot"):
        Snapshot.load(path)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(SnapshotError, match=r"none\.npz is not a readable snapshot"):
        Snapshot.load(tmp_path / "none.npz")
    with pytest.raises(SnapshotError, match="not a readable snapshot"):
        Snapshot.load(tmp_path)


@pytest.mark.parametrize("schema", [SCHEMA + 1, 0, None, "1"])
def test_another_schema_is_refused_by_its_number(schema: Any, tmp_path: Path):
    path = write_document(tmp_path / "state.npz", {"schema": schema, "state": {}})
    with pytest.raises(SnapshotError, match=f"schema {schema!r}; this version reads {SCHEMA}"):
        Snapshot.load(path)


@pytest.mark.parametrize(
    "document", [b"rubbish", b"\xff", [], 7, {}, {"schema": SCHEMA}, {"schema": SCHEMA, "state": 7}]
)
def test_a_document_that_is_none_of_ours_is_refused(document: Any, tmp_path: Path):
    with pytest.raises(SnapshotError, match=r"state\.npz"):
        Snapshot.load(write_document(tmp_path / "state.npz", document))


def test_a_single_array_is_no_snapshot(tmp_path: Path):
    np.save(tmp_path / "state.npy", np.zeros(3))
    with pytest.raises(SnapshotError, match="not a readable snapshot"):
        Snapshot.load(tmp_path / "state.npy")


def test_no_damaged_byte_goes_unnoticed_or_crashes(tmp_path: Path):
    path = SNAPSHOT.save(tmp_path / "state.npz")
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    num_refused = 0
    for position in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[position] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            loaded = Snapshot.load(path)
        except SnapshotError:
            num_refused += 1
        else:
            # Dates and the like, which nobody reads; or a name, and then `SavedArray` misses it.
            assert loaded.state == SNAPSHOT.state, position
            for name, array in loaded.arrays.items():
                np.testing.assert_array_equal(array, SNAPSHOT.arrays[name], strict=True)
    assert num_refused > len(whole) / 3 / 2


def test_no_file_that_was_cut_off_is_loaded(tmp_path: Path):
    path = SNAPSHOT.save(tmp_path / "state.npz")
    whole = path.read_bytes()
    for length in range(0, len(whole), 11):
        path.write_bytes(whole[:length])
        with pytest.raises(SnapshotError):
            Snapshot.load(path)


def test_parts_are_nested_and_taken_apart_again():
    inner = Snapshot({"b": 2}, {"y": np.ones(2)})
    whole = Snapshot.of_parts({"a": 1}, first=inner, second=Snapshot.of_parts({}, deep=inner))
    assert whole.state == {"a": 1, "first": {"b": 2}, "second": {"deep": {"b": 2}}}
    assert sorted(whole.arrays) == ["first/y", "second/deep/y"]
    assert differences(whole.part("first"), inner) == []
    assert differences(whole.part("second").part("deep"), inner) == []


@pytest.mark.parametrize("name", ["third", "a"])
def test_a_missing_part_is_named(name: str):
    whole = Snapshot.of_parts({"a": 1}, first=Snapshot({}))
    with pytest.raises(SnapshotError, match=f"no part '{name}'; it has \\['a', 'first'\\]"):
        whole.part(name)


@pytest.mark.parametrize(
    ("saved", "present", "words"),
    [
        (1, 1, None),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, None),
        (1, 2, "it was 1 and is now 2"),
        ({"a": 1}, {}, "a was 1 and is now 'absent'"),
        ({}, {"a": 1}, "a was 'absent' and is now 1"),
        ([1, 2], [1], "it had 2 entries and now has 1"),
        ({"a": [0, {"b": 1}]}, {"a": [0, {"b": 2}]}, "a[1].b was 1 and is now 2"),
        ({"a": {"b": 1}}, {"a": 1}, "a was {'b': 1} and is now 1"),
    ],
)
def test_the_first_difference_is_named_by_its_path(saved: Any, present: Any, words: str | None):
    assert difference(saved, present) == words
