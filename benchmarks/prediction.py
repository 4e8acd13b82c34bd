"""Does a calibrated copy rank curricula as training does? Held-out success, real and predicted.

For every world (`prediction_worlds`): reads real trainings from benchmarks/data, fits the learner
that generalises to one uniform training, plays every curriculum on that copy for as many env steps
with as many envs, and compares success on held-out tasks of the judged labels: rank correlation,
and whether the predicted winner is among the real best. Each uniform training is taken in turn; the
prediction is the mean over these copies. ``--train`` makes trainings and adds them to the files.

    python benchmarks/prediction.py
    python benchmarks/prediction.py --world minigrid --train all --seeds 0 1 2 3 4 --jobs 16
    python benchmarks/prediction.py --world all --train all --seeds 0 --quick --out /tmp/try
"""

import argparse
import math
import sys
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import harness
import numpy as np
from prediction_training import DATA, Item, Run, form_of, read_runs, train_all
from prediction_worlds import EVALUATED_AT, FITTED, WORLDS, World

from stepladder.simulator import make_engine
from stepladder.simulator.calibration import HeldOut, Practice, RepeatedPlays, calibrate

BAR, NEAR = 0.8, 0.9
"""What the rank correlation must be, and the predicted winner's share of the real best."""

LAST = 3
"""Evaluations at the end of a training whose mean is its result."""

TRY = 0.01
"""Share of the budget that is trained with ``--quick``."""


def result_of(run: Run, labels: tuple[str, ...]) -> float:
    """Return the mean success on held-out tasks of some labels at the end of a training."""
    places = [run["labels"].index(label) for label in labels]
    exams = [[exam["success"][place] for place in places] for exam in run["evaluations"][-LAST:]]
    return float(np.mean(exams))


def as_practice(run: Run, world: World) -> Practice:
    """Return a stored training as what `calibrate` reads of a run."""
    table = np.array(run["practised"], dtype=np.float64)
    exams = [
        HeldOut(
            step=exam["step"],
            games=levels,
            successes=levels * np.array(exam["success"]),
        )
        for exam in run["evaluations"]
        # The same levels every time are no further facts.
        for levels in [np.array(exam["levels"]) / len(run["evaluations"])]
    ]
    repeated = run.get("repeats")
    return Practice(
        name=f"{run['curriculum']}, seed {run['seed']}",
        groups=tuple(run["labels"]),
        num_tasks=np.full(len(run["labels"]), world.num_tasks),
        steps=np.arange(1, len(table) + 1) * (run["steps"] // len(table)),
        plays=table[:, :, 0],
        successes=table[:, :, 1],
        success_steps=table[:, :, 2],
        failure_steps=table[:, :, 3],
        held_out=tuple(exams),
        repeats=None if repeated is None else RepeatedPlays.from_json(repeated),
        num_envs=world.config.num_envs,
        update_steps=getattr(world.config.agent, "rollout_steps", 8192),
    )


def predicted(run: Run, world: World, names: list[str], num_seeds: int) -> dict[str, float]:
    """Return held-out success of the judged labels at the end, on a copy of one training."""
    found = calibrate([as_practice(run, world)], target=world.judged)
    groups = list(found.scenario.dynamics.groups)
    places = [groups.index(label) for label in world.judged]
    num_envs, curricula = world.config.num_envs, world.curricula
    results: dict[str, float] = {}
    for name in names:
        ends: list[float] = []
        for seed in range(num_seeds):
            learner = found.scenario.simulator(seed, num_envs)
            curriculum = found.scenario.curriculum(curricula[name], seed)
            kind = "compiled" if curriculum.rule_in_force() else "direct"
            engine = make_engine(kind, learner, curriculum, num_envs=num_envs)
            for share in EVALUATED_AT[-LAST:]:
                engine.advance(int(share * world.config.total_steps))
                ends.append(float(learner.held_out()[places].mean()))
        results[name] = float(np.mean(ends))
    return results


def rank_correlation(first: list[float], second: list[float]) -> float:
    """Return Spearman's correlation; no two values are taken to be equal."""
    ranks = [np.argsort(np.argsort(values)) for values in (first, second)]
    squares = float(np.sum((ranks[0] - ranks[1]) ** 2))
    return 1.0 - 6.0 * squares / (len(first) * (len(first) ** 2 - 1))


def repeated(real: dict[str, list[float]]) -> float:
    """Return how well real results predict themselves: the rank correlation of two halves.

    The mean over all ways to take two seeds of every curriculum and compare them with the others.
    No prediction can be expected to rank curricula better than their own trainings do.
    """
    num_seeds = min(map(len, real.values()))
    found: list[float] = []
    for chosen in combinations(range(num_seeds), 2):
        halves = [
            [
                float(np.mean([result for seed, result in enumerate(results) if seed in part]))
                for results in real.values()
            ]
            for part in (set(chosen), set(range(num_seeds)) - set(chosen))
        ]
        found.append(rank_correlation(*halves))
    return float(np.mean(found))


def judge(world: World, report: harness.Report, num_seeds: int) -> None:
    """Predict all curricula of a world that were trained, and say how well."""
    real: defaultdict[str, list[float]] = defaultdict(list)
    fitted: list[Run] = []
    for run in read_runs(world.name):
        name = run["curriculum"]
        if name in world.curricula and run["form"] == form_of(name):
            real[name].append(result_of(run, world.judged))
            fitted += [run] if name == FITTED else []
    if not fitted:
        report.note(f"{world.name}: no uniform training is stored, so nothing can be fitted.")
        return
    names = [name for name in world.curricula if real[name]]
    copies = [predicted(run, world, names, num_seeds) for run in fitted]
    guesses = [float(np.mean([copy[name] for copy in copies])) for name in names]
    means = [float(np.mean(real[name])) for name in names]
    for name, guess, mean in zip(names, guesses, means, strict=True):
        error = float(np.std(real[name], ddof=1)) if len(real[name]) > 1 else math.nan
        line = f"{world.name}: {name}, {len(real[name])} seeds, deviation {error:.2f}"
        report.add(line, guess, "held out", peer=mean)
    for text, correlation in (
        ("one uniform run, mean of all", rank_correlation(means, guesses)),
        *(
            (f"uniform seed {run['seed']}", rank_correlation(means, [copy[n] for n in names]))
            for run, copy in zip(fitted, copies, strict=True)
        ),
    ):
        bar = BAR if text.startswith("one") else None
        report.add(f"{world.name}: rank correlation, {text}", correlation, "", at_least=bar)
    if min(len(real[name]) for name in names) > 3:
        text = f"{world.name}: rank correlation, two real seeds with the others"
        report.add(text, repeated({name: real[name] for name in names}), "")
    winner = int(np.argmax(guesses))
    share = means[winner] / max(means)
    text = f"{world.name}: predicted winner ({names[winner]}), of the real best"
    report.add(text, share, "", at_least=NEAR)


def train(arguments: argparse.Namespace, worlds: list[World]) -> int:
    """Make the trainings that were asked for; return how many failed."""
    share = TRY if arguments.quick else 1.0
    items = [
        Item(world.name, name, seed, share)
        # Seed by seed, so that what is there when time runs out can be compared.
        for seed in arguments.seeds
        for world in sorted(worlds, key=lambda world: -world.seconds)
        for name in world.curricula
        if name in arguments.train or "all" in arguments.train
    ]
    unknown = set(arguments.train) - {item.curriculum for item in items} - {"all"}
    if unknown:
        sys.exit(f"there is no curriculum {sorted(unknown)[0]!r} in {[w.name for w in worlds]}.")
    num_failed = 0
    folder = Path(arguments.out or DATA)
    for item, run in train_all(items, arguments.jobs, arguments.budget_seconds, folder):
        about = f"{item.world:<9} {item.curriculum:<19} {item.seed}"
        if run is None:
            num_failed += 1
            print(f"{about}  FAILED, see above", flush=True)
        else:
            judged = next(world.judged for world in worlds if world.name == item.world)
            print(f"{about}  {result_of(run, judged):.3f}  {run['seconds']:.0f} s", flush=True)
    return num_failed


def main() -> None:
    """Train if asked to; else predict, and say how well."""
    title = (__doc__ or "").splitlines()[0]
    options = harness.parser(title)
    options.add_argument("--world", nargs="*", default=["all"], choices=["all", *WORLDS])
    options.add_argument("--train", nargs="*", default=[], help="curricula to train, or all")
    options.add_argument("--seeds", type=int, nargs="*", default=[0], help="seeds to train with")
    options.add_argument("--jobs", type=int, default=1, help="trainings at the same time")
    options.add_argument(
        "--budget-seconds", type=float, default=math.inf, help="begin nothing that ends later"
    )
    options.add_argument("--out", help="folder of the files; by default benchmarks/data")
    arguments = options.parse_args()
    chosen = [*WORLDS] if "all" in arguments.world else arguments.world
    worlds = [WORLDS[name] for name in chosen]
    if arguments.train:
        sys.exit(1 if train(arguments, worlds) else 0)
    report = harness.Report(title, as_json=arguments.json)
    for world in worlds:
        judge(world, report, 2 if arguments.quick else 4)


if __name__ == "__main__":
    main()
