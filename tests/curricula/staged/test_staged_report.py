"""What stages tell: reports, changes and explanations, in numbers and in words."""

import json
from dataclasses import fields
from typing import Any

import pytest

from curricula.three_stages import make, play
from stepladder.curricula import (
    PUBLISHED_MIXING,
    DemotionRule,
    EarlyRule,
    StageChange,
    Staged,
    StagedExplanation,
    StageReport,
    TrendRule,
)
from stepladder.saving.saved_fields import read_fields


def explain(curriculum: Staged) -> StagedExplanation:
    explanation = curriculum.explain()
    assert isinstance(explanation, StagedExplanation)
    return explanation


def test_a_report_has_all_that_the_ancestors_had():
    curriculum = make(threshold=0.8, min_episodes=20, window_episodes=10)
    play(curriculum, "wwwf" * 3)
    report = curriculum.stage_report()
    assert report == StageReport(
        stage="a",
        status="current",
        success_rate=0.7,
        judged_success=0.7,
        passed_at=None,
        episodes=12,
        lifetime_episodes=12,
        recent_episodes=10,
        can_advance=False,
        can_early_advance=False,
        trend_bonus=False,
        advancement_threshold=0.8,
        min_episodes=20,
        trend=0.0,
        adaptive_mixing_ratio=0.15,
        groups={},
    )
    assert {field.name for field in fields(report)} >= {
        "success_rate",
        "episodes",
        "recent_episodes",
        "can_advance",
        "advancement_threshold",
        "min_episodes",
        "trend",
        "can_early_advance",
        "trend_bonus",
        "adaptive_mixing_ratio",
    }


def test_a_stage_without_data_has_a_whole_report():
    report = make().stage_report("c")
    assert (report.status, report.success_rate, report.episodes) == ("locked", 0.0, 0)
    assert not report.can_advance
    assert report.missing() == ["success 0.00 < 0.70", "10 more episodes needed"]


def test_stages_are_completed_current_or_locked():
    curriculum = make()
    play(curriculum, "w" * 10)
    statuses = [curriculum.stage_report(stage).status for stage in ("a", "b", "c")]
    assert statuses == ["completed", "current", "locked"]


def test_a_report_says_which_rules_hold():
    curriculum = make(
        min_episodes=40,
        window_episodes=40,
        early=EarlyRule(min_episodes=20),
        trend=TrendRule(episodes_factor=0.5),
        check_interval_episodes=1000,
    )
    play(curriculum, "ff" + "w" * 18)
    report = curriculum.stage_report()
    assert (report.can_early_advance, report.trend_bonus, report.can_advance) == (True, True, True)
    play(curriculum, "fff")
    report = curriculum.stage_report()
    assert (report.can_early_advance, report.trend_bonus, report.can_advance) == (False,) * 3


def test_a_change_keeps_every_number_that_decided_it():
    curriculum = make(threshold=0.6, confidence_z=0.5, window_episodes=20, starting_stage="b")
    play(curriculum, "wfwfwfw", stage="a")
    for success in "wwwwwwwwwf":
        curriculum.record_episode("b", success == "w", length=3)
    (change,) = curriculum.history
    judged = change.judged_success
    assert change == StageChange(
        episode=17,
        step=7 + 30,
        plan_version=curriculum.plan.version,
        from_stage="b",
        to_stage="c",
        rules=("standard",),
        success=0.9,
        judged_success=judged,
        episodes=10,
        needs={"standard": (0.6, 10)},
        threshold=0.6,
        min_episodes=10,
        trend=0.0,
        mixing_ratio=0.05,
    )
    # z = 0.5, n = 10: (0.9 + 0.0125 - 0.5·√(0.009 + 0.000625)) / 1.025.
    assert judged == pytest.approx((0.9125 - 0.5 * 0.009625**0.5) / 1.025)
    assert str(change) == (
        f"b -> c at episode 17 by standard: success 0.90 (lower bound {judged:.2f}), 10 episodes, "
        "trend +0.00 (standard asks for success of 0.60 after 10 episodes)"
    )


def test_a_change_survives_json():
    curriculum = make()
    play(curriculum, "w" * 10)
    change = curriculum.history[0]
    written = json.loads(json.dumps(change.to_json()))
    assert written == change.to_json()
    assert read_fields(StageChange, written, "the history") == change


def test_why_a_stage_has_not_advanced_is_said_in_words_and_numbers():
    # 45 of 63 are 0.71. The older 31 are all wins, of the newer 32 only 14 are: 0.44.
    curriculum = make(threshold=0.8, min_episodes=100, window_episodes=100)
    play(curriculum, "w" * 45 + "f" * 18)
    assert explain(curriculum).verdict() == (
        "Stage 'a' has not advanced: success 0.71 < 0.80; 37 more episodes needed; trend -0.56."
    )


def test_only_what_is_lacking_is_said_to_be_lacking():
    curriculum = make(threshold=0.8, min_episodes=100, window_episodes=100)
    play(curriculum, "w" * 63)
    assert "has not advanced: 37 more episodes needed; trend +0.00." in str(explain(curriculum))
    play(curriculum, "f" * 47)
    assert "has not advanced: success 0.53 < 0.80; trend" in str(explain(curriculum))


def test_a_stage_that_is_ready_says_when_it_is_left():
    curriculum = make(check_interval_episodes=15)
    play(curriculum, "w" * 12)
    assert explain(curriculum).verdict() == (
        "Stage 'a' is ready; it is left at the next check, in 3 episodes."
    )


def test_the_last_stage_says_that_it_is_the_last():
    curriculum = make(starting_stage="c")
    assert explain(curriculum).verdict() == (
        "Stage 'c' is the last one; there is nothing to advance to."
    )


def test_a_rule_that_is_off_is_not_promised():
    curriculum = make(standard=False, early=EarlyRule())
    play(curriculum, "w" * 10)
    assert "the standard rule is switched off" in str(explain(curriculum))


def test_the_whole_text_of_an_explanation():
    curriculum = make(demotion=DemotionRule(threshold=0.25, min_episodes=30))
    play(curriculum, "w" * 10 + "wwwf")
    gap = " " * 14
    assert explain(curriculum).lines() == [
        f"Staged: 6 tasks, 14 episodes observed, plan version {curriculum.plan.version}.",
        "Stage 2 of 3: 'b'. Stage 'b' has not advanced: 6 more episodes needed; trend +0.00.",
        "Share of earlier tasks: 20%.",
        "Demoted if success falls below 0.25 after 30 episodes.",
        f"Last change: {curriculum.history[0]}.",
        f"  a {gap} completed  passed at 1.00; now 1.00, 10 episodes in all",
        f"  b {gap} current    success 0.75 (needs 0.70), episodes 4 (needs 10), 4 in all",
        f"  c {gap} locked     success none (needs 0.70), episodes 0 (needs 10), 0 in all",
    ]


def test_a_stage_that_was_passed_says_with_what_and_how_it_does_now():
    curriculum = make()
    play(curriculum, "w" * 10)
    for _ in range(50):
        curriculum.record_episode("a", False)
    report = curriculum.stage_report("a")
    assert report.passed_at == 1.0
    assert str(report).endswith("passed at 1.00; now 0.00, 60 episodes in all")
    again = make()
    again.restore(curriculum.snapshot())
    assert again.stage_report("a") == report


def test_a_stage_that_no_rule_has_passed_does_not_say_so():
    curriculum = make()
    curriculum.go_to("c")
    assert curriculum.stage_report("a").passed_at is None
    assert "left by hand; now none" in str(curriculum.stage_report("a"))


def test_what_cannot_happen_is_left_out_of_the_text():
    text = str(explain(make()))
    assert "Demoted" not in text
    assert "Last change" not in text
    assert "(not used: there is no earlier stage)" in text


def test_an_explanation_is_data():
    curriculum = make(demotion=DemotionRule(min_episodes=30))
    play(curriculum, "w" * 14)
    told = explain(curriculum)
    assert (told.stage, told.stage_index, told.num_stages, told.is_last) == ("b", 1, 3, False)
    assert told.current == told.stages[1] == curriculum.stage_report()
    assert told.last_change == curriculum.history[0]
    assert (told.demotion_below, told.demotion_episodes) == (0.2, 30)
    written: dict[str, Any] = json.loads(json.dumps(told.to_json()))
    assert written["stages"][0]["success_rate"] == 1.0
    assert written["last_change"]["rules"] == ["standard"]


@pytest.mark.parametrize(
    ("slot", "words"),
    [
        (0, "its stage 'a' is passed and mixed in"),
        (2, "its stage 'b' is the current one"),
        (4, "its stage 'c' is locked until 'b' is passed"),
    ],
)
def test_why_a_task_is_or_is_not_drawn(slot: int, words: str):
    curriculum = make(starting_stage="b")
    assert curriculum.explain(slot).reason == words


def test_why_a_passed_task_is_not_drawn_any_more():
    published = make(starting_stage="c", mixing=PUBLISHED_MIXING)
    assert published.explain(0).reason == "its stage 'a' is passed and not mixed in"
    assert make(starting_stage="c").explain(0).reason == "its stage 'a' is passed and mixed in"


def test_a_change_names_what_the_deciding_rule_asked_for():
    curriculum = make(
        min_episodes=100,
        early=EarlyRule(success=0.9, min_episodes=10),
        demotion=DemotionRule(threshold=0.25, min_episodes=20),
    )
    play(curriculum, "w" * 10)
    play(curriculum, "f" * 20, stage="b")
    play(curriculum, "w" * 10)
    play(curriculum, "f" * 40, stage="b")
    early, first, again, second = curriculum.history
    assert early.needs == again.needs == {"early": (0.9, 10)}
    assert (first.needs, second.needs) == ({"demotion": (0.25, 20)}, {"demotion": (0.25, 40)})
    assert "early asks for success of 0.90 after 10 episodes" in str(early)
    assert "demotion asks for success below 0.25 after 40 episodes" in str(second)
