"""Where a task stands, worked out with results that count half after one more play."""

import math
from typing import Any

import pytest

from curricula.fake_learner import record_for
from curricula.short_memory import after, make, play, told
from stepladder.curricula import Frontier
from stepladder.tasks import NumberedSource


def test_a_task_is_learnable_after_its_first_success_among_failures():
    curriculum = make()
    play(curriculum, 0, "f")
    assert curriculum.states() == ["probed"] * 3
    play(curriculum, 0, "w")
    # 1 success and 0.5 failures: 0.67, where 2·√(0.01 / 1.5) = 0.16 would have been chance.
    assert curriculum.states() == ["zone", "probed", "probed"]
    assert curriculum.rates()[0] == pytest.approx(1.2 / 1.9)
    assert curriculum.scores().tolist() == pytest.approx([0.7 / 1.9, 0.0, 0.0])


def test_a_task_that_succeeds_from_the_start_is_mastered_without_practice():
    curriculum = make()
    for count in (1.0, 1.5, 1.75):
        play(curriculum, 0, "w")
        # It looks mastered, but so few plays cannot tell.
        assert curriculum.states()[0] == "probed"
        assert told(curriculum, 0).numbers["weighed_plays"] == count
    # 1.875 plays are enough, and 2.075 / 2.275 = 0.91.
    assert after(curriculum, "w") == "mastered"
    assert curriculum.rates()[0] == pytest.approx(2.075 / 2.275)


def test_a_learnable_task_is_mastered_after_enough_successes():
    curriculum = make()
    # 1 to 0.5; then 1.5 to 0.25 of 1.75 plays; then 1.75 to 0.125 of 1.875, which is 0.857.
    assert after(curriculum, "fww") == "zone"
    assert after(curriculum, "w") == "mastered"
    assert curriculum.rates()[0] == pytest.approx(1.95 / 2.275)


def test_a_mastered_task_that_lapses_is_practised_and_mastered_again():
    curriculum = make()
    play(curriculum, 0, "fwww")
    # Half a success leaves 1.375 to 0.5625: 1.575 / 2.3375 = 0.67, above 0.8 - 0.2.
    assert after(curriculum, "h") == "mastered"
    # 0.6875 to 1.28: 0.37.
    assert after(curriculum, "f") == "zone"
    # 1.34 to 0.64; 1.67 to 0.32; 1.84 to 0.16: 0.65, 0.78, 0.86.
    assert after(curriculum, "ww") == "zone"
    assert after(curriculum, "w") == "mastered"


def test_a_task_that_lapses_must_beat_its_old_level_or_what_it_has_fallen_to():
    curriculum = make()
    play(curriculum, 0, "fwwwf")
    assert (curriculum.states()[0], told(curriculum, 0).numbers["level"]) == ("zone", 0.0)
    # Stuck at 0.5; then mastered with 1.83 to 0.17; then 0.92 to 1.08: 1.12 / 2.4 = 0.47.
    play(curriculum, 1, "fw" + "fwfw" * 2)
    assert told(curriculum, 1).numbers["level"] == 0.5
    play(curriculum, 1, "ww")
    assert curriculum.states()[1] == "mastered"
    play(curriculum, 1, "f")
    assert curriculum.states()[1] == "zone"
    assert told(curriculum, 1).numbers["level"] == pytest.approx(0.465, abs=0.001)


def test_a_learnable_task_without_success_of_late_is_lost_again():
    curriculum = make()
    # Half a success is left: one half-life ago it succeeded.
    assert after(curriculum, "fwf") == "zone"
    assert after(curriculum, "f") == "probed"
    assert after(curriculum, "w") == "zone"


def test_a_coin_toss_is_stuck_after_a_trial():
    curriculum = make(mastery=0.9)
    play(curriculum, 0, "fw")
    # First trial: 2 of 4, from nothing. That is better by more than √(0.25 / 4) = 0.25.
    assert after(curriculum, "fwfw") == "zone"
    assert told(curriculum, 0).numbers["level"] == 0.5
    # Second trial: 2 of 4 again.
    assert after(curriculum, "fwf") == "zone"
    assert after(curriculum, "w") == "probed"
    assert told(curriculum, 0).numbers == {
        "success": pytest.approx(1.53 / 2.39, abs=0.01),
        "level": 0.5,
        "plays_in_trial": 0.0,
        "trial_length": 8.0,
        "weighed_plays": pytest.approx(2.0, abs=0.01),
    }


def test_what_was_stuck_must_beat_its_level_and_by_more_the_more_often_it_is_looked_at():
    # Results count half after 20 plays, or a little more: trials of 4, 4 and 8 plays are short.
    settings: dict[str, Any] = {"mastery": 0.99, "halflife_episodes": 20.0, "promote_z": 1.0}
    for num_fails, found in ((0, 5), (60, 14)):
        curriculum = make(**settings)
        play(curriculum, 0, "fw" + "fwfw" * 2)
        assert (curriculum.states()[0], told(curriculum, 0).numbers["level"]) == ("probed", 0.5)
        play(curriculum, 0, "fw" * num_fails)
        count = 0
        while curriculum.states()[0] == "probed":
            play(curriculum, 0, "w")
            count += 1
        assert count == found
        # With the last play, and not before, it is better than the luckiest of so many looks.
        keep, successes, plays = 0.5**0.05, 0.0, 0.0
        results = "fw" + "fwfw" * 2 + "fw" * num_fails + "w" * count
        beats: list[bool] = []
        for looks, result in enumerate(results, -9):
            successes, plays = successes * keep + (result == "w"), plays * keep + 1.0
            z = math.sqrt(1.0 + 2.0 * math.log(1.0 + max(0, looks) / plays))
            beats.append(successes / plays > 0.5 + z * math.sqrt(0.25 / plays))
        assert beats[10:] == [False] * (2 * num_fails + count - 1) + [True]


def test_a_task_that_gets_better_in_every_trial_stays_in_practice():
    curriculum = make(mastery=0.95, halflife_episodes=3.0, trial_episodes=8)
    play(curriculum, 0, "fw")
    # Of 8 plays 2, then 4 succeed, then 12 of 16; from one trial to the next that is 0.25 more, and
    # the standard error is √(0.25 / 8) = 0.18 or less.
    lengths = []
    for trial in ("fwffffwf", "wfwffwfw", "wwfwwwfw" * 2):
        play(curriculum, 0, trial)
        assert curriculum.states()[0] == "zone"
        assert told(curriculum, 0).numbers["plays_in_trial"] == 0.0
        lengths.append(told(curriculum, 0).numbers["trial_length"])
    # The first trial had nothing to beat; each one after it is as long as all before together.
    assert lengths == [8.0, 16.0, 32.0]
    assert told(curriculum, 0).numbers["level"] == 0.75
    assert after(curriculum, "wwfwwwfw" * 4) == "probed"
    assert told(curriculum, 0).numbers["trial_length"] == 64.0


def test_a_trial_must_be_better_by_more_than_chance():
    curriculum = make(mastery=0.95, halflife_episodes=3.0, trial_episodes=8)
    # 4 of 8 in the first trial, then 5 of 8: 0.125 more, and the error is √(0.234 / 8) = 0.17.
    assert after(curriculum, "fw" + "fwfwfwfw") == "zone"
    assert after(curriculum, "fwfwfwww") == "probed"
    assert told(curriculum, 0).numbers["level"] == 0.625
    curriculum = make(mastery=0.95, halflife_episodes=3.0, trial_episodes=8, stuck_z=0.5)
    assert after(curriculum, "fw" + "fwfwfwfw" + "fwfwfwww") == "zone"


def test_one_success_after_very_many_failures_may_be_chance():
    curriculum = Frontier(NumberedSource(2), halflife_episodes=50.0)
    # 61 plays count 41.4, so that 2·√(0.01 / 41.4) = 0.031 is to beat, and 1 / 41.4 = 0.024.
    assert after(curriculum, "f" * 60 + "w") == "probed"
    # 1.99 / 41.8 = 0.048.
    assert after(curriculum, "w") == "zone"


def test_less_than_half_a_success_shows_nothing():
    curriculum = make()
    curriculum.observe(record_for(curriculum, 0, 0.45))
    assert curriculum.states()[0] == "probed"
    # 0.675 to 0.825.
    curriculum.observe(record_for(curriculum, 0, 0.45))
    assert curriculum.states()[0] == "zone"


def test_a_stuck_task_that_stops_succeeding_has_no_level_any_more():
    curriculum = make(mastery=0.9)
    play(curriculum, 0, "fw" + "fwfw" * 2)
    assert told(curriculum, 0).numbers["level"] == 0.5
    play(curriculum, 0, "ff")
    assert told(curriculum, 0).numbers["level"] == 0.0
    # So the first success shows something new.
    assert after(curriculum, "w") == "zone"


def test_a_steady_half_success_is_stuck_even_if_any_improvement_would_do():
    curriculum = make(mastery=0.9, stuck_z=0.0, promote_z=0.0)
    # Half a success, at once more than nothing.
    assert after(curriculum, "h") == "zone"
    assert after(curriculum, "hhhh") == "zone"
    assert after(curriculum, "hhhh") == "probed"
    assert after(curriculum, "hhhh") == "probed"


@pytest.mark.parametrize("halflife", [0.84, 1.0, 2.5, 8.0, 300.0])
def test_enough_evidence_can_be_had_whatever_the_half_life(halflife: float):
    curriculum = Frontier(NumberedSource(2), halflife_episodes=halflife)
    assert after(curriculum, "w" * 12) == "mastered"


def test_a_mastery_close_to_one_can_be_reached():
    curriculum = Frontier(NumberedSource(2), mastery=0.98)
    assert after(curriculum, "w" * 30) == "mastered"
