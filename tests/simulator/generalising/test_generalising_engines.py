"""Plays of different lengths in many envs: all engines take the same course."""

from typing import Any

import numpy as np
import pytest

from simulator.generalising.small_learner import learner
from stepladder.curricula import (
    AdvantageBanditConfig,
    Curriculum,
    CurriculumConfig,
    FrontierConfig,
    LearnabilityConfig,
    LearningProgressConfig,
    LevelReplayConfig,
    Stage,
    StagedConfig,
    Uniform,
    UniformConfig,
)
from stepladder.curricula.registry import curriculum_variants
from stepladder.curricula.reporting.meter import CurriculumMeter
from stepladder.errors import BuildError
from stepladder.plans.kernels import draw
from stepladder.simulator import GeneralisingSimulator, make_engine, scenario
from stepladder.simulator.learner_state import SEED_MASK
from stepladder.stats.rollout import process_training_stats
from stepladder.tasks import Pool

CASES: dict[str, CurriculumConfig] = {
    "uniform": UniformConfig(),
    "frontier": FrontierConfig(exploration=0.1, eviction_plays=5),
    "learning progress": LearningProgressConfig(eviction_plays=5),
    "learnability": LearnabilityConfig(eviction_plays=5),
    "level replay": LevelReplayConfig(),
    "advantage bandit": AdvantageBanditConfig(),
}


def simulator(num_envs: int) -> GeneralisingSimulator:
    return learner(
        num_envs,
        num_tasks=(10, 14),
        spread=(1.0, 1.0),
        length_spread=0.4,
        lambda_forget=1e-3,
        lambda_memory=0.01,
        update_steps=64,
    )


def course(
    name: Any, config: CurriculumConfig, num_envs: int, *, capacity: int | None = None, workers=0
) -> dict[str, Any]:
    """Play and say everything that can be seen afterwards."""
    own = simulator(num_envs)
    curriculum = config.make(Pool(own.source(), capacity, 5), seed=5)
    meter = CurriculumMeter(curriculum)
    engine = make_engine(name, own, curriculum, num_envs=num_envs, meter=meter, num_workers=workers)
    seen: dict[str, Any] = {"course": []}
    stats = []
    try:
        for until in (700, 3000):
            engine.advance(until)
            seen["course"].append((own.P.tolist(), curriculum.probs().tolist()))
            processed = process_training_stats(engine.take_stats())
            stats.append(processed.environment_stats)
    finally:
        engine.close()
    return seen | {
        "done_at": own.done_at,
        "area": own.progress_area,
        "spent": own.spent(),
        "counts": own.state.memories["num_plays"].tolist(),
        "pool": (curriculum.pool.task_ids.tolist(), curriculum.pool.generations.tolist()),
        "num_observed": curriculum.num_observed,
        "num_steps": curriculum.num_steps,
        "num_orphaned": curriculum.num_orphaned,
        "next_episode": curriculum.next_episode,
        "tallied": meter.slots["num_samples"].tolist(),
        "lengths": meter.slots["lengths"].tolist(),
        "stats": stats,
    }


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name in expected:
        if name != "stats":
            assert found[name] == expected[name], name
    for one, other in zip(found["stats"], expected["stats"], strict=True):
        assert one == pytest.approx(other, rel=1e-12)


def test_every_compiled_curriculum_is_tested_here():
    kinds = {
        type(scenario("chain-3").curriculum(name, 0))
        for name in curriculum_variants(can_edit=False)
    }
    compiled = {kind for kind in kinds if kind.compiled_rule() is not None}
    source = simulator(1).source()
    assert {type(config.make(source)) for config in CASES.values()} == compiled


@pytest.mark.parametrize("config", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("num_envs", [1, 7])
def test_all_engines_take_the_same_course(config: CurriculumConfig, num_envs: int):
    expected = course("envs", config, num_envs)
    assert_same(course("direct", config, num_envs), expected)
    assert_same(course("compiled", config, num_envs), expected)


@pytest.mark.parametrize("name", ["frontier", "learning progress", "learnability"])
def test_all_engines_take_the_same_course_where_tasks_are_replaced(name: str):
    expected = course("envs", CASES[name], 7, capacity=8)
    assert expected["num_orphaned"] > 0
    assert_same(course("direct", CASES[name], 7, capacity=8), expected)
    assert_same(course("compiled", CASES[name], 7, capacity=8), expected)


def test_a_curriculum_by_labels_plays_in_envs_and_without():
    stages = StagedConfig(stages=(Stage(name="easy"), Stage(name="hard")), min_episodes=5)
    assert_same(course("direct", stages, 3), course("envs", stages, 3))


@pytest.mark.processes
@pytest.mark.timeout(120)
def test_workers_read_the_skills_in_shared_memory():
    expected = course("direct", UniformConfig(), 4)
    assert_same(course("envs", UniformConfig(), 4, workers=2), expected)


def test_the_first_plays_by_hand():
    # Both envs draw at step 0. A play of L steps ends with step L; the next one resets the env.
    own = learner(num_envs=2, update_steps=10**6)
    curriculum = Uniform(own.source(), seed=1)
    expected = []
    for env in (0, 1):
        begins = 0
        for episode in range(6):
            slot, _, task, _, seed, _ = draw(curriculum.plan.block, env, episode, np.zeros(0))
            _, success, _, length = own.state.show(task, seed & SEED_MASK)
            expected.append((begins + length, env, slot, success, length))
            begins += length + 1
    seen: list[Any] = []
    curriculum.add_listener(lambda records: seen.extend(records.tolist()))
    make_engine("direct", own, curriculum, num_envs=2).advance(2 * 20)
    ended = sorted(one for one in expected if one[0] <= 20)
    found = [(env, slot, success, length) for slot, _, _, _, env, _, _, length, success, _ in seen]
    assert found == [one[1:] for one in ended]


def test_the_learner_updates_once_per_rollout():
    own = simulator(8)
    curriculum = Uniform(own.source())
    make_engine("compiled", own, curriculum, num_envs=8).advance(6400)
    # 64 env steps are 8 vector steps of 8 envs.
    assert own.clock["num_updates"] == 100
    many = simulator(128)
    make_engine("compiled", many, Uniform(many.source()), num_envs=128).advance(12_800)
    assert many.clock["num_updates"] == 100


@pytest.mark.parametrize("name", ["direct", "compiled"])
def test_an_engine_stops_with_the_update_that_reaches_the_goal(name: Any):
    own = learner(3, goal=0.6, eta=0.05)
    engine = make_engine(name, own, Uniform(own.source(), seed=2), num_envs=3)
    engine.advance(100_000, stops=True)
    assert own.done_at == own.num_samples < 100_000
    engine.advance(own.num_samples + 30)
    assert own.num_samples > own.done_at


@pytest.mark.parametrize("name", ["direct", "compiled"])
def test_many_envs(name: Any):
    place = scenario("levels-5x20")
    own = place.simulator(0, 4096)
    curriculum = place.curriculum("learnability", 0)
    make_engine(name, own, curriculum, num_envs=4096).advance(4096 * 400)
    assert curriculum.num_observed == own.num_plays > 4096


@pytest.mark.parametrize("name", ["direct", "compiled"])
def test_where_nothing_can_be_drawn_the_engine_says_so(name: Any):
    own = learner()
    curriculum: Curriculum = Uniform(own.source())
    for slot in range(5):
        curriculum.quarantine(slot, 0, "broken")
    with pytest.raises(BuildError):
        make_engine(name, own, curriculum).advance(10)


def test_an_engine_continues_after_another():
    own = simulator(3)
    curriculum = Uniform(own.source(), seed=5)
    for name in ("compiled", "direct", "envs", "compiled"):
        engine = make_engine(name, own, curriculum, num_envs=3)
        engine.advance(own.num_samples + 300)
        engine.close()
    assert own.num_samples == 1200
    assert curriculum.num_observed == own.num_plays
