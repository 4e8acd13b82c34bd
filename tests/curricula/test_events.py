"""Every decision of a curriculum is told once, with its reason."""

import json

from curricula.fake_learner import record_for
from curricula.three_stages import make as make_stages
from curricula.three_stages import play as play_stages
from curricula.two_labels import REST, make, play
from stepladder.curricula import DemotionRule, Frontier, Phase, Staged, StagedConfig, Uniform
from stepladder.curricula.reporting.events import EventCursor, curriculum_events
from stepladder.tasks import ListSource, NumberedSource, Task


def kinds(curriculum, cursor):
    return [event.kind for event in curriculum_events(curriculum, cursor)]


def test_a_stage_that_was_passed_is_told_once_with_all_its_numbers():
    curriculum, cursor = make_stages(), EventCursor()
    assert curriculum_events(curriculum, cursor) == []
    play_stages(curriculum, "w" * 10)
    (event,) = curriculum_events(curriculum, cursor)
    assert event.kind == "stage_advanced"
    assert event.text == str(curriculum.history[0])
    assert (event.data["from_stage"], event.data["to_stage"]) == ("a", "b")
    assert event.data["rules"] == ["standard"]
    assert "within" not in event.data
    assert json.loads(json.dumps(event.data)) == event.data
    assert curriculum_events(curriculum, cursor) == []
    play_stages(curriculum, "w" * 10)
    assert [event.data["to_stage"] for event in curriculum_events(curriculum, cursor)] == ["c"]


def test_ways_to_change_a_stage_have_kinds_of_their_own():
    curriculum = make_stages(demotion=DemotionRule(threshold=0.3, min_episodes=10))
    cursor = EventCursor()
    play_stages(curriculum, "w" * 10)
    play_stages(curriculum, "f" * 10)
    curriculum.go_to("c")
    assert kinds(curriculum, cursor) == ["stage_advanced", "stage_demoted", "stage_set"]


def test_two_cursors_do_not_take_from_each_other():
    curriculum, one, two = make_stages(), EventCursor(), EventCursor()
    curriculum.go_to("b")
    assert kinds(curriculum, one) == kinds(curriculum, two) == ["stage_set"]


def test_phases_and_what_is_inside_them_come_in_the_order_of_the_plans():
    staged = StagedConfig(
        stages=("a", "b"),
        min_episodes=2,
        window_episodes=2,
        check_interval_episodes=1,
        demotion=None,
    )
    curriculum = make(
        Phase(name="first", episodes=1),
        Phase(name="climb", curriculum=staged, episodes=3),
        REST,
    )
    for _ in range(4):
        play(curriculum, 1.0)
    events = curriculum_events(curriculum, EventCursor())
    assert [event.kind for event in events] == ["phase_changed", "stage_advanced", "phase_changed"]
    assert [event.data.get("within") for event in events] == [None, "climb", None]
    assert events[0].text == str(curriculum.history[0])
    assert events[0].data["rule"] == "episodes"


def test_a_task_that_could_not_be_built_is_told_with_its_reason():
    curriculum, cursor = Uniform([Task("x", "a"), Task("y", "a")]), EventCursor()
    curriculum.quarantine(1, 0, "no such map")
    (event,) = curriculum_events(curriculum, cursor)
    assert event.kind == "quarantined"
    assert event.text == "task 'y' of label 'a' could not be built: no such map"
    assert event.data["slot"] == 1
    assert curriculum_events(curriculum, cursor) == []


def test_a_replaced_task_says_so():
    curriculum = Uniform(ListSource.from_names(["x", "y", "z"]), capacity=2)
    curriculum.quarantine(0, 0, "why not")
    (event,) = curriculum_events(curriculum, EventCursor())
    assert event.text.endswith("could not be built: why not; another task took its slot")


def test_a_resumed_run_goes_on_with_what_happens_next():
    before = make_stages()
    before.go_to("b")
    curriculum: Staged = make_stages()
    curriculum.restore(before.snapshot())
    cursor = EventCursor.at_end(curriculum)
    assert curriculum_events(curriculum, cursor) == []
    curriculum.go_to("c")
    assert kinds(curriculum, cursor) == ["stage_set"]


def test_after_going_back_the_cursor_goes_on_from_there():
    curriculum, cursor = make_stages(), EventCursor()
    beginning = curriculum.snapshot()
    curriculum.go_to("b")
    curriculum.go_to("c")
    assert len(kinds(curriculum, cursor)) == 2
    curriculum.restore(beginning)
    assert kinds(curriculum, cursor) == []
    curriculum.go_to("b")
    assert kinds(curriculum, cursor) == ["stage_set"]


def test_tasks_that_a_frontier_sees_elsewhere_are_told_once_and_at_most_twenty_by_name():
    curriculum = Frontier(NumberedSource(30))
    cursor = EventCursor()
    assert curriculum_events(curriculum, cursor) == []
    for slot in range(30):
        for _ in range(10):
            curriculum.observe(record_for(curriculum, slot, success=1.0))
    told = curriculum_events(curriculum, cursor)
    assert [event.kind for event in told] == ["task_mastered"] * 20 + ["tasks_moved"]
    assert told[0].data["task"] == "task0"
    assert "went from probed to mastered: it is mastered" in told[0].text
    assert told[-1].data == {"num_tasks": 10}
    assert curriculum_events(curriculum, cursor) == []


def test_a_task_that_came_into_its_slot_has_not_changed_its_state():
    curriculum = Frontier(NumberedSource(30), capacity=2)
    cursor = EventCursor()
    curriculum_events(curriculum, cursor)
    while curriculum.num_evicted == 0:
        curriculum.report(curriculum.draw_one(), 1.0)
    told = curriculum_events(curriculum, cursor)
    assert [event.kind for event in told] == ["replaced"]
    assert told[0].data == {"num_replaced": 1, "num_evicted": 1}
