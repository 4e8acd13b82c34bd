"""What a curriculum costs: draw and report, in process, in batches, through processes, per step.

The peer of draw and report is a bare compiled sum tree with a fast and a slow average per task,
called the same way; of the worker processes, the same workers without a curriculum; of an env
step, the same vector env without one. Figures of Syllabus come from its own virtual environment,
if ``--syllabus PYTHON`` names its interpreter (see syllabus_peer.py).
"""

import json
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import SyncVectorEnv
from harness import Arm, Report, interleave, microseconds_each, parser
from numba import njit

from stepladder import CurriculumEnv, CurriculumVectorEnv, LearningProgress, Staged, Task, Uniform
from stepladder.curricula import Curriculum
from stepladder.sync import Client, SharedHost
from stepladder.tasks import ListSource

SIZES = (1_000, 10_000, 100_000, 1_000_000)
BATCH = 128
NUM_WORKERS = 2


# The bare tree.


@njit(cache=True)
def bare_sample(tree: Any, capacity: int) -> int:
    """Draw a leaf of a binary sum tree."""
    rest = np.random.random() * tree[1]  # noqa: NPY002, numba has no other generator
    node = 1
    while node < capacity:
        node *= 2
        if rest >= tree[node]:
            rest -= tree[node]
            node += 1
    return node - capacity


@njit(cache=True)
def bare_update(tree: Any, capacity: int, fast: Any, slow: Any, task: int, value: float) -> None:
    """Move both averages of a task and set its weight: their difference, and a little more."""
    fast[task] += 0.1 * (value - fast[task])
    slow[task] += 0.02 * (value - slow[task])
    node = task + capacity
    tree[node] = abs(fast[task] - slow[task]) + 1.0
    node >>= 1
    while node >= 1:
        tree[node] = tree[2 * node] + tree[2 * node + 1]
        node >>= 1


@njit(cache=True)
def bare_sample_many(tree: Any, capacity: int, tasks: Any) -> None:
    """Draw a batch."""
    for index in range(len(tasks)):
        tasks[index] = bare_sample(tree, capacity)


@njit(cache=True)
def bare_update_many(
    tree: Any, capacity: int, fast: Any, slow: Any, tasks: Any, values: Any
) -> None:
    """Report a batch."""
    for index in range(len(tasks)):
        bare_update(tree, capacity, fast, slow, tasks[index], values[index])


class BareTree:
    """The least that could do the job, called from Python like the product."""

    def __init__(self, num_tasks: int):
        self.capacity = 1 << (num_tasks - 1).bit_length()
        self.tree = np.zeros(2 * self.capacity)
        self.fast, self.slow = np.zeros(num_tasks), np.zeros(num_tasks)
        self.report(np.arange(num_tasks), np.ones(num_tasks))

    def report(self, tasks: Any, values: Any) -> None:
        """Report a batch."""
        bare_update_many(self.tree, self.capacity, self.fast, self.slow, tasks, values)

    def one_by_one(self, count: int) -> None:
        """Draw and report, one call each."""
        tree, capacity, fast, slow = self.tree, self.capacity, self.fast, self.slow
        for _ in range(count):
            bare_update(tree, capacity, fast, slow, bare_sample(tree, capacity), 1.0)

    def in_batches(self, count: int) -> None:
        """Draw and report, a batch per call."""
        tasks, values = np.zeros(BATCH, dtype=np.int64), np.ones(BATCH)
        for _ in range(count // BATCH):
            bare_sample_many(self.tree, self.capacity, tasks)
            self.report(tasks, values)


def one_by_one(curriculum: Curriculum) -> Callable[[int], None]:
    """Draw and report, one Python call each."""

    def work(count: int) -> None:
        draw_one, report = curriculum.draw_one, curriculum.report
        for _ in range(count):
            report(draw_one(), 1.0)

    return work


def in_batches(curriculum: Curriculum) -> Callable[[int], None]:
    """Draw and report, a batch per call."""

    def work(count: int) -> None:
        successes = np.ones(BATCH)
        for _ in range(count // BATCH):
            curriculum.report_batch(curriculum.draw_batch(BATCH), successes)

    return work


def staged(num_tasks: int) -> Staged:
    """Make a staged curriculum whose last stage holds nearly all tasks."""
    tasks = [Task("first", "easy"), *(Task(f"task{i}", "hard") for i in range(num_tasks - 1))]
    return Staged(tasks, stages=("easy", "hard"), starting_stage="hard")


def in_process(report: Report, quick: bool) -> None:
    """Measure draw and report in one process."""
    rounds, count = (5, 20_000) if quick else (9, 50_000)
    for num_tasks in SIZES:
        bare = BareTree(num_tasks)
        source = ListSource.numbered(num_tasks)
        curricula: dict[str, Curriculum] = {
            "LearningProgress": LearningProgress(source),
            "Uniform": Uniform(source),
        }
        if num_tasks <= 10_000:
            curricula["Staged"] = staged(num_tasks)
        singles: dict[str, Arm] = {"bare": microseconds_each(bare.one_by_one, count)}
        batches: dict[str, Arm] = {"bare": microseconds_each(bare.in_batches, 4 * count)}
        for name, curriculum in curricula.items():
            singles[name] = microseconds_each(one_by_one(curriculum), count)
            batches[name] = microseconds_each(in_batches(curriculum), 4 * count)
        for kind, arms in (("one call each", singles), (f"batches of {BATCH}", batches)):
            medians = interleave(arms, rounds)
            for name in curricula:
                judged = name == "LearningProgress" and (
                    num_tasks in (1_000, 1_000_000) if arms is singles else num_tasks == 100_000
                )
                report.add(
                    f"draw+report, {kind}, {num_tasks:,} tasks, {name}",
                    medians[name],
                    "us",
                    peer=medians["bare"],
                    at_most=2.0 if judged else None,
                )


# Through worker processes.


class NoOpEnv(gym.Env[Any, Any]):
    """Does nothing for a given number of steps, as cheaply as a Gymnasium env can."""

    observation_space = gym.spaces.Box(0.0, 1.0, (4,), np.float32)
    action_space = gym.spaces.Discrete(1)

    def __init__(self, length: int):
        self.length = length

    def set_task(self, task: Task) -> None:
        """Take a task and ignore it."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin."""
        self.left = self.length
        return np.zeros(4, dtype=np.float32), {}

    def step(self, action: Any) -> Any:
        """Count down."""
        self.left -= 1
        over = self.left <= 0
        return np.zeros(4, dtype=np.float32), 0.0, over, False, {"is_success": True} if over else {}


def make_env(length: int) -> gym.Env[Any, Any]:
    """Wrap a no-op env as ``gymnasium.make`` would, a checker left out."""
    return gym.wrappers.TimeLimit(gym.wrappers.OrderEnforcing(NoOpEnv(length)), length + 1)


def work(
    client: Client | None, length: int, ready: Event, stop: Event, counts: Any, me: int
) -> None:
    """Play episodes without pause until told to stop; what a worker process runs."""
    env = make_env(length)
    if client is not None:
        env = CurriculumEnv(env, client)
    env.reset()
    for _ in range(length):
        env.step(0)
    ready.set()
    episodes = 0
    while not stop.is_set():
        for _ in range(max(1, 200 // length)):
            env.reset()
            for _ in range(length):
                env.step(0)
            episodes += 1
        counts[me] = episodes


def through_workers(curriculum: Curriculum | None, length: int, seconds: float) -> float:
    """Return episodes per second of all workers together."""
    context = multiprocessing.get_context("fork")
    counts, stop = context.Array("q", NUM_WORKERS, lock=False), context.Event()
    host = None if curriculum is None else SharedHost(curriculum, NUM_WORKERS)
    ready = [context.Event() for _ in range(NUM_WORKERS)]
    workers = [
        context.Process(
            target=work,
            args=(host.client(me) if host else None, length, ready[me], stop, counts, me),
            daemon=True,
        )
        for me in range(NUM_WORKERS)
    ]
    for worker in workers:
        worker.start()
    for event in ready:
        event.wait(30)
    before, began = sum(counts), time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds:
        if host is None:
            time.sleep(0.01)
        elif not len(host.collect()):
            time.sleep(5e-5)
    rate = (sum(counts) - before) / elapsed
    stop.set()
    deadline = time.monotonic() + 10
    while any(worker.is_alive() for worker in workers) and time.monotonic() < deadline:
        if host is not None:
            host.collect()
        time.sleep(1e-3)
    for worker in workers:
        worker.kill()
        worker.join()
    if host is not None:
        host.close()
    return rate


def worker_figures(report: Report, quick: bool) -> None:
    """Measure whole episodes through worker processes."""
    rounds, seconds = (3, 0.5) if quick else (7, 1.0)
    for length in (1, 100):
        arms: dict[str, Arm] = {
            "bare": lambda length=length: through_workers(None, length, seconds)
        }
        for num_tasks in (1_000, 100_000):
            curriculum = LearningProgress(ListSource.numbered(num_tasks))
            arms[f"{num_tasks:,}"] = lambda curriculum=curriculum, length=length: through_workers(
                curriculum, length, seconds
            )
        medians = interleave(arms, rounds)
        for name in list(arms)[1:]:
            report.add(
                f"{NUM_WORKERS} workers, {length}-step episodes, {name} tasks",
                medians[name],
                "episodes/s",
                peer=medians["bare"],
                at_least=0.1 if length == 1 else None,
            )


# Per step.


class BusyEnv(NoOpEnv):
    """Spends CPU time in every step."""

    def __init__(self, length: int, busy_us: float):
        super().__init__(length)
        self.busy_ns = int(busy_us * 1000)

    def step(self, action: Any) -> Any:
        """Spin."""
        end = time.thread_time_ns() + self.busy_ns
        while time.thread_time_ns() < end:
            pass
        return super().step(action)


class Pole(gym.Wrapper[Any, Any, Any, Any]):
    """CartPole that takes a task and says how it went."""

    def __init__(self) -> None:
        super().__init__(gym.make("CartPole-v1").unwrapped)

    def set_task(self, task: Task) -> None:
        """Take a task and ignore it."""


def step_cost(report: Report, quick: bool) -> None:
    """Measure what a curriculum adds to the step of a vector env."""
    rounds, num_envs = (7 if quick else 15), 8
    cases: dict[str, tuple[Callable[[], gym.Env[Any, Any]], int]] = {
        "no-op": (lambda: make_env(200), 4_000),
        "CartPole": (Pole, 1_500),
        "busy 100 us": (lambda: BusyEnv(200, 100.0), 150),
    }
    for name, (make, num_steps) in cases.items():
        plain = SyncVectorEnv([make] * num_envs)
        curriculum = LearningProgress(ListSource.numbered(1_000))
        wrapped = CurriculumVectorEnv(
            SyncVectorEnv(
                [lambda make=make: CurriculumEnv(make(), return_threshold=100)] * num_envs
            ),
            curriculum,
        )
        arms = {
            "off": stepping(plain, num_steps, num_envs),
            "on": stepping(wrapped, num_steps, num_envs),
        }
        medians = interleave(arms, rounds)
        report.add(
            f"step of a vector env, {name}, curriculum on against off",
            medians["on"],
            "us",
            peer=medians["off"],
            at_most=1.02,
        )
        report.add(f"added per env step, {name}", medians["on"] - medians["off"], "us")
        wrapped.close()
        plain.close()


def stepping(envs: Any, num_steps: int, num_envs: int) -> Arm:
    """Make an arm that steps a vector env with fixed actions."""
    actions: npt.NDArray[np.int64] = np.zeros(num_envs, dtype=np.int64)
    envs.reset(seed=0)

    def run(count: int) -> None:
        for _ in range(count // num_envs):
            envs.step(actions)

    return microseconds_each(run, num_steps * num_envs)


# Import, and Syllabus.


def import_time(report: Report, quick: bool) -> None:
    """Measure how long a fresh interpreter takes to import the library."""

    def arm(module: str) -> Arm:
        def run() -> float:
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
            return time.perf_counter() - began

        return run

    arms = {name: arm(name) for name in ("stepladder", "stepladder.envs", "gymnasium")}
    medians = interleave(arms, 3 if quick else 7)
    report.add("import stepladder", medians["stepladder"], "s", at_most=0.5)
    report.add("import stepladder.envs (numba included)", medians["stepladder.envs"], "s")
    report.add("import gymnasium, for comparison", medians["gymnasium"], "s")


def syllabus(report: Report, interpreter: str | None, quick: bool) -> None:
    """Report Syllabus's figures, measured now in its own virtual environment."""
    if interpreter is None:
        return
    script = Path(__file__).with_name("syllabus_peer.py")
    command = [interpreter, str(script), *(["--quick"] if quick else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    for line in done.stdout.splitlines():
        row = json.loads(line)
        report.add(f"Syllabus {row['name']}, {row['tasks']:,} tasks", row["value"], row["unit"])


def main() -> None:
    """Measure everything."""
    options = parser(__doc__ or "")
    options.add_argument("--syllabus", help="interpreter of a virtual environment with Syllabus")
    arguments = options.parse_args()
    report = Report(
        "Curriculum overhead: Stepladder against a bare compiled sum tree, bare workers and bare "
        "vector envs.",
        as_json=arguments.json,
    )
    in_process(report, arguments.quick)
    worker_figures(report, arguments.quick)
    step_cost(report, arguments.quick)
    import_time(report, arguments.quick)
    syllabus(report, arguments.syllabus, arguments.quick)


if __name__ == "__main__":
    main()
