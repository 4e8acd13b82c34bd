"""Scale and delay: how long trials are, what is in flight, and how much one task may get."""

from types import SimpleNamespace

import numpy as np
import pytest

from curricula.fake_learner import differences
from curricula.short_memory import BARE, make, overview, play, told
from stepladder.curricula import Frontier
from stepladder.plans.record import RECORD_DTYPE
from stepladder.tasks import NumberedSource


def with_envs(curriculum: Frontier, num_envs: int) -> Frontier:
    """Let so many envs play at the same time."""
    curriculum.claim(SimpleNamespace(num_envs=num_envs))
    return curriculum


# How long a trial is.


def test_new_tasks_begin_at_half_of_what_others_have_taken():
    curriculum = make(4, stuck_z=0.0)
    # Of 21 plays, three found nothing or lost it: before the first success, and when it was over.
    play(curriculum, 0, "fw" + "fhf" + "hhwfhw" + "whf" + "wwhf" + "www")
    assert (curriculum.states()[0], overview(curriculum).pace) == ("mastered", 18.0)
    play(curriculum, 1, "fw")
    assert told(curriculum, 1).numbers["trial_length"] == 9.0


def test_the_pace_is_a_mean_of_the_last_tasks():
    curriculum = make(4)
    play(curriculum, 0, "fwww")
    assert overview(curriculum).pace == 2.0
    # One without practice says nothing, and neither does one that had lapsed.
    play(curriculum, 1, "wwww")
    play(curriculum, 0, "f" + "wwww")
    assert curriculum.states()[:2] == ["mastered"] * 2
    assert overview(curriculum).pace == 2.0
    # Found with the second play, then four without progress to speak of, and two more.
    play(curriculum, 2, "fw" + "fwww")
    assert curriculum.states()[2] == "mastered"
    assert overview(curriculum).pace == pytest.approx(np.sqrt(2.0 * 4.0))


def test_results_count_longer_when_trials_are_long():
    short, long = make(2, mastery=0.9), make(2, mastery=0.9, trial_episodes=40)
    for curriculum in (short, long):
        play(curriculum, 0, "f")
        play(curriculum, 0, "f")
    # Half is left of the first; with 40 plays, four times ten half-lives, it counts half after two.
    assert told(short, 0).numbers["weighed_plays"] == 1.5
    assert told(long, 0).numbers["weighed_plays"] == pytest.approx(1.0 + 0.5**0.5)


def test_a_slow_task_is_not_given_up():
    # From 0.05 to 0.9 in 20,000 plays: a trial of 20 plays would never see it move.
    curriculum, rng = Frontier(NumberedSource(2)), np.random.default_rng(3)
    in_zone = 0
    for number in range(20_000):
        play(curriculum, 0, "w" if rng.random() < 0.05 + 0.85 * number / 20_000 else "f")
        in_zone += curriculum.states()[0] != "probed"
    assert in_zone > 0.6 * 20_000
    assert told(curriculum, 0).numbers["trial_length"] >= 1_000


# What is in flight.


def test_the_zone_gets_no_more_envs_than_its_tasks_need_plays():
    curriculum = with_envs(make(3), 128)
    play(curriculum, 0, "fw")
    # Success 1.2 / 1.9 of 0.8, and the shortest trial of 4 plays to go by.
    need = 4.0 * (1.0 - 1.2 / 1.9 / 0.8)
    assert curriculum.probs()[0] == pytest.approx(need / 128)
    assert curriculum.probs()[1:].tolist() == pytest.approx([(1 - need / 128) / 2] * 2)
    # Another task in the zone, another env or so.
    play(curriculum, 1, "fw")
    assert curriculum.probs()[:2].tolist() == pytest.approx([need / 128] * 2)
    # When it is the only one that may be drawn, all envs draw it.
    for slot in (1, 2):
        assert curriculum.quarantine(slot, 0, "no such map")
    assert curriculum.probs()[0] == 1.0


def test_a_single_env_goes_by_shares_alone():
    for curriculum in (make(3), with_envs(make(3), 1)):
        play(curriculum, 0, "fw")
        assert curriculum.probs()[0] == pytest.approx(1 / 1.5)


def test_envs_do_not_all_probe_the_last_task_of_a_round():
    alone, many = make(10), with_envs(make(10), 128)
    for curriculum in (alone, many):
        for slot in range(9):
            play(curriculum, slot, "f")
    assert alone.probs().tolist() == [0.0] * 9 + [1.0]
    # 128 draws for ten tasks: each gets its part.
    assert many.probs().tolist() == pytest.approx([0.1] * 10)
    few = with_envs(make(10), 2)
    for slot in range(9):
        play(few, slot, "f")
    # Two draws: one for the last of this round, the other for anybody of the next.
    assert few.probs().tolist() == pytest.approx([0.5 / 9] * 9 + [0.5])


def test_plays_drawn_before_a_decision_belong_to_no_new_trial():
    curriculum = with_envs(make(1), 9)
    records = np.zeros(2, dtype=RECORD_DTYPE)
    records["success"] = [0.0, 1.0]
    curriculum.observe(records)
    assert told(curriculum, 0).numbers["plays_in_trial"] == 0.0
    # The only task there is: the eight other envs play it, too.
    play(curriculum, 0, "h" * 8)
    assert told(curriculum, 0).numbers["plays_in_trial"] == 0.0
    play(curriculum, 0, "h")
    assert told(curriculum, 0).numbers["plays_in_trial"] == 1.0


def test_what_is_in_flight_is_saved():
    curriculum, other = with_envs(make(4), 16), make(4)
    for slot in (0, 1):
        play(curriculum, slot, "fw" + "fwfw")
    other.restore(curriculum.snapshot())
    np.testing.assert_array_equal(curriculum.probs(), other.probs())
    for each in (curriculum, other):
        play(each, 0, "wfhw")
        play(each, 2, "fw")
    assert differences(curriculum.snapshot(), other.snapshot()) == []


def test_a_task_that_leaves_the_zone_or_the_pool_needs_nothing_any_more():
    curriculum = with_envs(make(3), 64)
    play(curriculum, 0, "fw")
    before = curriculum.probs()[0]
    play(curriculum, 1, "fw")
    assert curriculum.quarantine(1, 0, "no such map")
    play(curriculum, 1, "w")
    assert curriculum.probs()[0] == pytest.approx(before)
    play(curriculum, 2, "fw" + "ff")
    assert curriculum.probs()[0] == pytest.approx(before)


# How much one task may get.


def test_in_a_large_pool_no_task_gets_more_than_its_largest_share():
    num_tasks = 400
    curriculum = Frontier(NumberedSource(num_tasks), **{**BARE, "max_share": 0.1})
    play(curriculum, 0, "fw")
    # Of 1 / 1.5, a tenth is kept; what is left over goes to all tasks alike.
    assert curriculum.probs()[0] == pytest.approx(0.1 + (1 / 1.5 - 0.1) / num_tasks)
    play(curriculum, 1, "wwww")
    play(curriculum, 2, "fw")
    # Of 1.75, 0.25 are for rehearsal, of a single task.
    left = (1.0 / 1.75 - 0.2 + 0.25 / 1.75 - 0.1) / num_tasks
    assert curriculum.probs()[:3].tolist() == pytest.approx([0.1 + left] * 3)
    for slot in range(3, 20):
        play(curriculum, slot, "fw")
    # So many that they may have all of the zone's share; only the rehearsed task is limited.
    left = (0.25 / 1.75 - 0.1) / num_tasks
    assert curriculum.probs()[0] == pytest.approx(1 / 1.75 / 19 + left)


def test_what_is_in_flight_knows_the_limit():
    curriculum = with_envs(Frontier(NumberedSource(400), **BARE), 101)
    records = np.zeros(2, dtype=RECORD_DTYPE)
    records["success"] = [0.0, 1.0]
    curriculum.observe(records)
    # At most a twentieth of the other hundred envs play it.
    assert curriculum._state.tasks["num_stale"][0] <= 5
