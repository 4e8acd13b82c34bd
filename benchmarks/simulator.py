"""How fast the simulator plays: compiled, direct and through envs, against plain Python objects.

The peer is what one writes in plain Python for the same job: objects with a skill and two averages,
`random.choices` by learning progress, a loop over all tasks to forget. A second peer knows the same
shortcuts as ours (a common scale for forgetting, a sum tree to draw from); what is compared there
is the language and the machinery, not the algorithm.
"""

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

from harness import Arm, Report, interleave, parser

from stepladder.curricula import Frontier, Learnability, LearningProgress, LevelReplay, Uniform
from stepladder.curricula.base import Curriculum
from stepladder.curricula.reporting.meter import CurriculumMeter
from stepladder.simulator import (
    Generalising,
    GeneralisingSimulator,
    TaskDependencySimulator,
    TaskGraph,
    make_engine,
)
from stepladder.simulator.engines import EngineName

NUM_TASKS = 100


class PlainTask:
    """One task of the plain version: its skill, its parents, its two averages."""

    def __init__(self, parents: "list[PlainTask]"):
        self.parents = parents
        self.skill = 0.01
        self.fast = 0.0
        self.slow = 0.0
        self.plays = 0


class PlainSimulation:
    """The same simulation as plain Python objects, the obvious way."""

    def __init__(self, num_tasks: int, seed: int):
        self.random = random.Random(seed)
        self.tasks: list[PlainTask] = []
        for node in range(num_tasks):
            self.tasks.append(PlainTask([self.tasks[node - 1]] if node else []))
        self.weights = [1.0] * num_tasks

    def gain(self, task: PlainTask, rate: float) -> None:
        """Let a task learn as far as its prerequisites are there."""
        gate = 1.0
        for parent in task.parents:
            gate *= parent.skill * parent.skill
        task.skill += rate * gate * (1.0 - task.skill)

    def run(self, num_plays: int) -> None:
        """Play."""
        nodes = range(len(self.tasks))
        for _ in range(num_plays):
            node = self.random.choices(nodes, self.weights)[0]
            task = self.tasks[node]
            success = 1.0 if self.random.random() < task.skill else 0.0
            task.plays += 1
            task.fast += 0.16 * (success - task.fast)
            task.slow += 0.04 * (success - task.slow)
            self.weights[node] = abs(task.fast - task.slow) + 0.01
            self.gain(task, 0.05)
            for parent in task.parents:
                self.gain(parent, 0.005)
            for other in self.tasks:
                other.skill *= 1.0 - 2e-5


class TunedSimulation:
    """The same simulation as plain Python objects, with every shortcut that ours takes."""

    def __init__(self, num_tasks: int, seed: int):
        self.random = random.Random(seed)
        self.tasks: list[PlainTask] = []
        for node in range(num_tasks):
            self.tasks.append(PlainTask([self.tasks[node - 1]] if node else []))
        self.capacity = 1
        while self.capacity < num_tasks:
            self.capacity *= 2
        self.tree = [0.0] * (2 * self.capacity)
        self.scale = 1.0
        for node in range(num_tasks):
            self.set_weight(node, 1.0)

    def set_weight(self, node: int, weight: float) -> None:
        """Write a weight and the sums above it."""
        tree = self.tree
        node += self.capacity
        tree[node] = weight
        while node > 1:
            node >>= 1
            tree[node] = tree[2 * node] + tree[2 * node + 1]

    def draw(self) -> int:
        """Draw a task by weight."""
        tree, capacity = self.tree, self.capacity
        rest = self.random.random() * tree[1]
        node = 1
        while node < capacity:
            node *= 2
            if rest >= tree[node]:
                rest -= tree[node]
                node += 1
        return node - capacity

    def gain(self, task: PlainTask, rate: float) -> None:
        """Let a task learn as far as its prerequisites are there."""
        gate = 1.0
        for parent in task.parents:
            skill = parent.skill * self.scale
            gate *= skill * skill
        skill = task.skill * self.scale
        task.skill = (skill + rate * gate * (1.0 - skill)) / self.scale

    def run(self, num_plays: int) -> None:
        """Play."""
        for _ in range(num_plays):
            node = self.draw()
            task = self.tasks[node]
            success = 1.0 if self.random.random() < task.skill * self.scale else 0.0
            task.plays += 1
            task.fast += 0.16 * (success - task.fast)
            task.slow += 0.04 * (success - task.slow)
            self.set_weight(node, abs(task.fast - task.slow) + 0.01)
            self.gain(task, 0.05)
            for parent in task.parents:
                self.gain(parent, 0.005)
            self.scale *= 1.0 - 2e-5


def plain_arm(kind: type[PlainSimulation] | type[TunedSimulation], num_plays: int) -> Arm:
    """Measure a plain version, in samples per second."""

    def arm() -> float:
        simulation = kind(NUM_TASKS, 0)
        began = time.perf_counter()
        simulation.run(num_plays)
        return num_plays / (time.perf_counter() - began)

    return arm


def prepared(
    name: EngineName,
    kind: type[Curriculum],
    num_envs: int,
    seed: int,
    metered: bool,
    num_workers: int,
):
    """Make an engine over a fresh chain."""
    simulator = TaskDependencySimulator(TaskGraph.chain(NUM_TASKS), seed=seed, num_envs=num_envs)
    curriculum = kind(simulator.source(), seed=seed)  # type: ignore[call-arg]
    meter = CurriculumMeter(curriculum) if metered else None
    return make_engine(
        name, simulator, curriculum, num_envs=num_envs, meter=meter, num_workers=num_workers
    )


def engine_arm(
    name: EngineName,
    num_plays: int,
    *,
    kind: type[Curriculum] = LearningProgress,
    num_envs: int = 1,
    metered: bool = False,
    num_workers: int = 0,
) -> Arm:
    """Measure an engine, in samples per second."""

    def arm() -> float:
        engine = prepared(name, kind, num_envs, 0, metered, num_workers)
        # The first rounds build what is built once: the plan, the envs, their workers.
        engine.advance(4 * num_envs)
        began = time.perf_counter()
        engine.advance(num_plays)
        took = time.perf_counter() - began
        engine.close()
        return num_plays / took

    return arm


def generalising_arm(
    num_plays: int, *, kind: type[Curriculum] = LearningProgress, num_envs: int = 8
) -> Arm:
    """Measure the learner that generalises in compiled code, in plays per second of CPU time.

    Its bar is per core, so time in which the core was busy with something else does not count.
    """
    dynamics = Generalising(
        groups=tuple("abcde"),
        num_tasks=(NUM_TASKS // 5,) * 5,
        difficulty=(0.0, 1.0, 2.0, 3.0, 4.0),
        spread=(1.0,) * 5,
        success_steps=(5,) * 5,
        failure_steps=(10,) * 5,
    )

    def arm() -> float:
        simulator = GeneralisingSimulator(dynamics, num_envs=num_envs)
        curriculum = kind(simulator.source())  # type: ignore[call-arg]
        engine = make_engine("compiled", simulator, curriculum, num_envs=num_envs)
        engine.advance(100 * num_envs)
        before, began = simulator.num_plays, time.thread_time()
        # About seven env steps a play, its reset included.
        engine.advance(7 * num_plays)
        return (simulator.num_plays - before) / (time.thread_time() - began)

    return arm


def threads_arm(num_plays: int, num_seeds: int) -> Arm:
    """Measure many seeds of the compiled engine on all cores, in samples per second together."""

    def arm() -> float:
        engines = [
            prepared("compiled", LearningProgress, 1, seed, False, False)
            for seed in range(num_seeds)
        ]
        began = time.perf_counter()
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            list(threads.map(lambda engine: engine.advance(num_plays), engines))
        return num_seeds * num_plays / (time.perf_counter() - began)

    return arm


def main() -> None:
    """Measure everything."""
    options = parser(__doc__ or "").parse_args()
    report = Report(
        f"Simulated samples per second, {NUM_TASKS} tasks in a chain: ours against plain Python",
        as_json=options.json,
    )
    effort = 1 if options.quick else 4
    arms = {
        "plain": plain_arm(PlainSimulation, 10_000 * effort),
        "tuned": plain_arm(TunedSimulation, 50_000 * effort),
        "compiled": engine_arm("compiled", 2_000_000 * effort),
        "compiled, 8 envs": engine_arm("compiled", 2_000_000 * effort, num_envs=8),
        "compiled, Uniform": engine_arm("compiled", 2_000_000 * effort, kind=Uniform),
        "compiled, Frontier": engine_arm("compiled", 2_000_000 * effort, kind=Frontier),
        "compiled, all cores": threads_arm(500_000 * effort, 8),
        **{
            f"learner that generalises, {kind.__name__}": generalising_arm(
                1_000_000 * effort, kind=kind
            )
            for kind in (Uniform, Learnability, Frontier, LearningProgress, LevelReplay)
        },
        "learner that generalises, LearningProgress, 128 envs": generalising_arm(
            1_000_000 * effort, num_envs=128
        ),
        "direct, 1 env": engine_arm("direct", 20_000 * effort, metered=True),
        "direct, 8 envs": engine_arm("direct", 80_000 * effort, num_envs=8, metered=True),
        "envs, 8 envs": engine_arm("envs", 4_000 * effort, num_envs=8, metered=True),
        "envs, 7 workers": engine_arm(
            "envs", 2_000 * effort, num_envs=8, metered=True, num_workers=7
        ),
    }
    medians = interleave(arms, 3 if options.quick else 7)
    plain, tuned = medians.pop("plain"), medians.pop("tuned")
    bars = {"compiled": 40.0, "direct, 1 env": 1.0, "direct, 8 envs": 1.0}
    for name, value in medians.items():
        report.add(name, value, "samples/s", peer=plain, at_least=bars.get(name))
    report.add("plain Python with our shortcuts", tuned, "samples/s", peer=plain)
    report.add(
        "compiled, against plain Python with our shortcuts",
        medians["compiled"],
        "samples/s",
        peer=tuned,
    )


if __name__ == "__main__":
    main()
