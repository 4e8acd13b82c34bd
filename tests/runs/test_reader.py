"""What a reader answers, and one line for everything that is wrong with a run."""

import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runs.scenes import fill, make_records
from stepladder.curricula import Snapshot
from stepladder.errors import RunError, SnapshotError
from stepladder.runs import Event, Run, RunReader

QUESTIONS: dict[str, Callable[[RunReader], Any]] = {
    "status": lambda reader: reader.status,
    "metric_names": lambda reader: reader.metric_names(),
    "metric": lambda reader: [array.tolist() for array in reader.metric("overview/reward")],
    "last_metrics": lambda reader: reader.last_metrics(),
    "times": lambda reader: [array.tolist() for array in reader.times()],
    "events": lambda reader: reader.events(),
    "task_steps": lambda reader: reader.task_steps(),
    "tasks": lambda reader: {name: list(column) for name, column in reader.tasks().items()},
    "num_records": lambda reader: reader.num_records,
    "records": lambda reader: reader.records().tolist(),
    "checkpoints": lambda reader: reader.checkpoints(),
    "checkpoint_step": lambda reader: reader.checkpoint_step(),
    "checkpoint": lambda reader: reader.checkpoint().state,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished run with a little of everything."""
    with Run.create(tmp_path / "my run", kind="simulation", config={"a": 1}, seed=[1, 2]) as run:
        fill(run)
    return tmp_path / "my run"


def test_a_reader_says_what_the_run_is(folder: Path) -> None:
    reader = RunReader(str(folder))
    assert (reader.name, reader.kind, reader.seed) == ("my run", "simulation", [1, 2])
    assert (reader.config, reader.status) == ({"a": 1}, "finished")
    assert reader.folder == folder
    assert reader.info.version


def test_events_come_in_order_and_can_be_chosen_by_kind(folder: Path) -> None:
    with Run.resume(folder) as run:
        run.event(5, "phase_changed", "second")
        run.event(40, "stage_advanced", "third", {"deep": [1, {"b": None}]})
    reader = RunReader(folder)
    kinds = [event.kind for event in reader.events()]
    assert kinds == ["stage_advanced", "resumed", "phase_changed", "stage_advanced"]
    first, last = reader.events("stage_advanced")
    assert isinstance(last, Event)
    assert (last.step, last.text, last.data) == (40, "third", {"deep": [1, {"b": None}]})
    assert reader.events("phase_changed")[0].data == {}
    assert first.time <= last.time
    assert reader.events("other") == []


def test_times_say_when_each_step_was_logged(folder: Path) -> None:
    steps, times = RunReader(folder).times()
    assert steps.tolist() == [10, 20]
    assert 1.6e9 < times[0] <= times[1]


def test_each_snapshot_of_tasks_can_be_read(folder: Path) -> None:
    with Run.resume(folder) as run:
        run.log_tasks(30, {"task": ["c"], "label": ["z"], "gone": [True], "nan": [np.nan]})
        run.log_tasks(5, {"task": [], "label": []})
    reader = RunReader(folder)
    assert reader.task_steps() == [5, 20, 30]
    assert reader.tasks(20)["task"] == ["a", "b"]
    assert reader.tasks(5) == {"task": [], "label": []}
    latest = reader.tasks()
    assert (latest["task"], list(latest["gone"])) == (["c"], [1])
    assert np.isnan(latest["nan"]).tolist() == [True]
    with pytest.raises(RunError, match=r"no per-task snapshot of step 6; it has 5, 20, 30\."):
        reader.tasks(6)


def test_records_come_in_order_over_all_chunks(folder: Path) -> None:
    with Run.resume(folder) as run:
        for slot in range(5):
            run.log_records(make_records(slot))
            run.flush()
    reader = RunReader(folder)
    assert reader.records()["slot"].tolist() == [4, 2, 0, 1, 2, 3, 4]
    assert reader.num_records == 7
    # Yours to change.
    reader.records()["slot"] = 0


def test_what_does_not_exist_is_named_with_what_does(folder: Path) -> None:
    reader = RunReader(folder)
    with pytest.raises(RunError, match=r"no metric 'overview/rewards'; it has 'overview/reward'"):
        reader.metric("overview/rewards")
    with pytest.raises(
        RunError, match=r"no metric 'xyz'; it has 'overview/reward', 'metric/epoch'"
    ):
        reader.metric("xyz")
    for question in (reader.checkpoint, reader.checkpoint_step):
        with pytest.raises(RunError, match=r"no checkpoint 'second'; it has 'first'\."):
            question("second")
    with pytest.raises(RunError, match=r"no metric None"):
        reader.metric(None)  # type: ignore[arg-type]


def test_a_run_without_checkpoints_says_so(tmp_path: Path) -> None:
    Run.create(tmp_path, kind="training").close()
    with pytest.raises(RunError, match="has no checkpoint; it has none"):
        RunReader(tmp_path).checkpoint()
    with pytest.raises(RunError, match="no metric 'a'; it has none"):
        RunReader(tmp_path).metric("a")


def test_the_latest_checkpoint_is_the_one_saved_last(folder: Path) -> None:
    with Run.resume(folder) as run:
        run.save_checkpoint("second", Snapshot({"at": 5}), 5)
    reader = RunReader(folder)
    assert (reader.checkpoint().state, reader.checkpoint_step()) == ({"at": 5}, 5)
    assert reader.checkpoint("first").state == {"at": 20}
    assert reader.checkpoint_step("first") == 20


def test_a_checkpoint_that_is_replaced_while_it_is_being_looked_for_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = RunReader(folder)
    find = RunReader._checkpoint
    answers = []

    def find_too_early(self: RunReader, name: str | None) -> tuple[Path, int]:
        found = find(self, name)
        if not answers:
            with Run.resume(folder) as run:
                run.save_checkpoint("first", Snapshot({"at": "new"}), 50)
        answers.append(found)
        return found

    monkeypatch.setattr(RunReader, "_checkpoint", find_too_early)
    assert reader.checkpoint("first").state == {"at": "new"}
    assert len(answers) == 2


def test_a_checkpoint_whose_file_is_missing_or_damaged_is_named(folder: Path) -> None:
    (path,) = (folder / "checkpoints").iterdir()
    path.write_bytes(b"rubbish")
    with pytest.raises(SnapshotError, match=r"first\.1\.npz is not a readable snapshot"):
        RunReader(folder).checkpoint()
    path.unlink()
    with pytest.raises(SnapshotError, match=r"first\.1\.npz is not a readable snapshot"):
        RunReader(folder).checkpoint()


def test_a_run_that_was_copied_while_it_was_written_is_not_running_there(
    folder: Path, tmp_path: Path
) -> None:
    with Run.resume(folder) as run:
        run.flush()
        shutil.copytree(folder, tmp_path / "copy")
        assert RunReader(folder).status == "running"
        assert RunReader(tmp_path / "copy").status == "killed"
        (tmp_path / "copy/run.lock").unlink()
        assert RunReader(tmp_path / "copy").status == "killed"
        assert not (tmp_path / "copy/run.lock").exists()


def test_a_run_that_ends_while_its_status_is_asked_for_was_not_killed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.resume(folder)
    reader = RunReader(folder)
    look = RunReader._stored_status

    def look_just_before_the_end(self: RunReader) -> str:
        status = look(self)
        run.close("failed: at that moment")
        return status

    monkeypatch.setattr(RunReader, "_stored_status", look_just_before_the_end)
    assert reader.status == "failed: at that moment"


def test_a_reader_may_be_asked_from_many_threads(folder: Path) -> None:
    reader = RunReader(folder)
    expected = {name: ask(reader) for name, ask in QUESTIONS.items()}
    answers: list[dict[str, Any]] = []

    def work() -> None:
        answers.extend({name: ask(reader) for name, ask in QUESTIONS.items()} for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 40


def test_a_reader_sees_a_run_that_was_made_anew(folder: Path) -> None:
    reader = RunReader(folder)
    assert len(reader.metric_names()) == 2
    with Run.create(folder, kind="simulation", overwrite=True) as run:
        run.log(1, {"new": 1.0})
        run.flush()
        assert reader.metric_names() == ["new"]


# What is wrong with a run.


def test_a_folder_that_is_no_run_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path, tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(RunError, match="Give the folder of a run") as caught:
            RunReader(folder)
        assert "\n" not in str(caught.value)


def test_a_run_without_a_database_is_told_in_one_line(folder: Path) -> None:
    (folder / "run.sqlite").unlink()
    with pytest.raises(RunError, match="has no database yet"):
        RunReader(folder)


def test_a_database_of_a_newer_schema_is_refused_by_its_number(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "run.sqlite")) as connection:
        connection.execute("UPDATE schema SET version = 2")
        connection.commit()
    with pytest.raises(RunError, match=r"run\.sqlite has schema 2; this version reads 1"):
        RunReader(folder)


@pytest.mark.parametrize(
    ("statement", "question"),
    [
        ("UPDATE task_columns SET data = x'00ff'", "tasks"),
        ("UPDATE task_columns SET kind = 'O'", "tasks"),
        ("UPDATE task_columns SET data = 'p'||substr(data, 3) WHERE kind = 'f8'", "tasks"),
        ("UPDATE name_lists SET data = 'p{'", "tasks"),
        ("DELETE FROM name_lists", "tasks"),
        ("UPDATE record_chunks SET data = x'70ff'", "records"),
        ("UPDATE record_chunks SET data = 'zz'", "records"),
        ("UPDATE events SET data = '{'", "events"),
        ("UPDATE metrics SET value = 'text'", "metric"),
        ("DELETE FROM settings", "status"),
        ("UPDATE events SET data = '[' || replace(hex(zeroblob(500)), '0', '[')", "events"),
        ("UPDATE events SET data = '[]'", "events"),
        ("UPDATE events SET step = 'soon'", "events"),
        ("UPDATE events SET kind = x'ff'", "events"),
        ("UPDATE metric_names SET name = x'ff' || id", "metric_names"),
        ("UPDATE record_chunks SET num_records = 1000000000000", "records"),
        ("UPDATE record_chunks SET num_records = 'many'", "num_records"),
        ("UPDATE settings SET value = x'ff'", "status"),
    ],
)
def test_a_database_that_holds_nonsense_is_told_in_one_line(
    folder: Path, statement: str, question: str
) -> None:
    with closing(sqlite3.connect(folder / "run.sqlite")) as connection:
        connection.execute(statement)
        connection.commit()
    reader = RunReader(folder)
    with pytest.raises(RunError, match=r"run\.sqlite (is damaged|cannot be read) \(") as caught:
        QUESTIONS[question](reader)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_no_damage_raises_anything_but_our_own_errors(folder: Path) -> None:
    path = folder / "run.sqlite"
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    num_refused = 0
    for position in range(0, len(whole), 397):
        damaged = bytearray(whole)
        damaged[position : position + 4] = rng.bytes(4)
        path.write_bytes(damaged)
        for ask in QUESTIONS.values():
            try:
                ask(RunReader(folder))
            except (RunError, SnapshotError):
                num_refused += 1
    assert num_refused > 20


def test_a_database_that_was_cut_off_is_told_in_one_line(folder: Path) -> None:
    path = folder / "run.sqlite"
    whole = path.read_bytes()
    for length in range(4096, len(whole) - 1, 4096):
        path.write_bytes(whole[:length])
        with pytest.raises(RunError) as caught:
            [ask(RunReader(folder)) for ask in QUESTIONS.values()]
        assert "\n" not in str(caught.value)
