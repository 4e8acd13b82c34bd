"""A fork finds nothing locked and nothing half done, whatever other threads do at that moment."""

import importlib
import logging
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import pytest
from llvmlite.binding import ffi
from numba.core.compiler_lock import global_compiler_lock

import interrupts
import stepladder.compiled
from stepladder import forking

pytestmark = [pytest.mark.processes, pytest.mark.timeout(60)]

assert stepladder.compiled


def fork_and(work: Callable[[], Any]) -> int | None:
    """Do something in a fork of this process; return its exit code, None if it hangs."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join(timeout=20)
    try:
        return process.exitcode
    finally:
        process.kill()
        process.join()


@contextmanager
def another_thread(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run something in a thread that says when it is in the middle of it."""
    is_in_the_middle = threading.Event()
    thread = threading.Thread(target=work, args=(is_in_the_middle,))
    thread.start()
    assert is_in_the_middle.wait(timeout=20)
    yield
    thread.join()


def compile_something() -> None:
    offset = len(sys.modules)

    @numba.njit
    def add(number: int) -> int:
        return number + offset

    assert add(1) == offset + 1


def hold_for_a_while(lock: Any) -> Callable[[threading.Event], None]:
    def work(is_in_the_middle: threading.Event) -> None:
        with lock:
            is_in_the_middle.set()
            time.sleep(0.2)

    return work


@pytest.mark.parametrize(
    "lock",
    [global_compiler_lock, ffi.lib._lock, forking.WORKER_START],
    ids=["numba", "llvm", "start"],
)
def test_a_fork_can_compile_though_another_thread_was_compiling(lock: Any) -> None:
    with another_thread(hold_for_a_while(lock)):
        assert fork_and(compile_something) == 0
    # And so can its parent.
    compile_something()


def test_a_fork_can_start_workers_though_another_thread_was_starting_one() -> None:
    def start() -> None:
        assert forking.WORKER_START.acquire(timeout=5)

    with another_thread(hold_for_a_while(forking.WORKER_START)):
        assert fork_and(start) == 0


def test_a_lock_that_is_never_released_is_not_waited_for_and_is_free_in_the_fork(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forking, "LOCK_PATIENCE_S", 0.01)
    is_over = threading.Event()

    def hold(is_in_the_middle: threading.Event) -> None:
        with global_compiler_lock:
            is_in_the_middle.set()
            is_over.wait(timeout=30)

    with another_thread(hold):
        assert fork_and(compile_something) == 0
        is_over.set()


def test_threads_that_compile_and_threads_that_fork_do_not_wait_for_each_other() -> None:
    codes: list[int | None] = []
    threads = [
        threading.Thread(target=lambda: [compile_something() for _ in range(3)]) for _ in range(2)
    ] + [
        threading.Thread(target=lambda: codes.append(fork_and(compile_something))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=40)
    assert codes == [0, 0, 0]


def test_a_fork_can_log_though_another_thread_was_logging() -> None:
    handler = logging.StreamHandler()
    logger = logging.getLogger("stepladder.test_forking")
    logger.addHandler(handler)
    try:
        with another_thread(hold_for_a_while(handler.lock)):
            assert fork_and(lambda: logger.debug("hello")) == 0
    finally:
        logger.removeHandler(handler)


@pytest.fixture
def slow_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = "stepladder_slow_module"
    (tmp_path / f"{name}.py").write_text(
        "import test_forking_gate as gate\n"
        "gate.is_in_the_middle.set()\n"
        "gate.may_end.wait(timeout=gate.longest_s)\n"
        "VALUE = 1\n"
    )
    (tmp_path / "test_forking_gate.py").write_text(
        "import threading\n"
        "is_in_the_middle, may_end = threading.Event(), threading.Event()\n"
        "longest_s = 0.2\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)
    sys.modules.pop("test_forking_gate", None)


def test_a_fork_gets_the_whole_of_a_module_that_another_thread_was_importing(
    slow_module: str,
) -> None:
    gate: Any = importlib.import_module("test_forking_gate")
    thread = threading.Thread(target=lambda: importlib.import_module(slow_module))
    thread.start()
    assert gate.is_in_the_middle.wait(timeout=20)

    def use() -> None:
        assert importlib.import_module(slow_module).VALUE == 1

    assert fork_and(use) == 0
    thread.join()


def test_an_import_that_takes_for_ever_is_waited_for_once_and_hangs_no_fork(
    slow_module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "IMPORT_PATIENCE_S", 0.05)
    gate: Any = importlib.import_module("test_forking_gate")
    gate.longest_s = 30
    thread = threading.Thread(target=lambda: importlib.import_module(slow_module))
    thread.start()
    assert gate.is_in_the_middle.wait(timeout=20)

    def use() -> None:
        # What there is of it, as in a circular import.
        assert not hasattr(importlib.import_module(slow_module), "VALUE")

    assert fork_and(use) == 0
    monkeypatch.setattr(forking, "IMPORT_PATIENCE_S", 1e6)
    assert fork_and(use) == 0
    gate.may_end.set()
    thread.join()


def test_ctrl_c_at_any_line_of_the_hooks_leaves_no_lock_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Python reports what a hook raises, and goes on.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)

    def fork() -> None:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)

    lines = interrupts.lines_of(fork)
    assert len(lines) > 10
    for line in range(1, len(lines) + 1):
        interrupts.interrupted(line, fork)
        taken: list[bool] = []

        def take_all(taken: list[bool] = taken) -> None:
            for lock in forking._locks:
                taken.append(lock.acquire(timeout=5))
                if taken[-1]:
                    lock.release()

        thread = threading.Thread(target=take_all)
        thread.start()
        thread.join()
        assert taken == [True] * len(forking._locks), lines[line - 1]
