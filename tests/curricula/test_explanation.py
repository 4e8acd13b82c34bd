"""Explanations: data first, text second."""

import json

import numpy as np
import pytest

from stepladder.curricula import (
    Explanation,
    Mixture,
    Phase,
    Phased,
    PhasedExplanation,
    TaskExplanation,
    Uniform,
)
from stepladder.curricula.reporting.explanation import crowd
from stepladder.tasks import NumberedSource, Task, UnionSource

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


# Few tasks with most of the draws.


def test_few_tasks_with_half_of_the_draws_are_a_crowd():
    probs = np.full(200, 0.4 / 198)
    probs[[7, 90]] = 0.3
    assert crowd(probs) == (2, pytest.approx(0.6))
    probs[7] = 0.55
    assert crowd(probs) == (1, pytest.approx(0.55))
    # One in a hundred of 199 is one.
    assert crowd(np.array([0.3, 0.3, *[0.4 / 197] * 197])) == (0, 0.0)
    assert crowd(np.array([0.9, 0.1])) == (0, 0.0)
    assert crowd(np.full(1000, 0.001)) == (0, 0.0)


def test_every_curriculum_warns_of_memorising():
    rare, common = NumberedSource(1, "rare", "a"), NumberedSource(399, "common", "b")
    curriculum = Mixture(UnionSource([rare, common]), weights={"rare": 3.0, "common": 1.0})
    explanation = curriculum.explain()
    assert isinstance(explanation, Explanation)
    assert (explanation.num_crowded, explanation.crowded_share) == (1, pytest.approx(0.75))
    assert explanation.lines()[1] == (
        "Warning: 1 of 400 tasks get 75% of the draws, so the agent may memorise them. "
        "Lower max_share, or raise exploration."
    )


def test_phases_warn_once():
    rare, common = NumberedSource(1, "rare", "a"), NumberedSource(399, "common", "b")
    phase = Phase(name="all", mixture={"rare": 3.0, "common": 1.0})
    explanation = Phased(UnionSource([rare, common]), phases=(phase,)).explain()
    assert isinstance(explanation, PhasedExplanation)
    assert str(explanation).count("Warning") == 1
    assert explanation.inner.num_crowded == 0
