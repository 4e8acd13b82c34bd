"""What the frontier tells, in every state a task can be in."""

import pytest

from curricula.short_memory import BARE, make, overview, play, told
from stepladder.curricula import Frontier
from stepladder.tasks import ListSource, NumberedSource, Task, UnionSource


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        ("", "it has never been played and waits for its turn to be probed"),
        ("ff", "it has not succeeded recently; it is probed in turn"),
        ("w", "it nearly always succeeded so far; it is probed in turn until that is sure"),
        (
            "fwf",
            "it is learnable now: success 0.33, and within 3 plays it must get beyond its level of "
            "0.00; its trials take 4 plays",
        ),
        (
            "fw" + "hhhh" * 2,
            "it has not risen above its level of 0.50; it is probed in turn",
        ),
        (
            "fwww",
            "it is mastered (success 0.86) and rehearsed in turn; below 0.60 it would be practised "
            "again",
        ),
    ],
)
def test_every_state_is_explained_in_words(results: str, reason: str):
    curriculum = make()
    play(curriculum, 1, results)
    assert told(curriculum, 1).reason == reason


def test_where_the_frontier_runs_is_said_in_numbers_and_words():
    curriculum = make(8)
    play(curriculum, 6, "fw")
    play(curriculum, 7, "wwww")
    explanation = overview(curriculum)
    assert (explanation.num_probed, explanation.num_in_zone, explanation.num_mastered) == (6, 1, 1)
    assert explanation.zone == (("task6", pytest.approx(1.2 / 1.9), pytest.approx(1 / 1.75)),)
    assert explanation.lines()[1:] == [
        "Tasks: 1 learnable now, 1 mastered, 6 being probed, 0 replaced so far.",
        "Rounds of probing since anything new was mastered: 0.",
        f"  {'task6':<24} success 0.63, probability 0.5714",
    ]


def test_the_likeliest_task_of_the_zone_comes_first():
    union = UnionSource([(ListSource([Task("x")]), 1.0), (ListSource([Task("y")]), 3.0)])
    curriculum = Frontier(union, **BARE)
    for slot in (0, 1):
        play(curriculum, slot, "fw")
    assert [(name, prob) for name, _, prob in overview(curriculum).zone] == [
        ("y", pytest.approx(0.75)),
        ("x", pytest.approx(0.25)),
    ]


def test_at_most_five_tasks_of_the_zone_are_listed():
    curriculum = make(8)
    for slot in range(7):
        play(curriculum, slot, "fw")
    explanation = overview(curriculum)
    assert explanation.num_in_zone == 7
    assert [name for name, _, _ in explanation.zone] == [f"task{slot}" for slot in range(5)]


def test_longer_trials_are_compared_with_the_shortest():
    curriculum = make(stuck_z=0.0)
    # 1.5 of 4, then 2.5 of 4.
    play(curriculum, 1, "fw" + "fwfh" + "hwfw" + "f")
    assert told(curriculum, 1).reason.endswith(
        "within 7 plays it must get beyond its level of 0.62; its trials take 8 plays, 2 times the "
        "shortest"
    )


def test_how_long_tasks_take_is_said_once_it_is_known():
    curriculum = make(3)
    # Found with the second play, mastered with the fourth: two plays of practice.
    play(curriculum, 0, "fwww")
    assert overview(curriculum).pace == 2.0
    assert (
        "Tasks mastered of late have taken about 2 plays of practice each."
        in overview(curriculum).lines()
    )


def test_few_tasks_with_most_of_the_draws_are_a_warning():
    curriculum = Frontier(NumberedSource(200), **BARE)
    play(curriculum, 0, "fw")
    play(curriculum, 1, "fw")
    explanation = overview(curriculum)
    # Half of 1 / 1.5 each; 1 % of 200 tasks are 2.
    assert (explanation.num_crowded, explanation.crowded_share) == (2, pytest.approx(2 / 3))
    assert (
        "Warning: 2 of 200 tasks get 67% of the draws, so the agent may memorise them. "
        "Lower max_share, or raise exploration." in explanation.lines()
    )
    play(curriculum, 2, "fw")
    # It takes 3 of them to get half of the draws.
    assert (overview(curriculum).num_crowded, overview(curriculum).crowded_share) == (0, 0.0)
    assert not any(line.startswith("Warning") for line in overview(curriculum).lines())
