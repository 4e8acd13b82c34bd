"""LearningProgress: averages by hand, noise that is no progress, newcomers, eviction."""

from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import play_results as play
from curricula.fake_learner import record_for
from stepladder.curricula import LearningProgress, LearningProgressConfig, ProgressExplanation
from stepladder.errors import ConfigError
from stepladder.tasks import NumberedSource


def make(num_tasks: int = 3, **settings: Any) -> LearningProgress:
    """Make a curriculum with half-lives of one and two plays, and nothing left to chance."""
    bare: dict[str, Any] = {
        "exploration": 0.0,
        "novelty": 0.0,
        "novice_plays": 0,
        "fast_halflife_episodes": 1.0,
        "slow_halflife_episodes": 2.0,
        "noise_z": 0.0,
    }
    return LearningProgress(NumberedSource(num_tasks), **{**bare, **settings})


def told(curriculum: LearningProgress, slot: int) -> dict[str, float]:
    return curriculum.explain(slot).numbers


# The averages, worked out for the results 1, 0, 0, 1.

FAST = [1.0, 1 / 3, 1 / 7, 9 / 15]
"""Weights 1, 2, 4, 8 from the oldest on."""

KEEP = 0.5**0.5
SLOW = [
    1.0,
    KEEP / (KEEP + 1),
    KEEP**2 / (KEEP**2 + KEEP + 1),
    (KEEP**3 + 1) / (KEEP**3 + KEEP**2 + KEEP + 1),
]
"""Weights 1, √2, 2, 2√2 from the oldest on: 1, 0.4142, 0.2265, 0.5286."""


def test_averages_and_progress_of_four_episodes_by_hand():
    curriculum = make()
    for count, result in enumerate("wffw"):
        play(curriculum, 1, result)
        numbers = told(curriculum, 1)
        assert numbers["plays"] == count + 1
        assert numbers["fast"] == pytest.approx(FAST[count])
        assert numbers["slow"] == pytest.approx(SLOW[count])
        # 0, 0.0809, 0.0837, 0.0714; one play shows no progress.
        assert numbers["progress"] == pytest.approx(abs(FAST[count] - SLOW[count]))
    assert curriculum.progress().tolist() == [0.0, pytest.approx(0.6 - 0.5286, abs=1e-4), 0.0]
    assert curriculum.plays().tolist() == [0, 4, 0]


def test_chance_is_taken_off_by_hand():
    # After 1, 0: the difference d = 1/3 - 0.4142 = -0.0809 weighs both results, so its variance is
    # 2·d² = 0.01308 times theirs. The slow average counts (1 + k)² / (1 + k²) = 1.943 results;
    # with one success and one failure more its rate is (0.4142·1.943 + 1) / 3.943 = 0.4577, so
    # one standard error is √(0.4577·0.5423·0.01308) = 0.0570.
    for noise_z, progress in ((0.0, 0.0809), (1.0, 0.0239), (1.4, 0.0011), (1.5, 0.0)):
        curriculum = make(noise_z=noise_z)
        play(curriculum, 0, "wf")
        assert told(curriculum, 0)["progress"] == pytest.approx(progress, abs=1e-4)


def test_with_many_tasks_more_is_taken_off():
    # The root of 2 ln n: what the largest of so many noisy tasks shows.
    averages = {"fast_halflife_episodes": 5.0, "slow_halflife_episodes": 50.0}
    few, many = (make(count, noise_z=None, **averages) for count in (10, 100_000))
    given = make(10, noise_z=float(np.sqrt(2 * np.log(10))), **averages)
    for curriculum in (few, many, given):
        play(curriculum, 0, "f" * 40 + "w" * 8)
    assert 0 < told(many, 0)["progress"] < told(few, 0)["progress"]
    assert told(few, 0)["progress"] == told(given, 0)["progress"]


def test_getting_worse_is_progress_too():
    better, worse = make(), make()
    play(better, 0, "f" * 10 + "w" * 5)
    play(worse, 0, "w" * 10 + "f" * 5)
    assert told(better, 0)["progress"] == pytest.approx(told(worse, 0)["progress"])
    assert told(better, 0)["progress"] > 0.1


def test_after_very_many_plays_the_averages_still_hold():
    curriculum = make()
    play(curriculum, 0, "wf" * 500)
    numbers = told(curriculum, 0)
    # In the limit of an alternating row that ends with 0: 1/3, and k/(1 + k).
    assert numbers["fast"] == pytest.approx(1 / 3)
    assert numbers["slow"] == pytest.approx(KEEP / (1 + KEEP))


# From progress to probability.


def test_tasks_are_drawn_by_their_progress():
    curriculum = make()
    play(curriculum, 0, "wf")
    play(curriculum, 1, "wff")
    first, second = abs(FAST[1] - SLOW[1]), abs(FAST[2] - SLOW[2])
    total = first + second
    assert curriculum.probs().tolist() == pytest.approx([first / total, second / total, 0.0])


def test_without_any_progress_all_tasks_are_alike():
    curriculum = make()
    play(curriculum, 0, "wwww")
    play(curriculum, 1, "ffff")
    assert curriculum.probs().tolist() == pytest.approx([1 / 3] * 3)


def test_newcomers_share_the_share_for_novelty():
    curriculum = make(4, exploration=0.1, novelty=0.25, novice_plays=3)
    np.testing.assert_allclose(curriculum.probs(), 0.25)
    play(curriculum, 0, "wff")
    # Progress alone has 0.9·0.75, the three newcomers 0.9·0.25 between them, all 0.1/4.
    assert curriculum.probs().tolist() == pytest.approx([0.7] + [0.1] * 3)
    play(curriculum, 1, "ww")
    assert curriculum.probs()[1] == pytest.approx(0.1)
    play(curriculum, 1, "w")
    assert curriculum.probs().tolist() == pytest.approx([0.7, 0.025, 0.1375, 0.1375])


def test_when_all_are_known_novelty_has_no_share():
    curriculum = make(2, exploration=0.1, novelty=0.5, novice_plays=2)
    play(curriculum, 0, "wf")
    play(curriculum, 1, "ww")
    assert curriculum.probs().tolist() == pytest.approx([0.95, 0.05])


# What it is good for, on pretended learners.

PATIENT: dict[str, Any] = {
    "fast_halflife_episodes": 20.0,
    "slow_halflife_episodes": 200.0,
    "noise_z": None,
}
"""For tasks that take hundreds of plays to learn, in a crowd of tasks that do not change."""


def practise(
    curriculum: LearningProgress, rates: Any, num_draws: int, seed: int = 0, batch: int = 4
) -> np.ndarray:
    """Play tasks whose success rate is ``rates(plays)``; return the slots drawn."""
    rng, slots = np.random.default_rng(seed), []
    for _ in range(num_draws // batch):
        draws = curriculum.draw_batch(batch)
        successes = rng.random(batch) < rates(curriculum.plays())[draws["slot"]]
        curriculum.report_batch(draws, successes)
        slots.append(draws["slot"])
    return np.concatenate(slots)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_noise_alone_draws_no_task_much_more_often_than_others(seed: int):
    rates = np.random.default_rng(99).uniform(0.05, 0.95, 1000)
    curriculum = LearningProgress(NumberedSource(1000), seed=seed, **PATIENT)
    slots = practise(curriculum, lambda plays: rates, 200_000, seed, batch=64)
    counts = np.bincount(slots, minlength=1000)
    # 200 each; chance alone gives 200 ± 14 and a largest of about 250.
    assert counts.max() < 320
    assert counts.min() > 130
    # With the noise left in, as the ancestor had it, chance decides.
    naive = LearningProgress(NumberedSource(1000), seed=seed, **{**PATIENT, "noise_z": 0.0})
    slots = practise(naive, lambda plays: rates, 200_000, seed, batch=64)
    counts = np.bincount(slots, minlength=1000)
    assert counts.max() > 450
    assert counts.min() < 60


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_with_the_default_margin_chance_has_some_say_but_leaves_nobody_out(seed: int):
    # 1.5 standard errors are passed by one difference in seven, so among a thousand tasks that do
    # not change some always seem to; it takes None to leave them all alike.
    rates = np.random.default_rng(99).uniform(0.05, 0.95, 1000)
    # Without a largest share, which would hide what the method itself does.
    curriculum = LearningProgress(NumberedSource(1000), seed=seed, max_share=1.0)
    slots = practise(curriculum, lambda plays: rates, 200_000, seed, batch=64)
    counts = np.bincount(slots, minlength=1000)
    assert 400 < counts.max() < 1000
    # Exploration alone gives each about 20, its first ten plays among them.
    assert counts.min() > 30


def one_learns(plays: np.ndarray) -> np.ndarray:
    """Task 7 learns from its 40th to its 140th play; the others never change."""
    rates = np.tile([0.0, 1.0, 0.5, 0.3, 0.7], 4)
    rates[7] = min(1.0, max(0.0, (plays[7] - 40) / 100))
    return rates


@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5])
def test_a_task_that_improves_gets_most_draws_while_it_does(seed: int):
    curriculum = LearningProgress(NumberedSource(20), seed=seed, **PATIENT)
    slots = practise(curriculum, one_learns, 2400, seed)
    shares = (slots == 7).reshape(12, 200).mean(axis=1)
    assert shares[0] < 0.12
    assert shares.max() > 0.85
    assert shares[-1] < 0.2


def one_learns_quickly(plays: np.ndarray) -> np.ndarray:
    """Task 7 learns from its 15th to its 60th play; the others are always solved, or never."""
    rates = np.tile([0.0, 1.0], 10)
    rates[7] = min(1.0, max(0.0, (plays[7] - 15) / 45))
    return rates


@pytest.mark.parametrize("seed", range(6))
def test_with_the_defaults_a_task_learnt_in_fifty_plays_is_noticed_and_then_left_alone(seed: int):
    draws: dict[str, int] = {}
    for name, settings in (("default", {}), ("patient", PATIENT)):
        curriculum = LearningProgress(NumberedSource(20), seed=seed, **settings)
        played = practise(curriculum, one_learns_quickly, 1200, seed) == 7
        draws[name] = int(played.sum())
        # A twentieth of the draws would be 60.
        assert played.reshape(24, 50).mean(axis=1).max() > 0.4
    # It needs 60 plays. Averages with half-lives of 20 and 200 plays lie apart for hundreds more.
    assert 60 < draws["default"] < 160
    assert draws["patient"] > 220


def test_mastered_and_impossible_tasks_fade_to_the_exploration_floor():
    curriculum = LearningProgress(NumberedSource(20), seed=0, exploration=0.2, **PATIENT)
    for _ in range(600):
        practise(curriculum, one_learns, 4, seed=int(curriculum.num_observed))
        if curriculum.progress()[7] > 0.05 and curriculum.plays().min() >= 10:
            break
    others = np.delete(curriculum.probs(), 7)
    assert curriculum.progress()[7] > 0.05
    assert others.tolist() == pytest.approx([0.2 / 20] * 19)
    assert curriculum.explain(0).reason == (
        "its success has stopped changing, so exploration alone draws it"
    )
    assert curriculum.explain(7).reason == "its success is changing beyond noise"


# Eviction.


def evicting(**settings: Any) -> LearningProgress:
    """Make a pool of ten out of a hundred tasks; what was played twenty times may go."""
    return LearningProgress(
        NumberedSource(100), capacity=10, seed=1, **{"eviction_plays": 20, **settings}
    )


def test_a_task_with_progress_stays():
    curriculum = evicting(eviction_percentile=0.5, noise_z=0.0)
    for slot in range(4):
        play(curriculum, slot, "f" * 10 + "w" * 9)
    play(curriculum, 4, "w" * 19)
    for slot in range(4):
        play(curriculum, slot, "w")
    evicted = curriculum.num_evicted
    generations = curriculum.pool.generations.copy()
    play(curriculum, 4, "w")
    assert curriculum.num_evicted == evicted + 1
    assert curriculum.pool.generations[4] == 1
    assert curriculum.pool.generations[:4].tolist() == generations[:4].tolist()


def test_among_tasks_of_different_progress_only_the_lowest_share_goes():
    averages = {"fast_halflife_episodes": 20.0, "slow_halflife_episodes": 200.0}
    curriculum = evicting(eviction_percentile=0.3, noise_z=0.0, eviction_plays=30, **averages)
    # The more wins at the end, the more progress; the least well-known comes first, so that
    # nobody is among the lowest on arrival.
    for slot in range(10):
        play(curriculum, slot, "f" * (30 - slot) + "w" * slot)
    assert curriculum.num_evicted == 0
    assert np.all(np.diff(curriculum.progress()) > 0.004)
    for slot in (9, 5, 3):
        play(curriculum, slot, "w")
    assert curriculum.num_evicted == 0
    for slot in (2, 0):
        play(curriculum, slot, "f")
        assert curriculum.pool.generations[slot] == 1
    assert curriculum.num_evicted == 2
    # Of the eight that are left, slot 3 is the second lowest now.
    play(curriculum, 3, "f")
    assert curriculum.pool.generations[3] == 1


def test_eviction_goes_on_and_every_task_was_well_known_when_it_went():
    curriculum = evicting(eviction_plays=5, eviction_percentile=0.4)
    plays: dict[tuple[int, int], int] = {}
    for _ in range(1500):
        draw = curriculum.draw(1)[0]
        plays[draw.slot, draw.generation] = plays.get((draw.slot, draw.generation), 0) + 1
        curriculum.report(draw, 1.0)
    gone = [
        count
        for (slot, generation), count in plays.items()
        if generation < curriculum.pool.generations[slot]
    ]
    assert len(gone) == curriculum.num_evicted > 100
    assert min(gone) >= 5
    assert curriculum.plays().sum() + sum(gone) == 1500
    explanation = curriculum.explain()
    assert isinstance(explanation, ProgressExplanation)
    assert explanation.num_evicted == len(gone)


def test_a_batch_that_evicts_more_than_fit_into_the_list_loses_no_result():
    curriculum = LearningProgress(
        NumberedSource(10_000), capacity=500, eviction_plays=2, eviction_percentile=1.0
    )
    records = [record_for(curriculum, slot, 1.0) for slot in range(500)]
    curriculum.observe(records + records)
    assert curriculum.num_observed == 1000
    assert 0 < curriculum.num_evicted <= 64
    assert curriculum.plays().sum() == 1000 - 2 * curriculum.num_evicted
    # The list is empty again: what was left over goes when it is next played.
    for _ in range(20):
        curriculum.observe([record_for(curriculum, slot, 1.0) for slot in range(500)])
    assert curriculum.num_evicted > 500


# Settings and words.


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"novelty": 1.5}, "novelty must lie in"),
        ({"novice_plays": -1}, "novice_plays must be an integer of at least 0"),
        ({"novice_plays": 2.5}, "novice_plays must be an integer"),
        ({"eviction_percentile": -0.1}, "eviction_percentile must lie in"),
        ({"eviction_plays": 1}, "eviction_plays must be an integer of at least 2"),
        ({"fast_halflife_episodes": 0.0}, "fast_halflife_episodes must be finite and above 0"),
        ({"slow_halflife_episodes": np.inf}, "slow_halflife_episodes must be finite"),
        (
            {"slow_halflife_episodes": 4.0},
            r"slow_halflife_episodes must lie above fast_halflife_episodes \(4\.0\).* got 4\.0",
        ),
        ({"slow_halflife_episodes": 2e5}, "up to 100000; got 200000"),
        ({"noise_z": -1.0}, "noise_z must lie in"),
        ({"noise_z": np.nan}, "noise_z must lie in"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=words):
        LearningProgressConfig(**settings)


@pytest.mark.parametrize(("fast", "slow"), [(0.01, 0.02), (0.5, 1.0), (100.0, 5000.0)])
def test_any_two_halflives_in_order_will_do(fast: float, slow: float):
    curriculum = make(fast_halflife_episodes=fast, slow_halflife_episodes=slow)
    play(curriculum, 0, "wfwwf" * 20)
    assert 0.0 <= told(curriculum, 0)["progress"] <= 1.0


def test_variants_are_known_by_name():
    assert LearningProgressConfig.named("corrected") == LearningProgressConfig()
    assert LearningProgressConfig.named("seed").to_json()["variant"] == "seed"
    assert LearningProgressConfig.named("mature").to_json()["variant"] == "mature"
    with pytest.raises(ConfigError, match="unknown variant 'late'"):
        LearningProgressConfig.named("late")


def test_where_the_progress_is_is_said_in_numbers_and_words():
    curriculum = make(novice_plays=2)
    play(curriculum, 2, "wff")
    explanation = curriculum.explain()
    assert isinstance(explanation, ProgressExplanation)
    assert (explanation.num_novices, explanation.num_progressing) == (2, 1)
    name, progress, prob = explanation.top[0]
    assert (name, prob) == ("task2", 1.0)
    assert progress == pytest.approx(abs(FAST[2] - SLOW[2]))
    lines = explanation.lines()
    assert lines[1:3] == [
        "Tasks that make progress beyond noise: 1.",
        "Tasks: 2 hardly known, 0 replaced so far.",
    ]
    assert lines[3] == f"  {'task2':<24} progress 0.084, probability 1.0000"
