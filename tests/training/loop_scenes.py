"""A loop of one's own, so small that a test can run several; also as a program of its own.

Started as ``python loop_scenes.py FOLDER STEPS`` it says after every report how far it is, and
waits for a line before it goes on, so that a test can kill it where it wants.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stepladder import Staged, Task, make_vec, run
from stepladder.training.config import CheckpointConfig
from stepladder.training.loop_run import LoopRun
from testing_env import PracticeEnv

NUM_ENVS, LENGTH = 3, 4
CHUNK = NUM_ENVS * LENGTH
"""Env steps between two reports; every episode takes as long, and none is under way then."""

EVERY_CHUNK = CheckpointConfig(every_steps=1)
EVERY_OTHER_CHUNK = CheckpointConfig(every_steps=2 * CHUNK)
RARELY = CheckpointConfig(every_s=1e6)


def tasks(count: int = 6) -> list[Task]:
    """Return tasks of two stages; of the second one, every other one succeeds."""
    return [
        Task(f"t{n}", "ab"[n % 2], {"length": LENGTH, "success": float(n % 4 != 1)})
        for n in range(count)
    ]


def staged(**settings: Any) -> Staged:
    """Return the curriculum, which advances after a few episodes."""
    return Staged(tasks(), stages=("a", "b"), threshold=0.9, min_episodes=6, seed=2, **settings)


def vec(curriculum: Any, num_envs: int = NUM_ENVS) -> Any:
    """Return envs in this process, which reset inside the step."""
    return make_vec(
        PracticeEnv, num_envs, curriculum=curriculum, num_workers=0, autoreset_mode="SameStep"
    )


class Counter:
    """Stands for an agent: it has a number that must survive."""

    def __init__(self) -> None:
        self.value = 0

    def save(self, folder: Path) -> None:
        (folder / "value.txt").write_text(str(self.value))

    def load(self, folder: Path) -> None:
        self.value = int((folder / "value.txt").read_text())


def play(
    folder: Path,
    num_steps: int,
    *,
    on_report: Callable[[LoopRun], object] = lambda loop: None,
    **settings: Any,
) -> Counter:
    """Keep a run until so many env steps, and go on with it if it is there."""
    envs, agent = vec(staged()), Counter()
    settings = {"epoch_steps": 2 * CHUNK, "checkpoints": EVERY_CHUNK, "resume": True, **settings}
    try:
        with run(folder, envs, save=agent.save, **settings) as loop:
            if loop.saved is not None:
                agent.load(loop.saved)
            loop.reset(seed=0)
            while loop.num_steps < num_steps:
                for _ in range(LENGTH):
                    loop.step(np.zeros(NUM_ENVS, dtype=np.int64))
                agent.value += 1
                loop.report({"policy": agent.value}, {"mine/value": agent.value})
                on_report(loop)
    finally:
        envs.close()
    return agent


def main() -> None:
    """Run as a program."""

    def say(loop: LoopRun) -> None:
        sys.stdout.write(f"{loop.num_steps} {loop.num_episodes}\n")
        sys.stdout.flush()
        sys.stdin.readline()

    play(Path(sys.argv[1]), int(sys.argv[2]), on_report=say, checkpoints=EVERY_OTHER_CHUNK)


if __name__ == "__main__":
    main()
