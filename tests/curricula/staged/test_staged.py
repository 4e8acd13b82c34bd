"""Staged: whose results count and when, tasks inside a stage, what is done by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from curricula.fake_learner import record_for
from curricula.three_stages import STAGES, TASKS, make, play, shares
from stepladder.curricula import (
    DemotionRule,
    EarlyRule,
    Record,
    Staged,
    record_array,
)
from stepladder.errors import ConfigError, RecordError
from stepladder.tasks import ListSource, Task

# When it is looked at.


def test_checks_come_after_every_so_many_records_whatever_they_are_about():
    curriculum = make(check_interval_episodes=10, min_episodes=1, starting_stage="b")
    play(curriculum, "w" * 9, stage="b")
    assert curriculum.current_stage == "b"
    play(curriculum, "f", stage="a")
    assert curriculum.current_stage == "c"
    assert curriculum.history[0].episode == 10


@pytest.mark.parametrize("batch", [1, 3, 7, 10, 64, 500])
def test_checks_do_not_depend_on_how_many_episodes_end_at_once(batch: int):
    curriculum = make(check_interval_episodes=10, min_episodes=25)
    records = [record_for(curriculum, 0, 1.0)] * 500
    for start in range(0, 500, batch):
        curriculum.observe(records[start : start + batch])
    assert [change.episode for change in curriculum.history] == [30]
    assert curriculum.explain().episodes_to_next_check == 10


def test_sixty_four_envs_that_always_win_together_advance():
    # The ancestor stayed at its first stage for 32,000 episodes when 64 envs ended together.
    curriculum = Staged(TASKS, stages=STAGES)
    curriculum.claim(SimpleNamespace(num_envs=64))
    for _ in range(5):
        slot = 2 * curriculum.stage_index
        batch = [record_for(curriculum, slot, 1.0, env_index=env) for env in range(64)]
        curriculum.observe(record_array(batch))
    assert curriculum.current_stage == "c"
    # Checks come every ten records. The first with 64 episodes is the 7th. 58 records of stage a
    # are on their way then; stage b has 62 episodes at the 19th check, 72 at the 20th.
    assert [change.episode for change in curriculum.history] == [70, 200]
    assert [change.episodes for change in curriculum.history] == [70, 72]


def test_nothing_is_decided_before_there_are_as_many_episodes_as_envs():
    # The first results of many envs are those of the shortest episodes: no fair sample.
    curriculum = make(early=EarlyRule(min_episodes=5), demotion=DemotionRule(min_episodes=5))
    for stage, slot, success in (("b", 2, 1.0), ("b", 2, 0.0)):
        curriculum.go_to(stage)
        for env in range(63, 0, -1):
            curriculum.observe(record_for(curriculum, slot, success, env_index=env))
        assert curriculum.current_stage == stage
        assert curriculum.stage_report().min_episodes == 64
        curriculum.observe(record_for(curriculum, slot, success, env_index=0))
        assert curriculum.current_stage != stage


def test_envs_that_have_not_reported_yet_are_counted_too():
    curriculum = make()
    curriculum.claim(SimpleNamespace(num_envs=64))
    quick = [record_for(curriculum, 0, 1.0, env_index=env % 4) for env in range(64)]
    curriculum.observe(quick[:63])
    assert curriculum.current_stage == "a"
    curriculum.observe(quick[63])
    assert curriculum.current_stage == "b"


def test_the_interval_between_checks_can_be_changed():
    curriculum = make(check_interval_episodes=10, min_episodes=1)
    play(curriculum, "ww")
    curriculum.set_check_interval_episodes(3)
    play(curriculum, "ww")
    assert curriculum.current_stage == "a"
    play(curriculum, "w")
    assert curriculum.current_stage == "b"
    curriculum.set_check_interval_episodes(100)
    assert curriculum.config.check_interval_episodes == 100
    play(curriculum, "www")
    assert curriculum.current_stage == "b"
    assert curriculum.explain().episodes_to_next_check == 97
    with pytest.raises(ConfigError, match="check_interval_episodes"):
        curriculum.set_check_interval_episodes(0)
    assert curriculum.config.check_interval_episodes == 100


def test_episodes_drawn_before_entry_are_no_evidence():
    curriculum = make(min_episodes=3)
    early_bird = record_for(curriculum, 2, 1.0)
    play(curriculum, "www")
    assert curriculum.current_stage == "b"
    curriculum.observe([early_bird] * 20)
    assert curriculum.current_stage == "b"
    report = curriculum.stage_report("b")
    assert (report.episodes, report.recent_episodes, report.lifetime_episodes) == (0, 0, 20)
    curriculum.observe([record_for(curriculum, 2, 1.0)] * 3)
    assert curriculum.current_stage == "c"


def test_late_episodes_of_a_stage_count_for_that_stage():
    curriculum = make(min_episodes=3, window_episodes=10)
    late = record_for(curriculum, 0, 0.0)
    play(curriculum, "www")
    curriculum.observe([late] * 2)
    report = curriculum.stage_report("a")
    assert (report.success_rate, report.episodes, report.lifetime_episodes) == (0.6, 3, 5)
    assert curriculum.stage_report("b").lifetime_episodes == 0


def test_a_stage_change_takes_effect_in_the_middle_of_a_batch():
    curriculum = make(min_episodes=2, threshold=1.0)
    version = curriculum.plan.version
    future = [record_for(curriculum, slot, 1.0, plan_version=version + 5) for slot in (0, 2)]
    curriculum.observe([future[0], future[0], future[1], future[1], future[0]])
    assert curriculum.current_stage == "c"
    assert [change.episode for change in curriculum.history] == [2, 4]


# What is left out.


def test_episodes_cut_off_without_success_can_be_left_out():
    curriculum = make(ignore_truncated=True, threshold=1.0)
    cut_off = record_for(curriculum, 0, 0.0, outcome=1)
    curriculum.observe([cut_off] * 50)
    report = curriculum.stage_report()
    assert (report.episodes, report.recent_episodes, report.lifetime_episodes) == (0, 0, 50)
    curriculum.observe(cut_off._replace(success=1.0))
    assert curriculum.stage_report().episodes == 1
    play(curriculum, "w" * 9)
    assert curriculum.current_stage == "b"


def test_episodes_cut_off_count_unless_told_otherwise():
    curriculum = make()
    curriculum.observe([record_for(curriculum, 0, 0.0, outcome=1)] * 5)
    assert curriculum.stage_report().episodes == 5


def test_results_of_replaced_tasks_count_for_no_stage():
    tasks = ListSource(Task(f"{stage}{i}", stage) for stage in STAGES for i in range(20))
    curriculum = Staged(tasks, stages=STAGES, capacity=12, seed=1)
    slot = int(np.argmax(curriculum.probs()))
    late = record_for(curriculum, slot, 1.0)
    curriculum.replace(slot)
    assert curriculum.pool.task(slot).label == "a"
    curriculum.observe([late] * 5)
    assert curriculum.num_orphaned == 5
    assert curriculum.stage_report().lifetime_episodes == 0


# By hand.


def test_a_stage_can_be_chosen_by_hand_and_the_history_says_so():
    curriculum = make()
    play(curriculum, "wwf")
    curriculum.go_to("c")
    assert (curriculum.current_stage, curriculum.stage_index) == ("c", 2)
    assert curriculum.history[0].rules == ("manual",)
    assert curriculum.history[0].success == pytest.approx(2 / 3)
    assert shares(curriculum) == pytest.approx([0.1, 0.1, 0.8])


def test_a_run_can_start_anywhere():
    curriculum = make(starting_stage="b")
    assert curriculum.current_stage == "b"
    assert shares(curriculum) == pytest.approx([0.2, 0.8, 0.0])


def test_results_can_be_recorded_by_the_name_of_a_stage():
    curriculum = make()
    curriculum.record_episode("b", True, episode_return=3.0, length=17)
    assert (curriculum.num_observed, curriculum.num_steps) == (1, 17)
    assert curriculum.stage_report("b").lifetime_episodes == 1


def test_unknown_stages_are_named_with_those_there_are():
    curriculum = make()
    uses = (
        lambda: curriculum.go_to("d"),
        lambda: curriculum.record_episode("d", True),
        lambda: curriculum.stage_report("d"),
        lambda: curriculum.mixing_ratio("d"),
        lambda: make(starting_stage="d"),
    )
    for use in uses:
        with pytest.raises(
            ConfigError, match=r"unknown stage 'd'; the stages are \['a', 'b', 'c'\]"
        ):
            use()
    assert (curriculum.current_stage, curriculum.num_observed) == ("a", 0)


@pytest.mark.parametrize("success", [1.5, -0.5, float("nan")])
def test_impossible_results_recorded_by_hand_are_refused(success: float):
    curriculum = make()
    with pytest.raises(RecordError, match="success"):
        curriculum.record_episode("a", success)
    assert curriculum.num_observed == 0


def test_a_record_says_which_stage_by_its_slot_alone():
    curriculum = make(min_episodes=1)
    curriculum.observe(Record(2, 0, 99, 0, 0, 0, 0.0, 1, 1.0, 0))
    assert curriculum.current_stage == "a"
    assert curriculum.stage_report("b").lifetime_episodes == 1
