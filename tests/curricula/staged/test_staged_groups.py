"""Slots in stages and sub-groups: which labels go where, and how often makers are drawn."""

import pytest

from curricula.fake_learner import record_for
from curricula.three_stages import STAGES, TASKS, make
from stepladder.curricula import (
    Stage,
    Staged,
)
from stepladder.errors import ConfigError, TaskError
from stepladder.tasks import Task


def test_a_stage_may_hold_several_labels():
    tasks = [Task("x", "red"), Task("y", "blue"), Task("z", "green")]
    curriculum = Staged(
        tasks, stages=(Stage(name="warm", labels=("red", "green")), Stage(name="blue"))
    )
    assert curriculum.probs().tolist() == [0.5, 0.0, 0.5]


def test_a_stage_without_tasks_is_refused_by_name():
    with pytest.raises(ConfigError, match="stage 'd' is empty: no active task has label 'd'"):
        make(stages=("a", "b", "c", "d"))
    with pytest.raises(ConfigError, match="no active task has label 'x' or 'y'"):
        make(stages=("a", "b", "c", Stage(name="d", labels=("x", "y"))))


def test_tasks_that_belong_to_no_stage_are_refused_by_label():
    with pytest.raises(ConfigError, match="tasks with label 'b' belong to no stage"):
        make(stages=("a", "c"))


def test_a_parameter_to_balance_by_must_be_there():
    with pytest.raises(TaskError, match=r"no parameter 'generator\.name'"):
        Staged(TASKS, stages=STAGES, balance_by="generator.name")


def test_makers_of_a_stage_are_drawn_equally_often():
    # Two makers in stage a, with 6 and 2 tasks; three in stage b, with 1, 3 and 2.
    makers = ["maze"] * 6 + ["hill"] * 2 + ["hill"] + ["jump"] * 3 + ["mine"] * 2
    tasks = [
        Task(f"t{i}", "a" if i < 8 else "b", {"generator": {"name": maker}})
        for i, maker in enumerate(makers)
    ]
    curriculum = Staged(tasks, stages=("a", "b"), balance_by="generator.name")
    assert curriculum.probs().tolist() == pytest.approx([1 / 12] * 6 + [1 / 4] * 2 + [0.0] * 6)
    curriculum.go_to("b")
    # 0.2 of stage a in two halves; 0.8 of stage b in three thirds.
    third = 0.8 / 3
    expected = [0.1 / 6] * 6 + [0.05] * 2 + [third] + [third / 3] * 3 + [third / 2] * 2
    assert curriculum.probs().tolist() == pytest.approx(expected)
    curriculum.observe([record_for(curriculum, 0, 1.0), record_for(curriculum, 6, 0.5)])
    curriculum.observe(record_for(curriculum, 7, 0.0))
    assert curriculum.stage_report("a").groups == {"maze": (1, 1.0), "hill": (2, 0.25)}
