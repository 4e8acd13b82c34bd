"""Held-out levels of Ledge solved after equal env steps, by curriculum.

Trains the same agent several times per curriculum, each time with another seed, and lets it play
the levels of the set `test`, which nobody practises and no setting was chosen on, in its own way
and by its best actions. "target" practises generated levels of `medium` and `complex` alone; the
others choose among all stages. Prints the share solved with a 95 % interval over seeds: of the
target stages with the ratio to "target", of all stages, and of each. Phased curricula are left out:
their phases are a schedule that somebody has to write.

    python benchmarks/ledge_curricula.py --jobs 2
    python benchmarks/ledge_curricula.py --preset ledge-gpu --device cuda --steps 20_000_000
    python benchmarks/ledge_curricula.py --quick --json
"""

import json
import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np

from stepladder.curricula.advantage_bandit.config import AdvantageBanditConfig
from stepladder.curricula.auto.config import AutoConfig
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.frontier.config import FrontierConfig
from stepladder.curricula.learnability.config import LearnabilityConfig
from stepladder.curricula.learning_progress.config import LearningProgressConfig
from stepladder.curricula.level_replay.config import LevelReplayConfig
from stepladder.curricula.uniform import UniformConfig
from stepladder.games.ledge.game import CLIMB, LEDGE
from stepladder.games.ledge.held_out import TEST
from stepladder.training.config import EvaluationConfig, TrainingConfig
from stepladder.training.presets import PRESETS, TARGET_STAGES

PEER = "target"
BAR = 2.0
NUM_LEVELS = 128
"""Levels of the two target stages in the set `test`."""

WAYS = {"drawn": False, "best action": True}
"""How the trained policy plays, its own way first, and whether that leaves nothing to chance."""

CURRICULA: dict[str, CurriculumConfig | None] = {
    PEER: UniformConfig(),
    "uniform": UniformConfig(),
    "staged": None,
    "learnability": LearnabilityConfig(),
    "frontier": FrontierConfig(),
    "learning-progress": LearningProgressConfig(),
    "level-replay": LevelReplayConfig(),
    "advantage-bandit": AdvantageBanditConfig(),
    "auto": AutoConfig(),
}
"""None is one stage after the other, in the order of the preset."""


class Item(NamedTuple):
    """One training."""

    name: str
    """Of its curriculum."""

    seed: int
    num_steps: int
    preset: str
    device: str

    def config(self) -> TrainingConfig:
        """Return what is trained: the preset, but for its curriculum."""
        preset, curriculum = PRESETS[self.preset], CURRICULA[self.name]
        source: Any = preset.source
        stages = tuple(source.get("stages", CLIMB))
        if self.name == PEER:
            source = {**source, "stages": TARGET_STAGES}
        if curriculum is None:
            curriculum = LEDGE.curriculum(stages)
        agent = preset.agent
        if getattr(agent, "anneal_learning_rate", False):
            agent = replace(agent, anneal_steps=self.num_steps)
        return replace(
            preset,
            agent=agent,
            seed=self.seed,
            device=self.device,
            total_steps=self.num_steps,
            source=source,
            curriculum=curriculum,
            evaluation=EvaluationConfig(every_steps=None, labels=stages),
        )


def solved(item: Item) -> dict[str, Any]:
    """Train once; return the share of levels that are solved, by way and stage."""
    import torch

    from stepladder.agents.player import make_player
    from stepladder.training.evaluation import evaluate
    from stepladder.training.evaluation.request import EvaluationRequest
    from stepladder.training.loop import Trainer

    torch.set_num_threads(1)
    config = item.config()
    trainer = Trainer(config)
    trainer.begin()
    while trainer.num_steps < item.num_steps:
        trainer.advance()
    description, weights = trainer.agent.description(), trainer.agent.weights()
    trainer.close()
    shares: dict[str, Any] = {}
    for way, is_deterministic in WAYS.items():
        request = replace(
            EvaluationRequest.of(config), is_deterministic=is_deterministic, levels=TEST
        )
        result = evaluate(
            lambda num_rows: make_player(description, weights, num_rows, seed=item.seed), request
        )
        shares[way] = {group.name: group.rate.value for group in result.groups if group.rate}
    return {**item._asdict(), "solved": shares}


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
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--steps", type=int, default=4_000_000, help="env steps per training")
    options.add_argument("--preset", default="ledge", help="settings of all trainings")
    options.add_argument("--device", default="cpu", help="where the networks are")
    options.add_argument("--jobs", type=int, default=1, help="trainings at the same time")
    options.add_argument("--only", nargs="*", default=list(CURRICULA), help="curricula")
    options.add_argument(
        "--out", type=Path, help="file for every single result; what it holds is not trained again"
    )
    given = options.parse_args()
    if given.quick:
        given.seeds, given.steps = 1, 60_000
    report = harness.Report(title, as_json=given.json)
    names = list(dict.fromkeys([PEER, *given.only]))
    items = [
        Item(name, seed, given.steps, given.preset, given.device)
        for seed in range(given.seeds)
        for name in names
    ]
    results: list[dict[str, Any]] = []
    if given.out is not None and given.out.exists():
        results = json.loads(given.out.read_text())
    done = {Item(*(result[field] for field in Item._fields)) for result in results}
    for result in results_of([item for item in items if item not in done], given.jobs):
        results.append(result)
        if given.out is not None:
            given.out.write_text(json.dumps(results, indent=1))
        shares = result["solved"]["drawn"].values()
        report.note(f"  {result['name']}, seed {result['seed']}: {sum(shares) / len(shares):.3f}")
    results = [each for each in results if Item(*(each[f] for f in Item._fields)) in items]
    for way in WAYS:
        report_way(report, way, results)


def report_way(report: harness.Report, way: str, results: list[dict[str, Any]]) -> None:
    """Report the shares of each curriculum; the bar is for the best on the target stages."""
    stages = list(results[0]["solved"][way])
    groups = {
        " and ".join(TARGET_STAGES): TARGET_STAGES,
        "all stages": stages,
        **{stage: (stage,) for stage in stages},
    }
    for group, members in groups.items():
        shares = {
            name: [
                float(np.mean([each["solved"][way][stage] for stage in members]))
                for each in results
                if each["name"] == name
            ]
            for name in dict.fromkeys(each["name"] for each in results)
        }
        means = {name: interval(values) for name, values in shares.items()}
        is_target = tuple(members) == TARGET_STAGES
        best = max((name for name in means if name != PEER), key=lambda name: means[name][0])
        for name, (mean, low, high) in means.items():
            has_peer = is_target and name != PEER
            report.add(
                f"{way}, {group}: {name} ({low:.3f} to {high:.3f})",
                mean,
                "solved",
                # A peer that solves nothing would be beaten by anybody: it counts as half a level.
                peer=max(means[PEER][0], 0.5 / NUM_LEVELS / len(shares[name]))
                if has_peer
                else None,
                at_least=BAR if has_peer and name == best else None,
            )


if __name__ == "__main__":
    main()
