"""AncestorProgress: the ancestor's formulas, each on an example worked out by hand."""

import math
from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import live, record_for
from stepladder.curricula import AncestorProgress, AncestorProgressConfig
from stepladder.curricula.learning_progress.ancestor import squash, stretch
from stepladder.errors import ConfigError
from stepladder.tasks import NumberedSource


def make(variant: str, num_tasks: int = 2, **settings: Any) -> AncestorProgress:
    """Make a variant that trusts a task's progress from its first result on."""
    settings = {"min_samples_for_lp": 1, **settings}
    return AncestorProgress(NumberedSource(num_tasks), variant=variant, **settings)


def play(curriculum: AncestorProgress, slot: int, *values: float) -> None:
    curriculum.observe([record_for(curriculum, slot, value) for value in values])


def averages(curriculum: AncestorProgress, slot: int) -> tuple[float, float]:
    numbers = curriculum.explain(slot).numbers
    return numbers["fast"], numbers["slow"]


def logistic(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-value))


# The defaults.


def test_the_defaults_are_those_of_the_two_versions():
    seed = AncestorProgressConfig.seed_defaults()
    mature = AncestorProgressConfig.mature_defaults()
    for config in (seed, mature):
        assert (config.ema_timescale, config.slow_timescale_factor) == (0.1, 0.2)
        assert (config.exploration_bonus, config.performance_bonus_weight) == (0.1, 0.0)
        assert (config.min_presentations_for_eviction, config.memory) == (5, 25)
        assert config.eviction_threshold_percentile == 0.4
    assert (seed.progress_smoothing, seed.min_samples_for_lp) == (0.01, 2)
    assert (mature.progress_smoothing, mature.min_samples_for_lp) == (0.0, 10)
    assert mature.use_baseline_normalization
    assert (mature.lp_score_temperature, mature.z_score_amplification) == (0.0, 10.0)
    assert mature.early_progress_amplification == 0.5


# Mature.


def test_mature_averages_by_hand():
    # Rates 0.1 and 0.02. 1: both 1. 0: 0.9 and 0.98. 1: 0.91 and 0.9804.
    curriculum = make("mature", use_baseline_normalization=False)
    play(curriculum, 0, 1.0)
    assert averages(curriculum, 0) == (1.0, 1.0)
    play(curriculum, 0, 0.0)
    assert averages(curriculum, 0) == pytest.approx((0.9, 0.98))
    play(curriculum, 0, 1.0)
    assert averages(curriculum, 0) == pytest.approx((0.91, 0.9804))
    assert averages(curriculum, 1) == (0.0, 0.0)


def test_mature_takes_zero_for_unset_as_the_ancestor_did():
    # A failure leaves both at 0, which means unset: the first success is lost as a signal.
    curriculum = make("mature", use_baseline_normalization=False)
    play(curriculum, 0, 0.0, 0.0, 1.0)
    assert averages(curriculum, 0) == (1.0, 1.0)


def test_mature_measures_from_the_first_result():
    # Baseline 0.5. 0.5 is 0; 1.0 is (1 - 0.5) / 0.5 = 1, taken as first; 0.75 is 0.5: 0.95, 0.99.
    curriculum = make("mature")
    play(curriculum, 0, 0.5)
    assert averages(curriculum, 0) == (0.0, 0.0)
    play(curriculum, 0, 1.0)
    assert averages(curriculum, 0) == (1.0, 1.0)
    play(curriculum, 0, 0.75)
    assert averages(curriculum, 0) == pytest.approx((0.95, 0.99))
    # Below the baseline all results look alike: 0.855 and 0.9702.
    play(curriculum, 0, 0.1)
    assert averages(curriculum, 0) == pytest.approx((0.855, 0.9702))


def test_mature_has_no_baseline_above_three_quarters():
    # A first result of 1 gives a baseline of 0.75, so 1 is (1 - 0.75) / 0.25 = 1 at once.
    curriculum = make("mature")
    play(curriculum, 0, 1.0)
    assert averages(curriculum, 0) == (1.0, 1.0)


def test_mature_scores_are_scaled_by_their_spread_and_squashed():
    # Progress 0.08 and 0: mean 0.04, deviation 0.04, so ±1, times 10.
    curriculum = make("mature", use_baseline_normalization=False)
    play(curriculum, 0, 1.0, 0.0)
    play(curriculum, 1, 1.0)
    high, low = logistic(10.0), logistic(-10.0)
    assert curriculum.scores().tolist() == pytest.approx([high / (high + low), low / (high + low)])
    assert curriculum.probs().tolist() == pytest.approx(curriculum.scores().tolist())


def test_mature_scores_at_a_temperature():
    curriculum = make("mature", use_baseline_normalization=False, lp_score_temperature=0.02)
    play(curriculum, 0, 1.0, 0.0)
    play(curriculum, 1, 1.0)
    high, low = logistic(0.08 / 0.02), logistic(0.0)
    assert curriculum.scores().tolist() == pytest.approx([high / (high + low), low / (high + low)])


def test_mature_scores_without_spread_are_alike():
    curriculum = make("mature", 4)
    for slot in range(4):
        play(curriculum, slot, 1.0)
    assert curriculum.scores().tolist() == pytest.approx([0.25] * 4)


def test_mature_performance_counts_if_asked_to():
    # Both still at their first value: progress 0. Plain averages 1 and 0.5, weight 2: spread ±0.5.
    curriculum = make("mature", performance_bonus_weight=2.0, z_score_amplification=1.0)
    play(curriculum, 0, 1.0)
    play(curriculum, 1, 0.5)
    high, low = logistic(1.0), logistic(-1.0)
    assert curriculum.scores().tolist() == pytest.approx([high / (high + low), low / (high + low)])


def test_early_progress_is_stretched():
    # R(p) = p(1 - t) / (p + t(1 - 2p)); with t = 0.25: R(0.5) = 0.75, R(0.1) = 0.075 / 0.3.
    values = np.array([0.0, 0.1, 0.5, 1.0, 1.5, -0.04])
    assert stretch(values, 0.25).tolist() == pytest.approx([0.0, 0.25, 0.75, 1.0, 1.0, 0.0])
    assert stretch(values[:4], 0.5).tolist() == pytest.approx(values[:4].tolist())
    curriculum = make(
        "mature",
        use_baseline_normalization=False,
        early_progress_amplification=0.25,
        lp_score_temperature=1.0,
    )
    play(curriculum, 0, 1.0, 0.0)
    play(curriculum, 1, 1.0)
    apart = 0.98 * 0.75 / (0.98 + 0.25 * (1 - 1.96)) - 0.9 * 0.75 / (0.9 + 0.25 * (1 - 1.8))
    high, low = logistic(apart), 0.5
    assert curriculum.scores()[0] == pytest.approx(high / (high + low))


def test_squashing_survives_anything():
    assert squash(np.array([1e6, -1e6])).tolist() == pytest.approx([1.0, 0.0])
    assert squash(np.array([-1e6, -1e6])).tolist() == pytest.approx([0.5, 0.5])


# Seed.


def test_seed_averages_by_hand():
    # The mean of the last results feeds all averages whenever any task reports. Task 0: 1, 1.
    curriculum = make("seed")
    play(curriculum, 0, 1.0)
    assert averages(curriculum, 0) == (0.0, 0.0)
    play(curriculum, 0, 1.0)
    assert averages(curriculum, 0) == pytest.approx((0.1, 0.02))
    # Task 1 reports for the first time; task 0 moves: 0.1 + 0.1·0.9, 0.02 + 0.02·0.98.
    play(curriculum, 1, 0.0)
    assert averages(curriculum, 0) == pytest.approx((0.19, 0.0396))
    assert averages(curriculum, 1) == (0.0, 0.0)


def test_seed_remembers_only_so_many_results():
    curriculum = make("seed", memory=2, ema_timescale=1.0)
    play(curriculum, 0, 1.0, 1.0, 0.0)
    assert averages(curriculum, 0)[0] == 0.5
    play(curriculum, 0, 0.0)
    assert averages(curriculum, 0)[0] == 0.0


def test_seed_scores_are_signed_and_squashed_as_they_are():
    # Task 0 wins twice, task 1 fails twice. Reports after the second of task 0: three in all.
    curriculum = make("seed", progress_smoothing=0.01)
    play(curriculum, 0, 1.0, 1.0)
    play(curriculum, 1, 0.0, 0.0)
    fast, slow = 1 - 0.9**3, 1 - 0.98**3
    high, low = logistic(fast - slow + 0.01), logistic(0.01)
    assert curriculum.scores().tolist() == pytest.approx([high / (high + low), low / (high + low)])
    # Falling is negative here, so a task that gets worse is drawn less.
    play(curriculum, 0, *[0.0] * 40)
    assert curriculum.scores()[0] < 0.5


def test_seed_tasks_with_fewer_than_two_results_score_the_bonus():
    curriculum = AncestorProgress(NumberedSource(3), AncestorProgressConfig.seed_defaults())
    play(curriculum, 0, 1.0, 1.0)
    play(curriculum, 1, 1.0)
    assert curriculum.scores().tolist() == pytest.approx([1.0, 0.1, 0.1])
    assert curriculum.probs().tolist() == pytest.approx([1.0 / 1.2, 0.1 / 1.2, 0.1 / 1.2])


# Both.


def test_tasks_hardly_known_score_an_absolute_bonus_beside_probabilities():
    # Ten well-known tasks share a probability of 1, each unknown one scores 0.1.
    curriculum = AncestorProgress(NumberedSource(30), variant="mature", min_samples_for_lp=3)
    for slot in range(10):
        play(curriculum, slot, 1.0, 1.0, 1.0)
    assert curriculum.scores()[:10].sum() == pytest.approx(1.0)
    assert curriculum.scores()[10:].tolist() == [0.1] * 20
    assert curriculum.probs()[10:].sum() == pytest.approx(2 / 3)
    assert "exploration bonus" in curriculum.explain(20).reason
    assert "'mature' formulas" in curriculum.explain(0).reason


@pytest.mark.parametrize("variant", ["seed", "mature"])
def test_returns_may_be_the_signal(variant: str):
    by_return = make(variant, signal="return", return_low=0.0, return_high=4.0)
    by_success = make(variant)
    for value in (1.0, 3.0, 4.0, 9.0, -2.0):
        by_return.observe(record_for(by_return, 0, float("nan"), episode_return=value))
        by_success.observe(record_for(by_success, 0, min(1.0, max(0.0, value / 4.0))))
    assert averages(by_return, 0) == pytest.approx(averages(by_success, 0))


def test_with_its_defaults_every_task_is_evicted_after_five_plays():
    # The ancestor's own flaw: nobody ever reaches the ten results at which progress counts.
    config = AncestorProgressConfig.mature_defaults()
    curriculum = AncestorProgress(NumberedSource(10**6), config, capacity=20)
    live(curriculum, 1000)
    assert curriculum.num_evicted == pytest.approx(1000 / 5, abs=20)
    assert curriculum._plays.max() <= 5
    np.testing.assert_allclose(curriculum.probs(), 1 / 20)


def test_the_lowest_score_is_evicted_once_it_may_be():
    curriculum = AncestorProgress(
        NumberedSource(100),
        capacity=4,
        variant="mature",
        use_baseline_normalization=False,
        min_samples_for_lp=1,
        min_presentations_for_eviction=3,
    )
    play(curriculum, 0, 1.0, 0.0)
    play(curriculum, 1, 1.0, 1.0)
    play(curriculum, 2, 1.0, 0.0)
    assert curriculum.pool.generations.tolist() == [0, 0, 0, 0]
    # Task 1 has no progress and now three results: it goes.
    play(curriculum, 1, 1.0)
    assert curriculum.pool.generations.tolist() == [0, 1, 0, 0]
    assert curriculum.num_evicted == 1
    # Task 0 has three results, and progress above the second lowest of the known: it stays.
    play(curriculum, 0, 0.0)
    assert curriculum.pool.generations.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("variant", ["seed", "mature"])
def test_nothing_is_evicted_from_a_pool_that_holds_all_tasks(variant: str):
    curriculum = make(variant, 10)
    live(curriculum, 200)
    assert (curriculum.num_evicted, curriculum.pool.generations.max()) == (0, 0)


@pytest.mark.parametrize(
    "settings",
    [
        {"variant": "late"},
        {"ema_timescale": 1.5},
        {"slow_timescale_factor": -0.1},
        {"eviction_threshold_percentile": 2.0},
        {"min_samples_for_lp": 0},
        {"memory": 0},
        {"min_presentations_for_eviction": 0},
        {"early_progress_amplification": 0.0},
        {"early_progress_amplification": 1.0},
        {"exploration_bonus": -0.1},
        {"lp_score_temperature": np.nan},
        {"z_score_amplification": np.inf},
        {"progress_smoothing": np.nan},
        {"performance_bonus_weight": -1.0},
        {"return_high": np.inf},
    ],
)
def test_settings_that_cannot_be_meant_are_refused_by_name(settings: dict[str, Any]):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        AncestorProgressConfig(**settings)
