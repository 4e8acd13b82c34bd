"""The range of returns is found out, and their measured variance is the noise."""

import math
from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import record_for
from stepladder.curricula import AdvantageBandit, Learnability, LearningProgress, LevelReplay
from stepladder.curricula.config import SignalConfig
from stepladder.curricula.returns import FORGETTING, ReturnScale, note_return, signal_of
from stepladder.curricula.returns import signal_settings as settings_of
from stepladder.errors import SnapshotError
from stepladder.records import settings_record
from stepladder.saving.snapshot import Snapshot
from stepladder.stats.averages import AveragePair
from stepladder.tasks import NumberedSource

METHODS = [LearningProgress, Learnability, LevelReplay, AdvantageBandit]


def after(*returns: float) -> Any:
    scale = ReturnScale.zeros()
    for value in returns:
        note_return(scale[0], value)
    return scale[0]


def scaled(*returns: float, **settings: Any) -> list[float]:
    """Return what each return counts as when it comes."""
    config = SignalConfig(signal="return", **settings)
    record, scale = settings_record(config, **settings_of(config)), ReturnScale.zeros()
    return [signal_of(record[0], scale[0], math.nan, value) for value in returns]


# Worked out by hand.


def test_mean_and_variance_are_the_plain_ones_at_the_start():
    scale = after(1.0, 5.0, 3.0, 7.0)
    assert scale["mean"] == 4.0
    assert scale["variance"] == pytest.approx(5.0)
    assert scale["high"] == 7.0
    # It moves a little towards the mean: from 1 by 1e-4 of 2, of 2 and of 3.
    assert scale["low"] == pytest.approx(1.0 + FORGETTING * 7.0, rel=1e-6)


def test_returns_are_scaled_between_the_smallest_and_the_largest_so_far():
    found = scaled(-10.0, 30.0, 10.0, 0.0)
    np.testing.assert_allclose(found, [0.0, 1.0, 0.5, 0.25], atol=1e-3)


def test_a_range_that_is_given_is_kept():
    assert scaled(-10.0, 30.0, 10.0, return_low=-10.0, return_high=10.0) == [0.0, 1.0, 1.0]
    # One end alone leaves the other one at 0 or 1.
    assert scaled(1.0, 3.0, return_high=4.0) == [0.25, 0.75]
    assert scaled(0.0, 1.0, return_low=-1.0) == [0.5, 1.0]


def test_returns_that_are_all_alike_count_as_nothing():
    assert scaled(*[-3.0] * 50) == [0.0] * 50
    assert scaled(*[-3.0] * 50, 2.0)[-1] == 1.0


def test_an_outlier_at_most_doubles_the_range():
    scale = after(*[0.0, 1.0] * 50, 1e9)
    assert scale["high"] == pytest.approx(2.0, abs=1e-3)
    assert scaled(*[0.0, 1.0] * 50, 1e9, 1.0)[-1] == pytest.approx(0.5, abs=1e-3)


def test_another_scale_is_found_within_some_episodes():
    found = scaled(*[0.0, 1.0] * 50, *[0.0, 1000.0, 500.0] * 20)
    np.testing.assert_allclose(found[-3:], [0.0, 1.0, 0.5], atol=2e-3)


def test_extremes_that_do_not_come_back_are_forgotten():
    scale = after(0.0, 100.0, *[50.0, 51.0] * 25_000)
    assert scale["high"] - scale["low"] < 2.0


def test_the_largest_returns_that_there_can_be_are_finite():
    scale = after(-1e150, 1e150, 1e150)
    assert all(math.isfinite(scale[name]) for name in ("low", "high", "mean", "variance"))
    assert scaled(-1e308, 1e308, 0.0)[-1] == pytest.approx(0.5, abs=1e-3)


# Learning progress.


def progress(returns: list[float], **settings: Any) -> float:
    curriculum = LearningProgress(NumberedSource(2), signal="return", **settings)
    for value in returns:
        curriculum.observe(record_for(curriculum, 0, math.nan)._replace(episode_return=value))
    return float(curriculum.progress()[0])


def reference(returns: list[float], noise_z: float = 1.5) -> float:
    """Say the same in plain Python: averages from nothing, variance by its recursion."""
    pair = AveragePair.of_halflives(4.0, 16.0)
    values = np.array(returns)
    ages = np.arange(len(values))[::-1]

    def average(rate: float, num: int) -> float:
        weights = rate * (1.0 - rate) ** np.arange(num)[::-1]
        return float(weights @ values[:num] / weights.sum())

    own = total = 0.0
    mean = values[0]
    for n in range(1, len(values)):
        rate = max(pair.slow_rate, 1.0 / (n + 1))
        own = (1 - rate) * (own + rate * (values[n] - average(pair.slow_rate, n)) ** 2)
        share = 1.0 / (n + 1)
        total = (1 - share) * (total + share * (values[n] - mean) ** 2)
        mean += share * (values[n] - mean)
    num = len(ages)
    variance = (own * pair.counts[num] + 2.0 * total) / (pair.counts[num] + 2.0)
    apart = abs(average(pair.fast_rate, num) - average(pair.slow_rate, num))
    noise = noise_z * math.sqrt(variance * pair.noise[num])
    return min(1.0, max(0.0, apart - noise) / (values.max() - values.min()))


RISING = [0.0, 0.1, -0.1, 0.0, 0.1, 0.5, 1.0, 1.6, 2.0, 2.1, 2.4]


def test_progress_of_returns_is_what_the_measured_variance_leaves():
    expected = reference(RISING)
    assert expected > 0.05
    assert progress(RISING) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(("factor", "shift"), [(100.0, 0.0), (1.0, -50.0), (1e-3, 7.0)])
def test_scale_and_shift_of_returns_do_not_matter(factor: float, shift: float):
    moved = [factor * value + shift for value in RISING]
    assert progress(moved) == pytest.approx(progress(RISING), rel=1e-9)


def test_a_range_that_is_too_wide_no_longer_hides_progress():
    exact = progress(RISING, return_low=-0.1, return_high=2.4)
    wide = progress(RISING, return_low=-5.1, return_high=19.9)
    assert wide == pytest.approx(exact / 10.0, rel=1e-9)
    assert exact > 0.05


def test_returns_without_noise_need_no_margin_and_noisy_ones_show_no_progress():
    rng = np.random.default_rng(0)
    calm = [1.0] * 30 + [1.02] * 8 + [1.05] * 8
    assert progress(calm) > 0.1
    noisy = [float(x) for x in rng.normal(0.0, 5.0, 200)]
    rates = [progress(noisy[:n]) > 0.02 for n in range(20, 200, 4)]
    assert np.mean(rates) < 0.2


def test_a_task_that_came_in_new_knows_nothing_of_the_one_before():
    curriculum = LearningProgress(NumberedSource(9), signal="return", capacity=2)
    for value in (0.0, 50.0, 3.0):
        curriculum.observe(record_for(curriculum, 0, math.nan)._replace(episode_return=value))
    state: Any = curriculum.kernel_state()[2]
    assert state.spreads["variance"][0] > 0.0
    curriculum.replace(0)
    assert state.spreads["variance"][0] == 0.0


# Every method.


@pytest.mark.parametrize("method", METHODS)
def test_the_scale_that_was_found_is_saved(method: Any):
    def make() -> Any:
        return method(NumberedSource(3), signal="return", seed=4)

    curriculum = make()
    rng = np.random.default_rng(2)
    for value in rng.normal(100.0, 30.0, 40).tolist():
        curriculum.report(curriculum.draw_one(), math.nan, value)
    saved = curriculum.snapshot()
    again = make()
    again.restore(saved)
    for value in rng.normal(100.0, 30.0, 40).tolist():
        for one in (curriculum, again):
            one.report(one.draw_one(), math.nan, value)
    assert np.array_equal(curriculum.probs(), again.probs())
    damaged = saved.arrays["method/returns"].copy()
    damaged["variance"] = -1.0
    with pytest.raises(SnapshotError, match="variance"):
        again.restore(Snapshot(saved.state, {**saved.arrays, "method/returns": damaged}))


@pytest.mark.parametrize("method", METHODS)
def test_returns_of_zero_and_one_teach_what_success_does(method: Any):
    by_success, by_return = (
        method(NumberedSource(4), signal=signal, seed=1) for signal in ("success", "return")
    )
    rng = np.random.default_rng(3)
    for _ in range(200):
        draw = by_success.draw_one()
        success = float(rng.random() < 0.2 + 0.2 * draw.slot)
        for one in (by_success, by_return):
            one.report(draw, success, success)
    if method is not LearningProgress:
        np.testing.assert_allclose(by_return.probs(), by_success.probs(), atol=0.1)
