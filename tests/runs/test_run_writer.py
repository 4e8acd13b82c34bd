"""What a run keeps, what it refuses, and how it ends."""

import copy
import gc
import json
import math
import pickle
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepladder
from runs.scenes import fill, make_records
from stepladder.curricula import Snapshot
from stepladder.errors import ConfigError, RunError, SnapshotError, StepladderError
from stepladder.runs import Run, RunReader, writer
from stepladder.runs.encoding import MAX_STEP


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def run(folder: Path) -> Iterator[Run]:
    with Run.create(folder, kind="simulation", config={"a": {"b": [1, None]}}, seed=7) as made:
        yield made


def files_in(folder: Path) -> list[str]:
    """Return what a run's folder holds, but for what SQLite keeps beside a database in use."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.name not in ("run.sqlite-wal", "run.sqlite-shm")
    )


# What is kept.


def test_everything_that_is_logged_can_be_read(run: Run, folder: Path) -> None:
    fill(run)
    run.flush()
    reader = RunReader(folder)
    assert reader.metric_names() == ["overview/reward", "metric/epoch"]
    steps, values = reader.metric("overview/reward")
    assert (steps.tolist(), values.tolist()) == ([10, 20], [0.25, 0.5])
    assert (steps.dtype, values.dtype) == (np.int64, np.float64)
    (event,) = reader.events()
    assert event[0] == 20
    assert event[2:] == ("stage_advanced", "Stage 1 of 2: success 0.9 > 0.8", {"success": 0.9})
    assert reader.task_steps() == [20]
    tasks = reader.tasks()
    assert list(tasks) == ["task", "label", "plays", "p"]
    assert (tasks["task"], tasks["label"]) == (["a", "b"], ["x", "y"])
    assert list(tasks["plays"]) == [3, 4]
    assert list(tasks["p"]) == [0.5, 0.25]
    np.testing.assert_array_equal(reader.records(), make_records(4, 2))
    assert reader.checkpoints() == ["first"]
    assert reader.checkpoint().state == {"at": 20}


def test_a_folder_holds_these_files_and_no_others(run: Run, folder: Path) -> None:
    fill(run)
    run.close()
    assert files_in(folder) == [
        "checkpoints",
        "checkpoints/first.1.npz",
        "config.json",
        "run.lock",
        "run.sqlite",
    ]


def test_config_json_says_what_is_needed_to_repeat_the_run(run: Run, folder: Path) -> None:
    document = json.loads((folder / "config.json").read_text())
    assert document["config"] == {"a": {"b": [1, None]}}
    assert (document["kind"], document["seed"], document["schema"]) == ("simulation", 7, 1)
    assert document["version"] == stepladder.__version__
    assert document["created"].endswith("+00:00")
    assert "git_commit" in document


def test_numbers_that_are_not_finite_are_kept(run: Run, folder: Path) -> None:
    run.log(1, {"nan": math.nan, "up": math.inf, "down": -math.inf, "numpy": np.float32("nan")})
    run.flush()
    last = RunReader(folder).last_metrics()
    assert math.isnan(last["nan"])
    assert math.isnan(last["numpy"])
    assert (last["up"], last["down"]) == (math.inf, -math.inf)
    assert np.isnan(RunReader(folder).metric("nan")[1]).tolist() == [True]


def test_all_kinds_of_numbers_are_taken(run: Run, folder: Path) -> None:
    run.log(
        np.int64(3),  # type: ignore[arg-type]
        {
            "int": 2,
            "bool": True,
            "int8": np.int8(-5),
            "float32": np.float32(0.1),
            "array": np.array(0.75),
            "tiny": 5e-324,
            "third": 1 / 3,
            "large": 2**80,
        },
    )
    run.flush()
    assert RunReader(folder).last_metrics() == {
        "int": 2.0,
        "bool": 1.0,
        "int8": -5.0,
        "float32": 0.10000000149011612,
        "array": 0.75,
        "tiny": 5e-324,
        "third": 1 / 3,
        "large": 2.0**80,
    }
    assert RunReader(folder).metric("int")[0].tolist() == [3]


class OneEntry:
    """Like a tensor with one entry: willing to become a float."""

    ndim = 1

    def __float__(self) -> float:
        return 1.0


@pytest.mark.parametrize(
    "value", [None, "1.5", b"1", [1.0], np.ones(1), OneEntry(), 1j, object(), 10**400]
)
def test_what_is_no_number_is_refused_by_its_name(run: Run, folder: Path, value: Any) -> None:
    with pytest.raises(RunError, match="metric 'bad' must be one number; got"):
        run.log(1, {"good": 1.0, "bad": value})
    run.flush()
    assert RunReader(folder).metric_names() == []
    assert RunReader(folder).times()[0].tolist() == []


@pytest.mark.parametrize("name", ["", 3, None, "\ud800"])
def test_a_name_that_cannot_be_kept_is_refused(run: Run, folder: Path, name: Any) -> None:
    with pytest.raises(RunError, match="the name of a metric"):
        run.log(1, {"good": 1.0, name: 1.0})
    run.log(2, {"good": 2.0})
    run.flush()
    assert RunReader(folder).last_metrics() == {"good": 2.0}
    assert RunReader(folder).metric("good")[0].tolist() == [2]


def test_names_may_hold_any_character(run: Run, folder: Path) -> None:
    names = ["größe/τ", "日本語", "a b\tc\n", "quote'\"", "emoji 🪜", "a\x00b", "%?#", "x" * 5000]
    run.log(1, {name: float(index) for index, name in enumerate(names)})
    run.event(1, "прогресс", "日本語\x00🪜", {"ключ": "значение"})
    run.log_tasks(1, {"task": names, "label": names[::-1], "größe": range(len(names))})
    run.flush()
    reader = RunReader(folder)
    assert reader.metric_names() == names
    assert reader.metric("日本語")[1].tolist() == [1.0]
    assert reader.events("прогресс")[0][3:] == ("日本語\x00🪜", {"ключ": "значение"})
    assert reader.tasks()["task"] == names
    assert reader.tasks()["label"] == names[::-1]
    assert list(reader.tasks()["größe"]) == list(range(8))


@pytest.mark.parametrize("step", [-1, 1.0, "1", None, True, MAX_STEP + 1])
def test_a_step_that_is_no_count_is_refused(run: Run, step: Any) -> None:
    for log in (
        lambda: run.log(step, {"a": 1.0}),
        lambda: run.event(step, "kind", "text"),
        lambda: run.log_tasks(step, {"task": [], "label": []}),
        lambda: run.save_checkpoint("name", Snapshot({}), step),
    ):
        with pytest.raises(RunError, match="step must"):
            log()


def test_the_largest_step_is_taken(run: Run, folder: Path) -> None:
    run.log(MAX_STEP, {"a": 1.0})
    run.flush()
    assert RunReader(folder).metric("a")[0].tolist() == [MAX_STEP]


def test_steps_come_in_any_order_and_are_read_in_theirs(run: Run, folder: Path) -> None:
    for step in (30, 10, 20):
        run.log(step, {"a": float(step)})
    run.flush()
    assert RunReader(folder).metric("a")[1].tolist() == [10.0, 20.0, 30.0]


def test_a_metric_has_one_value_per_step_and_the_last_one_counts(run: Run, folder: Path) -> None:
    run.log(1, {"a": 1.0, "b": 1.0})
    run.log(1, {"a": 2.0})
    run.flush()
    run.log(1, {"a": 3.0})
    run.flush()
    assert RunReader(folder).metric("a")[1].tolist() == [3.0]
    assert RunReader(folder).last_metrics() == {"a": 3.0, "b": 1.0}


def test_what_is_handed_over_may_be_changed_afterwards(run: Run, folder: Path) -> None:
    metrics, plays, names, records = {"a": 1.0}, np.array([1, 2]), ["a", "b"], make_records(1, 2)
    data = {"x": [1]}
    run.log(1, metrics)
    run.log_tasks(1, {"task": names, "label": names, "plays": plays})
    run.log_records(records)
    run.event(1, "kind", "text", data)
    metrics["a"], plays[0], names[0], data["x"][0] = 9.0, 9, "z", 9
    records["slot"] = 9
    run.flush()
    reader = RunReader(folder)
    assert reader.last_metrics() == {"a": 1.0}
    assert list(reader.tasks()["plays"]) == [1, 2]
    assert reader.tasks()["task"] == ["a", "b"]
    assert reader.records()["slot"].tolist() == [1, 2]
    assert reader.events()[0].data == {"x": [1]}


def test_text_that_utf8_cannot_hold_is_escaped(run: Run, folder: Path) -> None:
    run.event(1, "kind", "file \udcff")
    run.close("failed: \udcff")
    assert RunReader(folder).events()[0].text == "file \\udcff"
    assert RunReader(folder).status == "failed: \\udcff"


def test_an_empty_log_still_says_when_it_was(run: Run, folder: Path) -> None:
    run.log(5, {})
    run.flush()
    assert RunReader(folder).times()[0].tolist() == [5]


def test_many_threads_may_log_at_once(run: Run, folder: Path) -> None:
    num_threads, num_logs = 8, 300

    def work(thread: int) -> None:
        for number in range(num_logs):
            run.log(number, {f"of/{thread}": float(number), f"new/{thread}/{number % 50}": 1.0})
            run.event(number, f"kind{thread}", str(number))
            run.log_records(make_records(thread))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.flush()
    reader = RunReader(folder)
    assert len(reader.metric_names()) == num_threads * 51
    for thread in range(num_threads):
        assert reader.metric(f"of/{thread}")[1].tolist() == list(map(float, range(num_logs)))
        texts = [event.text for event in reader.events(f"kind{thread}")]
        assert texts == [str(number) for number in range(num_logs)]
    slots = reader.records()["slot"]
    assert np.bincount(slots).tolist() == [num_logs] * num_threads


# Checkpoints.


def test_a_checkpoint_is_on_disk_when_the_call_returns(run: Run, folder: Path) -> None:
    path = run.save_checkpoint("best", Snapshot({"a": 1}, {"x": np.arange(2)}), 5)
    assert path == folder / "checkpoints/best.1.npz"
    assert Snapshot.load(path).state == {"a": 1}
    assert RunReader(folder).checkpoint("best").arrays["x"].tolist() == [0, 1]
    assert RunReader(folder).checkpoint_step("best") == 5


def test_a_checkpoint_of_the_same_name_takes_the_olders_place(run: Run, folder: Path) -> None:
    for step in (1, 2, 3):
        run.save_checkpoint("latest", Snapshot({"step": step}), step)
    run.save_checkpoint("best", Snapshot({"step": 4}), 4)
    run.save_checkpoint("latest", Snapshot({"step": 5}), 5)
    reader = RunReader(folder)
    assert reader.checkpoints() == ["best", "latest"]
    assert reader.checkpoint("latest").state == {"step": 5}
    assert reader.checkpoint("best").state == {"step": 4}
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == [
        "best.4.npz",
        "latest.5.npz",
    ]


def test_a_checkpoint_that_cannot_be_saved_leaves_the_older_one(run: Run, folder: Path) -> None:
    run.save_checkpoint("best", Snapshot({"a": 1}), 1)
    with pytest.raises(TypeError):
        run.save_checkpoint("best", Snapshot({"a": object()}), 2)
    with pytest.raises(SnapshotError, match="expected a Snapshot"):
        run.save_checkpoint("best", {"a": 2}, 2)  # type: ignore[arg-type]
    reader = RunReader(folder)
    assert (reader.checkpoint().state, reader.checkpoint_step()) == ({"a": 1}, 1)


def test_a_checkpoint_can_be_removed(run: Run, folder: Path) -> None:
    for name in ("best", "step-000000000002"):
        run.save_checkpoint(name, Snapshot({}), 2)
    (folder / "checkpoints/step-000000000002").mkdir()
    run.remove_checkpoint("none")
    run.remove_checkpoint("step-000000000002")
    assert RunReader(folder).checkpoints() == ["best"]
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["best.1.npz"]
    with pytest.raises(RunError, match="the name of a checkpoint must be short"):
        run.remove_checkpoint("../best")


def test_a_folder_of_checkpoints_that_is_gone_is_named(run: Run, folder: Path) -> None:
    (folder / "checkpoints").rmdir()
    with pytest.raises(RunError, match=r"the run .*run cannot be used \(.*No such file"):
        run.save_checkpoint("best", Snapshot({}), 1)


# Making and ending.


def test_a_run_tells_how_it_stands(folder: Path) -> None:
    run = Run.create(folder, kind="training")
    assert RunReader(folder).status == "running"
    assert (run.folder, run.name, run.is_closed) == (folder, "run", False)
    assert run.info.kind == "training"
    run.close()
    assert run.is_closed
    assert RunReader(folder).status == "finished"


def test_a_run_that_raises_has_failed_and_says_why(folder: Path) -> None:
    def log_and_fail() -> None:
        with Run.create(folder, kind="training") as run:
            run.log(1, {"a": 1.0})
            raise ZeroDivisionError("division by zero")

    with pytest.raises(ZeroDivisionError):
        log_and_fail()
    assert RunReader(folder).status == "failed: ZeroDivisionError: division by zero"
    assert RunReader(folder).last_metrics() == {"a": 1.0}


def test_a_long_reason_is_cut_and_stays_on_one_line(folder: Path) -> None:
    with pytest.raises(ValueError, match="two"), Run.create(folder, kind="training"):
        raise ValueError("one\ntwo " + "x" * 10_000)
    status = RunReader(folder).status
    assert status.startswith("failed: ValueError: one two xxx")
    assert status.endswith("x…")
    assert len(status) < 1_000


def test_closing_twice_changes_nothing(folder: Path) -> None:
    with Run.create(folder, kind="training") as run:
        run.close("failed: by hand")
    run.close()
    assert RunReader(folder).status == "failed: by hand"


def test_a_closed_run_takes_nothing_more(folder: Path) -> None:
    run = Run.create(folder, kind="training")
    run.close()
    for use in (
        lambda: run.log(1, {"a": 1.0}),
        lambda: run.event(1, "kind", "text"),
        lambda: run.log_tasks(1, {"task": [], "label": []}),
        lambda: run.log_records(make_records()),
        lambda: run.save_checkpoint("a", Snapshot({}), 1),
        lambda: run.remove_checkpoint("a"),
        lambda: run.flush(),
    ):
        with pytest.raises(RunError, match=r"has been closed\. Reopen it with Run\.resume"):
            use()


def test_closing_leaves_no_thread_behind(folder: Path) -> None:
    before = threading.active_count()
    run = Run.create(folder, kind="training")
    assert threading.active_count() == before + 1
    run.close()
    assert threading.active_count() == before


def test_a_closed_run_is_not_kept_in_memory(folder: Path) -> None:
    run = Run.create(folder, kind="training")
    run.close()
    watched = weakref.ref(run)
    del run
    gc.collect()
    assert watched() is None


def test_an_empty_run_can_be_read(folder: Path) -> None:
    Run.create(folder, kind="training").close()
    reader = RunReader(folder)
    assert reader.metric_names() == []
    assert reader.last_metrics() == {}
    assert reader.events() == []
    assert reader.task_steps() == []
    assert reader.tasks() == {}
    assert reader.num_records == 0
    assert reader.records().dtype == make_records().dtype
    assert len(reader.records()) == 0
    assert reader.checkpoints() == []
    assert reader.times()[0].tolist() == []
    assert (reader.config, reader.seed) == ({}, None)


def test_a_run_cannot_be_copied(run: Run) -> None:
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(RunError, match="belongs to the one that opened it"):
            duplicate(run)


def test_the_working_directory_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with Run.create("relative", kind="training") as run:
        reader = RunReader("relative")
        monkeypatch.chdir(tmp_path / "elsewhere")
        run.save_checkpoint("a", Snapshot({}), 1)
        assert reader.checkpoints() == ["a"]
    assert reader.status == "finished"
    assert list((tmp_path / "elsewhere").iterdir()) == []


# What is refused.


def test_a_folder_that_holds_a_run_is_refused(folder: Path) -> None:
    with Run.create(folder, kind="training") as run:
        fill(run)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match=r"holds a run already.*overwrite=True"):
        Run.create(folder, kind="training")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_overwriting_replaces_the_run_and_leaves_what_is_not_its(folder: Path) -> None:
    with Run.create(folder, kind="training", seed=1) as run:
        fill(run)
    (folder / "notes.txt").write_text("mine")
    (folder / "checkpoints/mine.npz").write_text("mine too")
    (folder / "checkpoints/.first.9.npz.123.part").write_text("left over")
    with Run.create(folder, kind="simulation", seed=2, overwrite=True) as run:
        run.log(1, {"new": 1.0})
    reader = RunReader(folder)
    assert (reader.kind, reader.seed, reader.metric_names()) == ("simulation", 2, ["new"])
    assert (reader.events(), reader.checkpoints(), reader.num_records) == ([], [], 0)
    assert (folder / "notes.txt").read_text() == "mine"
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["mine.npz"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("notes.txt", "mine", "not empty and has no run: it has 'notes.txt'"),
        ("run.sqlite", "mine", "not empty and has no run: it has 'run.sqlite'"),
        ("config.json", '{"model": "mine"}', "was not written by Stepladder"),
        ("config.json", "[]", "was not written by Stepladder"),
        ("config.json", '{"package": "stepladder"', "is damaged"),
        ("config.json", '{"package": "stepladder", "schema": 2}', "schema 2; this version reads 1"),
    ],
)
def test_what_is_no_run_is_never_touched(
    tmp_path: Path, overwrite: bool, name: str, content: str, words: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(RunError, match=words):
        Run.create(tmp_path, kind="training", overwrite=overwrite)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: content}


def test_an_empty_folder_or_one_with_a_left_over_lock_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text("1")
    (tmp_path / ".config.json.123.part").write_text("{")
    Run.create(tmp_path, kind="training").close()
    assert RunReader(tmp_path).status == "finished"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match=r"file is a file\. Choose a new or empty folder"):
        Run.create(tmp_path / "file", kind="training", overwrite=True)
    with pytest.raises(RunError, match="cannot be used"):
        Run.create(tmp_path / "file/inside", kind="training")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kind": ""}, "kind must be one word, such as 'training'; got ''"),
        ({"kind": "two words"}, "kind must be one word"),
        ({"kind": None}, "kind must be one word"),
        ({"config": [1]}, r"config must be a mapping of settings; got \[1\]"),
        ({"config": {"a": {"b": object}}}, r"config\.a\.b has type type"),
        ({"config": {"a": math.inf}}, r"config\.a is inf; numbers must be finite"),
        ({"config": {1: 2}}, "keys must be strings"),
        ({"seed": 1.5}, r"seed must be an integer, .*; got 1\.5"),
        ({"seed": [1, "2"]}, "seed must be an integer"),
        ({"seed": True}, "seed must be an integer"),
        ({"loggers": [print]}, "needs the methods log, event and close"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_before_anything_is_written(
    folder: Path, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        Run.create(folder, **{"kind": "training", **arguments})
    assert "\n" not in str(caught.value)
    assert not folder.exists()


@pytest.mark.parametrize("seed", [None, 0, -3, 2**70, [1, 2, 3], np.int64(4), (5, 6)])
def test_seeds_are_read_as_they_were_given(folder: Path, seed: Any) -> None:
    Run.create(folder, kind="training", seed=seed).close()
    expected = list(seed) if isinstance(seed, tuple) else seed
    assert RunReader(folder).seed == expected
    assert type(RunReader(folder).seed) in (type(None), int, list)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../a", ".hidden", "a\x00", "a\n", "-a", "x" * 101, "日" * 60, 3]
)
def test_a_checkpoint_must_have_the_name_of_a_file(run: Run, name: Any) -> None:
    with pytest.raises(RunError, match="the name of a checkpoint must be"):
        run.save_checkpoint(name, Snapshot({}), 1)


@pytest.mark.parametrize("name", ["best", "größe 3", "step=10+a.b-c_d", "日本", "x" * 100, "1"])
def test_a_checkpoint_may_have_these_names(run: Run, folder: Path, name: str) -> None:
    run.save_checkpoint(name, Snapshot({"a": name}), 1)
    run.save_checkpoint(name, Snapshot({"a": name + "!"}), 1)
    assert RunReader(folder).checkpoints() == [name]
    assert RunReader(folder).checkpoint(name).state == {"a": name + "!"}
    assert len(list((folder / "checkpoints").iterdir())) == 1


# When the database fails.


def test_a_run_whose_folder_was_removed_raises_from_the_next_call(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = Run.create(folder, kind="training")
    folder.rename(tmp_path / "moved")
    run.log(1, {"a": 1.0})
    for use in (run.flush, lambda: run.log(2, {"a": 1.0}), run.flush, run.close):
        with pytest.raises(RunError, match=r"can no longer be written \(.*removed or replaced"):
            use()
    assert run.is_closed
    # The lock is free again.
    with Run.resume(tmp_path / "moved") as run:
        run.log(3, {"a": 3.0})
    assert RunReader(tmp_path / "moved").metric("a")[0].tolist() == [3]


def test_what_came_out_of_the_block_is_seen_though_closing_failed(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def remove_and_fail() -> None:
        with Run.create(folder, kind="training"):
            folder.rename(tmp_path / "moved")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        remove_and_fail()
    (note,) = caught.value.__notes__
    assert note.startswith("The run could not be closed either: ")


def test_a_failure_of_any_kind_reaches_the_caller(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise MemoryError("no more")

    with monkeypatch.context() as patch:
        patch.setattr(writer, "write_rows", fail)
        run.log(1, {"a": 1.0})
        with pytest.raises(RunError, match=r"can no longer be written \(no more\)") as caught:
            run.flush()
    assert isinstance(caught.value.__cause__, MemoryError)
    with pytest.raises(RunError, match="no more"):
        run.event(1, "kind", "text")
    with pytest.raises(StepladderError, match="no more"):
        run.close()
    run.close()
