"""Checkpoints that somebody has changed to harm: refused with a reason, and the one before used.

Also two who want to go on with one training: locks come before reading.
"""

import errno
import hashlib
import json
import os
import resource
import shutil
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from stepladder.agents.player import make_player
from stepladder.agents.spaces import space_from_json
from stepladder.curricula import Snapshot
from stepladder.errors import ConfigError, RunError, SnapshotError
from stepladder.runs import Run, RunReader
from stepladder.training import checkpoints, starting
from stepladder.training.checkpoints import find, load, load_newest, read_policy
from stepladder.training.checkpoints.folder import TrainingCheckpoint
from stepladder.training.opponents.archive import Archive
from stepladder.training.starting import resume, train
from test_files import IRREGULAR
from training.checkpoints.checkpoint_scenes import content, create, make_checkpoint, save_steps
from training.training_scenes import DISCRETE

pytestmark = pytest.mark.timeout(60)

FILES = ["manifest.json", "weights.safetensors", "memory.safetensors", "envs.npz", "trainer.npz"]


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """Return a run with two checkpoints."""
    with create(tmp_path / "run") as run:
        save_steps(run, 10, 20)
    return tmp_path / "run"


def rewritten(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change what a manifest says."""
    document = json.loads((folder / "manifest.json").read_text())
    change(document)
    (folder / "manifest.json").write_text(json.dumps(document))


def refused(run_folder: Path) -> str:
    """Return why the newest checkpoint is refused; the one before must be used."""
    newest, older = find(run_folder)
    with pytest.raises(SnapshotError) as caught:
        load(newest)
    assert "\n" not in str(caught.value)
    found, reasons = load_newest(run_folder)
    assert found.name == older.name
    assert content(found) == content(make_checkpoint(10))
    (reason,) = reasons
    assert "\n" not in reason
    return reason


TEXTS = {
    "deep": "[" * 100_000,
    "deep objects": '{"a":' * 100_000,
    "empty": "",
    "a list": "[]",
    "NaN": '{"package": "stepladder", "schema": NaN}',
    "a huge number": '{"package": "stepladder", "schema": ' + "1" * 10_000 + "}",
    "twice": '{"package": "stepladder", "package": "stepladder"}',
    "no text": "\udcff",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_manifest_that_is_no_plain_json_is_refused(run_folder: Path, name: str) -> None:
    path = find(run_folder)[0] / "manifest.json"
    path.write_bytes(TEXTS[name].encode(errors="surrogateescape"))
    assert "manifest.json" in refused(run_folder)


def test_a_size_beyond_all_numbers_is_refused(run_folder: Path) -> None:
    path = find(run_folder)[0] / "manifest.json"
    text = path.read_text()
    size = json.loads(text)["files"]["envs.npz"]["size"]
    path.write_text(text.replace(f'"size": {size},', '"size": 1e400,'))
    assert "1e400 is too large" in refused(run_folder)


def seal(name: str, **changes: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        document["files"][name] = {**document["files"][name], **changes}

    return change


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a size that is text": seal("envs.npz", size="12"),
    "a size that is a list": seal("envs.npz", size=[]),
    "a negative size": seal("envs.npz", size=-1),
    "another size": seal("envs.npz", size=10**30),
    "a fraction": seal("envs.npz", size=1.5),
    "no checksum": seal("envs.npz", sha256=None),
    "a seal that is none": lambda document: document["files"].update({"envs.npz": 7}),
    "no files": lambda document: document.update(files={}),
    "files that are none": lambda document: document.update(files=7),
    "a file elsewhere": lambda document: document["files"].update(
        {"../../config.json": {"size": 1, "sha256": ""}}
    ),
    "an absolute file": lambda document: document["files"].update(
        {"/etc/passwd": {"size": 1, "sha256": ""}}
    ),
    "another step": lambda document: document.update(step=30),
    "a step that is true": lambda document: document.update(step=True),
    "another run": lambda document: document["run"].update(created="yesterday"),
    "no run": lambda document: document.update(run=None),
    "another schema": lambda document: document.update(schema=99),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_manifest_that_says_something_else_is_refused(run_folder: Path, name: str) -> None:
    rewritten(find(run_folder)[0], CHANGES[name])
    newest, older = find(run_folder)
    found, (reason,) = load_newest(run_folder)
    assert found.name == older.name
    assert newest.name in reason
    assert "\n" not in reason


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", IRREGULAR)
def test_files_of_other_kinds_are_refused(run_folder: Path, name: str, kind: str) -> None:
    path = find(run_folder)[0] / name
    if kind == "a symbolic link":
        # To what it was, so that size and checksum are right.
        path.rename(run_folder.parent / name)
        path.symlink_to(run_folder.parent / name)
    else:
        path.unlink()
        IRREGULAR[kind](path)
    said = "a symbolic link" if kind == "a device" else kind
    assert f"it is {said}" in refused(run_folder)


def test_a_linked_checkpoint_is_passed_over(run_folder: Path) -> None:
    newest, older = find(run_folder)
    newest.rename(run_folder.parent / "elsewhere")
    newest.symlink_to(run_folder.parent / "elsewhere")
    assert find(run_folder) == [older]
    assert load_newest(run_folder)[0].name == older.name
    with create(run_folder.parent / "other") as run:
        save_steps(run, 10)
    # Going on removes the link and leaves what it led to.
    before = sorted((run_folder.parent / "elsewhere").iterdir())
    with Run.resume(run_folder, checkpoint=older.name) as run:
        save_steps(run, 20, 30)
    assert sorted((run_folder.parent / "elsewhere").iterdir()) == before


def test_linked_checkpoints_are_no_checkpoints(run_folder: Path) -> None:
    elsewhere = run_folder.parent / "elsewhere"
    (run_folder / "checkpoints").rename(elsewhere)
    (run_folder / "checkpoints").symlink_to(elsewhere)
    before = sorted(path.name for path in elsewhere.rglob("*"))
    with pytest.raises(SnapshotError, match="has no checkpoint of a training"):
        load_newest(run_folder)
    with Run.resume(run_folder) as run, pytest.raises(RunError, match="a symbolic link"):
        save_steps(run, 30)
    assert sorted(path.name for path in elsewhere.rglob("*")) == before


# Tensors.


def tensors_claiming(path: Path, shape: list[int], size: int = 16) -> None:
    """Write a file of tensors whose header says another shape than its bytes have."""
    header = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}})
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode() + bytes(16))


@pytest.mark.parametrize("shape", [[10**12], [4, 10**9], [5], [2**62, 4], [-4], []])
def test_tensors_larger_than_their_file_are_refused(tmp_path: Path, shape: list[int]) -> None:
    tensors_claiming(tmp_path / "a.safetensors", shape)
    with pytest.raises(SnapshotError, match="is not a readable safetensors file"):
        read_policy(tmp_path / "a.safetensors")


def test_tensors_behind_the_end_of_their_file_are_refused(tmp_path: Path) -> None:
    tensors_claiming(tmp_path / "a.safetensors", [10**9], 4 * 10**9)
    with pytest.raises(SnapshotError, match="is not a readable safetensors file"):
        read_policy(tmp_path / "a.safetensors")


@pytest.mark.parametrize("description", ["[" * 100_000, "{", "7", "NaN", '{"a": 1, "a": 2}'])
def test_a_description_that_is_none_is_refused(tmp_path: Path, description: str) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"a": torch.zeros(1)}, path, metadata={"description": description})
    with pytest.raises(SnapshotError) as caught:
        read_policy(path)
    assert "\n" not in str(caught.value)


BOX = {"space": "box", "low": -1.0, "high": 1.0, "shape": [4], "dtype": "float32"}


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [10**6, 10**6]},
        {"shape": [10**12, 0, 10**12], "low": []},
        {"shape": [-4]},
        {"shape": ["4"]},
        {"shape": 4},
        {"dtype": "object"},
        {"dtype": "V1000000000"},
        {"dtype": "nonsense"},
        {"low": None},
        {"low": [1, 2]},
        {"space": "discrete", "n": 0, "start": 0},
        {"space": "discrete", "n": "3", "start": 0},
        {"space": "multi_discrete", "nvec": [0], "start": [0]},
        {"space": "dict", "parts": 7},
        {"space": None},
    ],
    ids=str,
)
def test_a_space_that_is_none_is_refused_before_memory_is_taken(changes: dict[str, Any]) -> None:
    with pytest.raises(SnapshotError):
        space_from_json({**BOX, **changes})


@pytest.mark.parametrize("sizes", [[10**6, 10**6], [10**9], [4, 10**8, 4]], ids=str)
def test_networks_larger_than_their_weights_are_not_made(sizes: list[int]) -> None:
    description = {
        "type": "DDDQN",
        "config": {"type": "DDDQN", "hidden_sizes": sizes},
        "observation_space": BOX,
        "action_space": {"space": "discrete", "n": 3, "start": 0},
    }
    with pytest.raises(SnapshotError, match="there are 8 weights"):
        make_player(description, {"a": torch.zeros(8)}, 1)


# Values that no checksum protects, since whoever changes a file can seal it again.


def resealed(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the state in ``trainer.npz`` of a checkpoint, and write the manifest to it."""
    path = folder / "trainer.npz"
    snapshot = Snapshot.load(path)
    change(snapshot.state)
    snapshot.save(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    rewritten(folder, seal(path.name, size=path.stat().st_size, sha256=digest))


def session_of(state: dict[str, Any]) -> dict[str, Any]:
    return state["trainer"]["session"]


def counters_of(state: dict[str, Any]) -> dict[str, Any]:
    return state["trainer"]["trainer"]["own"]


STATES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "latest returns": lambda state: counters_of(state).update(latest=[1.0, "x"]),
    "seconds": lambda state: counters_of(state)["seconds"].update(env="x"),
    "no seconds": lambda state: counters_of(state).update(seconds=7),
    "a counter": lambda state: counters_of(state).update(num_steps="many"),
    "evaluations": lambda state: session_of(state).update(evaluations=7),
    "an evaluation": lambda state: session_of(state).update(evaluations=[{"step": "late"}]),
    "the cursor": lambda state: session_of(state).update(cursor={"states": 7, "positions": {}}),
    "names": lambda state: session_of(state).update(names=[]),
    "a name": lambda state: session_of(state)["names"].update(full=["a", None]),
    "a position": lambda state: session_of(state)["cursor"].update(positions={"a": "b"}),
    "the agent's steps": lambda state: state["numbers"].update(num_steps="many"),
    "the agent's layers": lambda state: state["numbers"].update(structure=7),
    "the agent's generator": lambda state: state["numbers"].update(rng={"bit_generator": "x"}),
}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopped") / "run"
    train(DISCRETE, run_folder=folder, on_epoch=lambda progress: progress.num_steps > 100)
    return folder


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_makes_no_sense_is_refused_and_nothing_is_changed(
    stopped: Path, tmp_path: Path, name: str
) -> None:
    shutil.copytree(stopped, tmp_path / "run")
    for folder in find(tmp_path / "run"):
        resealed(folder, STATES[name])
    before = (tmp_path / "run/run.sqlite").read_bytes()
    with pytest.raises(SnapshotError) as caught:
        resume(tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert (tmp_path / "run/run.sqlite").read_bytes() == before


# An archive of opponents.


def test_an_archive_does_not_touch_a_folder_of_others(tmp_path: Path) -> None:
    precious = tmp_path / "home"
    (precious / ".work.part").mkdir(parents=True)
    (precious / ".work.part" / "thesis").write_text("precious")
    with pytest.raises(RunError, match="is not empty and holds no archive"):
        Archive(precious).rate([])
    assert [path.name for path in precious.rglob("*")] == [".work.part", "thesis"]


def test_an_archive_follows_no_links(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("precious")
    archive = Archive(tmp_path / "archive")
    archive.rate([])
    (archive.folder / ".ppo-1-0123456789ab.part").symlink_to(elsewhere)
    (archive.folder / "ppo-2-0123456789ab").symlink_to(elsewhere)
    archive.rate([])
    assert (elsewhere / "file").read_text() == "precious"
    assert not (archive.folder / ".ppo-1-0123456789ab.part").is_symlink()
    assert "ppo-2-0123456789ab" not in archive
    assert "a symbolic link" in archive.list().skipped["ppo-2-0123456789ab"]


@pytest.mark.parametrize("name", ["archive.lock", "matches.jsonl"])
@pytest.mark.parametrize("kind", IRREGULAR)
def test_an_archive_waits_for_no_pipe(tmp_path: Path, name: str, kind: str) -> None:
    archive = Archive(tmp_path / "archive")
    archive.rate([])
    (archive.folder / name).unlink(missing_ok=True)
    IRREGULAR[kind](archive.folder / name)
    if name == "archive.lock":
        with pytest.raises(RunError, match="it is a"):
            archive.rate([])
    else:
        with pytest.raises(RunError, match="it is a"):
            archive.ratings()


# Two who want to go on.


def test_a_second_one_is_refused_before_the_first_has_read_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    train(DISCRETE, run_folder=folder, on_epoch=lambda progress: progress.num_steps > 200)
    load_first = checkpoints.load_newest
    said: list[str] = []

    def slowly(path: Path) -> tuple[TrainingCheckpoint, list[str]]:
        monkeypatch.setattr(checkpoints, "load_newest", load_first)
        with pytest.raises(RunError) as caught:
            resume(folder)
        said.append(str(caught.value))
        return load_first(path)

    monkeypatch.setattr(checkpoints, "load_newest", slowly)
    result = resume(folder)
    assert not result.was_stopped
    assert said == [
        f"{folder} is being written by process {os.getpid()}. Wait until it ends, or choose "
        "another folder."
    ]
    assert RunReader(folder).status == "finished"


def test_whoever_is_refused_gives_the_lock_back(tmp_path: Path) -> None:
    with create(tmp_path / "run"):
        pass
    for _ in range(2):
        with pytest.raises(ConfigError):
            resume(tmp_path / "run")
    Run.resume(tmp_path / "run").close()


def test_no_worker_keeps_the_lock_of_a_training_that_was_killed(tmp_path: Path) -> None:
    with create(tmp_path / "run"):
        pass
    lock = starting.lock_run(tmp_path / "run")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # A worker of a vector env, say, that outlives its parent by a moment.
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    os.close(reader)
    try:
        lock.release()
        starting.lock_run(tmp_path / "run").release()
    finally:
        os.close(writer)
        os.waitpid(child, 0)


# Full disks.


def saved_with(limit: int, folder: Path) -> str:
    """Save a checkpoint in a child in which no file may be longer; return what it said."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            torch.set_num_threads(1)
            run = Run.resume(folder)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            try:
                checkpoints.save(run, make_checkpoint(30, 20_000), curriculum=None)
                os.write(writer, b"saved")
            except (RunError, SnapshotError) as error:
                os.write(writer, str(error).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return said


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("limit", [0, 400, 4_096, 60_000, 200_000, 10**8])
def test_a_disk_that_is_full_at_any_moment_leaves_no_half_checkpoint(
    run_folder: Path, limit: int
) -> None:
    said = saved_with(limit, run_folder)
    assert "\n" not in said
    found, reasons = load_newest(run_folder)
    assert reasons == []
    if said == "saved":
        assert content(found) == content(make_checkpoint(30, 20_000))
    else:
        assert content(found) == content(make_checkpoint(20))
        assert limit < 10**8
    # And one can go on.
    with Run.resume(run_folder, checkpoint=found.name) as run:
        save_steps(run, 40)
    assert load_newest(run_folder)[0].step == 40


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_disk_that_refuses_is_told_in_one_line(
    run_folder: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(path.name for path in (run_folder / "checkpoints").rglob("*"))

    def refuse(*arguments: Any, **keywords: Any) -> Any:
        raise OSError(number, os.strerror(number), "somewhere")

    with Run.resume(run_folder) as run:
        with monkeypatch.context() as patch:
            patch.setattr(np, "savez", refuse)
            with pytest.raises(RunError, match=os.strerror(number)) as caught:
                checkpoints.save(run, make_checkpoint(30), curriculum=None)
        assert "\n" not in str(caught.value)
        assert load_newest(run_folder)[1] == []
    assert load_newest(run_folder)[0].step == 20
    assert sorted(path.name for path in (run_folder / "checkpoints").rglob("*")) == before
