"""What the curricula promise: samples on simulated learners, and held-out levels of real training.

Every row is a bar of docs/curricula.md with its figure; one that is missed says so. Seeds are none
by which anything was chosen. Real trainings are not made here: they are read from benchmarks/data
(`prediction.py` makes them). The order of curricula on a calibrated copy is measured by
`prediction.py`, the speed of the compiled engine by `simulator.py`.

    python benchmarks/bars.py
    python benchmarks/bars.py --quick --json
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import harness
import numpy as np
from prediction_training import form_of, read_runs
from prediction_worlds import LEDGE

from stepladder import Task
from stepladder.curricula import Frontier, Learnability, LearningProgress, LevelReplay
from stepladder.curricula.base import Curriculum
from stepladder.simulator import GraphScenario, Scenario, compare, scenario

FIRST_SEED = 9_000
GROWN = 1.05
"""By how much the suite of before may have become worse."""

SUITE_BEFORE = {
    ("chain-10", "frontier"): 1.8,
    ("chain-30", "frontier"): 2.9,
    ("grid-6x6", "frontier"): 1.7,
    ("chain-10", "frontier-features"): 1.4,
    ("chain-30", "frontier-features"): 1.4,
    ("grid-6x6", "frontier-features"): 1.4,
}
"""Multiples of the oracle's samples that were reached before tasks were judged together."""

SLOW = ("chain-10-slow20", "chain-10-slow200", "chain-10-slow2000", "levels-5x200-slow10")
"""Learners that take the oracle 10,000, 100,000 and a million plays, and one that generalises."""

EVEN = ("independent-30", "plateau-30")
EVEN_SEEDS = 8
"""Times as many seeds as elsewhere: what is compared there differs by less than a tenth."""

TOLD_ORDER = ("staged", "phased")
SOLVED, WORST = 0.70, 0.50


def half_impossible(num_tasks: int) -> Scenario:
    """Return a tree of tasks whose leaves, every other task, are impossible."""
    tree = scenario(f"tree-{num_tasks}")
    if not isinstance(tree, GraphScenario):
        raise TypeError(f"a tree is a graph; got {type(tree).__name__}.")
    leaves = tuple(range(num_tasks // 2, num_tasks))
    return replace(tree, name=f"tree-{num_tasks}, leaves impossible", impossible=leaves)


def simulated(report: harness.Report, num_seeds: int) -> None:
    """Measure what is promised of simulated learners."""

    def ratios(
        place: str | Scenario, names: list[str], num_envs: int = 1, seeds: int = num_seeds
    ) -> list[float]:
        table = compare([place], names, num_seeds=seeds, seed=FIRST_SEED, num_envs=num_envs)
        own = place if isinstance(place, str) else place.name
        return [table.cell(own, name).ratio_to_oracle for name in names]

    for (name, curriculum), before in SUITE_BEFORE.items():
        (found,) = ratios(name, [curriculum])
        report.add(f"{name}: {curriculum}", found, "x oracle", at_most=GROWN * before)
    for name in SLOW:
        (found,) = ratios(name, ["frontier"], num_envs=128, seeds=min(8, num_seeds))
        report.add(f"{name}, 128 envs: frontier", found, "x oracle", at_most=1.6)
    (found,) = ratios("params-300x300", ["frontier"], num_envs=128, seeds=2)
    report.add("params-300x300, 128 envs: frontier", found, "x oracle", at_most=2.0)
    for name in EVEN:
        found, uniform = ratios(name, ["frontier", "uniform"], seeds=EVEN_SEEDS * num_seeds)
        report.add(f"{name}: frontier beside uniform", found, "x oracle", peer=uniform, at_most=1.1)
    found, plain = ratios(half_impossible(63), ["frontier-features", "frontier"])
    report.add("tree-63, half impossible: features", found, "x oracle", peer=plain, at_most=1.0)


def flat(report: harness.Report, num_plays: int) -> None:
    """Report what a draw and its report cost with 100,000 tasks in five labels, beside 1,000."""

    def cost(kind: Callable[..., Curriculum], num_tasks: int) -> float:
        tasks = [Task(f"{number}", f"label {number % 5}") for number in range(num_tasks)]
        curriculum = kind(tasks, seed=0)
        results = (np.random.default_rng(0).random(num_plays) < 0.4).astype(float).tolist()
        turns: list[float] = []
        for _ in range(6):
            began = time.thread_time()
            for success in results:
                draw = curriculum.draw_one()
                curriculum.report(draw, success=success, episode_return=success, length=10)
            turns.append((time.thread_time() - began) / num_plays * 1e6)
        return min(turns)

    pooled_replay = partial(LevelReplay, pooled=True)
    for kind in (Learnability, Frontier, LearningProgress, pooled_replay):
        name = getattr(kind, "__name__", LevelReplay.__name__)
        few, many = cost(kind, 1_000), cost(kind, 100_000)
        report.add(f"{name}, pooled: 100,000 tasks beside 1,000", many, "µs", peer=few)


def trained(report: harness.Report) -> None:
    """Report the last evaluation of the stored trainings on Ledge, curriculum by curriculum."""
    (label,) = LEDGE.judged
    ends: dict[str, list[float]] = {}
    for run in read_runs(LEDGE.name):
        name = run["curriculum"]
        if name in LEDGE.curricula and run["form"] == form_of(name):
            last = run["evaluations"][-1]["success"][run["labels"].index(label)]
            ends.setdefault(name, []).append(last)
    free = {name: values for name, values in ends.items() if name not in TOLD_ORDER}
    best = max(free, key=lambda name: float(np.mean(free[name])))
    for name, values in sorted(ends.items(), key=lambda one: -float(np.mean(one[1]))):
        text = f"Ledge, {label}: {name}, mean of {len(values)} seeds"
        bar = SOLVED if name == best else None
        report.add(text, float(np.mean(values)), "held out", at_least=bar)
    worst = min(free[best])
    report.add(f"Ledge, {label}: {best}, its worst seed", worst, "held out", at_least=WORST)


def main() -> None:
    """Measure, then say."""
    title = (__doc__ or "").splitlines()[0]
    arguments = harness.parser(title).parse_args()
    report = harness.Report(title, as_json=arguments.json)
    simulated(report, 2 if arguments.quick else 32)
    trained(report)
    flat(report, 2_000 if arguments.quick else 20_000)


if __name__ == "__main__":
    main()
