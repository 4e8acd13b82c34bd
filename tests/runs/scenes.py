"""What several tests of runs need: runs with something in them, scripts to be killed, forks."""

import codecs
import multiprocessing
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import stepladder
from stepladder.curricula import Snapshot
from stepladder.plans.record import RECORD_DTYPE, RecordArray
from stepladder.runs import Run

SOURCE = Path(stepladder.__file__).parents[1]
TIMEOUT_S = 40.0


def make_records(*slots: int) -> RecordArray:
    """Return one record per slot, all fields different."""
    records = np.zeros(len(slots), dtype=RECORD_DTYPE)
    for number, field in enumerate(RECORD_DTYPE.names or ()):
        records[field] = np.arange(len(slots)) + 100 * number
    records["slot"] = slots
    return records


def fill(run: Run) -> None:
    """Log a little of everything."""
    run.log(10, {"overview/reward": 0.25, "metric/epoch": 1})
    run.log(20, {"overview/reward": 0.5, "metric/epoch": 2})
    run.event(20, "stage_advanced", "Stage 1 of 2: success 0.9 > 0.8", {"success": 0.9})
    run.log_tasks(20, {"task": ["a", "b"], "label": ["x", "y"], "plays": [3, 4], "p": [0.5, 0.25]})
    run.log_records(make_records(4, 2))
    run.save_checkpoint("first", Snapshot({"at": 20}, {"x": np.arange(3)}), 20)


def start(code: str, *arguments: Any) -> subprocess.Popen[str]:
    """Start a script that finds the library where we found it; its arguments are in ``argv``."""
    preamble = "import sys, os, time\nfrom stepladder.runs import *\nargv = sys.argv[1:]\n"
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", preamble + textwrap.dedent(code)]
        + [str(argument) for argument in arguments],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def running(code: str, *arguments: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a script for the length of a ``with`` block, and kill it then."""
    process = start(code, *arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_S)


def result_of(code: str, *arguments: Any) -> tuple[int, str, str]:
    """Run a script to its end; return its exit code and what it wrote."""
    with start(code, *arguments) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, out, err


def line_from(process: subprocess.Popen[str]) -> str:
    """Return the next line that a script writes, or fail."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        _, err = process.communicate(timeout=TIMEOUT_S)
        raise AssertionError(f"the script has ended: {err}")
    return line.strip()


def in_a_fork(work: Callable[[], Any]) -> Any:
    """Return what a function returns in a forked child, or what it raises in words."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def answer() -> None:
        try:
            there.send(work())
        except (stepladder.errors.StepladderError, AssertionError) as error:
            there.send(f"{type(error).__name__}: {error}")

    child = context.Process(target=answer)
    child.start()
    there.close()
    assert here.poll(TIMEOUT_S), "nothing has come from the child"
    result = here.recv()
    child.join(TIMEOUT_S)
    assert child.exitcode == 0
    return result


def as_nobody(work: Callable[[], Any]) -> Any:
    """Do the same in a child that may not write where it has no permission."""

    # Of the names in an archive: Python loads it when first needed, and nobody may read Python's
    # own files where these lie in somebody's home.
    codecs.lookup("cp437")

    def demoted() -> Any:
        # The superuser may write everywhere.
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        return work()

    return in_a_fork(demoted)


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Wait until something is so, or fail."""
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline, f"{what} has not come about in {TIMEOUT_S} s"
        time.sleep(1e-3)
