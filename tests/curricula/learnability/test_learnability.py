"""Learnability: the Beta posterior by hand, what it draws, how it follows a learner, eviction."""

from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import play_results as play
from stepladder.curricula import Learnability, LearnabilityConfig, LearnabilityExplanation
from stepladder.curricula.learnability.kernels import learnability
from stepladder.errors import ConfigError
from stepladder.tasks import NumberedSource

ALONE: dict[str, Any] = {"pooled": False, "exploration": 0.0}
"""Every task stands for itself, and no draw ignores the weights."""


def make(num_tasks: int = 3, **settings: Any) -> Learnability:
    """Make a curriculum in which a result counts half after one more play."""
    return Learnability(
        NumberedSource(num_tasks), **{"halflife_episodes": 1.0, **ALONE, **settings}
    )


# The posterior, worked out for the results 1, 0, 0, 1 and a uniform prior.

EVIDENCE = [(1.0, 0.0), (0.5, 1.0), (0.25, 1.5), (1.125, 0.75)]
"""Wins and losses, each half as much after every play."""


def test_the_expectation_of_four_episodes_by_hand():
    curriculum = make()
    assert curriculum.scores().tolist() == pytest.approx([1 / 6] * 3)
    for count, result in enumerate("wffw"):
        play(curriculum, 1, result)
        wins, losses = EVIDENCE[count]
        a, b = 1.0 + wins, 1.0 + losses
        numbers = curriculum.explain(1).numbers
        assert numbers["plays"] == count + 1
        assert numbers["success"] == pytest.approx(a / (a + b))
        # 2·1/(3·4) = 1/6, 1.5·2/(3.5·4.5), 1.25·2.5/(3.75·4.75), 2.125·1.75/(3.875·4.875).
        expected = [1 / 6, 0.190476, 0.175439, 0.196857][count]
        assert numbers["learnability"] == pytest.approx(expected, abs=1e-6)
        assert curriculum.scores()[1] == numbers["learnability"]
        assert curriculum.success_rates()[1] == pytest.approx(a / (a + b))
    assert curriculum.plays().tolist() == [0, 4, 0]


def test_it_is_the_expectation_under_the_posterior():
    # E[p(1-p)] of Beta(a, b), by adding up a million slices of its density.
    p = (np.arange(1_000_000) + 0.5) / 1_000_000
    for a, b in ((1.0, 1.0), (2.5, 1.5), (3.0, 9.0)):
        density = p ** (a - 1.0) * (1.0 - p) ** (b - 1.0)
        expected = np.sum(density * p * (1.0 - p)) / np.sum(density)
        assert learnability(a - 0.5, b - 0.75, 0.5, 0.75) == pytest.approx(expected, rel=1e-5)


def test_the_error_of_the_rate_is_the_posteriors_deviation():
    curriculum = make()
    play(curriculum, 0, "wf")
    # Beta(1.5, 2): 1.5·2 / (3.5²·4.5).
    assert curriculum.explain(0).numbers["success_error"] == pytest.approx(0.0544218**0.5, abs=1e-6)


def test_the_prior_decides_about_untried_tasks():
    curriculum = make(prior_successes=1.0, prior_failures=9.0)
    # 1·9/(10·11); a win makes 2·9/(11·12), so the one that was solved is drawn more.
    assert curriculum.scores()[0] == pytest.approx(9 / 110)
    play(curriculum, 0, "w")
    first, others = 18 / 132, 9 / 110
    expected = np.array([first, others, others]) / (first + 2 * others)
    assert curriculum.probs().tolist() == pytest.approx(expected.tolist())


def test_the_halflife_is_counted_in_plays():
    curriculum = make(halflife_episodes=3.0, prior_successes=0.5, prior_failures=0.5)
    play(curriculum, 0, "wfff")
    # The win counts one half after three more plays; failures 1, 2^(-1/3), 2^(-2/3).
    losses = 1.0 + 0.5 ** (1 / 3) + 0.5 ** (2 / 3)
    assert curriculum.success_rates()[0] == pytest.approx(1.0 / (1.0 + 0.5 + losses))


# From learnability to probability.


def test_tasks_are_drawn_by_their_learnability():
    curriculum = make()
    play(curriculum, 0, "wf")
    play(curriculum, 1, "w")
    weights = np.array([3.0 / 15.75, 1 / 6, 1 / 6])
    assert curriculum.probs().tolist() == pytest.approx((weights / weights.sum()).tolist())


def test_an_exponent_sharpens_and_zero_flattens():
    keen, flat = make(exponent=3.0), make(exponent=0.0)
    for curriculum in (keen, flat):
        play(curriculum, 0, "wf")
    weights = np.array([3.0 / 15.75, 1 / 6, 1 / 6]) ** 3
    assert keen.probs().tolist() == pytest.approx((weights / weights.sum()).tolist())
    assert flat.probs().tolist() == pytest.approx([1 / 3] * 3)
    assert keen.scores().tolist() == flat.scores().tolist()


def test_a_replaced_task_starts_from_the_prior():
    curriculum = Learnability(NumberedSource(9), capacity=3, exponent=2.0, **ALONE)
    play(curriculum, 0, "w" * 20)
    curriculum.replace(0)
    assert curriculum.plays().tolist() == [0, 0, 0]
    assert curriculum.scores().tolist() == pytest.approx([1 / 6] * 3)
    assert curriculum.probs().tolist() == pytest.approx([1 / 3] * 3)


# What it is good for, on pretended learners.


def test_tasks_solved_sometimes_get_most_draws():
    rng, rates = np.random.default_rng(0), np.tile([0.0, 1.0, 0.0, 0.5], 5)
    curriculum = Learnability(NumberedSource(20), seed=0, **ALONE)
    slots = []
    for _ in range(500):
        draws = curriculum.draw_batch(8)
        curriculum.report_batch(draws, rng.random(8) < rates[draws["slot"]])
        slots.append(draws["slot"])
    share = np.mean(rates[np.concatenate(slots[250:])] == 0.5)
    # A quarter of the tasks. With about 29 results that count, the others weigh
    # 30/(31·32) = 0.030, these 15.5²/(31·32) = 0.242: 0.242 of 0.242 + 3·0.030.
    assert share == pytest.approx(0.727, abs=0.04)


def test_a_task_that_was_mastered_is_followed_down_when_it_is_forgotten():
    curriculum = make(halflife_episodes=10.0)
    play(curriculum, 0, "w" * 100)
    assert curriculum.scores()[0] < 0.06
    play(curriculum, 0, "f" * 10)
    # Half the wins are forgotten, so it looks solved half the time.
    assert curriculum.scores()[0] > 0.22


# Eviction.


def evicting(**settings: Any) -> Learnability:
    """Make a pool of ten out of a hundred tasks; what was played twenty times may go."""
    return Learnability(
        NumberedSource(100), capacity=10, seed=1, **{"eviction_plays": 20, **ALONE, **settings}
    )


def test_among_different_tasks_only_the_least_learnable_go():
    curriculum = evicting(eviction_percentile=0.3, halflife_episodes=1000.0)
    # The more wins, up to ten of twenty, the more learnable; the least well-known comes first,
    # so that nobody is among the lowest on arrival.
    for slot in range(10):
        play(curriculum, slot, "w" * (slot + 1) + "f" * (19 - slot))
    assert curriculum.num_evicted == 0
    for slot in (9, 5, 3):
        play(curriculum, slot, "f")
    assert curriculum.num_evicted == 0
    for slot in (2, 0):
        play(curriculum, slot, "f")
        assert curriculum.pool.generations[slot] == 1
    # Of the eight that are left, slot 3 is the second lowest now.
    play(curriculum, 3, "f")
    assert curriculum.pool.generations[3] == 1
    assert curriculum.num_evicted == 3


def test_small_differences_of_learnability_tell_who_goes():
    curriculum = evicting(eviction_percentile=0.5, halflife_episodes=1e9)
    play(curriculum, 0, "w" * 9 + "f" * 12)
    play(curriculum, 1, "w" * 9 + "f" * 11)
    # 10·13/(23·24) = 0.2355 and 10·12/(22·23) = 0.2372: half of the two is the first alone.
    assert curriculum.num_evicted == 0
    play(curriculum, 0, "f")
    assert curriculum.pool.generations[:2].tolist() == [1, 0]


# Settings and words.


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"halflife_episodes": 0.0}, "halflife_episodes must be finite and above 0"),
        ({"prior_successes": 0.0}, r"prior_successes must lie in \(0, 1e\+06\]; got 0"),
        ({"prior_failures": np.nan}, "prior_failures must lie in .* got nan"),
        ({"prior_failures": 1e7}, "must lie in .* With more, results would not count"),
        ({"exponent": -1.0}, r"exponent must lie in \[0, 100\]; got -1"),
        ({"exponent": np.nan}, "exponent must lie in"),
        ({"exponent": "keen"}, "exponent must lie in .* got 'keen'"),
        ({"eviction_percentile": 1.1}, "eviction_percentile must lie in"),
        ({"eviction_plays": 0}, "eviction_plays must be an integer of at least 1"),
        ({"exploration": -0.1}, "exploration must lie in"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=words):
        LearnabilityConfig(**settings)


def test_what_is_learnable_is_said_in_numbers_and_words():
    curriculum = make(4)
    play(curriculum, 2, "wf")
    play(curriculum, 3, "wwww")
    explanation = curriculum.explain()
    assert isinstance(explanation, LearnabilityExplanation)
    assert (explanation.num_untried, explanation.num_evicted) == (2, 0)
    assert [entry[0] for entry in explanation.top] == ["task2", "task3"]
    assert explanation.top[0][1:] == pytest.approx((1.5 / 3.5, 3 / 15.75, curriculum.probs()[2]))
    assert explanation.mean_learnability == pytest.approx(curriculum.scores().mean())
    lines = explanation.lines()
    assert lines[1].endswith("2 tasks are untried, 0 have been replaced.")
    assert lines[2].startswith(f"  {'task2':<24} success 0.43, learnability 0.190, probability 0.")
    assert curriculum.explain(0).reason == ("it is untried; the prior says a success of about 50%")
    assert curriculum.explain(2).reason == ("its success is about 43%; half would weigh most")
