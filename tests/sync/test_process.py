"""Which processes are taken for alive."""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from stepladder.sync.process import current_pid, is_alive
from sync.rig import forked, kill_self, receive, wait_until

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

PR_SET_NAME = 15


def state_of(pid: int) -> str:
    """Return the letter by which Linux describes a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_this_process_is_alive() -> None:
    assert current_pid() == os.getpid()
    assert is_alive(os.getpid())


def test_the_first_process_is_alive_though_it_belongs_to_somebody_else() -> None:
    assert is_alive(1)


def test_a_number_that_no_process_has_is_not_alive() -> None:
    largest = int(Path("/proc/sys/kernel/pid_max").read_text())
    assert not is_alive(largest + 1)
    assert not is_alive(0)


def test_a_process_that_may_not_be_signalled_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert is_alive(1)


def sleep(pipe: Connection) -> None:
    pipe.send(current_pid())
    time.sleep(60)


@pytest.mark.processes
def test_a_child_is_alive_until_it_is_killed() -> None:
    with forked(sleep) as (process, pipe):
        pid = receive(pipe)
        # A fork knows its own number, not its parent's.
        assert pid == process.pid != current_pid()
        assert is_alive(pid)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), "the death of a child")
        assert process.exitcode == -signal.SIGKILL


@pytest.mark.processes
def test_a_child_that_nobody_has_waited_for_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert is_alive(child.pid)
        os.kill(child.pid, signal.SIGKILL)
        wait_until(lambda: state_of(child.pid) == "Z", "a zombie")
        assert not is_alive(child.pid)
    finally:
        child.kill()
        child.wait()
    assert not is_alive(child.pid)


def leave_a_zombie(pipe: Connection) -> None:
    pid = os.fork()
    if pid == 0:
        kill_self()
    pipe.send(pid)
    time.sleep(60)


@pytest.mark.processes
def test_the_zombie_of_another_process_is_dead() -> None:
    with forked(leave_a_zombie) as (_, pipe):
        pid = receive(pipe)
        wait_until(lambda: state_of(pid) == "Z", "a zombie")
        assert not is_alive(pid)


def rename(pipe: Connection, name: bytes) -> None:
    ctypes.CDLL(None).prctl(PR_SET_NAME, name)
    pipe.send(os.getpid())
    time.sleep(60)


@pytest.mark.processes
@pytest.mark.parametrize("name", [b") Z (", "übung".encode()[:1], b"\xff\xfe", b"a b) c"])
def test_a_process_may_have_any_name(name: bytes) -> None:
    with forked(rename, name) as (_, pipe):
        pid = receive(pipe)
        assert name in Path(f"/proc/{pid}/stat").read_bytes()
        assert is_alive(pid)


@pytest.mark.processes
def test_looking_does_not_wait_for_a_child_that_runs() -> None:
    with forked(sleep) as (process, pipe):
        receive(pipe)
        assert is_alive(os.getppid())
        assert process in multiprocessing.active_children()
        assert process.exitcode is None
