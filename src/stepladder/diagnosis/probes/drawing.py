"""What a curriculum draws from an agent that can nearly everything.

One of the probes; it plays no env. A label that is not drawn then is drawn for no agent.
"""

import time
from collections.abc import Sequence

import numpy as np

from stepladder.curricula.base import Curriculum
from stepladder.diagnosis.evidence import Drawing
from stepladder.plans.record import DRAW_DTYPE, RECORD_DTYPE, DrawArray, RecordArray

GOOD = 0.95
"""Success of the agent on every task."""

MOST_EPISODES = 200_000
BATCH = 64

SHARED_FIELDS = [name for name in RECORD_DTYPE.names or () if name in (DRAW_DTYPE.names or ())]


def probe(
    curriculum: Curriculum,
    labels: Sequence[str],
    num_episodes: int,
    length: int,
    seconds: float,
    seed: int = 0,
) -> Drawing:
    """Draw, succeed, and count the labels.

    Args:
        curriculum: A new one; it learns.
        labels: Of its source.
        num_episodes: How many the training has.
        length: Env steps of an episode.
        seconds: After which no more are drawn.
        seed: Of the successes.
    """
    rng, wanted = np.random.default_rng(seed), min(num_episodes, MOST_EPISODES)
    counts = dict.fromkeys(labels, 0)
    drawn, deadline = 0, time.perf_counter() + seconds
    while drawn < wanted and time.perf_counter() < deadline:
        draws = curriculum.draw_batch(min(BATCH, wanted - drawn))
        slots, numbers = np.unique(draws["slot"], return_counts=True)
        for slot, number in zip(slots.tolist(), numbers.tolist(), strict=True):
            label = curriculum.label_of(slot)
            counts[label] = counts.get(label, 0) + number
        curriculum.observe(records_of(draws, rng.random(len(draws)) < GOOD, length))
        drawn += len(draws)
    return Drawing(
        num_episodes=drawn, success=GOOD, by_label=counts, is_complete=drawn >= num_episodes
    )


def records_of(draws: DrawArray, successes: np.ndarray, length: int) -> RecordArray:
    """Return the records of episodes that were drawn; the return is the success."""
    records = np.zeros(len(draws), dtype=RECORD_DTYPE)
    for name in SHARED_FIELDS:
        records[name] = draws[name]
    records["success"] = records["episode_return"] = successes
    records["length"] = length
    return records
