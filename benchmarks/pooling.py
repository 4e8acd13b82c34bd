"""Samples that learnability needs with statistics pooled by label and without, beside uniform.

Every row is a scenario of the simulator; the figure is the ratio of pooled to plain learnability,
both measured with the same seeds in one run. Seeds are none that tests use.

    python benchmarks/pooling.py
    python benchmarks/pooling.py --quick --json
"""

import harness

from stepladder.curricula import LearnabilityConfig
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
)
CURRICULA = {"pooled": LearnabilityConfig(), "alone": LearnabilityConfig(pooled=False)}


def main() -> None:
    """Measure, then say."""
    title = (__doc__ or "").splitlines()[0]
    options = harness.parser(title)
    options.add_argument("--seeds", type=int, default=8)
    options.add_argument("--envs", type=int, default=8)
    arguments = options.parse_args()
    report = harness.Report(title, as_json=arguments.json)
    num_seeds = 2 if arguments.quick else arguments.seeds
    for name in SCENARIOS:
        table = compare([name], CURRICULA, num_seeds=num_seeds, seed=4200, num_envs=arguments.envs)
        pooled, alone, uniform = (
            table.cell(name, one).ratio_to_oracle for one in ("pooled", "alone", "uniform")
        )
        report.add(
            f"{name} (alone {alone:.2f}, uniform {uniform:.2f})",
            pooled,
            "x oracle",
            peer=alone,
        )


if __name__ == "__main__":
    main()
