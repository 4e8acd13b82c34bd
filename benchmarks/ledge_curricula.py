"""Held-out levels of Ledge solved after equal env steps: curricula against the target stages alone.

Trains the same PPO several times per curriculum, each time with another seed, and lets it play the
held-out levels of `medium` and `complex`, which nobody practises. "target" practises generated
levels of these two stages alone; the others choose among all five. Prints the share solved with a
95 % interval over seeds, and the ratio to "target".

    python benchmarks/ledge_curricula.py --jobs 2
    python benchmarks/ledge_curricula.py --quick --json
"""

import json
import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import harness
import numpy as np

from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.frontier.config import FrontierConfig
from stepladder.curricula.learning_progress.config import LearningProgressConfig
from stepladder.curricula.uniform import UniformConfig
from stepladder.training.config import EvaluationConfig, TrainingConfig
from stepladder.training.presets import PRESETS, TARGET_STAGES

PEER = "target"
BAR = 2.0
NUM_LEVELS = 32
"""Held-out levels of the two stages."""

WAYS = {"drawn": False, "best action": True}
"""How the trained policy plays, its own way first, and whether that leaves nothing to chance."""

CURRICULA: dict[str, CurriculumConfig | None] = {
    PEER: UniformConfig(),
    "uniform": UniformConfig(),
    "staged": None,
    "learning-progress": LearningProgressConfig(),
    "frontier": FrontierConfig(),
}
"""None is the preset's own."""

Item = tuple[str, int, int]
"""Name of a curriculum, seed, env steps."""


def config_of(name: str, seed: int, num_steps: int) -> TrainingConfig:
    """Return what is trained: the preset, but for its curriculum."""
    preset, curriculum = PRESETS["ledge"], CURRICULA[name]
    return replace(
        preset,
        seed=seed,
        total_steps=num_steps,
        source={"stages": TARGET_STAGES} if name == PEER else preset.source,
        curriculum=preset.curriculum if curriculum is None else curriculum,
        evaluation=EvaluationConfig(every_steps=None, labels=TARGET_STAGES),
    )


def solved(item: Item) -> dict[str, Any]:
    """Train once; return the share of held-out levels that are solved, drawn and best action."""
    import torch

    from stepladder.agents.player import make_player
    from stepladder.training.evaluation import evaluate
    from stepladder.training.evaluation.request import EvaluationRequest
    from stepladder.training.loop import Trainer

    torch.set_num_threads(1)
    name, seed, num_steps = item
    config = config_of(name, seed, num_steps)
    trainer = Trainer(config)
    trainer.begin()
    while trainer.num_steps < num_steps:
        trainer.advance()
    description, weights = trainer.agent.description(), trainer.agent.weights()
    trainer.close()
    shares: dict[str, Any] = {"name": name, "seed": seed, "num_steps": trainer.num_steps}
    for way, is_deterministic in WAYS.items():
        request = replace(EvaluationRequest.of(config), is_deterministic=is_deterministic)
        result = evaluate(
            lambda num_rows: make_player(description, weights, num_rows, seed=seed), request
        )
        assert result.total.rate is not None
        shares[way] = result.total.rate.value
        for group in result.groups:
            assert group.rate is not None
            shares[f"{way}, {group.name}"] = group.rate.value
    return shares


def interval(shares: list[float]) -> tuple[float, float, float]:
    """Return the mean over seeds and a 95 % interval, by resampling seeds."""
    values, rng = np.array(shares), np.random.default_rng(0)
    means = rng.choice(values, (10_000, len(values))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


def results_of(items: list[Item], num_jobs: int) -> Iterator[dict[str, Any]]:
    """Train everything, in so many processes."""
    if num_jobs == 1:
        yield from map(solved, items)
        return
    with multiprocessing.get_context("spawn").Pool(num_jobs) as pool:
        yield from pool.imap_unordered(solved, items)


def main() -> None:
    """Measure, then say."""
    title = (__doc__ or "").splitlines()[0]
    options = harness.parser(title)
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--steps", type=int, default=4_000_000, help="env steps per training")
    options.add_argument("--jobs", type=int, default=1, help="trainings at the same time")
    options.add_argument("--only", nargs="*", default=list(CURRICULA), help="curricula")
    options.add_argument(
        "--out", type=Path, help="file for every single result; what it holds is not trained again"
    )
    arguments = options.parse_args()
    if arguments.quick:
        arguments.seeds, arguments.steps = 1, 60_000
    report = harness.Report(title, as_json=arguments.json)
    names = list(dict.fromkeys([PEER, *arguments.only]))
    items = [(name, seed, arguments.steps) for seed in range(arguments.seeds) for name in names]
    results: list[dict[str, Any]] = []
    if arguments.out is not None and arguments.out.exists():
        results = json.loads(arguments.out.read_text())
    done = {(result["name"], result["seed"]) for result in results}
    items = [item for item in items if item[:2] not in done]
    for result in results_of(items, arguments.jobs):
        results.append(result)
        if arguments.out is not None:
            arguments.out.write_text(json.dumps(results, indent=1))
        if not arguments.json:
            print(f"  {result['name']}, seed {result['seed']}: {result['drawn']:.3f}", flush=True)
    for way in WAYS:
        tell(report, way, {name: [r[way] for r in results if r["name"] == name] for name in names})


def tell(report: harness.Report, way: str, shares: dict[str, list[float]]) -> None:
    """Report the share of each curriculum; the bar is for the best."""
    means = {name: interval(values) for name, values in shares.items()}
    best = max((name for name in means if name != PEER), key=lambda name: means[name][0])
    for name, (mean, low, high) in means.items():
        report.add(
            f"{way}: {name} ({low:.3f} to {high:.3f})",
            mean,
            "solved",
            # A peer that solves nothing would be beaten by anybody: it counts as half a level.
            peer=None
            if name == PEER
            else max(means[PEER][0], 0.5 / NUM_LEVELS / len(shares[name])),
            at_least=BAR if name == best else None,
        )


if __name__ == "__main__":
    main()
