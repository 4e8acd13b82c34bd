"""What `--dashboard` costs a training: without it, with it, and with a page open.

The three take turns, so that other programs on the machine slow all of them alike. Beside steps per
second stand the seconds of computing, of the training and its dashboard together: where other
programs use the cores, those alone can be compared. A page is read
as a browser reads it: the stream of news, and all answers of the run's page at each of them.

    python benchmarks/dashboard_beside.py --rounds 5
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

from stepladder.runs import RunReader

WAYS = ("without", "--dashboard", "page open")
QUESTIONS = ("story", "axes", "labels", "marks", "metrics", "held-out", "timeline", "draws")
FURTHER = ("practice", "films", "events", "family?of=success&", "series?name=overview/reward&")


def read_page(port: int, run: str, is_over: Callable[[], bool]) -> int:
    """Ask what the page of a run asks, at each piece of news; return how often."""
    news = HTTPConnection("127.0.0.1", port, timeout=60)
    news.request("GET", "/news")
    stream, num_read = news.getresponse(), 0
    while not is_over():
        try:
            if not stream.readline().startswith(b"data:"):
                continue
            asked = HTTPConnection("127.0.0.1", port, timeout=60)
            for question in (*QUESTIONS, *FURTHER):
                joint = "" if question.endswith("&") else "?"
                asked.request("GET", f"/api/{question}{joint}run={run}")
                asked.getresponse().read()
        except OSError:
            break
        num_read += 1
    return num_read


def measure(way: str, folder: Path, steps: int) -> tuple[float, float, int]:
    """Train once; return env steps per second, seconds of computing, and reads of the page."""
    words = ["train", "--total-steps", str(steps), "--out", str(folder), "--seed", "0"]
    words += [] if way == "without" else ["--dashboard"]
    process = subprocess.Popen(
        [sys.executable, "-m", "stepladder", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    told = process.stderr.readline() if way != "without" else ""
    reads: list[int] = []
    reader = None
    if way == "page open":
        found = re.search(r":(\d+)/", told)
        assert found, told
        ended = lambda: process.returncode is not None  # noqa: E731, a name for what is asked
        reader = threading.Thread(
            target=lambda: reads.append(read_page(int(found[1]), folder.name, ended))
        )
        reader.start()
    process.stderr.read()
    # The dashboard is a process of the training, which waits for it.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    if reader is not None:
        reader.join()
    with RunReader(folder).database() as database:
        first, last, num_steps = database.execute(
            "SELECT min(time), max(time), max(step) - min(step) FROM steps"
        ).fetchone()
    return num_steps / (last - first), usage.ru_utime + usage.ru_stime, sum(reads)


def main() -> None:
    """Measure, and print what each way costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=600_000)
    given = parser.parse_args()
    speeds: dict[str, list[float]] = {way: [] for way in WAYS}
    computing: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.rounds):
            # Each way is first once in three rounds.
            for way in WAYS[number % 3 :] + WAYS[: number % 3]:
                run = Path(folder, f"{number}-{WAYS.index(way)}")
                speed, seconds, reads = measure(way, run, given.steps)
                speeds[way].append(speed)
                computing[way].append(seconds)
                print(
                    f"{number} {way:12} {speed:9,.0f} steps/s, {seconds:.1f} s of computing, page "
                    f"read {reads} times",
                    flush=True,
                )
    for way in WAYS:
        told = {
            "way": way,
            "steps_per_second": round(median(speeds[way])),
            "seconds_of_computing": round(median(computing[way]), 1),
        }
        print(json.dumps(told))


if __name__ == "__main__":
    main()
