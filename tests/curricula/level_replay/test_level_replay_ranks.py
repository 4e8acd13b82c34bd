"""Ranks without sorting: bins, counts below, and the weight that tied ranks share."""

import numpy as np
import pytest

from stepladder.compiled import compiled
from stepladder.curricula.level_replay.ranks import (
    NUM_RANK_BINS,
    RankTree,
    add,
    bin_of,
    count_below,
    count_in,
    powers_of_ranks,
    weight_of_ranks,
)
from stepladder.records import Records


@compiled
def add_to(ranks: Records[RankTree], place: int, amount: int) -> None:
    add(ranks[0], place, amount)


@compiled
def below_in(ranks: Records[RankTree], place: int) -> int:
    return count_below(ranks[0], place)


@compiled
def counted_in(ranks: Records[RankTree], place: int) -> int:
    return count_in(ranks[0], place)


def test_a_doubling_has_32_bins_and_the_ends_hold_the_rest():
    assert bin_of(0.0) == bin_of(2.0**-33) == bin_of(5e-324) == 0
    assert bin_of(2.0**-32) == 1
    # 32 doublings from 2 ** -32 to 1.
    assert bin_of(1.0) == 1 + 32 * 32
    assert bin_of(2.0) - bin_of(1.0) == 32
    assert bin_of(1.0 + 1 / 32) - bin_of(1.0) == 1
    assert bin_of(1.03) == bin_of(1.0)
    assert bin_of(2.0**32) == bin_of(1e308) == NUM_RANK_BINS - 1


def test_a_higher_score_is_never_in_a_lower_bin():
    scores = np.sort(10.0 ** np.random.default_rng(0).uniform(-11, 11, 5000))
    bins = [bin_of(float(score)) for score in scores]
    assert np.all(np.diff(bins) >= 0)
    assert (bins[0], bins[-1]) == (0, NUM_RANK_BINS - 1)
    assert len(set(bins)) > 1500


def test_counts_in_and_below_a_bin_are_those_of_a_plain_histogram():
    rng = np.random.default_rng(1)
    tree, plain = RankTree.zeros(), np.zeros(NUM_RANK_BINS, dtype=np.int64)
    for _ in range(3000):
        place = int(
            rng.choice([0, 1, 31, 32, 1024, NUM_RANK_BINS - 1, rng.integers(NUM_RANK_BINS)])
        )
        amount = -1 if plain[place] and rng.random() < 0.4 else 1
        add_to(tree, place, amount)
        plain[place] += amount
    below = np.concatenate([[0], np.cumsum(plain)])
    found = [below_in(tree, place) for place in range(NUM_RANK_BINS + 1)]
    assert found == below.tolist()
    assert [counted_in(tree, place) for place in range(NUM_RANK_BINS)] == plain.tolist()


@pytest.mark.parametrize("power", [0.02, 0.5, 1.0, 1.0000001, 2.0, 5.0, 10.0, 50.0])
def test_tied_tasks_share_the_weights_of_their_ranks(power: float):
    powers = powers_of_ranks(6000, power)
    for first in (1, 2, 3, 5, 8, 20, 100, 5000):
        assert weight_of_ranks(first, 1, power, powers) == float(first) ** -power
        for count in (2, 3, 4, 7, 30, 1000):
            ranks = np.arange(first, first + count, dtype=np.float64)
            found = weight_of_ranks(first, count, power, powers)
            assert found == pytest.approx(np.mean(ranks**-power), rel=0.03)


def test_two_tied_at_the_top_by_hand():
    # (1 + ln(2.5 / 1.5)) / 2; exact would be (1 + 1/2) / 2.
    assert weight_of_ranks(1, 2, 1.0, powers_of_ranks(2, 1.0)) == pytest.approx(0.755413, abs=1e-6)
