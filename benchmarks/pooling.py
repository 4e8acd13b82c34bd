"""Samples that curricula need with statistics pooled by label and without, beside uniform.

Every row is a scenario of the simulator; the figure is the ratio of pooled to plain, both measured
with the same seeds in one run. Seeds are none that tests use.

    python benchmarks/pooling.py
    python benchmarks/pooling.py --curricula learning-progress level-replay
    python benchmarks/pooling.py --quick --json
"""

from typing import Any

import harness

from stepladder.curricula import (
    FrontierConfig,
    LearnabilityConfig,
    LearningProgressConfig,
    LevelReplayConfig,
)
from stepladder.simulator import compare

SCENARIOS = (
    "chain-10",
    "chain-30",
    "grid-6x6",
    "noisy-10",
    "impossible-10",
    "forgetting-10",
    "mastered-20",
    "independent-30",
    "levels-5x200",
    "params-30x30",
    "hinder-6",
    "useless-5",
    "mislabelled-5",
    "shuffled-5",
)
POOLING: dict[str, Any] = {
    config.kind: config
    for config in (LearnabilityConfig, FrontierConfig, LearningProgressConfig, LevelReplayConfig)
}
"""Configs of the curricula that pool, by name."""


def main() -> None:
    """Measure, then say."""
    title = (__doc__ or "").splitlines()[0]
    options = harness.parser(title)
    options.add_argument("--seeds", type=int, default=8)
    options.add_argument("--envs", type=int, default=8)
    options.add_argument("--first-seed", type=int, default=4200)
    options.add_argument("--curricula", nargs="+", choices=POOLING, default=["learnability"])
    arguments = options.parse_args()
    report = harness.Report(title, as_json=arguments.json)
    num_seeds = 2 if arguments.quick else arguments.seeds
    for kind in arguments.curricula:
        both = {"pooled": POOLING[kind](pooled=True), "alone": POOLING[kind](pooled=False)}
        for name in SCENARIOS:
            table = compare(
                [name],
                both,
                num_seeds=num_seeds,
                seed=arguments.first_seed,
                num_envs=arguments.envs,
            )
            pooled, alone, uniform = (
                table.cell(name, one).ratio_to_oracle for one in ("pooled", "alone", "uniform")
            )
            report.add(
                f"{kind}, {name} (alone {alone:.2f}, uniform {uniform:.2f})",
                pooled,
                "x oracle",
                peer=alone,
            )


if __name__ == "__main__":
    main()
