"""Runs fuzzers in child processes, so that a crash is an outcome and not the end.

A fuzzer changes something that a user may load, loads it, and goes on with what was loaded. Two
outcomes are allowed: ``refused``, with a one-line error of ours, and ``played on``. Everything
else (another exception, a crash, a hang) is a failure, named by fuzzer and case, so that it can be
repeated:

    PYTHONPATH=tests python -m fuzz.harness games --first 4711 --count 1    # repeat one case
    PYTHONPATH=tests python -m fuzz.harness games --seconds 600             # search for long
"""

import argparse
import importlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from stepladder.errors import StepladderError

FUZZERS = ("curricula", "channels", "games", "learners", "checkpoints", "databases", "levels")
CASE_LIMIT_S = 60
"""A case that takes longer hangs."""

START_LIMIT_S = 300
"""So long may a fuzzer take to begin, on a busy machine that has to compile its kernels."""

REFUSED, PLAYED_ON = "refused", "played on"

TESTS = Path(__file__).parent.parent


class Failure(AssertionError):
    """An outcome that is not allowed."""


class Hang(Exception):
    """A case has taken too long."""


@contextmanager
def playing_on() -> Iterator[None]:
    """Say that everything is loaded: whoever refuses from here on has let something in."""
    try:
        yield
    except StepladderError as error:
        raise Failure(f"it was restored and could not be played on with: {error}") from error


def run_case(fuzzer: Any, seed: int) -> str:
    """Run one case; return its outcome.

    Raises:
        Exception: Whatever is not allowed.
    """
    try:
        fuzzer.run(np.random.default_rng(seed))
    except StepladderError as error:
        text, num_problems = str(error), len(getattr(error, "problems", ()))
        # A config says all that is wrong with it, each on a line under the first.
        if text.count("\n") not in (0, num_problems) or len(text) < 10:
            raise Failure(f"a refusal must be one line with a reason: {text!r}") from error
        return REFUSED
    return PLAYED_ON


def _child(name: str, cases: Sequence[int], progress: int, end: float) -> None:
    """Run cases one after the other until a time of the monotonic clock; note each beforehand."""
    signal.signal(signal.SIGALRM, _raise_hang)
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = importlib.import_module(f"fuzz.fuzz_{name}").Fuzzer(Path(folder))
        for seed in cases:
            if outcomes and time.monotonic() >= end:
                break
            os.pwrite(progress, f"{seed:20d}".encode(), 0)
            signal.alarm(CASE_LIMIT_S)
            outcomes[run_case(fuzzer, seed)] += 1
            signal.alarm(0)
    print(json.dumps(outcomes))


def _raise_hang(*_: Any) -> None:
    raise Hang(f"the case has not ended after {CASE_LIMIT_S} s")


def fuzz(
    name: str, cases: Sequence[int], timeout_s: float = 600.0, seconds: float | None = None
) -> Counter[str]:
    """Run cases of one fuzzer in a child process; return how often each outcome was seen.

    Args:
        name: One of `FUZZERS`.
        cases: What to run, in order.
        timeout_s: A child that takes longer hangs.
        seconds: Stop after the case that runs then; at least one case is run.

    Raises:
        Failure: An outcome is not allowed; the message says which case it was.
    """
    with tempfile.TemporaryFile() as progress:
        os.pwrite(progress.fileno(), f"{cases[0]:20d}".encode(), 0)
        command = [sys.executable, "-W", "error", "-m", "fuzz.harness", name]
        command += ["--cases", ",".join(map(str, cases))]
        command += ["--progress", str(progress.fileno())]
        if seconds is not None:
            command += ["--until", str(time.monotonic() + seconds)]
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=TESTS,
            pass_fds=[progress.fileno()],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        )
        try:
            output, errors = child.communicate(timeout=timeout_s)
            ending = f"exit code {child.returncode}"
        except subprocess.TimeoutExpired:
            child.kill()
            output, errors = child.communicate()
            ending = "a hang"
        if child.returncode == 0:
            return Counter(json.loads(output.splitlines()[-1]))
        seed = int(os.pread(progress.fileno(), 20, 0))
        raise Failure(f"{name}, case {seed}: {ending}\n{errors[-4000:]}")


def search(name: str, first: int, seconds: float, chunk: int = 2000) -> int:
    """Run cases for so many seconds, whatever they find; return how many failed."""
    outcomes: Counter[str] = Counter()
    end, failures = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0.0:
        try:
            cases = range(first, first + chunk)
            found = fuzz(name, cases, timeout_s=left + START_LIMIT_S + CASE_LIMIT_S, seconds=left)
            outcomes += found
            first += found.total()
        except Failure as failure:
            failures += 1
            print(failure, flush=True)
            first = int(str(failure).split("case ")[1].split(":")[0]) + 1
    print(f"{name}: {dict(outcomes)}, {failures} failures; next case {first}", flush=True)
    return failures


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[*FUZZERS, "all"])
    parser.add_argument("--first", type=int, default=0, help="first case")
    parser.add_argument("--count", type=int, help="number of cases, in this process")
    parser.add_argument("--cases", help="these cases, with commas between them")
    parser.add_argument("--seconds", type=float, help="search for so long, in child processes")
    parser.add_argument("--until", type=float, default=math.inf, help="end by this monotonic time")
    parser.add_argument("--progress", type=int, help="descriptor to note cases in")
    given = parser.parse_args()
    if given.seconds is not None:
        names = FUZZERS if given.name == "all" else (given.name,)
        sys.exit(sum([search(name, given.first, given.seconds) for name in names]) > 0)
    with open(os.devnull, "wb") as nowhere:
        progress = nowhere.fileno() if given.progress is None else given.progress
        try:
            cases = range(given.first, given.first + (given.count or 1))
            named = [int(case) for case in (given.cases or "").split(",") if case]
            _child(given.name, named or cases, progress, given.until)
        except Exception:
            traceback.print_exc()
            sys.exit(1)


if __name__ == "__main__":
    main()
