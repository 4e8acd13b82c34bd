"""Explanations: data first, text second."""

import json

from stepladder.curricula import Explanation, TaskExplanation, Uniform
from stepladder.tasks import Task

TOLD = TaskExplanation(
    slot=3,
    generation=1,
    name="maze/7",
    label="maze",
    prob=0.0625,
    reason="every task is drawn equally often",
    numbers={"episodes": 12.0, "success": 1 / 3},
)


def test_an_explanation_counts_what_there_is():
    explanation = Explanation(
        curriculum="Uniform", num_tasks=5, num_quarantined=0, episodes=17, plan_version=2
    )
    assert str(explanation) == "Uniform: 5 tasks, 17 episodes observed, plan version 2."
    assert explanation.lines() == [str(explanation)]


def test_quarantined_tasks_are_mentioned_when_there_are_any():
    explanation = Explanation(
        curriculum="Uniform", num_tasks=5, num_quarantined=2, episodes=17, plan_version=2
    )
    assert "5 tasks, 2 quarantined, 17 episodes" in str(explanation)


def test_a_task_is_explained_in_one_sentence_and_its_numbers():
    assert str(TOLD) == (
        "Task 'maze/7' (label 'maze', slot 3, generation 1) is drawn with probability 0.0625: "
        "every task is drawn equally often. Measured: episodes 12, success 0.3333."
    )


def test_without_numbers_nothing_is_said_to_be_measured():
    told = TaskExplanation(
        slot=0, generation=0, name="a", label="b", prob=1.0, reason="it is alone", numbers={}
    )
    assert str(told).endswith("it is alone.")


def test_fields_come_out_as_plain_json():
    assert TOLD.to_json()["numbers"] == {"episodes": 12.0, "success": 1 / 3}
    assert json.loads(json.dumps(TOLD.to_json())) == TOLD.to_json()


def test_a_quarantined_task_is_explained_by_that_alone():
    curriculum = Uniform([Task("a"), Task("b")])
    curriculum.quarantine(1, 0, "no such map")
    told = curriculum.explain(1)
    assert isinstance(told, TaskExplanation)
    assert told.reason == "it is quarantined, because an env could not build it"
    assert told.prob == 0.0
