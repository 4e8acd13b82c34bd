"""The two averages: rates, start-up correction, noise factor, effective counts."""

import numpy as np
import pytest

from stepladder.stats.averages import AveragePair

PAIR = AveragePair.of_halflives(1.0, 2.0)
"""Rates 1/2 and 1 - 1/√2."""

RESULTS = [1.0, 0.0, 0.0, 1.0]


def averages(pair: AveragePair, results: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Average results along the last axis, as the curriculum does it, start-up corrected."""
    fast = slow = np.zeros(results.shape[:-1])
    for index in range(results.shape[-1]):
        fast = fast + pair.fast_rate * (results[..., index] - fast)
        slow = slow + pair.slow_rate * (results[..., index] - slow)
    count = results.shape[-1]
    entry = min(count, len(pair.noise) - 1)
    return fast / pair.fast_sums[entry], slow / pair.slow_sums[entry]


def test_a_result_weighs_half_after_its_halflife():
    assert PAIR.fast_rate == 0.5
    assert PAIR.slow_rate == pytest.approx(1 - 0.5**0.5)
    pair = AveragePair.of_halflives(20.0, 200.0)
    assert (1 - pair.fast_rate) ** 20 == pytest.approx(0.5)
    assert (1 - pair.slow_rate) ** 200 == pytest.approx(0.5)


def test_an_average_starts_from_nothing_not_from_zero():
    # Fast, half-life 1: weights of 1, 0, 0, 1 are 1/16, 1/8, 1/4, 1/2, sum 15/16.
    # Results so far:  1: 1;  1, 0: (1/4) / (3/4);  1, 0, 0: (1/8) / (7/8);  all: (9/16) / (15/16).
    expected = [1.0, 1 / 3, 1 / 7, 9 / 15]
    for count, value in enumerate(expected, start=1):
        fast, _ = averages(PAIR, np.array(RESULTS[:count]))
        assert fast == pytest.approx(value)


def test_the_slow_average_by_hand():
    # Half-life 2, k = 1/√2: weights (1 - k)·k^age, so of 1, 0, 0, 1 the sum is
    # (1 - k)(1 + k³), divided by 1 - k⁴ = 3/4.
    keep = 0.5**0.5
    _, slow = averages(PAIR, np.array(RESULTS))
    assert slow == pytest.approx((1 - keep) * (1 + keep**3) / 0.75)


def test_weight_sums_go_to_one_and_start_at_the_rate():
    assert PAIR.fast_sums[:4].tolist() == pytest.approx([0.0, 0.5, 0.75, 0.875])
    assert PAIR.slow_sums[2] == pytest.approx(0.5)
    assert PAIR.fast_sums[-1] == pytest.approx(1.0, abs=2e-6)
    assert PAIR.slow_sums[-1] == pytest.approx(1.0, abs=2e-6)


def test_one_result_makes_no_noise_because_both_averages_are_that_result():
    assert PAIR.noise[0] == 0.0
    assert PAIR.noise[1] == pytest.approx(0.0, abs=1e-15)


def test_the_noise_of_two_results_by_hand():
    # Fast weights of two results, divided by their sum 3/4: 1/3, 2/3. Slow: keep = 1/√2, weights
    # keep and 1 in proportion: 1/(1 + √2), √2/(1 + √2). The difference weighs one result by
    # d = 1/3 - 1/(1 + √2) and the other by -d: variance 2·d².
    difference = 1 / 3 - 1 / (1 + 2**0.5)
    assert PAIR.noise[2] == pytest.approx(2 * difference**2)


@pytest.mark.parametrize(("fast", "slow"), [(1.0, 2.0), (5.0, 40.0), (20.0, 200.0)])
@pytest.mark.parametrize("count", [2, 5, 30, 150])
def test_the_noise_factor_is_what_a_simulation_shows(fast: float, slow: float, count: int):
    pair = AveragePair.of_halflives(fast, slow)
    results = np.random.default_rng(count).binomial(1, 0.3, size=(20_000, count)).astype(float)
    one, other = averages(pair, results)
    # The variance of 20,000 values is known to about 1 % (more for skewed ones).
    entry = min(count, len(pair.noise) - 1)
    assert np.var(one - other) / (0.3 * 0.7) == pytest.approx(pair.noise[entry], rel=0.06)
    assert np.var(other) * pair.counts[entry] / (0.3 * 0.7) == pytest.approx(1.0, rel=0.06)
    assert np.mean(one - other) == pytest.approx(0.0, abs=0.01)


def test_the_effective_count_is_the_number_of_results_until_forgetting_sets_in():
    pair = AveragePair.of_halflives(20.0, 200.0)
    assert pair.counts[0] == 0.0
    assert pair.counts[1] == pytest.approx(1.0)
    assert pair.counts[2] == pytest.approx(2.0, rel=1e-4)
    # In the limit (1 + keep) / (1 - keep), about 2·200 / ln 2.
    assert pair.counts[-1] == pytest.approx(2 * 200 / np.log(2), rel=1e-3)


@pytest.mark.parametrize(("fast", "slow"), [(0.01, 0.02), (0.1, 0.3), (1.0, 1000.0)])
def test_the_tables_are_finite_and_end_where_nothing_changes_any_more(fast: float, slow: float):
    pair = AveragePair.of_halflives(fast, slow)
    for table in (pair.fast_sums, pair.slow_sums, pair.noise, pair.counts):
        assert len(table) >= 16
        assert np.all(np.isfinite(table))
        assert np.all(table >= 0.0)
        assert table[-1] == pytest.approx(table[-2], rel=2e-6)
