"""Does a calibrated copy rank curricula as training does? Held-out success, real and predicted.

Reads real trainings from benchmarks/data/prediction_ledge.json, fits the learner that generalises
to the uniform ones alone, plays every other curriculum on that copy for as many env steps with as
many envs, and compares held-out success of one label at the end: rank correlation, and whether the
predicted winner is among the real best. ``--train`` makes such trainings and adds them to the file.

    python benchmarks/prediction.py
    python benchmarks/prediction.py --train staged learning-progress --seeds 2 3 --jobs 2
"""

import json
import multiprocessing
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import harness
import numpy as np

from stepladder.curricula import (
    CurriculumConfig,
    LearnabilityConfig,
    LearningProgressConfig,
    LevelReplayConfig,
    UniformConfig,
)
from stepladder.simulator import make_engine
from stepladder.simulator.calibration import Practice, calibrate
from stepladder.training.config import EvaluationConfig
from stepladder.training.presets import PRESETS

DATA = Path(__file__).parent / "data" / "prediction_ledge.json"
PRESET = PRESETS["ledge"]
FITTED = "uniform"
LABEL = "medium"
NUM_STEPS = 6_000_000
BIN_STEPS = 500_000
BAR = 0.8

CURRICULA: dict[str, CurriculumConfig] = {
    FITTED: UniformConfig(),
    "learnability": LearnabilityConfig(),
    "learnability alone": LearnabilityConfig(pooled=False, exploration=0.0),
    # As it was when the trainings were made.
    "learning-progress": LearningProgressConfig(pooled=False),
    "level-replay": LevelReplayConfig(),
    "staged": PRESET.curriculum,
}

EARLIER = "learnability, earlier form"
"""Trainings whose weights inside a label were another (docs/prediction.md); played as the default,
which comes nearest. No longer trained."""

Run = dict[str, Any]


def trained(item: tuple[str, int]) -> Run:
    """Train once with the preset's settings; return what was practised, and held-out success."""
    import torch

    from stepladder.agents.player import make_player
    from stepladder.training.evaluation import evaluate
    from stepladder.training.evaluation.request import EvaluationRequest
    from stepladder.training.loop import Trainer

    torch.set_num_threads(1)
    name, seed = item
    evaluation = EvaluationConfig(every_steps=None)
    config = replace(PRESET, seed=seed, curriculum=CURRICULA[name], evaluation=evaluation)
    trainer = Trainer(replace(config, total_steps=NUM_STEPS))
    curriculum = trainer.curriculum
    labels = list(curriculum.pool.label_names)
    practised = np.zeros((NUM_STEPS // BIN_STEPS, len(labels), 4))

    def count(records: Any) -> None:
        row = practised[min(trainer.num_steps // BIN_STEPS, len(practised) - 1)]
        label = curriculum.pool.label_indices[records["slot"]]
        success, length = records["success"], records["length"]
        for column, value in enumerate((1.0, success, success * length, (1 - success) * length)):
            np.add.at(row[:, column], label, value)

    curriculum.add_listener(count)
    trainer.begin()
    while trainer.num_steps < NUM_STEPS:
        trainer.advance()
    description, weights = trainer.agent.description(), trainer.agent.weights()
    trainer.close()
    request = replace(EvaluationRequest.of(config), is_deterministic=False)
    result = evaluate(
        lambda num_rows: make_player(description, weights, num_rows, seed=seed), request
    )
    rates = {group.name: group.rate.value for group in result.groups if group.rate is not None}
    held_out = [rates[label] for label in labels]
    return {
        "curriculum": name,
        "seed": seed,
        "labels": labels,
        "practised": practised.round(1).tolist(),
        "held_out": held_out,
    }


def as_practice(run: Run) -> Practice:
    """Return a stored training as what `calibrate` reads of a run."""
    table = np.array(run["practised"])
    counts = PRESET.task_source().labels()
    num_tasks = (PRESET.task_source().num_tasks or 0) // len(counts)
    return Practice(
        name=f"{run['curriculum']}, seed {run['seed']}",
        groups=tuple(run["labels"]),
        num_tasks=np.full(len(run["labels"]), num_tasks),
        steps=np.arange(1, len(table) + 1) * BIN_STEPS,
        plays=table[:, :, 0],
        successes=table[:, :, 1],
        success_steps=table[:, :, 2],
        failure_steps=table[:, :, 3],
        num_envs=PRESET.num_envs,
        update_steps=getattr(PRESET.agent, "rollout_steps", 8192),
    )


def predicted(runs: list[Run], names: list[str], num_seeds: int) -> dict[str, float]:
    """Return held-out success of the label at the end, on a copy of the given trainings."""
    found = calibrate([as_practice(run) for run in runs], target=[LABEL])
    index = list(found.scenario.dynamics.groups).index(LABEL)
    results: dict[str, float] = {}
    for name in names:
        ends: list[float] = []
        for seed in range(num_seeds):
            learner = found.scenario.simulator(seed, PRESET.num_envs)
            config = CURRICULA["learnability" if name == EARLIER else name]
            curriculum = found.scenario.curriculum(config, seed)
            kind = "compiled" if curriculum.compiled_rule() else "direct"
            make_engine(kind, learner, curriculum, num_envs=PRESET.num_envs).advance(NUM_STEPS)
            ends.append(float(learner.held_out()[index]))
        results[name] = float(np.mean(ends))
    return results


def rank_correlation(first: list[float], second: list[float]) -> float:
    """Return Spearman's correlation; no two values are taken to be equal."""
    ranks = [np.argsort(np.argsort(values)) for values in (first, second)]
    squares = float(np.sum((ranks[0] - ranks[1]) ** 2))
    return 1.0 - 6.0 * squares / (len(first) * (len(first) ** 2 - 1))


def main() -> None:
    """Train if asked to; else predict, and say how well."""
    title = (__doc__ or "").splitlines()[0]
    options = harness.parser(title)
    options.add_argument("--train", nargs="*", default=[], choices=[*CURRICULA], help="curricula")
    options.add_argument("--seeds", type=int, nargs="*", default=[0], help="seeds to train with")
    options.add_argument("--jobs", type=int, default=1, help="trainings at the same time")
    arguments = options.parse_args()
    stored: list[Run] = json.loads(DATA.read_text())
    if arguments.train:
        items = [(name, seed) for name in arguments.train for seed in arguments.seeds]
        with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
            for run in pool.imap_unordered(trained, items):
                stored.append(run)
                DATA.write_text(json.dumps(stored, separators=(",", ":")) + "\n")
                print(run["curriculum"], run["seed"], run["held_out"], flush=True)
        return
    report = harness.Report(title, as_json=arguments.json)
    real: defaultdict[str, list[float]] = defaultdict(list)
    for run in stored:
        real[run["curriculum"]].append(run["held_out"][run["labels"].index(LABEL)])
    names = list(real)
    fitted = [run for run in stored if run["curriculum"] == FITTED]
    copies = predicted(fitted, names, 2 if arguments.quick else 4)
    for name in names:
        mean = float(np.mean(real[name]))
        report.add(f"{name}, {len(real[name])} real seeds", copies[name], "held out", peer=mean)
    means = [float(np.mean(real[name])) for name in names]
    correlation = rank_correlation(means, [copies[name] for name in names])
    report.add("rank correlation", correlation, "", at_least=BAR)
    winner = max(names, key=lambda name: copies[name])
    share = float(np.mean(real[winner])) / max(means)
    report.add(f"predicted winner ({winner}), of the real best", share, "", at_least=0.9)


if __name__ == "__main__":
    main()
