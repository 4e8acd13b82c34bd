"""Runs and processes: kills, exits, forks, two writers, readers beside a writer, full disks."""

import math
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from runs.scenes import (
    as_nobody,
    fill,
    in_a_fork,
    line_from,
    make_records,
    result_of,
    running,
)
from stepladder.curricula import Snapshot
from stepladder.errors import RunError
from stepladder.runs import Run, RunReader, database
from sync.rig import forked, receive

pytestmark = [
    pytest.mark.processes,
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

LOST_S = 1.2
"""What is older than this when a process is killed must be there; one second, and some air."""

LOG_FOR_EVER = """
import numpy as np
from stepladder.plans.record import RECORD_DTYPE
pause_s = float(argv[1])
run = Run.create(argv[0], kind="training")
record = np.zeros(1, dtype=RECORD_DTYPE)
for step in range(10**9):
    run.log(step, {"a": step, "b": -step, **{f"metric{i}": i for i in range(30)}})
    run.event(step, "tick", f"step {step}", {"step": step})
    run.log_tasks(step, {"task": ["x", "y"], "label": ["l", "m"], "step": [step, step]})
    record["slot"] = step
    run.log_records(record)
    print(step, time.monotonic(), flush=True)
    # Busy, not asleep: the writer's thread must get its turn from a thread that never rests.
    end = time.monotonic() + pause_s
    while time.monotonic() < end:
        pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.mark.parametrize("pause_s", [0.0005, 0.02])
def test_a_kill_loses_at_most_the_last_second(folder: Path, pause_s: float) -> None:
    said: dict[int, float] = {}
    with running(LOG_FOR_EVER, folder, pause_s) as process:
        end = math.inf
        while time.monotonic() < end:
            step, when = line_from(process).split()
            said[int(step)] = float(when)
            end = min(end, time.monotonic() + 2.0 + random.uniform(0, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        killed = time.monotonic()
        assert process.wait(30) == -signal.SIGKILL
    old = [step for step, when in said.items() if when < killed - LOST_S]
    assert len(old) > 5
    reader = RunReader(folder)
    steps, values = reader.metric("a")
    num = len(steps)
    assert steps.tolist() == values.tolist() == list(range(num))
    assert num > max(old)
    # All that was logged in one call, and all that was logged in order, is there to the same step.
    assert reader.metric("b")[0].tolist() == list(range(num))
    assert abs(len(reader.events("tick")) - num) <= 1
    assert abs(reader.num_records - num) <= 1
    assert reader.records()["slot"].tolist() == list(range(reader.num_records))
    assert abs(len(reader.task_steps()) - num) <= 1
    assert list(reader.tasks()["step"]) == [reader.task_steps()[-1]] * 2
    assert reader.status == "killed"


def save_for_ever(pipe: Connection, folder: Path) -> None:
    run = Run.create(folder, kind="training")
    for step in range(10**9):
        run.save_checkpoint("latest", Snapshot({"step": step}, {"x": np.full(50_000, step)}), step)
        pipe.send(step)


@pytest.mark.parametrize("attempt", range(5))
def test_a_kill_while_saving_leaves_a_checkpoint_with_its_own_step(
    folder: Path, attempt: int
) -> None:
    with forked(save_for_ever, folder) as (process, pipe):
        saved = [receive(pipe) for _ in range(5)][-1]
        time.sleep(random.uniform(0, 0.05))
        process.kill()
        process.join(30)
    reader = RunReader(folder)
    step = reader.checkpoint_step("latest")
    assert step >= saved
    snapshot = reader.checkpoint()
    assert snapshot.state == {"step": step}
    assert set(snapshot.arrays["x"].tolist()) == {step}
    # The next save clears away what the killed one left.
    with Run.resume(folder) as run:
        path = run.save_checkpoint("latest", Snapshot({}), step)
    assert list(path.parent.iterdir()) == [path]


def log_until_killed(pipe: Connection, folder: Path) -> None:
    run = Run.create(folder, kind="training")
    for step in range(20):
        run.log(step, {"a": float(step)})
    run.flush()
    pipe.send("ready")
    time.sleep(60)


def test_a_killed_run_can_be_resumed(folder: Path) -> None:
    with forked(log_until_killed, folder) as (process, pipe):
        receive(pipe)
        process.kill()
        process.join(30)
    assert RunReader(folder).status == "killed"
    with Run.resume(folder) as run:
        assert RunReader(folder).status == "running"
        run.log(20, {"a": 20.0, "new": 1.0})
    reader = RunReader(folder)
    assert reader.status == "finished"
    assert reader.metric("a")[0].tolist() == list(range(21))
    (event,) = reader.events("resumed")
    assert (event.step, event.text) == (19, "Resumed at step 19; the run was killed.")


def test_a_run_can_be_read_while_another_process_writes_it(folder: Path) -> None:
    with running(LOG_FOR_EVER, folder, 0.001) as process:
        line_from(process)
        reader = RunReader(folder)
        seen: list[int] = []
        while len(set(seen)) < 6:
            last = reader.last_metrics()
            if last:
                # Logged in one call, so seen together.
                assert last["b"] == -last["a"]
                steps = reader.metric("a")[0]
                assert steps.tolist() == list(range(len(steps)))
                assert len(steps) > last["a"]
                seen.append(int(last["a"]))
            assert reader.status == "running"
            line_from(process)
        assert seen == sorted(seen)


def read_for_ever(pipe: Connection, folder: Path) -> None:
    while not folder.exists():
        time.sleep(1e-3)
    while True:
        try:
            reader = RunReader(folder)
        except RunError:
            # Just being made.
            continue
        pipe.send((reader.status, len(reader.events()), len(reader.records())))


def test_readers_do_not_hold_up_the_writer(folder: Path) -> None:
    # Forked before the run is made: a fork of a writer may not read.
    with forked(read_for_ever, folder) as (_, pipe), Run.create(folder, kind="training") as run:
        for step in range(200):
            run.log(step, {"a": float(step)})
            run.event(step, "kind", "text")
            run.flush()
            while pipe.poll():
                status, num_events, num_records = receive(pipe)
                assert (status, num_records) == ("running", 0)
                assert num_events <= step + 1
        receive(pipe)
    assert RunReader(folder).metric("a")[0].tolist() == list(range(200))


# Ends without a close.


@pytest.mark.parametrize(
    ("ending", "code"), [("pass", 0), ("sys.exit(3)", 3), ("raise ValueError('no')", 1)]
)
def test_a_process_that_ends_without_closing_loses_nothing(
    folder: Path, ending: str, code: int
) -> None:
    script = f"""
    run = Run.create(argv[0], kind="training")
    for step in range(1000):
        run.log(step, {{"a": step}})
    {ending}
    """
    returned, _, err = result_of(script, folder)
    assert returned == code
    assert ("ValueError: no" in err) == (code == 1)
    reader = RunReader(folder)
    assert reader.status == "stopped"
    assert len(reader.metric("a")[0]) == 1000


def test_a_closed_run_is_left_alone_at_exit(folder: Path) -> None:
    script = """
    run = Run.create(argv[0], kind="training")
    run.close("failed: on purpose")
    """
    assert result_of(script, folder) == (0, "", "")
    assert RunReader(folder).status == "failed: on purpose"


def test_an_interrupt_closes_the_run(folder: Path) -> None:
    script = """
    with Run.create(argv[0], kind="training") as run:
        run.log(1, {"a": 1.0})
        print("ready", flush=True)
        time.sleep(60)
    """
    with running(script, folder) as process:
        line_from(process)
        process.send_signal(signal.SIGINT)
        process.wait(30)
    assert RunReader(folder).status == "failed: KeyboardInterrupt"
    assert RunReader(folder).last_metrics() == {"a": 1.0}


# Two writers.


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_second_writer_is_refused_by_the_number_of_the_first(
    folder: Path, overwrite: bool
) -> None:
    def open_again() -> Run:
        if overwrite:
            return Run.create(folder, kind="training", overwrite=True)
        return Run.resume(folder)

    with forked(log_until_killed, folder) as (process, pipe):
        receive(pipe)
        with pytest.raises(
            RunError,
            match=rf"run is being written by process {process.pid}\. Wait until it ends",
        ):
            open_again()
        assert RunReader(folder).last_metrics() == {"a": 19.0}
        process.kill()
        process.join(30)
    open_again().close()
    assert RunReader(folder).metric_names() == ([] if overwrite else ["a"])


def test_a_second_writer_in_the_same_process_is_refused_too(folder: Path) -> None:
    with Run.create(folder, kind="training"):
        with pytest.raises(RunError, match=f"being written by process {os.getpid()}"):
            Run.create(folder, kind="training", overwrite=True)
        with pytest.raises(RunError, match=f"being written by process {os.getpid()}"):
            Run.resume(folder)
    Run.resume(folder).close()


# Forks.


def test_a_forked_child_refuses_and_the_parent_goes_on(folder: Path) -> None:
    with Run.create(folder, kind="training") as run:
        run.log(1, {"a": 1.0})
        for use in (
            lambda: run.log(2, {"a": 2.0}),
            lambda: run.event(2, "kind", "text"),
            lambda: run.log_tasks(2, {"task": [], "label": []}),
            lambda: run.log_records(make_records(1)),
            lambda: run.save_checkpoint("a", Snapshot({}), 2),
            run.flush,
        ):
            assert "RunError: this run belongs to the process that opened it" in in_a_fork(use)
        assert in_a_fork(run.close) is None
        assert RunReader(folder).status == "running"
        run.log(3, {"a": 3.0})
    reader = RunReader(folder)
    assert (reader.status, reader.metric("a")[0].tolist()) == ("finished", [1, 3])


def test_a_child_that_exits_like_any_process_writes_nothing(folder: Path) -> None:
    script = """
    import gc
    run = Run.create(argv[0], kind="training")
    for round in range(5):
        for step in range(round * 50, round * 50 + 50):
            run.log(step, {"a": step})
        pid = os.fork()
        if pid == 0:
            # Frees all it can, runs what was registered for the exit, and goes.
            del run
            gc.collect()
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert RunReader(argv[0]).status == "running"
    run.close()
    """
    assert result_of(script, folder) == (0, "", "")
    reader = RunReader(folder)
    assert reader.status == "finished"
    assert reader.metric("a")[0].tolist() == list(range(250))


def test_a_child_never_closes_the_parents_database(folder: Path) -> None:
    with Run.create(folder, kind="training") as run:
        here = sys.getrefcount(run._writer._connection)
        # One more than anybody holds, so that the count never reaches zero.
        assert in_a_fork(lambda: sys.getrefcount(run._writer._connection)) == here + 1


def test_the_lock_dies_with_the_writer_though_its_children_live(folder: Path) -> None:
    script = """
    run = Run.create(argv[0], kind="training")
    run.log(1, {"a": 1.0})
    run.flush()
    if os.fork() == 0:
        # Said by the child itself, which has let go of its copy of the lock by now.
        print(os.getpid(), flush=True)
        time.sleep(60)
        os._exit(0)
    time.sleep(60)
    """
    with running(script, folder) as process:
        child = int(line_from(process))
        try:
            assert RunReader(folder).status == "running"
            os.kill(process.pid, signal.SIGKILL)
            process.wait(30)
            os.kill(child, 0)
            assert RunReader(folder).status == "killed"
            with Run.resume(folder) as run:
                run.log(2, {"a": 2.0})
        finally:
            os.kill(child, signal.SIGKILL)
    assert RunReader(folder).metric("a")[0].tolist() == [1, 2]


def test_a_fork_of_the_writer_does_not_read_with_its_parents_notes(folder: Path) -> None:
    with Run.create(folder, kind="training"):
        refusal = f"RunError: {folder} was open for writing when this process was forked"
        assert in_a_fork(lambda: RunReader(folder).status).startswith(refusal)
        path = folder / "run.sqlite"
        assert in_a_fork(lambda: database.open_database(path)).startswith(refusal)
        # Another run may be read, and so may this one once it is closed.
        other = Run.create(folder.with_name("other"), kind="training")
        other.close()
        assert in_a_fork(lambda: RunReader(folder.with_name("other")).status) == "finished"
    assert in_a_fork(lambda: RunReader(folder).status) == "finished"


def test_workers_of_a_pool_may_come_and_go_while_a_run_is_written(folder: Path) -> None:
    with Run.create(folder, kind="training") as run:
        for step in range(5):
            with multiprocessing.get_context("fork").Pool(2) as pool:
                run.log(step, {"sum": float(sum(pool.map(abs, range(step + 1))))})
    assert RunReader(folder).metric("sum")[1].tolist() == [0.0, 1.0, 3.0, 6.0, 10.0]


# Disks and permissions.


def test_a_full_disk_raises_from_a_later_call_and_leaves_what_was_there(folder: Path) -> None:
    script = """
    import resource
    from stepladder.errors import RunError
    run = Run.create(argv[0], kind="training")
    run.log(0, {"a": 0.0})
    run.flush()
    # No file may grow any further than this, which is what a full disk looks like.
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    for step in range(1, 10**6):
        try:
            run.log(step, {f"metric{i}": step for i in range(100)})
        except RunError as error:
            print(error)
            break
        time.sleep(0.001)
    for call in (run.flush, lambda: run.log(9, {}), run.close):
        try:
            call()
        except RunError as error:
            print(error)
    """
    returned, out, err = result_of(script, folder)
    assert (returned, err) == (0, "")
    assert len(out.splitlines()) == 4
    for line in out.splitlines():
        assert "run.sqlite can no longer be written (" in line
        assert "disk" in line
    reader = RunReader(folder)
    assert reader.metric("a")[1].tolist() == [0.0]
    assert len(reader.times()[0]) >= 1
    assert reader.status == "killed"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that anybody may enter, unlike pytest's own."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    for entry in [path, *path.rglob("*")]:
        if entry.is_dir():
            entry.chmod(0o755)
    shutil.rmtree(path)


def test_a_folder_that_may_not_be_written_is_refused(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    said = as_nobody(lambda: Run.create(open_folder / "run", kind="training"))
    assert said.startswith(f"RunError: the run {open_folder}/run cannot be used (")
    assert "Permission denied" in said
    assert as_nobody(lambda: Run.create(open_folder, kind="training")).startswith("RunError")
    open_folder.chmod(0o755)
    Run.create(open_folder / "run", kind="training").close()
    (open_folder / "run/run.lock").chmod(0o444)
    (open_folder / "run").chmod(0o555)
    said = as_nobody(lambda: Run.resume(open_folder / "run"))
    assert "Permission denied" in said


def read_all(folder: Path) -> list[object]:
    reader = RunReader(folder)
    return [
        reader.status,
        reader.last_metrics(),
        len(reader.events()),
        reader.num_records,
        reader.checkpoint().state,
    ]


CONTENT = [{"overview/reward": 0.5, "metric/epoch": 2.0}, 1, 2, {"at": 20}]


def test_a_finished_run_in_a_read_only_folder_can_be_read(open_folder: Path) -> None:
    with Run.create(open_folder / "run", kind="training") as run:
        fill(run)
    assert not (open_folder / "run/run.sqlite-wal").exists()
    (open_folder / "run").chmod(0o555)
    assert as_nobody(lambda: read_all(open_folder / "run")) == ["finished", *CONTENT]
    assert not (open_folder / "run/run.sqlite-wal").exists()


@pytest.mark.parametrize("index", [True, False])
def fill_and_wait(pipe: Connection, folder: Path) -> None:
    run = Run.create(folder, kind="training")
    fill(run)
    run.flush()
    pipe.send("ready")
    time.sleep(60)


@pytest.mark.parametrize("index", [True, False])
def test_a_killed_run_in_a_read_only_folder_can_be_read(open_folder: Path, index: bool) -> None:
    folder = open_folder / "run"
    with forked(fill_and_wait, folder) as (process, pipe):
        receive(pipe)
        process.kill()
        process.join(30)
    assert (folder / "run.sqlite-wal").stat().st_size > 0
    if not index:
        # Copied without it, say.
        (folder / "run.sqlite-shm").unlink()
    before = sorted(path.name for path in folder.iterdir())
    folder.chmod(0o555)
    assert as_nobody(lambda: read_all(folder)) == ["killed", *CONTENT]
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_running_run_can_be_read_by_somebody_who_may_not_write(open_folder: Path) -> None:
    folder = open_folder / "run"
    with forked(fill_and_wait, folder) as (_, pipe):
        receive(pipe)
        folder.chmod(0o555)
        assert as_nobody(lambda: read_all(folder)) == ["running", *CONTENT]
