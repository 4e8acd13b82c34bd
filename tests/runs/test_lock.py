"""The lock of a run: one holder at a time, gone with its process, and not taken by looking."""

import os
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from runs.scenes import in_a_fork
from stepladder.errors import RunError
from stepladder.runs import lock
from stepladder.runs.lock import RunLock, is_locked
from sync.rig import forked, open_descriptors, receive

processes = [
    pytest.mark.processes,
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.lock"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "PATIENCE_S", 0.1)


def test_a_lock_is_held_until_it_is_released(path: Path) -> None:
    held = RunLock.take(path)
    assert is_locked(path)
    assert path.read_text() == str(os.getpid())
    held.release()
    assert not is_locked(path)
    held.release()
    RunLock.take(path).release()


def test_the_file_stays_so_that_nobody_locks_a_removed_one(path: Path) -> None:
    RunLock.take(path).release()
    inode = path.stat().st_ino
    RunLock.take(path).release()
    assert path.stat().st_ino == inode


def test_a_second_holder_is_refused_and_leaves_nothing_open(path: Path) -> None:
    held = RunLock.take(path)
    before = open_descriptors()
    with pytest.raises(RunError, match=f"is being written by process {os.getpid()}"):
        RunLock.take(path)
    assert open_descriptors() == before
    assert is_locked(path)
    held.release()


def test_a_holder_that_has_not_said_who_it_is_is_refused_all_the_same(path: Path) -> None:
    held = RunLock.take(path)
    path.write_text("")
    with pytest.raises(RunError, match=r"process \(unknown\)"):
        RunLock.take(path)
    held.release()


def test_the_number_of_an_older_holder_is_replaced_as_a_whole(path: Path) -> None:
    path.write_text("9" * 19)
    held = RunLock.take(path)
    assert path.read_text() == str(os.getpid())
    held.release()


def test_without_a_file_nobody_holds_the_lock_and_none_is_made(path: Path) -> None:
    assert not is_locked(path)
    assert not path.exists()


def test_looking_leaves_nothing_open(path: Path) -> None:
    held = RunLock.take(path)
    before = open_descriptors()
    assert is_locked(path)
    held.release()
    assert not is_locked(path)
    assert open_descriptors() == before - 1


def test_who_only_looks_does_not_keep_a_writer_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # They look without a pause, on a machine that may be busy: luck must not decide.
    monkeypatch.setattr(lock, "PATIENCE_S", 30.0)
    path.touch()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            is_locked(path)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(50):
            RunLock.take(path).release()
    finally:
        stop.set()
        for looker in lookers:
            looker.join()


def hold(pipe: Connection, path: Path) -> None:
    held = RunLock.take(path)
    pipe.send(os.getpid())
    time.sleep(60)
    held.release()


class TestProcesses:
    pytestmark = processes

    def test_the_lock_of_a_killed_process_is_free(self, path: Path) -> None:
        with forked(hold, path) as (process, pipe):
            pid = receive(pipe)
            assert is_locked(path)
            with pytest.raises(RunError, match=f"process {pid}"):
                RunLock.take(path)
            process.kill()
            process.join(30)
            assert not is_locked(path)
            RunLock.take(path).release()

    def test_a_child_that_lets_go_does_not_unlock_its_parent(self, path: Path) -> None:
        held = RunLock.take(path)
        in_a_fork(held.release)
        assert is_locked(path)
        held.release()
        assert not is_locked(path)
