"""What the tests of the commands need: a command in this process, or in one of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import stepladder
from stepladder.cli.main import main

SOURCE = Path(stepladder.__file__).parents[1]
TIMEOUT_S = 50.0


class Outcome(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


class CommandLine:
    """Runs commands in this process, in an empty folder, 80 columns wide."""

    def __init__(self, capsys: pytest.CaptureFixture[str]):
        self._capsys = capsys

    def __call__(self, *argv: object) -> Outcome:
        self._capsys.readouterr()
        code = main([str(word) for word in argv])
        return Outcome(code, *self._capsys.readouterr())

    def fails(self, *argv: object) -> str:
        """Run a command that is wrong; return the one line that it says."""
        code, out, err = self(*argv)
        assert (code, out) == (2, "")
        assert err.startswith("stepladder: ")
        assert err.count("\n") == 1
        assert err.endswith("\n")
        return err.removeprefix("stepladder: ").rstrip("\n")


@contextmanager
def running(
    *argv: object, cwd: Path, packages: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a process group of its own, as a shell does; warnings are errors.

    As for the installed command, the working directory is not on Python's path. `packages` is a
    folder with further installed packages.
    """
    path = os.pathsep.join(map(str, filter(None, (SOURCE, packages))))
    process = subprocess.Popen(
        [sys.executable, "-P", "-W", "error", "-m", "stepladder", *map(str, argv)],
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "80"},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=TIMEOUT_S)


def finished(*argv: object, cwd: Path, packages: Path | None = None) -> Outcome:
    """Run a command in a process of its own to its end."""
    with running(*argv, cwd=cwd, packages=packages) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    return Outcome(process.returncode, out, err)


def wait_until(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for something that a running process does."""
    deadline = time.monotonic() + TIMEOUT_S
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)
