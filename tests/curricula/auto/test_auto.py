"""The curriculum that chooses its method: what decides, when, and what is kept of the choice."""

import math
from dataclasses import replace

import numpy as np
import pytest

from curricula.fake_learner import differences, live, record_for
from stepladder.curricula import Auto, AutoConfig, Frontier, LearningProgress, Phased, Uniform
from stepladder.curricula.registry import rebuilt
from stepladder.errors import RecordError, SnapshotError
from stepladder.saving.snapshot import Snapshot
from stepladder.tasks import ListSource, Task
from stepladder.training import TrainingConfig


def tasks(num_tasks: int = 8, labels: str = "ab") -> list[Task]:
    return [
        Task(f"{label}{n}", label, {"x": n, "y": label})
        for label in labels
        for n in range(num_tasks)
    ]


def by_return(curriculum: Auto, num_episodes: int) -> None:
    for _ in range(num_episodes):
        draw = curriculum.draw_one()
        curriculum.report(draw, math.nan, episode_return=float(draw.slot))


# The choice.


def test_labels_that_stand_for_kinds_are_judged_together():
    curriculum = Auto(tasks())
    assert isinstance(curriculum.method, Frontier)
    text = str(curriculum.explain())
    assert "It chose frontier: there are 2 labels, so tasks of a kind are judged together." in text


def test_features_are_handed_on():
    curriculum = Auto(tasks(labels="a"), features=("x",))
    assert curriculum.method.config.features == ("x",)
    assert "tasks near a mastered one by x are probed first" in str(curriculum.explain())
    many = Auto(tasks(400, labels="a"), features=("x",))
    assert "100 kinds by x" in str(many.explain())


def test_without_labels_or_features_every_task_stands_for_itself():
    assert "neither labels nor features" in str(Auto(tasks(labels="a")).explain())


def test_a_single_task_leaves_nothing_to_choose():
    curriculum = Auto([Task("only")])
    assert isinstance(curriculum.method, Uniform)
    by_return(curriculum, 3)
    assert curriculum.num_observed == 3
    assert "there is only one task" in str(curriculum.explain())


def test_settings_of_every_method_are_handed_on():
    config = AutoConfig(exploration=0.3, max_share=0.2)
    for choice in config.choose(Auto(tasks()).pool):
        assert (choice.config.exploration, choice.config.max_share) == (0.3, 0.2)


# What the first results decide.


def test_episodes_without_success_are_judged_by_their_return():
    curriculum = Auto(tasks())
    by_return(curriculum, 1)
    assert isinstance(curriculum.method, LearningProgress)
    by_return(curriculum, 200)
    assert curriculum.num_observed == 201
    assert "do not say whether they succeeded" in str(curriculum.explain())
    assert curriculum.plan.header["table_at"] == curriculum.method._active_table()


def test_an_env_that_says_success_only_when_it_succeeds_is_judged_by_success():
    curriculum = Auto(tasks())
    by_return(curriculum, 7)
    draw = curriculum.draw_one()
    curriculum.report(draw, 1.0)
    assert isinstance(curriculum.method, Frontier)
    assert curriculum.num_observed == 8
    assert curriculum.plan.header["table_at"] == curriculum.method._active_table()
    # From here on an episode that says nothing is a failure.
    before = curriculum.method._state.tasks["failures"][3]
    curriculum.observe(record_for(curriculum, 3, math.nan))
    assert curriculum.method._state.tasks["failures"][3] == before + 1.0
    assert isinstance(curriculum.method, Frontier)
    assert curriculum.num_observed == 9


def test_an_interrupted_choice_is_completed():
    curriculum = Auto(tasks())
    by_return(curriculum, 5)
    # As if Ctrl-C had come between the two halves of the change.
    curriculum._methods[0].totals[:] = curriculum.totals
    curriculum._chosen = 0
    curriculum.report(curriculum.draw_one(), 1.0)
    assert curriculum._state is curriculum.method._state
    assert curriculum.num_observed == 6


def test_a_bad_first_record_decides_nothing():
    curriculum = Auto(tasks())
    bad = record_for(curriculum, 0, math.nan)._replace(length=-1)
    with pytest.raises(RecordError):
        curriculum.observe(bad)
    live(curriculum, 5)
    assert isinstance(curriculum.method, Frontier)


# The same as the method.


def test_it_draws_exactly_what_its_method_would():
    auto, frontier = Auto(tasks(), seed=5), Frontier(tasks(), seed=5)
    assert live(auto, 200).probs == live(frontier, 200).probs


def test_inside_a_phase_the_table_of_the_chosen_method_is_in_force():
    phases = Phased.Config.from_json(
        {
            "type": "phased",
            "phases": [
                {"name": "first", "curriculum": {"type": "uniform"}, "episodes": 10},
                {"name": "rest", "curriculum": {"type": "auto"}},
            ],
        },
        "here",
    )
    curriculum = phases.make(tasks(), seed=1)
    for _ in range(60):
        draw = curriculum.draw_one()
        curriculum.report(draw, math.nan, episode_return=float(draw.slot))
    inner = curriculum.inner_curricula()["rest"]
    assert isinstance(inner.method, LearningProgress)
    assert curriculum.plan.header["table_at"] == inner.method._active_table()


# Saving.


def test_a_run_by_returns_is_continued_and_explained_as_it_was():
    curriculum = Auto(tasks(), seed=2)
    by_return(curriculum, 50)
    saved = curriculum.snapshot()
    again = rebuilt(saved, ListSource(tasks()))
    assert str(again.explain()) == str(curriculum.explain())
    by_return(curriculum, 50)
    by_return(again, 50)
    assert differences(curriculum.snapshot(), again.snapshot()) == []


def test_an_impossible_choice_in_a_snapshot_is_refused():
    curriculum = Auto(tasks(), seed=2)
    live(curriculum, 10)
    saved = curriculum.snapshot()
    state = {**saved.state, "method": {**saved.state["method"], "chosen": 7}}
    with pytest.raises(SnapshotError, match="method"):
        curriculum.restore(Snapshot(state, saved.arrays))
    assert differences(saved, curriculum.snapshot()) == []


# Training.


def test_whoever_trains_on_own_tasks_and_says_nothing_gets_it():
    config = TrainingConfig(env="CartPole-v1", tasks=tuple(tasks()))
    assert config.curriculum == AutoConfig()
    assert replace(config, tasks=()).curriculum == AutoConfig()


def test_a_pool_with_more_tasks_behind_it_is_replaced_by_the_method():
    curriculum = Auto(tasks(50), capacity=12, seed=1)
    live(curriculum, 300)
    assert curriculum.num_evicted == curriculum.method.num_evicted > 0
    assert np.isclose(curriculum.probs().sum(), 1.0)
