"""The rules of stages, each on numbers worked out by hand: left upwards, downwards, mixed in."""

from typing import Any

import pytest

from curricula.fake_learner import record_for
from curricula.three_stages import STAGES, TASKS, make, play, shares
from stepladder.curricula import (
    PUBLISHED_MIXING,
    DemotionRule,
    EarlyRule,
    Mixing,
    Stage,
    Staged,
    TrendRule,
)
from stepladder.tasks import ListSource, Task, UnionSource

# The standard rule.


def test_a_stage_is_left_at_threshold_and_minimum():
    curriculum = make(threshold=0.7)
    play(curriculum, "wwwwwwwff")
    assert curriculum.current_stage == "a"  # 7 of 9 is above 0.7, but 9 < 10.
    play(curriculum, "f")
    assert curriculum.current_stage == "b"  # 7 of 10, 10 episodes.
    assert curriculum.history[0].rules == ("standard",)


def test_a_stage_is_not_left_below_its_threshold():
    curriculum = make(threshold=0.7)
    play(curriculum, "wwwwwwffff" + "f" * 50)
    assert curriculum.current_stage == "a"


def test_success_is_the_mean_over_the_window_alone():
    curriculum = make(threshold=1.0, min_episodes=4, window_episodes=4)
    play(curriculum, "ffffwww")
    assert curriculum.current_stage == "a"
    play(curriculum, "w")
    assert curriculum.current_stage == "b"


def test_success_may_be_partial():
    curriculum = make(threshold=0.7)
    for _ in range(10):
        curriculum.record_episode("a", 0.75)
    assert curriculum.current_stage == "b"
    assert curriculum.history[0].success == 0.75


def test_a_threshold_of_one_stage_overrides_that_stage_alone():
    curriculum = make(
        stages=("a", Stage(name="b", threshold=0.3, min_episodes=5), "c"), threshold=0.8
    )
    play(curriculum, "wwwwwwwfff" + "wwwwwww")
    assert curriculum.current_stage == "a"  # Seven wins have gone, seven have come: 0.7.
    play(curriculum, "w")
    assert curriculum.current_stage == "b"
    play(curriculum, "wwfff")
    assert curriculum.current_stage == "c"
    assert [change.threshold for change in curriculum.history] == [0.8, 0.3]
    assert [change.min_episodes for change in curriculum.history] == [10, 5]


def test_the_standard_rule_can_be_switched_off():
    curriculum = make(standard=False, early=EarlyRule(success=1.0, min_episodes=20))
    play(curriculum, "w" * 19)
    assert curriculum.current_stage == "a"
    play(curriculum, "w")
    assert curriculum.current_stage == "b"
    assert curriculum.history[0].rules == ("early",)


def test_a_stage_entered_again_proves_itself_again():
    # The ancestor counted over a lifetime: back in a stage, a handful of results was enough.
    curriculum = make()
    play(curriculum, "w" * 10)
    curriculum.go_to("a")
    assert curriculum.stage_report().episodes == 0
    assert curriculum.stage_report().lifetime_episodes == 10
    play(curriculum, "w" * 9)
    assert curriculum.current_stage == "a"
    play(curriculum, "w")
    assert curriculum.current_stage == "b"


def test_mixed_in_episodes_do_not_count_for_the_stage_they_come_from():
    curriculum = make()
    curriculum.go_to("b")
    play(curriculum, "w" * 50, stage="a")
    assert curriculum.current_stage == "b"
    curriculum.go_to("a")
    assert curriculum.stage_report().episodes == 0
    play(curriculum, "w")
    assert curriculum.current_stage == "a"


def test_a_check_moves_by_one_stage_and_a_batch_of_one_stage_by_one():
    curriculum = make(min_episodes=1)
    curriculum.observe([record_for(curriculum, 0, 1.0)] * 1000)
    assert curriculum.current_stage == "b"
    assert len(curriculum.history) == 1
    assert curriculum.history[0].episode == 1


def test_nothing_lies_beyond_the_last_stage():
    curriculum = make(starting_stage="c")
    play(curriculum, "w" * 200)
    assert (curriculum.current_stage, curriculum.history) == ("c", [])
    assert not curriculum.stage_report().can_advance


def test_a_run_through_all_stages():
    curriculum = make()
    play(curriculum, "w" * 30)
    assert curriculum.current_stage == "c"
    moves = [(change.from_stage, change.to_stage, change.episode) for change in curriculum.history]
    assert moves == [("a", "b", 10), ("b", "c", 20)]


# Early and rising.


def test_outstanding_success_leaves_early():
    curriculum = make(min_episodes=100, window_episodes=50, early=EarlyRule())
    play(curriculum, "fff" + "w" * 26)
    assert curriculum.current_stage == "a"
    play(curriculum, "w")  # 27 of 30 are 0.9.
    assert curriculum.current_stage == "b"
    assert curriculum.history[0].rules == ("early",)


def test_success_that_is_not_outstanding_does_not_leave_early():
    curriculum = make(min_episodes=100, window_episodes=50, early=EarlyRule())
    play(curriculum, "ffff" + "w" * 26)
    assert curriculum.current_stage == "a"  # 26 of 30 are 0.87.


def test_without_the_early_rule_nothing_leaves_early():
    curriculum = make(min_episodes=100, window_episodes=50)
    play(curriculum, "w" * 99)
    assert curriculum.current_stage == "a"
    play(curriculum, "w")
    assert curriculum.current_stage == "b"


RISING = "w" * 10 + "f" * 10 + "w" * 15 + "f" * 4
"""One episode short of 40: the older 20 with success 0.5, the newer 19 with 15 wins."""


def test_rising_success_leaves_a_little_sooner_and_a_little_lower():
    # T = 0.7, M = 50: from 40 episodes and from 0.65, if the newer half is better by over 0.15.
    curriculum = make(threshold=0.7, min_episodes=50, window_episodes=50, trend=TrendRule())
    play(curriculum, RISING)
    assert curriculum.current_stage == "a"
    play(curriculum, "w")  # 26 of 40 are 0.65; 16 of 20 against 10 of 20 are +0.3.
    assert curriculum.current_stage == "b"
    change = curriculum.history[0]
    assert change.rules == ("trend",)
    assert (change.success, change.trend, change.episodes) == (0.65, pytest.approx(0.3), 40)


@pytest.mark.parametrize(
    ("settings", "results"),
    [
        ({"trend": None}, RISING + "w"),
        ({"trend": TrendRule(slack=0.04)}, RISING + "w"),
        ({"trend": TrendRule(episodes_factor=0.9)}, RISING + "w"),
        ({"trend": TrendRule(min_trend=0.35)}, RISING + "w"),
        ({"trend": TrendRule(min_results=41)}, RISING + "w"),
        ({}, RISING + "f"),  # 25 of 40 are below 0.65.
        ({}, "w" * 15 + "f" * 5 + "w" * 11 + "f" * 9),  # 26 of 40, but falling.
    ],
)
def test_each_part_of_the_rising_rule_is_needed(settings: dict[str, Any], results: str):
    rules = {"trend": TrendRule(), **settings}
    curriculum = make(threshold=0.7, min_episodes=50, window_episodes=50, **rules)
    play(curriculum, results)
    assert curriculum.current_stage == "a"


def test_a_trend_must_exceed_its_minimum_and_not_only_reach_it():
    # Older half 2 of 4, newer half 3 of 4: exactly +0.25.
    for least, stage in ((0.25, "a"), (0.2, "b")):
        rising = TrendRule(min_trend=least, min_results=8, slack=0.1, episodes_factor=0.8)
        curriculum = make(threshold=0.7, trend=rising)
        play(curriculum, "wwffwwwf")
        assert curriculum.current_stage == stage


def test_the_trend_is_right_after_the_window_has_wrapped_around():
    curriculum = make(window_episodes=50, min_episodes=1000)
    play(curriculum, "w" * 25 + "f" * 25 + "w" * 25)
    assert curriculum.stage_report().trend == 1.0
    play(curriculum, "f" * 25)
    assert curriculum.stage_report().trend == -1.0


def test_all_rules_that_hold_are_named():
    curriculum = make(
        min_episodes=30, window_episodes=50, early=EarlyRule(), trend=TrendRule(episodes_factor=1.0)
    )
    play(curriculum, "fff" + "w" * 26)
    assert curriculum.current_stage == "a"
    play(curriculum, "w")
    assert curriculum.history[0].rules == ("standard", "early", "trend")
    assert curriculum.history[0].reason == "standard + early + trend"


def test_a_confidence_bound_is_judged_instead_of_the_rate():
    # 9 of 10 have a lower bound of 0.65 at z = 1.645, 10 of 10 one of 0.79.
    curriculum = make(threshold=0.7, confidence_z=1.645)
    play(curriculum, "f" + "w" * 9)
    report = curriculum.stage_report()
    assert (report.success_rate, curriculum.current_stage) == (0.9, "a")
    assert report.judged_success == pytest.approx(0.6523, abs=1e-4)
    play(curriculum, "w")
    assert curriculum.current_stage == "b"
    assert curriculum.history[0].judged_success == pytest.approx(10 / (10 + 1.645**2))


# Mixing.


@pytest.mark.parametrize(
    ("num_wins", "ratio"),
    [
        (0, 0.40),
        (49, 0.40),
        (50, 0.25),
        (64, 0.25),
        (65, 0.15),
        (79, 0.15),
        (80, 0.05),
        (100, 0.05),
    ],
)
def test_the_share_of_earlier_tasks_follows_the_table(num_wins: int, ratio: float):
    curriculum = make(window_episodes=100, min_episodes=10**6, starting_stage="b")
    play(curriculum, "w" * num_wins + "f" * (100 - num_wins))
    assert curriculum.mixing_ratio() == ratio
    assert shares(curriculum) == pytest.approx([ratio, 1 - ratio, 0.0])
    assert curriculum.stage_report().adaptive_mixing_ratio == ratio


def test_the_base_share_holds_until_there_are_five_results():
    curriculum = make(starting_stage="b")
    play(curriculum, "ffff")
    assert shares(curriculum) == pytest.approx([0.2, 0.8, 0.0])
    play(curriculum, "f")
    assert shares(curriculum) == pytest.approx([0.4, 0.6, 0.0])


def test_a_fresh_stage_starts_from_the_base_share_again():
    curriculum = make(starting_stage="b")
    play(curriculum, "w" * 10)
    assert curriculum.current_stage == "c"
    assert shares(curriculum) == pytest.approx([0.1, 0.1, 0.8])
    assert curriculum.mixing_ratio("b") == 0.05
    curriculum.go_to("b")
    assert shares(curriculum) == pytest.approx([0.2, 0.8, 0.0])


def test_stage_and_share_change_in_one_version_of_the_plan():
    curriculum = make(starting_stage="b", check_interval_episodes=10)
    play(curriculum, "w" * 9)
    before = curriculum.plan.version
    play(curriculum, "w")
    assert curriculum.current_stage == "c"
    assert curriculum.plan.version == before + 1
    assert curriculum.history[0].plan_version == before + 1
    assert curriculum.plan.dials.tolist() == [2.0, 0.2, 0.05, 0.2]


def test_the_plan_changes_only_when_a_share_does():
    curriculum = make(starting_stage="b", min_episodes=10**6)
    play(curriculum, "wwwww")
    version = curriculum.plan.version
    play(curriculum, "w" * 100)
    assert curriculum.plan.version == version


@pytest.mark.parametrize(
    ("mixing", "expected"),
    [
        (Mixing(), [0.1, 0.1, 0.8]),
        (PUBLISHED_MIXING, [0.0, 0.2, 0.8]),
        (Mixing(base_ratio=0.0), [0.0, 0.0, 1.0]),
        (Mixing(base_ratio=1.0), [0.5, 0.5, 0.0]),
        (None, [0.0, 0.0, 1.0]),
    ],
)
def test_where_the_share_goes(mixing: Mixing | None, expected: list[float]):
    assert shares(make(mixing=mixing, starting_stage="c")) == pytest.approx(expected)


def test_a_share_that_does_not_adapt_stays():
    curriculum = make(
        mixing=Mixing(base_ratio=0.3, adaptive=False), starting_stage="b", min_episodes=10**6
    )
    play(curriculum, "f" * 20 + "w" * 20)
    assert shares(curriculum) == pytest.approx([0.3, 0.7, 0.0])


def test_another_table_can_be_given():
    mixing = Mixing(table=((0.5, 0.9),), otherwise=0.1, min_results=2)
    curriculum = make(mixing=mixing, starting_stage="b", min_episodes=10**6)
    play(curriculum, "ff")
    assert curriculum.mixing_ratio() == 0.9
    play(curriculum, "ww")
    assert curriculum.mixing_ratio() == 0.1


def test_the_first_stage_has_nothing_to_mix_in():
    curriculum = make(min_episodes=10**6)
    play(curriculum, "f" * 10)
    assert shares(curriculum) == [1.0, 0.0, 0.0]


def test_tasks_of_a_stage_are_drawn_alike_or_by_the_sources_weights():
    assert make().probs().tolist() == [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]
    union = UnionSource(
        [(ListSource([Task("x", "a")]), 1.0), (ListSource([Task("y", "a"), Task("z", "b")]), 3.0)]
    )
    # Weights 1 to 1.5 inside stage a.
    assert Staged(union, stages=("a", "b")).probs().tolist() == pytest.approx([0.4, 0.6, 0.0])


# Demotion.


def test_a_stage_that_is_too_hard_is_left_downwards_after_enough_evidence():
    curriculum = make(demotion=DemotionRule(min_episodes=20), starting_stage="b")
    play(curriculum, "f" * 19)
    assert curriculum.current_stage == "b"
    play(curriculum, "f")
    assert curriculum.current_stage == "a"
    change = curriculum.history[0]
    assert (change.rules, change.success, change.episodes) == (("demotion",), 0.0, 20)
    assert (change.from_stage, change.to_stage) == ("b", "a")


def test_the_evidence_is_counted_since_entry_and_not_by_the_window():
    # The ancestor compared a window of 50 with 200 needed, so it never demoted.
    curriculum = Staged(TASKS, stages=STAGES, starting_stage="b")
    play(curriculum, "f" * 200)
    assert curriculum.current_stage == "a"


def test_success_at_the_demotion_threshold_is_enough_to_stay():
    curriculum = make(demotion=DemotionRule(threshold=0.2, min_episodes=10), starting_stage="b")
    play(curriculum, "wwffffffff" + "wwffffffff" * 5)
    assert curriculum.current_stage == "b"
    play(curriculum, "ff")  # Now 0 to 2 of the last ten.
    assert curriculum.current_stage == "a"


def test_the_first_stage_is_never_left_downwards():
    curriculum = make(demotion=DemotionRule(min_episodes=1))
    play(curriculum, "f" * 100)
    assert curriculum.current_stage == "a"


def test_demotion_can_be_switched_off():
    curriculum = make(starting_stage="b")
    play(curriculum, "f" * 1000)
    assert curriculum.current_stage == "b"


def test_a_stage_may_set_its_own_demotion_threshold():
    stages = ("a", Stage(name="b", demotion_threshold=0.5), "c")
    curriculum = make(
        stages=stages, demotion=DemotionRule(threshold=0.1, min_episodes=10), starting_stage="b"
    )
    play(curriculum, "wwwwffffff")
    assert curriculum.current_stage == "a"


def test_after_a_demotion_both_stages_start_from_nothing():
    curriculum = make(demotion=DemotionRule(min_episodes=10), min_episodes=10)
    play(curriculum, "w" * 10 + "f" * 10)
    assert curriculum.current_stage == "a"
    assert curriculum.stage_report("a").recent_episodes == 0
    play(curriculum, "w" * 9)
    assert curriculum.current_stage == "a"
    play(curriculum, "w")
    assert curriculum.current_stage == "b"
    assert curriculum.stage_report("b").recent_episodes == 0


def test_each_demotion_doubles_the_evidence_for_the_next_out_of_that_stage():
    curriculum = make(demotion=DemotionRule(min_episodes=10, backoff=2.0))
    for needed in (10, 20, 40, 80):
        play(curriculum, "w" * 10)
        assert curriculum.explain().demotion_episodes == needed
        play(curriculum, "f" * (needed - 1))
        assert curriculum.current_stage == "b"
        play(curriculum, "f")
        assert curriculum.current_stage == "a"
    curriculum.go_to("c")
    assert curriculum.explain().demotion_episodes == 10


def test_two_stages_cannot_take_turns_for_ever():
    # The ancestor alternated every ten episodes. Here stage b is always failed, a always passed:
    # 200·(2^k - 1) episodes of failure for k demotions leave room for 6 in 20,000.
    curriculum = Staged(TASKS, stages=STAGES)
    for _ in range(400):
        draws = curriculum.draw_batch(50)
        curriculum.report_batch(draws, draws["slot"] < 2)
    demotions = [change for change in curriculum.history if change.rules == ("demotion",)]
    assert 3 <= len(demotions) <= 6
    assert curriculum.num_observed == 20_000
