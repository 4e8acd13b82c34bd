"""What an agent is for: how it is given, what it changes, and what is told of it."""

import numpy as np
import pytest

from curricula.fake_learner import play_results
from stepladder.curricula import (
    Explanation,
    Learnability,
    LearnabilityConfig,
    Phase,
    Phased,
    PhasedConfig,
    Uniform,
    UniformConfig,
)
from stepladder.curricula.target import Target
from stepladder.curricula.targeting import LEAST_OTHER, other_share
from stepladder.errors import ConfigError
from stepladder.tasks import ListSource, Task

TASKS = ListSource(Task(f"{label}{i}", label) for label in ("easy", "hard") for i in range(2))


# How it is given.


@pytest.mark.parametrize(
    ("given", "weights"),
    [
        ("hard", {"hard": 1.0}),
        (["easy", "hard"], {"easy": 1.0, "hard": 1.0}),
        ({"easy": 1, "hard": 2.5}, {"easy": 1.0, "hard": 2.5}),
        ({"weights": 2}, {"weights": 2.0}),
        ({"weights": {"hard": 2}}, {"hard": 2.0}),
    ],
)
def test_a_name_a_list_and_weights_are_targets(given: object, weights: dict[str, float]):
    for config in (
        LearnabilityConfig.from_json({"type": "learnability", "target": given}),
        LearnabilityConfig(target=given),  # pyright: ignore[reportArgumentType]
    ):
        assert config.target is not None
        assert config.target.weights == weights
        assert config.to_json()["target"] == weights
        assert LearnabilityConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], r"must name labels or tasks.* got \[\]"),
        ([5], r"must name labels or tasks.* got \[5\]"),
        ({"hard": -1.0}, "at least 0"),
        ({"hard": 0.0}, "must have a weight above 0"),
        (3, "must be of type Target"),
    ],
)
def test_what_is_no_target_is_refused(given: object, said: str):
    with pytest.raises(ConfigError, match=said):
        UniformConfig.from_json({"type": "uniform", "target": given})


def test_words_of_a_command_line_have_weights():
    target = Target.from_words(["easy", "hard=2.5"])
    assert target.weights == {"easy": 1.0, "hard": 2.5}
    assert Target.from_words(target.words()) == target
    with pytest.raises(ConfigError, match="NAME=WEIGHT; got 'hard=x'"):
        Target.from_words(["hard=x"])


def test_an_unknown_name_is_refused_with_what_there_is():
    with pytest.raises(ConfigError, match=r"'hrad', .*Labels: easy, hard\. Tasks: easy0, easy1"):
        Uniform(TASKS, target="hrad")


# What it changes.


@pytest.mark.parametrize(
    ("success", "share"), [(0.0, 1.0), (0.1, 0.64), (0.25, 0.25), (0.5, LEAST_OTHER), (1.0, 0.05)]
)
def test_stepping_stones_give_way_as_the_target_teaches_by_itself(success: float, share: float):
    assert other_share(success) == pytest.approx(share)


def test_the_method_is_left_alone_until_the_target_succeeds():
    curriculum = Uniform(TASKS, target="hard")
    assert curriculum.probs().tolist() == [0.25] * 4
    play_results(curriculum, 0, "wwww")
    assert curriculum.probs().tolist() == [0.25] * 4
    assert np.isnan(curriculum.target_success)
    play_results(curriculum, 2, "w")
    # All clocks have seen one success: 1.5 of 2.
    assert curriculum.target_success == 0.75
    assert curriculum.probs().tolist() == pytest.approx([0.025 / 1.05] * 2 + [0.5 / 1.05] * 2)


def test_names_of_tasks_come_before_labels():
    curriculum = Uniform(TASKS, target={"hard": 1.0, "hard1": 4.0})
    assert curriculum.counts().tolist() == [0.0, 0.0, 0.25, 1.0]


def test_another_task_in_a_slot_counts_by_its_own_label():
    source = ListSource(Task(f"t{i}", "hard" if i % 2 else "easy") for i in range(40))
    curriculum = Uniform(source, target="hard", capacity=2)
    play_results(curriculum, int(np.argmax(curriculum.counts())), "w")
    for task_id in (31, 30, 33):
        if task_id not in curriculum.pool.task_ids:
            curriculum.replace(0, task_id)
            assert curriculum.counts()[0] == task_id % 2
            np.testing.assert_array_equal(
                curriculum.plan.targets(curriculum._table), curriculum.counts()
            )


def test_what_is_told_of_it():
    curriculum = Uniform(TASKS, target={"hard": 2.0, "easy1": 1.0})
    play_results(curriculum, 2, "w")
    explanation = curriculum.explain()
    assert isinstance(explanation, Explanation)
    # Worth .05, .525, 1 and 1.
    assert explanation.stepping_stones == pytest.approx(0.05 / 2.575)
    assert explanation.lines()[1] == (
        "Target: hard (2), easy1 (1); success 0.75; 2% of the draws go to tasks that do not count."
    )


# Phases.


def test_phases_share_a_target_and_may_have_their_own():
    phases = (
        Phase(name="mixed", mixture={"easy": 1.0}, episodes=10),
        Phase(name="free", curriculum=LearnabilityConfig(), episodes=10),
        Phase(name="own", curriculum=LearnabilityConfig(target=Target(weights={"easy": 1.0}))),
    )
    curriculum = Phased(TASKS, phases=phases, target="hard")
    assert [inner.config.target and str(inner.config.target) for inner in curriculum.inner] == [
        *(None, "hard", "easy"),
    ]
    with pytest.raises(ConfigError, match="no phase has a curriculum that takes one"):
        PhasedConfig(phases=phases[:1], target=Target(weights={"hard": 1.0}))


def test_the_largest_share_of_phases_holds_where_none_is_set():
    phases = (
        Phase(name="free", curriculum=LearnabilityConfig(), episodes=10),
        Phase(name="own", curriculum=LearnabilityConfig(max_share=0.9)),
    )
    curriculum = Phased(TASKS, phases=phases, max_share=0.5)
    assert [inner.config.max_share for inner in curriculum.inner] == [0.5, 0.9]


def test_a_target_that_succeeds_gets_the_draws_of_a_method():
    curriculum = Learnability(TASKS, target="hard", exploration=0.0)
    for _ in range(20):
        play_results(curriculum, 2, "wf")
    assert curriculum.probs()[2:].sum() > 0.8
