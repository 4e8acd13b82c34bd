"""Phased: when a phase ends, what is drawn in it, and who learns from late results."""

from typing import Any

import pytest

from curricula.fake_learner import differences, live, record_for
from curricula.two_labels import REST, make, play, settings_of
from stepladder.curricula import (
    LearningProgress,
    LearningProgressConfig,
    Mixed,
    MixtureConfig,
    Phase,
    Phased,
    PhasedConfig,
    Ramp,
    Staged,
    StagedConfig,
    UniformConfig,
)
from stepladder.errors import SnapshotError
from stepladder.tasks import ListSource, Task

# When a phase ends.


def test_a_phase_ends_after_so_many_episodes():
    curriculum = make(Phase(name="first", episodes=3), REST)
    play(curriculum, 1, 0)
    assert curriculum.current_phase == "first"
    play(curriculum, 1)
    assert (curriculum.current_phase, curriculum.phase_index) == ("rest", 1)
    assert curriculum.history[0].rule == "episodes"


def test_a_phase_ends_after_so_many_steps():
    curriculum = make(Phase(name="first", steps=100), REST)
    play(curriculum, 1, length=99)
    assert curriculum.current_phase == "first"
    play(curriculum, 1, length=1)
    assert curriculum.history[0].rule == "steps"


def test_a_phase_ends_with_enough_success_over_enough_episodes():
    curriculum = make(Phase(name="first", success=0.75, min_episodes=6, window_episodes=4), REST)
    play(curriculum, 1, 1, 1, 1, 1)
    assert curriculum.current_phase == "first"  # 5 < 6 episodes.
    play(curriculum, 0, 0)
    assert curriculum.current_phase == "first"  # 2 of the last 4.
    play(curriculum, 1)
    assert curriculum.current_phase == "first"
    play(curriculum, 1)
    assert curriculum.current_phase == "first"
    play(curriculum, 1)
    assert curriculum.history[0].rule == "success"
    assert curriculum.history[0].success == 0.75


def test_success_counts_from_the_last_of_the_episodes_it_needs():
    curriculum = make(Phase(name="first", success=1.0, min_episodes=3), REST)
    play(curriculum, 1, 1)
    assert curriculum.current_phase == "first"
    play(curriculum, 1)
    assert curriculum.current_phase == "rest"


def test_the_first_limit_that_is_reached_ends_the_phase():
    limits: dict[str, Any] = {"episodes": 10, "steps": 50, "success": 1.0, "min_episodes": 3}
    for length, success, rule in ((1, 0.0, "episodes"), (20, 0.0, "steps"), (1, 1.0, "success")):
        curriculum = make(Phase(name="first", **limits), REST)
        while curriculum.phase_index == 0:
            play(curriculum, success, length=length)
        assert curriculum.history[0].rule == rule


def test_the_last_phase_goes_on_even_if_it_has_a_limit():
    curriculum = make(Phase(name="only", episodes=2))
    play(curriculum, *[1.0] * 20)
    assert (curriculum.current_phase, curriculum.history) == ("only", [])


def test_a_change_of_phase_waits_for_the_end_of_the_batch():
    curriculum = make(Phase(name="first", episodes=3), Phase(name="second", episodes=3), REST)
    play(curriculum, *[1.0] * 20)
    assert curriculum.current_phase == "second"
    assert curriculum.history[0].episodes == 20
    assert curriculum.explain().phase_episodes == 0


def test_weights_phase_and_episodes_change_in_one_version_of_the_plan():
    curriculum = make(Phase(name="first", mixture={"a": 1.0}, episodes=2), REST)
    play(curriculum, 1)
    before = curriculum.plan.version
    assert curriculum.plan.dials.tolist() == [0.0, 0.0]
    play(curriculum, 1)
    assert curriculum.plan.version == before + 1 == curriculum.history[0].plan_version
    assert curriculum.plan.dials.tolist() == [1.0, 0.0]
    assert curriculum.probs().tolist() == [0.0, 0.0, 0.5, 0.5]


# What is drawn.


def test_a_phase_is_a_mixture_a_curriculum_or_neither():
    curriculum = make(
        Phase(name="mixture", mixture={"a": 3.0, "b": 1.0}, episodes=1),
        Phase(name="stages", curriculum=StagedConfig(stages=("b", "a")), episodes=1),
        Phase(name="neither", episodes=1),
        Phase(name="last", curriculum=MixtureConfig(weights={"a": 1.0})),
    )
    seen = []
    for _ in range(4):
        seen.append(curriculum.probs().tolist())
        play(curriculum, 1)
    assert seen == [
        pytest.approx([0.375, 0.375, 0.125, 0.125]),
        pytest.approx([0.0, 0.0, 0.5, 0.5]),
        pytest.approx([0.25] * 4),
        pytest.approx([0.5, 0.5, 0.0, 0.0]),
    ]


def test_the_larger_share_of_exploration_holds_in_every_phase_however_deep():
    inner = PhasedConfig(
        phases=(
            Phase(name="x", mixture={"a": 1.0}, episodes=1),
            Phase(name="y", curriculum=MixtureConfig(weights={"b": 1.0}, exploration=0.8)),
        )
    )
    curriculum = make(Phase(name="outer", curriculum=inner, episodes=2), REST, exploration=0.4)
    assert curriculum.probs().tolist() == pytest.approx([0.4, 0.4, 0.1, 0.1])
    play(curriculum, 1)
    assert curriculum.probs().tolist() == pytest.approx([0.2, 0.2, 0.3, 0.3])
    play(curriculum, 1)
    assert curriculum.probs().tolist() == pytest.approx([0.1, 0.1, 0.4, 0.4])


def test_phases_inside_a_phase_switch_the_plan_only_while_it_is_theirs():
    inner = PhasedConfig(
        phases=(Phase(name="x", mixture={"a": 1.0}, episodes=2), Phase(name="y", mixture={"b": 1}))
    )
    curriculum = make(Phase(name="outer", curriculum=inner, episodes=3), Phase(name="all"))
    late = record_for(curriculum, 0, 1.0)
    play(curriculum, 1)
    assert curriculum.legend().current_phase(curriculum.plan.dials) == "outer"
    play(curriculum, 1)
    assert curriculum.probs().tolist() == [0.0, 0.0, 0.5, 0.5]
    play(curriculum, 1)
    assert curriculum.probs().tolist() == [0.25] * 4
    curriculum.observe([late] * 5)
    assert curriculum.probs().tolist() == [0.25] * 4


def test_a_late_change_inside_a_past_phase_leaves_the_present_one_alone():
    inner = PhasedConfig(
        phases=(Phase(name="x", mixture={"a": 1.0}, episodes=9), Phase(name="y", mixture={"b": 1}))
    )
    curriculum = make(Phase(name="outer", curriculum=inner, episodes=3), Phase(name="all"))
    late = record_for(curriculum, 0, 1.0)
    curriculum.observe([late] * 3)
    assert curriculum.current_phase == "all"
    curriculum.observe([late] * 8)
    nested = curriculum.inner[0]
    assert isinstance(nested, Phased)
    assert nested.current_phase == "y"
    assert (curriculum.current_phase, curriculum.probs().tolist()) == ("all", [0.25] * 4)


# Whose results they are.


def test_a_late_result_counts_for_the_phase_it_was_drawn_in():
    curriculum = make(
        Phase(name="first", curriculum=StagedConfig(stages=("a", "b")), episodes=2),
        Phase(name="second", curriculum=LearningProgressConfig(), episodes=5),
        REST,
    )
    late = record_for(curriculum, 0, 0.0)
    play(curriculum, 1, 1)
    assert curriculum.current_phase == "second"
    now = record_for(curriculum, 0, 1.0)
    curriculum.observe([now, late, now, late, late])
    staged, progress = curriculum.inner[:2]
    assert isinstance(staged, Staged)
    assert isinstance(progress, LearningProgress)
    assert staged.stage_report("a").lifetime_episodes == 5
    assert progress.plays().tolist() == [2, 0, 0, 0]
    assert curriculum.explain().phase_episodes == 2
    assert (curriculum.num_observed, curriculum.current_phase) == (7, "second")


def test_a_result_drawn_in_the_first_version_of_a_phase_is_its_own():
    curriculum = make(Phase(name="first", episodes=1), Phase(name="second", episodes=10), REST)
    play(curriculum, 1)
    entry = curriculum.history[0].plan_version
    for version, expected in ((entry, 1), (entry - 1, 1), (entry + 3, 2), (-5, 2)):
        curriculum.observe(record_for(curriculum, 0, 1.0, plan_version=version))
        assert curriculum.explain().phase_episodes == expected
    assert curriculum.inner[0].num_observed == 3


def test_results_of_replaced_tasks_are_orphans_whatever_the_phase():
    many = ListSource(Task(f"{label}{i}", label) for label in "ab" for i in range(20))
    inner = PhasedConfig(phases=(Phase(name="x", curriculum=UniformConfig()),))
    curriculum = Phased(
        many,
        capacity=6,
        phases=(
            Phase(name="first", curriculum=inner, episodes=3),
            Phase(name="second", curriculum=LearningProgressConfig()),
        ),
    )
    late = record_for(curriculum, 2, 1.0)
    curriculum.replace(2)
    curriculum.observe([late, late])
    play(curriculum, 1)
    curriculum.observe(late)
    assert (curriculum.num_orphaned, curriculum.num_observed) == (3, 4)


def test_without_it_episodes_are_counted_all_the_same():
    curriculum = make(Phase(name="first", episodes=2), REST)
    play(curriculum, float("nan"), float("nan"))
    assert curriculum.current_phase == "rest"
    assert curriculum.history[0].success == 0.0


# Settings.

RAMP = Phase(
    name="ramped",
    episodes=6,
    settings={"speed": Ramp(start=0.0, end=4.0, ramp_episodes=4), "mode": "duel"},
)


def test_a_ramp_follows_the_episodes_of_its_phase():
    curriculum = make(Phase(name="before", episodes=3), RAMP, REST)
    assert settings_of(curriculum) == {}
    play(curriculum, 1, 1, 1)
    speeds = []
    for _ in range(6):
        speeds.append(settings_of(curriculum)["speed"])
        play(curriculum, 1)
    assert speeds == [0.0, 1.0, 2.0, 3.0, 4.0, 4.0]
    assert settings_of(curriculum) == {}


def test_late_results_do_not_move_the_ramp_of_another_phase():
    curriculum = make(Phase(name="before", episodes=1), RAMP, REST)
    late = record_for(curriculum, 0, 1.0)
    play(curriculum, 1)
    curriculum.observe([late] * 3)
    assert settings_of(curriculum)["speed"] == 0.0


def test_settings_are_drawn_per_env_and_episode():
    curriculum = make(Phase(name="p", settings={"opponent": Mixed(("weak", "strong"))}), seed=3)
    first = [settings_of(curriculum, env)["opponent"] for env in range(64)]
    assert 16 < first.count("weak") < 48
    assert first != [settings_of(curriculum, env, episode=1)["opponent"] for env in range(64)]
    again = make(Phase(name="p", settings={"opponent": Mixed(("weak", "strong"))}), seed=3)
    assert first == [settings_of(again, env)["opponent"] for env in range(64)]
    other = make(Phase(name="p", settings={"opponent": Mixed(("weak", "strong"))}), seed=4)
    assert first != [settings_of(other, env)["opponent"] for env in range(64)]


def test_settings_of_nested_phases_are_drawn_independently():
    coin = Mixed((0, 1))
    inner = PhasedConfig(phases=(Phase(name="x", settings={"map": coin}),))
    curriculum = make(Phase(name="outer", curriculum=inner, settings={"opponent": coin}))
    rows = [settings_of(curriculum, env) for env in range(2000)]
    agreeing = sum(row["map"] == row["opponent"] for row in rows)
    assert abs(agreeing - 1000) < 100


def test_the_outer_phase_has_the_last_word():
    inner = PhasedConfig(phases=(Phase(name="x", settings={"speed": 1, "map": "hill"}),))
    curriculum = make(Phase(name="outer", curriculum=inner, settings={"speed": 2}))
    assert settings_of(curriculum) == {"speed": 2, "map": "hill"}


# Resuming.


def test_a_check_interval_set_inside_a_phase_must_be_set_before_resuming():
    def build() -> Phased:
        return make(Phase(name="p", curriculum=StagedConfig(stages=("a", "b"))))

    first, second = build(), build()
    for curriculum in (first, second):
        live(curriculum, 3)
    staged, other = first.inner[0], second.inner[0]
    assert isinstance(staged, Staged)
    assert isinstance(other, Staged)
    staged.set_check_interval_episodes(4)
    before = second.snapshot()
    with pytest.raises(SnapshotError, match="check_interval_episodes was 4 and is now 10"):
        second.restore(first.snapshot())
    assert differences(before, second.snapshot()) == []
    other.set_check_interval_episodes(4)
    second.restore(first.snapshot())
    assert live(first, 50) == live(second, 50)


@pytest.mark.parametrize("phase_index", [-1, 2, 99])
def test_a_snapshot_with_an_impossible_phase_is_refused(phase_index: int):
    curriculum = make(Phase(name="first", episodes=1), REST)
    snapshot = curriculum.snapshot()
    snapshot.state["method"]["phase_index"] = phase_index
    with pytest.raises(SnapshotError, match="phase"):
        curriculum.restore(snapshot)
    assert curriculum.phase_index == 0
