"""Time the peer library Syllabus (`syllabus-rl` 0.7) at the work a curriculum does per episode.

Runs inside an environment of its own, never inside ours: to draw from its learning-progress
curricula raises an error with NumPy 2.4 and works with 1.24. Linux, Python 3.11:

    python3.11 -m venv syllabus-venv
    cd syllabus-venv/bin
    ./pip install torch==2.13.0
    ./pip install numpy==1.24.4 gymnasium==0.29.1 matplotlib scipy syllabus-rl==0.7
    ./python PATH/TO/benchmarks/syllabus_peer.py --quick

torch comes first so that the next line finds a version and keeps it; matplotlib and scipy are
imported by the release but not declared by it.

Two things are measured, for three of its curricula, and printed as one JSON object per line:

- ``in_process/...`` in microseconds: draw one task and report one episode, called directly.
- ``sync_2_workers_N_steps/...`` in episodes per second, all workers together: the same through its
  multiprocessing wrapper. Each worker is a forked process that plays N-step episodes of an env that
  does nothing, with two tasks buffered; the process that serves the curriculum is otherwise idle.

The value is the median over rounds, and the cases take turns within a round. An episode is reported
as the wrapper reports it by default, by its end alone; ``OnlineLearningProgress`` learns nothing
from that, which makes it a little cheaper, not dearer. Every round of every case runs in a process
group that is killed when its time is up; a case without a single finished round is named on stderr
and makes the exit status 1. Importing Syllabus leaks one shared-memory block, so Python may warn
about that at the end.
"""

# Syllabus is not installed where our own checks run.
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.synchronize import Barrier
from typing import Any

import gymnasium
from syllabus.core import (
    DummyEvaluator,
    GymnasiumSyncWrapper,
    MultiProcessingComponents,
    TaskWrapper,
    make_multiprocessing_curriculum,
)
from syllabus.curricula import DomainRandomization, LearningProgress, OnlineLearningProgress
from syllabus.task_space import DiscreteTaskSpace

FORK = multiprocessing.get_context("fork")

SIZES = (1_000, 10_000, 100_000)
SYNC_TASKS = 1_000
SYNC_STEPS = (1, 100)
NUM_WORKERS = 2
BUFFERED_TASKS = 2
WARM_UP_EPISODES = 20
OLP_INTERVAL_EPISODES = 100

STOP_GRACE_S = 1.0
"""How long a finished process may take to go away before it is killed."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long to measure, and when to give up."""

    rounds: int
    """How often each case is measured."""

    seconds: float
    """Time measured per case and round, start-up not included."""

    case_limit_s: float
    """A round of one case is killed after this long."""

    total_limit_s: float
    """No round starts or goes on after this long."""


FULL = Budget(rounds=5, seconds=0.5, case_limit_s=20.0, total_limit_s=300.0)
QUICK = Budget(rounds=3, seconds=0.25, case_limit_s=8.0, total_limit_s=30.0)


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One of Syllabus's curricula, as measured here."""

    name: str
    build: Callable[[DiscreteTaskSpace], Any]
    cycle_episodes: int = 1
    """Episodes between two recomputations; a direct measurement covers whole cycles only."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One figure to print."""

    name: str
    num_tasks: int
    unit: str
    measure: Callable[[float], float]
    """Takes the seconds to spend, returns the value in ``unit``."""


def build_cached_learning_progress(task_space: DiscreteTaskSpace) -> LearningProgress:
    """Make a learning-progress curriculum that evaluates once, at its first draw, for free."""
    evaluator = DummyEvaluator(gymnasium.spaces.Discrete(2), task_space)
    return LearningProgress(evaluator, task_space)


PEERS = (
    Peer(name="domain_randomization", build=DomainRandomization),
    Peer(name="learning_progress_cached", build=build_cached_learning_progress),
    Peer(
        name=f"online_learning_progress_{OLP_INTERVAL_EPISODES}",
        build=partial(OnlineLearningProgress, update_interval=OLP_INTERVAL_EPISODES),
        cycle_episodes=OLP_INTERVAL_EPISODES,
    ),
)


class IdleEnv(gymnasium.Env[Any, Any]):
    """An env that does nothing for a fixed number of steps."""

    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, num_steps: int) -> None:
        self.num_steps = num_steps
        self.steps_played = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start over; nothing is random, so the seed is not used."""
        self.steps_played = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Count the step, whatever the action."""
        self.steps_played += 1
        return 0, 1.0, self.steps_played >= self.num_steps, False, {}


def measure_in_process(peer: Peer, num_tasks: int, seconds: float) -> float:
    """Return microseconds per draw and report, called directly."""
    curriculum = peer.build(DiscreteTaskSpace(num_tasks))

    def play(num_episodes: int) -> None:
        for _ in range(num_episodes):
            task = curriculum.sample(k=1)[0]
            curriculum.update_on_episode(1.0, 1, task, 1.0, env_id=0)

    play(peer.cycle_episodes)
    num_episodes = 0
    start = time.perf_counter()
    elapsed = 0.0
    while elapsed < seconds:
        play(peer.cycle_episodes)
        num_episodes += peer.cycle_episodes
        elapsed = time.perf_counter() - start
    return elapsed / num_episodes * 1e6


def play_in_worker(
    components: MultiProcessingComponents,
    task_space: DiscreteTaskSpace,
    num_steps: int,
    seconds: float,
    barrier: Barrier,
    results: Connection,
) -> None:
    """Play episodes for a while and send their rate, in episodes per second."""
    env = GymnasiumSyncWrapper(
        TaskWrapper(IdleEnv(num_steps)), task_space, components, buffer_size=BUFFERED_TASKS
    )

    def play_episode() -> None:
        env.reset()
        ended = False
        while not ended:
            _, _, terminated, truncated, _ = env.step(0)
            ended = terminated or truncated

    for _ in range(WARM_UP_EPISODES):
        play_episode()
    barrier.wait()
    num_episodes = 0
    start = time.perf_counter()
    elapsed = 0.0
    while elapsed < seconds:
        play_episode()
        num_episodes += 1
        elapsed = time.perf_counter() - start
    results.send(num_episodes / elapsed)
    # Nobody reads the queue of waiting times unless metrics are logged. Once it fills its pipe,
    # a worker that waits for it to be flushed never exits.
    components._task_time_queue.cancel_join_thread()


def measure_sync(peer: Peer, num_tasks: int, num_steps: int, seconds: float) -> float:
    """Return episodes per second of all workers together, through the multiprocessing wrapper."""
    task_space = DiscreteTaskSpace(num_tasks)
    curriculum = make_multiprocessing_curriculum(peer.build(task_space))
    barrier = FORK.Barrier(NUM_WORKERS)
    pipes = [FORK.Pipe(duplex=False) for _ in range(NUM_WORKERS)]
    workers = [
        FORK.Process(
            target=play_in_worker,
            args=(curriculum.components, task_space, num_steps, seconds, barrier, sender),
        )
        for _, sender in pipes
    ]
    for worker in workers:
        worker.start()
    for _, sender in pipes:
        sender.close()
    rate = sum(receiver.recv() for receiver, _ in pipes)
    for worker in workers:
        worker.join()
    curriculum.stop()
    return rate


def run_limited(measure: Callable[[float], float], seconds: float, limit_s: float) -> float | None:
    """Measure in a process group of its own; kill the group when the limit has passed.

    Returns:
        What was measured, or None when it failed or was not done in time.
    """

    def lead_group() -> None:
        # A process session of its own makes the child and its workers one group, killed as one.
        os.setsid()
        receiver.close()
        sender.send(measure(seconds))

    receiver, sender = FORK.Pipe(duplex=False)
    leader = FORK.Process(target=lead_group)
    leader.start()
    sender.close()
    try:
        # The leader is watched too: workers hold the pipe open if it dies before them.
        if wait([receiver, leader.sentinel], timeout=limit_s) and receiver.poll():
            return float(receiver.recv())
        return None
    except EOFError:
        return None
    finally:
        leader.join(STOP_GRACE_S)
        kill_group(leader.pid)
        leader.join()
        receiver.close()


def kill_group(leader_pid: int | None) -> None:
    """Kill what is left of a group, if anything is."""
    if leader_pid is not None:
        try:
            os.killpg(leader_pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def list_cases(sizes: list[int]) -> Iterator[Case]:
    """List the figures to print, in order."""
    for num_tasks in sizes:
        for peer in PEERS:
            yield Case(
                name=f"in_process/{peer.name}",
                num_tasks=num_tasks,
                unit="us",
                measure=partial(measure_in_process, peer, num_tasks),
            )
    for num_steps in SYNC_STEPS:
        for peer in PEERS:
            yield Case(
                name=f"sync_{NUM_WORKERS}_workers_{num_steps}_steps/{peer.name}",
                num_tasks=SYNC_TASKS,
                unit="episodes/s",
                measure=partial(measure_sync, peer, SYNC_TASKS, num_steps),
            )


def measure_all(cases: list[Case], budget: Budget) -> list[list[float]]:
    """Measure every case once per round, the cases taking turns; one list of values per case."""
    give_up_at = time.perf_counter() + budget.total_limit_s
    values: list[list[float]] = [[] for _ in cases]
    for _ in range(budget.rounds):
        for case, found in zip(cases, values, strict=True):
            limit_s = min(budget.case_limit_s, give_up_at - time.perf_counter() - STOP_GRACE_S)
            if limit_s <= 0:
                return values
            value = run_limited(case.measure, budget.seconds, limit_s)
            if value is not None:
                found.append(value)
    return values


def main() -> int:
    """Measure, print, and return 1 when a figure is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less exact, in under 40 s")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of tasks, in process"
    )
    arguments = parser.parse_args()
    if min(arguments.sizes) < 1:
        parser.error(f"--sizes takes numbers from 1 up; got {min(arguments.sizes)}.")

    budget = QUICK if arguments.quick else FULL
    cases = list(list_cases(arguments.sizes))
    missing = 0
    for case, values in zip(cases, measure_all(cases, budget), strict=True):
        if not values:
            missing += 1
            sys.stderr.write(f"{case.name}, {case.num_tasks} tasks: no round finished.\n")
            continue
        figure = {
            "name": case.name,
            "tasks": case.num_tasks,
            "value": round(statistics.median(values), 2),
            "unit": case.unit,
        }
        sys.stdout.write(json.dumps(figure) + "\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
