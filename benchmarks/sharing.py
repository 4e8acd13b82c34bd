"""Two trainings on one machine: what each of them makes, beside one alone.

    python benchmarks/sharing.py [--quick] [--json] [--presets ledge hockey-sac]

Each arm runs real commands and looks at their runs for a while once they learn: one
``stepladder train``, two of them at once, and ``stepladder train --seeds 2 --jobs 2``. Beside env
steps per second stand processor seconds per 1,000 env steps, which rise if threads wait by
spinning; other programs on the machine change them less than the speed.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness import Report

from stepladder.errors import RunError
from stepladder.runs import RunReader

SETTINGS = {
    "ledge": ("--epoch-steps", "4096"),
    # Without updates it is a hundred times as fast: its warm-up is short, and not looked at.
    "hockey-sac": (*("--epoch-steps", "64", "--num-envs", "16", "--agent.warmup-steps", "512"),),
}
"""An epoch, between two looks, is about a second."""

LEARNS_FROM = 1_024
"""Env steps that are not looked at."""

ENDLESS = ("--total-steps", "1000000000", "--evaluation.every-steps", "None")


@contextmanager
def trainings(preset: str, folders: Sequence[Path], *more: str) -> Iterator[list[int]]:
    """Run one training per folder; yield the ids of the processes."""
    processes = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "stepladder", "train", preset, *ENDLESS, *more),
                *SETTINGS[preset],
                *("--out", str(folder), "--seed", str(seed)),
            ],
            stdout=subprocess.DEVNULL,
        )
        for seed, folder in enumerate(folders)
    ]
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.send_signal(signal.SIGINT)
        for process in processes:
            process.wait(120)


def stand(folder: Path) -> tuple[int, float]:
    """Return env steps and moment of the last epoch of a run; zeros before it learns."""
    try:
        steps, times = RunReader(folder).times()
    except RunError:
        return 0, 0.0
    is_learning = len(steps) > 1 and steps[-1] > LEARNS_FROM
    return (int(steps[-1]), float(times[-1])) if is_learning else (0, 0.0)


def processor_s(pid: int) -> float:
    """Return the processor seconds that a process and its threads have used."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def measured(
    runs: Sequence[Path], pids: Sequence[int], seconds: float
) -> tuple[list[float], float]:
    """Return the env steps per second of each run, and processor seconds per 1,000 steps."""
    while not all(stand(run)[0] for run in runs):
        time.sleep(0.2)
    before, used = [stand(run) for run in runs], sum(map(processor_s, pids))
    time.sleep(seconds)
    after, used = [stand(run) for run in runs], sum(map(processor_s, pids)) - used
    rates = [
        (step - first) / max(1e-9, moment - began)
        for (first, began), (step, moment) in zip(before, after, strict=True)
    ]
    num_steps = sum(b[0] - a[0] for a, b in zip(before, after, strict=True))
    return rates, 1_000.0 * used / max(1, num_steps)


def main() -> None:
    """Measure one, two, and two seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="look for 6 seconds instead of 20")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--presets", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    arguments = parser.parse_args()
    seconds = 6.0 if arguments.quick else 20.0
    report = Report("two trainings at once beside one alone", as_json=arguments.json)
    load, per_k = "load of the machine", "processor seconds per 1,000 steps"
    for preset in arguments.presets:
        report.note(f"{load}: {os.getloadavg()[0]:.1f}")
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder)
            one = [here / "one"]
            with trainings(preset, one) as pids:
                (alone,), cost = measured(one, pids, seconds)
            report.add(f"{preset}, alone", alone, "steps/s")
            report.add(f"{preset}, alone: {per_k}", cost, "s")
            two = [here / "a", here / "b"]
            with trainings(preset, two) as pids:
                rates, both = measured(two, pids, seconds)
            for name, rate in zip("ab", rates, strict=True):
                text = f"{preset}, two commands: {name}"
                report.add(text, rate, "steps/s", peer=alone, at_least=0.4)
            report.add(f"{preset}, two commands: {per_k}", both, "s", peer=cost, at_most=1.25)
            parent = here / "seeds"
            with trainings(preset, [parent], "--seeds", "2", "--jobs", "2"):
                rates, _ = measured([parent / "seed-0", parent / "seed-1"], (), seconds)
            for seed, rate in enumerate(rates):
                text = f"{preset}, --seeds 2 --jobs 2: seed {seed}"
                report.add(text, rate, "steps/s", peer=alone, at_least=0.4)


if __name__ == "__main__":
    main()
