"""Checkpoints of a run: the newest whole one counts, and the database of the run agrees with it."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from stepladder.curricula import Snapshot
from stepladder.errors import ConfigError, RunError, SnapshotError
from stepladder.runs import Run, RunReader, RunWriter, checkpoint_folders
from stepladder.training.checkpoints import (
    find,
    load_newest,
    read_policy,
    save,
    saved_policy,
    store,
)
from training.checkpoints.checkpoint_scenes import (
    CONFIG,
    DESCRIPTION,
    content,
    create,
    flip,
    make_checkpoint,
    save_steps,
)

TEN, TWENTY, THIRTY = (f"step-0000000000{step}" for step in (10, 20, 30))


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk: nobody pulls the plug."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def names_in(folder: Path) -> list[str]:
    """Return the folders in the folder of checkpoints, hidden ones too."""
    return sorted(path.name for path in (folder / "checkpoints").iterdir() if path.is_dir())


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").iterdir() if path.is_file())


# Saving.


def test_what_was_saved_last_is_loaded(folder: Path) -> None:
    with create(folder) as run:
        paths = save_steps(run, 10, 20)
    assert paths == [folder / "checkpoints" / TEN, folder / "checkpoints" / TWENTY]
    assert find(folder) == paths[::-1]
    checkpoint, refused = load_newest(folder)
    assert content(checkpoint) == content(make_checkpoint(20))
    assert (checkpoint.name, refused) == (TWENTY, [])


@pytest.mark.parametrize("keep", [1, 3])
def test_the_newest_few_are_kept_and_all_else_is_removed(folder: Path, keep: int) -> None:
    with create(folder) as run:
        run.save_checkpoint("mine", Snapshot({}), 1)
        save_steps(run, *range(10, 60, 10), keep=keep)
    kept = [f"step-{step:012}" for step in range(10, 60, 10)][-keep:]
    assert names_in(folder) == kept
    assert RunReader(folder).checkpoints() == ["mine", *kept]
    assert [name.split(".")[0] for name in files_in(folder)] == ["mine", *kept]


def test_readers_get_the_curriculum_as_it_was_saved_last(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10, 20)
        assert RunReader(folder).checkpoint().state == {"stage": 20}
        save(run, make_checkpoint(30), curriculum=None)
        assert RunReader(folder).checkpoint().state == {}


def test_a_step_that_is_saved_twice_stays_whole_meanwhile(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10)
        again = make_checkpoint(10)
        again.trainer = Snapshot({"evaluated": True})
        assert save(run, again, curriculum=None).name == f"{TEN}-2"
        assert names_in(folder) == [TEN, f"{TEN}-2"]
        checkpoint, _ = load_newest(folder)
        assert (checkpoint.name, checkpoint.trainer.state) == (f"{TEN}-2", {"evaluated": True})
        save_steps(run, 10, 10)
    assert names_in(folder) == [f"{TEN}-3", f"{TEN}-4"]
    assert RunReader(folder).checkpoints() == [f"{TEN}-3", f"{TEN}-4"]


def test_what_a_killed_save_left_is_removed_by_the_next(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10)
        parent = folder / "checkpoints"
        left = parent / f".{TWENTY}.4711.part"
        left.mkdir()
        (left / "weights.safetensors").write_text("half")
        # Its row is there already, or its folder is only half removed, or somebody put one there.
        run.save_checkpoint(TWENTY, Snapshot({}), 20)
        (parent / "step-000000000005").mkdir()
        (parent / "step-000000000099").mkdir()
        (parent / "mine").mkdir()
        assert load_newest(folder)[0].name == TEN
        save_steps(run, 30)
    assert names_in(folder) == ["mine", TEN, THIRTY]
    assert RunReader(folder).checkpoints() == [TEN, THIRTY]


@pytest.mark.parametrize("failing", ["write_folder", "sync", "save_checkpoint", "rename"])
def test_a_save_that_fails_leaves_the_older_ones_and_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    others = {"save_checkpoint": RunWriter, "rename": Path, "sync": checkpoint_folders}
    where = others.get(failing, store)
    with create(folder) as run:
        save_steps(run, 10)
        with monkeypatch.context() as patch:
            patch.setattr(where, failing, fail)
            with pytest.raises(RunError, match="No space left on device") as caught:
                save_steps(run, 20)
        assert str(folder) in str(caught.value)
        assert "\n" not in str(caught.value)
        # It was whole where only the last touch was missing.
        assert names_in(folder) == ([TEN, TWENTY] if failing == "sync" else [TEN])
        assert load_newest(folder)[1] == []
        save_steps(run, 30)
        assert load_newest(folder)[0].name == THIRTY


def test_what_cannot_be_saved_leaves_the_older_ones(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10)
        checkpoint = make_checkpoint(20)
        checkpoint.agent.numbers["bad"] = float("nan")
        with pytest.raises(SnapshotError, match="the checkpoint of step 20 cannot be saved"):
            save(run, checkpoint, curriculum=None)
        assert names_in(folder) == [TEN]
        assert RunReader(folder).checkpoints() == [TEN]


def test_at_least_one_is_kept(folder: Path) -> None:
    with create(folder) as run, pytest.raises(ConfigError, match="keep must be an integer"):
        save_steps(run, 10, keep=0)
    assert names_in(folder) == []


def test_a_closed_run_takes_no_checkpoint(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10)
    with pytest.raises(RunError, match="has been closed"):
        save(run, make_checkpoint(20), curriculum=None)
    assert names_in(folder) == [TEN]


# Resuming.


def test_a_resumed_run_goes_back_to_the_checkpoint_that_is_used(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10, 20)
        run.log(25, {"reward": 25.0, "late": 1.0})
        run.event(25, "tick", "25")
    with Run.resume(folder, checkpoint=load_newest(folder)[0].name) as run:
        reader = RunReader(folder)
        assert reader.metric_names() == ["reward"]
        assert reader.metric("reward")[0].tolist() == [10, 20]
        assert [event.text for event in reader.events("tick")] == ["10", "20"]
        save_steps(run, 30)
    assert RunReader(folder).metric("reward")[0].tolist() == [10, 20, 30]
    assert names_in(folder) == [TWENTY, THIRTY]


def test_the_previous_one_is_used_where_the_newest_is_broken(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10, 20, 30, keep=3)
    flip(folder / "checkpoints" / THIRTY / "memory.safetensors")
    (folder / "checkpoints" / TWENTY / "envs.npz").unlink()
    checkpoint, refused = load_newest(folder)
    assert content(checkpoint) == content(make_checkpoint(10))
    assert refused == [
        f"{THIRTY} was refused: memory.safetensors was changed or damaged: its checksum is wrong",
        f"{TWENTY} was refused: envs.npz is missing",
    ]
    with Run.resume(folder, checkpoint=checkpoint.name) as run:
        assert RunReader(folder).metric("reward")[0].tolist() == [10]
        # The broken ones go with all that was logged after.
        assert names_in(folder) == [TEN]
        save_steps(run, 20, 30, keep=3)
    assert content(load_newest(folder)[0]) == content(make_checkpoint(30))
    assert names_in(folder) == [TEN, TWENTY, THIRTY]


def test_a_checkpoint_of_a_newer_version_is_refused(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10, 20)
    path = folder / "checkpoints" / TWENTY / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 9, "version": "7.0"}))
    checkpoint, (line,) = load_newest(folder)
    assert checkpoint.step == 10
    assert line == (
        f"{TWENTY} was refused: manifest.json has schema 9 and this version reads 2: it was "
        "written by version 7.0 of Stepladder"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agent": {"type": "PPO"}}, "agent.type was 'PPO' and is now 'SAC'"),
        ({"env": "CartPole-v1"}, "env was 'CartPole-v1' and is now 'stepladder/Ledge-v0'"),
        ({"num_envs": 8}, "num_envs was 8 and is now 4"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(
    folder: Path, changes: dict[str, Any], words: str
) -> None:
    with create(folder) as run, create(folder.with_name("other"), **changes) as other:
        save_steps(run, 10)
        (path,) = save_steps(other, 20)
    shutil.copytree(path, folder / "checkpoints" / TWENTY)
    checkpoint, refused = load_newest(folder)
    assert checkpoint.step == 10
    assert refused == [f"{TWENTY} was refused: it belongs to another run: {words}"]
    assert read_policy(folder).weights["actor.0.bias"][0] == 10


def test_a_run_that_is_to_last_longer_keeps_its_checkpoints(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10)
    path = folder / "config.json"
    document = json.loads(path.read_text())
    document["config"]["total_steps"] = 1000
    path.write_text(json.dumps(document))
    assert load_newest(folder)[0].step == 10


def test_a_checkpoint_that_the_database_does_not_know_is_refused(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10, 20)
        parent = folder / "checkpoints"
        shutil.copytree(parent / TWENTY, parent / f"{TWENTY}-2")
        shutil.copytree(parent / TEN, parent / THIRTY)
        checkpoint, refused = load_newest(folder)
    assert checkpoint.name == TWENTY
    assert refused == [
        f"{THIRTY} was refused: it is the checkpoint of step 10",
        f"{TWENTY}-2 was refused: the database of the run does not know it",
    ]


def test_a_run_without_a_whole_checkpoint_is_told_in_one_line(folder: Path) -> None:
    with create(folder) as run:
        for load in (load_newest, read_policy):
            with pytest.raises(SnapshotError, match=r"that can be used\. Start a new run\."):
                load(folder)
        save_steps(run, 10, 20)
    for path in find(folder):
        (path / "weights.safetensors").write_bytes(b"")
    for load in (load_newest, read_policy):
        with pytest.raises(SnapshotError) as caught:
            load(folder)
        text = str(caught.value)
        assert text.startswith(f"the run {folder} has no checkpoint of a training that can be used")
        assert text.count("weights.safetensors has 0 bytes instead of") == 2
        assert "\n" not in text


def test_what_is_no_run_has_no_checkpoint(tmp_path: Path) -> None:
    assert find(tmp_path) == find(tmp_path / "none") == []
    with pytest.raises(RunError, match="has no run"):
        load_newest(tmp_path)


def test_a_run_that_is_overwritten_takes_its_checkpoints_along(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10, 20)
    parent = folder / "checkpoints"
    for name in (f".{THIRTY}.12.part", "mine", "step-7"):
        (parent / name).mkdir()
    Run.create(folder, kind="training", config=CONFIG, overwrite=True).close()
    assert names_in(folder) == ["mine", "step-7"]
    assert files_in(folder) == []


# The best one.


def test_the_best_is_kept_beside_the_newest_until_there_is_a_better_one(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10)
        assert RunReader(folder).best_checkpoint() is None
        save_steps(run, 20, is_best=True)
        save_steps(run, 30, 40, 50)
        reader = RunReader(folder)
        assert reader.best_checkpoint() == TWENTY
        kept = [TWENTY, "step-000000000040", "step-000000000050"]
        assert (names_in(folder), reader.checkpoints()) == (kept, kept)
        save_steps(run, 60, is_best=True, keep=1)
        assert names_in(folder) == [reader.best_checkpoint()] == ["step-000000000060"]


def test_the_database_names_the_best_only_once_it_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create(folder) as run:
        save_steps(run, 10, is_best=True)
        monkeypatch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError("killed")))
        with pytest.raises(RunError, match="killed"):
            save_steps(run, 20, is_best=True)
    assert RunReader(folder).best_checkpoint() == TEN
    assert read_policy(folder, "best").step == 10


def test_a_run_that_goes_back_forgets_a_best_that_came_later(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10, is_best=True)
        save_steps(run, 20, 30, keep=3)
    with Run.resume(folder, checkpoint=TWENTY) as run:
        assert RunReader(folder).best_checkpoint() == TEN
        save_steps(run, 30, is_best=True, keep=3)
    Run.resume(folder, checkpoint=TWENTY).close()
    reader = RunReader(folder)
    assert reader.best_checkpoint() is None
    assert reader.checkpoints() == [TEN, TWENTY]


# Policies.


@pytest.mark.parametrize(("checkpoint", "step"), [("last", 40), ("best", 10), (30, 30), (10, 10)])
def test_a_policy_is_chosen_by_its_step_or_as_the_best(
    folder: Path, checkpoint: str | int, step: int
) -> None:
    with create(folder) as run:
        save_steps(run, 10, is_best=True)
        save_steps(run, 20, 30, 40)
    saved = read_policy(folder, checkpoint)
    assert saved.step == step
    assert saved.weights["actor.0.bias"][0] == step


def test_a_checkpoint_that_there_is_not_is_refused_with_those_that_there_are(
    folder: Path,
) -> None:
    with create(folder) as run:
        with pytest.raises(SnapshotError, match="has no best checkpoint: none of its evaluations"):
            read_policy(folder, "best")
        save_steps(run, 1000, is_best=True)
        save_steps(run, 2000, 3000)
        for wrong, said in (
            (5, r"no checkpoint of step 5; it has 1,000 \(best\), 2,000, 3,000 \(last\)\. Choose"),
            ("worst", "a checkpoint is 'last', 'best' or a step such as 16384; got 'worst'"),
            (True, "a checkpoint is 'last', 'best' or a step such as 16384; got True"),
        ):
            with pytest.raises((ConfigError, SnapshotError), match=said):
                read_policy(folder, wrong)
        with pytest.raises(ConfigError, match="is not a run, so it has no checkpoint 'best'"):
            read_policy(find(folder)[0], "best")
        # A damaged one is not replaced by another.
        flip(find(folder)[-1] / "weights.safetensors")
        with pytest.raises(
            SnapshotError, match=r"cannot be used: weights\.safetensors was changed"
        ):
            read_policy(folder, "best")


def test_a_better_one_that_is_found_while_the_best_is_read_is_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create(folder) as run:
        save_steps(run, 10, is_best=True)
        read = saved_policy.read_weights

        def overtaken(path: Path, manifest: Any) -> Any:
            if path.name == TEN:
                save_steps(run, 20, keep=1, is_best=True)
            return read(path, manifest)

        monkeypatch.setattr(saved_policy, "read_weights", overtaken)
        assert read_policy(folder, "best").step == 20


def test_a_run_gives_the_policy_of_its_newest_checkpoint(folder: Path) -> None:
    with create(folder) as run:
        save_steps(run, 10, 20)
        saved = read_policy(folder)
        assert saved.description == DESCRIPTION
        assert saved.weights["actor.0.bias"].tolist() == [20.0, 21.0, 22.0]
        assert (saved.step, saved.checkpoint, saved.run_folder) == (20, TWENTY, folder)
        # All else does not matter to who only plays.
        (find(folder)[0] / "memory.safetensors").unlink()
        assert read_policy(folder).weights["actor.0.bias"][0] == 20
        flip(find(folder)[0] / "weights.safetensors")
        assert read_policy(str(folder)).weights["actor.0.bias"][0] == 10


def test_a_checkpoint_that_is_replaced_while_it_is_read_is_looked_for_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create(folder) as run:
        save_steps(run, 10)
        read, calls = saved_policy.read_weights, list[str]()

        def overtaken(path: Path, manifest: Any) -> Any:
            calls.append(path.name)
            if len(calls) == 1:
                save_steps(run, 20, keep=1)
            return read(path, manifest)

        monkeypatch.setattr(saved_policy, "read_weights", overtaken)
        assert read_policy(folder).weights["actor.0.bias"][0] == 20
        assert calls == [TEN, TWENTY]
