"""SEVERAL SEEDS OF ONE TRAINING: the folder that holds their runs, and what they came to.

Written by `training.seeds`, read by reports, the dashboard and sweeps.
"""

from stepladder.runs.seeds.folder import (
    SeedsInfo,
    holds_seeds,
    seed_folder,
    with_runs_of_seeds,
)
from stepladder.runs.seeds.summary import OverSeeds, SeedsSummary, SeedStanding, summarize

__all__ = [
    "OverSeeds",
    "SeedStanding",
    "SeedsInfo",
    "SeedsSummary",
    "holds_seeds",
    "seed_folder",
    "summarize",
    "with_runs_of_seeds",
]
