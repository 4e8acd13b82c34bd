"""Resuming: everything stays and more is appended, or all after a checkpoint is forgotten."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from runs.scenes import fill, make_records
from stepladder.curricula import Snapshot
from stepladder.errors import RunError, StepladderError
from stepladder.runs import Run, RunReader


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def play(run: Run, first: int, last: int) -> None:
    """Do what a training does between two steps, and save at its end."""
    for step in range(first, last):
        run.log(step, {"a": float(step)})
        run.event(step, "tick", str(step))
        run.log_tasks(step, {"task": ["x"], "label": ["l"], "step": [step]})
        run.log_records(make_records(step))
    run.save_checkpoint(f"at {last}", Snapshot({"step": last}), last - 1)


def content(folder: Path) -> list[object]:
    reader = RunReader(folder)
    return [
        reader.metric_names(),
        reader.metric("a")[0].tolist(),
        reader.times()[0].tolist(),
        [event.text for event in reader.events("tick")],
        reader.task_steps(),
        reader.records()["slot"].tolist(),
        reader.checkpoints(),
        sorted(path.name for path in (folder / "checkpoints").iterdir()),
    ]


def test_a_closed_run_is_taken_up_where_it_ended(folder: Path) -> None:
    with Run.create(folder, kind="training", config={"a": 1}, seed=3) as run:
        fill(run)
    with Run.resume(folder) as run:
        assert run.info.config == {"a": 1}
        run.log(30, {"overview/reward": 0.75, "another": 1.0})
        assert RunReader(folder).status == "running"
    reader = RunReader(folder)
    assert reader.status == "finished"
    assert reader.metric("overview/reward")[1].tolist() == [0.25, 0.5, 0.75]
    assert reader.metric_names() == ["overview/reward", "metric/epoch", "another"]
    assert reader.checkpoints() == ["first"]
    event = reader.events("resumed")[0]
    assert (event.step, event.text) == (20, "Resumed at step 20; the run was finished.")


def test_a_run_with_nothing_in_it_is_resumed_at_step_zero(folder: Path) -> None:
    Run.create(folder, kind="training").close("failed: early")
    Run.resume(folder).close()
    (event,) = RunReader(folder).events()
    assert (event.step, event.text) == (0, "Resumed at step 0; the run was failed: early.")


def test_going_back_to_a_checkpoint_is_as_if_what_followed_had_never_been(folder: Path) -> None:
    with Run.create(folder.with_name("straight"), kind="training") as run:
        play(run, 0, 3)
        play(run, 3, 6)
        play(run, 6, 9)
    with Run.create(folder, kind="training") as run:
        play(run, 0, 3)
        play(run, 3, 5)
        run.log(5, {"only here": 1.0})
        run.log_records(make_records(99))
    with Run.resume(folder, checkpoint="at 3") as run:
        reader = RunReader(folder)
        assert reader.metric_names() == ["a"]
        assert reader.metric("a")[0].tolist() == [0, 1, 2]
        assert reader.times()[0].tolist() == [0, 1, 2]
        assert reader.task_steps() == [0, 1, 2]
        assert reader.records()["slot"].tolist() == [0, 1, 2]
        assert reader.checkpoints() == ["at 3"]
        assert reader.checkpoint("at 3").state == {"step": 3}
        assert [event.kind for event in reader.events()] == ["tick"] * 3 + ["resumed"]
        assert reader.events("resumed")[0].text == (
            "Resumed from checkpoint 'at 3' at step 2; the run was finished."
        )
        play(run, 3, 6)
        play(run, 6, 9)
    assert content(folder)[:-1] == content(folder.with_name("straight"))[:-1]
    assert len(content(folder)[-1]) == 3  # type: ignore[arg-type]


def test_one_can_go_back_further_afterwards(folder: Path) -> None:
    with Run.create(folder, kind="training") as run:
        play(run, 0, 2)
        play(run, 2, 4)
    with Run.resume(folder, checkpoint="at 4") as run:
        play(run, 4, 6)
    with Run.resume(folder, checkpoint="at 2") as run:
        play(run, 2, 3)
    assert content(folder)[1] == [0, 1, 2]
    assert content(folder)[5] == [0, 1, 2]
    assert content(folder)[6] == ["at 2", "at 3"]


def test_the_folder_of_a_checkpoint_goes_when_the_run_goes_back_on_it(folder: Path) -> None:
    names = [f"step-00000000000{step}" for step in (1, 2, 3)]
    with Run.create(folder, kind="training") as run:
        for step, name in enumerate(names, start=1):
            run.save_checkpoint(name, Snapshot({}), step)
            (folder / "checkpoints" / name).mkdir()
    Run.resume(folder, checkpoint=names[1]).close()
    left = sorted(path.name for path in (folder / "checkpoints").iterdir())
    assert left == [names[0], f"{names[0]}.1.npz", names[1], f"{names[1]}.2.npz"]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("step", 2**63 - 1, "was saved at step 9223372036854775807"),
        ("step", -1, "was saved at step -1"),
        ("last_event", -5, "was saved after event -5 of"),
        ("last_event", 10**9, "was saved after event 1000000000 of"),
        ("last_chunk", -1, "was saved after chunk of records -1 of"),
    ],
)
def test_a_row_that_cannot_be_decides_nothing(
    folder: Path, column: str, value: int, words: str
) -> None:
    name = "step-000000000001"
    with Run.create(folder, kind="training") as run:
        run.event(1, "told", "something")
        run.save_checkpoint(name, Snapshot({}), 1)
        (folder / "checkpoints" / name).mkdir()
    with closing(sqlite3.connect(folder / "run.sqlite")) as database, database:
        database.execute(f"UPDATE checkpoints SET {column} = ?", (value,))
    before = RunReader(folder).events()
    with pytest.raises(RunError, match=words):
        Run.resume(folder, checkpoint=name)
    assert RunReader(folder).events() == before


def test_a_new_metric_never_takes_the_place_of_one_that_stays(folder: Path) -> None:
    with Run.create(folder, kind="training") as run:
        run.log(1, {"a": 1.0})
        run.log(2, {"forgotten": 2.0})
        run.log(1, {"c": 3.0})
        run.save_checkpoint("here", Snapshot({}), 1)
    with Run.resume(folder, checkpoint="here") as run:
        run.log(2, {"new": 4.0, "forgotten": 5.0})
    reader = RunReader(folder)
    assert reader.last_metrics() == {"a": 1.0, "c": 3.0, "new": 4.0, "forgotten": 5.0}


def test_an_unknown_checkpoint_is_refused_and_nothing_is_changed(folder: Path) -> None:
    with Run.create(folder, kind="training") as run:
        play(run, 0, 2)
    before = content(folder)
    with pytest.raises(RunError, match=r"no checkpoint 'other'; it has \['at 2'\]"):
        Run.resume(folder, checkpoint="other")
    assert content(folder) == before
    assert RunReader(folder).status == "finished"
    assert RunReader(folder).events("resumed") == []
    # The lock is free again.
    Run.resume(folder).close()


def test_what_is_no_run_cannot_be_resumed(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(StepladderError, match=r"has no run|is not a folder"):
            Run.resume(folder)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_database_cannot_be_resumed_and_stays_as_it_is(folder: Path) -> None:
    Run.create(folder, kind="training").close()
    (folder / "run.sqlite").write_bytes(b"rubbish" * 1000)
    for _ in range(2):
        with pytest.raises(RunError, match=r"run\.sqlite cannot be read"):
            Run.resume(folder)
    assert (folder / "run.sqlite").read_bytes() == b"rubbish" * 1000
    Run.create(folder, kind="training", overwrite=True).close()
    assert RunReader(folder).status == "finished"
