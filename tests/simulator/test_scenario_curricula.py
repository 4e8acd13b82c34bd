"""Curricula by name: what each may know, and how large its pool is."""

from typing import Any

import pytest

from stepladder.curricula import (
    AdvantageBandit,
    AncestorProgress,
    Auto,
    Frontier,
    Learnability,
    LearningProgress,
    LevelReplay,
    Staged,
    Uniform,
    UniformConfig,
)
from stepladder.curricula.registry import curriculum_variants
from stepladder.errors import ConfigError
from stepladder.simulator import SUITE, DirectEngine, scenario


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("uniform", Uniform),
        ("auto", Auto),
        ("auto-features", Auto),
        ("frontier", Frontier),
        ("frontier-features", Frontier),
        ("learning-progress", LearningProgress),
        ("learning-progress-seed", AncestorProgress),
        ("learning-progress-mature", AncestorProgress),
        ("learnability", Learnability),
        ("level-replay", LevelReplay),
        ("advantage-bandit", AdvantageBandit),
        ("staged", Staged),
    ],
)
def test_names_stand_for_curricula(name: str, kind: type):
    assert type(scenario("chain-10").curriculum(name, 0)) is kind


def test_every_name_is_checked_here():
    assert set(curriculum_variants(can_edit=False)) == {
        "uniform",
        "auto",
        "auto-features",
        "frontier",
        "frontier-features",
        "learning-progress",
        "learning-progress-seed",
        "learning-progress-mature",
        "learnability",
        "level-replay",
        "advantage-bandit",
        "staged",
    }


@pytest.mark.parametrize("name", curriculum_variants(can_edit=False))
@pytest.mark.parametrize("place", [name for name in SUITE if name not in ("chain-100", "pool-300")])
def test_every_curriculum_plays_every_scenario(name: str, place: str):
    where = scenario(place)
    simulator = where.simulator(2)
    curriculum = where.curriculum(name, 2)
    DirectEngine(simulator, curriculum).advance(40)
    assert curriculum.num_observed == 40


@pytest.mark.parametrize("curriculum", ["accel", LevelReplay.Config(editing=0.5)])
def test_simulated_tasks_cannot_be_edited(curriculum: Any):
    with pytest.raises(ConfigError, match=r"edits tasks, and simulated .* Set editing to 0"):
        scenario("chain-10").curriculum(curriculum, 0)


def test_accel_is_the_only_name_that_edits_tasks():
    assert set(curriculum_variants()) - set(curriculum_variants(can_edit=False)) == {"accel"}


@pytest.mark.parametrize("scored_by", ["value_loss", "trainer"])
def test_scores_that_no_simulated_learner_gives_are_refused(scored_by: str):
    with pytest.raises(ConfigError, match=f"'{scored_by}' needs an agent .* Set it to 'deviation'"):
        scenario("chain-10").curriculum(LevelReplay.Config(scored_by=scored_by), 0)


def test_only_frontier_features_sees_features():
    place = scenario("grid-3x3")
    assert place.curriculum("frontier-features", 0).config.features == ("x", "y")
    assert place.curriculum("frontier", 0).config.features == ()


def test_stages_follow_the_prerequisites():
    place = scenario("grid-3x3")
    stages = place.curriculum("staged", 0).config.stages
    assert [stage.name for stage in stages] == [f"taskclass{node}" for node in place.graph.order]


def test_who_can_replace_tasks_gets_a_pool_and_the_others_hold_all():
    place = scenario("pool-30")
    for name, num_slots in {
        "frontier": 10,
        "learning-progress": 10,
        "learnability": 10,
        "level-replay": 10,
        "uniform": 30,
        "frontier-features": 30,
        "staged": 30,
    }.items():
        assert place.curriculum(name, 0).pool.num_slots == num_slots, name


def test_the_seed_reaches_the_pool_and_the_draws():
    place = scenario("pool-30")
    pools = [place.curriculum("frontier", seed).pool.task_ids.tolist() for seed in (0, 0, 1)]
    assert pools[0] == pools[1] != pools[2]
    draws = [place.curriculum(UniformConfig(), seed).draw(20) for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


def test_an_unknown_name_is_refused():
    with pytest.raises(ConfigError, match=r"no curriculum 'magic'; there are uniform, frontier"):
        scenario("chain-3").curriculum("magic", 0)
