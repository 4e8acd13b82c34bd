"""The engines take the same course: same seed, same plays, same statistics."""

import multiprocessing
import os
import re
import signal
from typing import Any

import numpy as np
import pytest

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
from stepladder.envs.workers.vector_env import WorkerVectorEnv
from stepladder.errors import BuildError, ChannelError, ConfigError, WorkerDiedError
from stepladder.simulator import (
    CompiledEngine,
    DirectEngine,
    EnvsEngine,
    Epochwise,
    Noise,
    TaskDependencySimulator,
    TaskGraph,
    make_engine,
    scenario,
)
from stepladder.stats.rollout import process_training_stats
from stepladder.tasks import ListSource, NumberedSource, Pool, Task

GRAPH = TaskGraph.random_dag(16, seed=2)
NOISE = Noise(reward="skill", task_noise_std=0.2, sample_noise_std=0.2)

CASES: dict[str, CurriculumConfig] = {
    "uniform": UniformConfig(),
    "frontier": FrontierConfig(eviction_plays=5),
    "frontier, exploring": FrontierConfig(exploration=0.2, eviction_plays=5),
    "learning progress": LearningProgressConfig(eviction_plays=5),
    "learning progress of returns": LearningProgressConfig(signal="return", eviction_plays=5),
    "learnability": LearnabilityConfig(eviction_plays=5),
    "level replay": LevelReplayConfig(),
    "advantage bandit": AdvantageBanditConfig(window_episodes=10),
    "level replay, softmax of returns": LevelReplayConfig(
        transform="softmax", signal="return", schedule="fixed", exploration=0.1
    ),
}
FEATURES = FrontierConfig(features=("position",))

TALLIED = ["num_samples", "num_epoch_samples", "successes", "num_judged"]


def make(config: CurriculumConfig, capacity: int | None, seed: int = 5) -> Curriculum:
    return config.make(Pool(GRAPH.source(), capacity, seed), seed=seed)


def learner(num_envs: int = 1, **settings: Any) -> TaskDependencySimulator:
    return TaskDependencySimulator(
        GRAPH, noise=NOISE, seed=5, impossible=[15], noisy=[9], num_envs=num_envs, **settings
    )


def course(
    name: str, curriculum: Curriculum, num_envs: int, *, num_workers: int = 0, plays: int = 1600
) -> dict[str, Any]:
    """Play and say everything that can be seen afterwards; numbers that are sums come last."""
    simulator = learner(num_envs)
    meter = CurriculumMeter(curriculum)
    engine = make_engine(
        name, simulator, curriculum, num_envs=num_envs, meter=meter, num_workers=num_workers
    )
    seen: dict[str, Any] = {"course": []}
    stats = []
    try:
        # In two parts, as epochs do.
        for until in (plays // 4, plays):
            engine.advance(until)
            seen["course"].append((simulator.P.tolist(), curriculum.probs().tolist()))
            processed = process_training_stats(engine.take_stats())
            stats.append((processed.environment_stats, meter.metrics()))
            meter.end_epoch()
    finally:
        engine.close()
    pool = curriculum.pool
    return seen | {
        "clock": simulator.clock.tolist(),
        "counts": simulator.state.nodes["num_plays"].tolist(),
        "pool": (pool.task_ids.tolist(), pool.generations.tolist()),
        "num_evicted": getattr(curriculum, "num_evicted", 0),
        "num_observed": curriculum.num_observed,
        "num_steps": curriculum.num_steps,
        "num_orphaned": curriculum.num_orphaned,
        "next_episode": curriculum.next_episode,
        "plan_version": curriculum.plan.version,
        "tallied": meter.slots[
            ["num_samples", "num_epoch_samples", "successes", "num_judged"]
        ].tolist(),
        "by_label": meter.by_label.tolist(),
        "stats": stats,
    }


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name in expected:
        if name != "stats":
            assert found[name] == expected[name], name
    # Means of many rewards: an engine may add them up in another order.
    for (env_found, meter_found), (env_expected, meter_expected) in zip(
        found["stats"], expected["stats"], strict=True
    ):
        assert env_found == pytest.approx(env_expected, rel=1e-12)
        assert meter_found == pytest.approx(meter_expected, rel=1e-12, nan_ok=True)


def test_every_compiled_curriculum_is_tested_here():
    kinds = {
        type(scenario("chain-3").curriculum(name, 0))
        for name in curriculum_variants(can_edit=False)
    }
    compiled = {kind for kind in kinds if kind.compiled_rule() is not None}
    assert {type(make(config, None)) for config in CASES.values()} == compiled


@pytest.mark.slow
@pytest.mark.parametrize("num_envs", [1, 8])
@pytest.mark.parametrize("capacity", [None, 6], ids=["all tasks", "evicting"])
@pytest.mark.parametrize("case", CASES)
def test_all_engines_take_the_same_course(case: str, capacity: int | None, num_envs: int):
    config = CASES[case]
    direct = course("direct", make(config, capacity), num_envs)
    assert_same(course("compiled", make(config, capacity), num_envs), direct)
    assert_same(course("envs", make(config, capacity), num_envs), direct)
    if capacity is not None and config.replaces_tasks:
        assert direct["num_evicted"] > 3
    # Conservation: every play is counted, observed and credited once.
    assert sum(direct["counts"]) == direct["num_observed"] == direct["clock"][0] == 1600
    assert sum(row[0] for row in direct["by_label"]) == 1600


@pytest.mark.parametrize("num_envs", [1, 8])
def test_features_take_the_same_course(num_envs: int):
    direct = course("direct", make(FEATURES, None), num_envs)
    assert_same(course("compiled", make(FEATURES, None), num_envs), direct)
    assert_same(course("envs", make(FEATURES, None), num_envs), direct)


@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.parametrize("capacity", [None, 6], ids=["all tasks", "evicting"])
@pytest.mark.parametrize("case", ["uniform", "frontier", "learning progress", "level replay"])
def test_worker_processes_take_the_same_course(case: str, capacity: int | None):
    config = CASES[case]
    direct = course("direct", make(config, capacity), 3, plays=300)
    workers = course("envs", make(config, capacity), 3, num_workers=2, plays=300)
    assert_same(workers, direct)


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_workers_that_are_spawned_take_the_same_course():
    config = CASES["learning progress"]
    direct = course("direct", make(config, None), 2, plays=100)
    simulator, curriculum = learner(2), make(config, None)
    engine = EnvsEngine(simulator, curriculum, 2, num_workers=1, start_method="spawn")
    engine.advance(100)
    engine.close()
    assert simulator.P.tolist() == direct["course"][-1][0]
    assert curriculum.probs().tolist() == direct["course"][-1][1]


@pytest.mark.parametrize("num_envs", [1, 8])
def test_stages_take_the_same_course_with_and_without_envs(num_envs: int):
    # How many envs there are decides when a stage may be left, so every engine has to say it.
    graph = TaskGraph.chain(6)
    config = StagedConfig(
        stages=tuple(Stage(name=f"taskclass{node}") for node in range(6)),
        threshold=0.8,
        min_episodes=2,
    )
    ends = []
    for name in ("direct", "envs"):
        simulator = TaskDependencySimulator(graph, seed=3, num_envs=num_envs)
        curriculum = config.make(graph.source(), seed=3)
        engine = make_engine(name, simulator, curriculum, num_envs=num_envs)
        engine.advance(800)
        history = [str(change) for change in curriculum.history]
        ends.append((simulator.P.tolist(), curriculum.probs().tolist(), history))
        engine.close()
    assert ends[0] == ends[1]
    assert len(ends[0][2]) >= 3


def test_a_curriculum_without_a_compiled_form_is_told_what_to_do():
    graph = TaskGraph.chain(2)
    config = StagedConfig(stages=(Stage(name="taskclass0"), Stage(name="taskclass1")))
    with pytest.raises(ConfigError, match=r"Staged has no compiled form.*engine='direct'"):
        CompiledEngine(TaskDependencySimulator(graph), config.make(graph.source()))


def test_the_epochwise_learner_takes_the_same_course():
    ends = []
    for name in ("compiled", "direct", "envs"):
        simulator = learner(4, dynamics=Epochwise(samples_per_epoch=7, dt=3.0))
        curriculum = make(CASES["learning progress"], None)
        engine = make_engine(name, simulator, curriculum, num_envs=4)
        engine.advance(1000)
        ends.append((simulator.P.tolist(), simulator.clock.tolist(), curriculum.probs().tolist()))
        engine.close()
    assert ends[0] == ends[1] == ends[2]
    # 28 plays an epoch.
    assert simulator.current_epoch == 1000 // 28


# Rounds, stopping, handing over.


@pytest.mark.parametrize("name", ["compiled", "direct", "envs"])
def test_whole_rounds_are_played(name: str):
    simulator, curriculum = learner(3), make(CASES["uniform"], None)
    engine = make_engine(name, simulator, curriculum, num_envs=3)
    engine.advance(10)
    assert simulator.num_plays == 12
    engine.advance(10)
    assert simulator.num_plays == 12
    engine.close()


@pytest.mark.parametrize("name", ["compiled", "direct", "envs"])
def test_an_engine_stops_when_all_is_mastered_if_asked_to(name: str):
    graph = TaskGraph.chain(3)
    simulator = TaskDependencySimulator(graph)
    engine = make_engine(name, simulator, Uniform(graph.source(), seed=1))
    engine.advance(5000, stops=True)
    assert simulator.done_at == simulator.num_plays < 5000
    engine.advance(simulator.num_plays + 10)
    assert simulator.num_plays == simulator.done_at + 10
    engine.close()


def test_engines_can_take_over_from_each_other():
    whole = learner(2)
    DirectEngine(whole, make(CASES["frontier"], 6), 2).advance(1200)
    simulator, curriculum = learner(2), make(CASES["frontier"], 6)
    for number, name in enumerate(("direct", "envs", "compiled", "envs", "direct", "compiled")):
        engine = make_engine(name, simulator, curriculum, num_envs=2)
        engine.advance(200 * (number + 1))
        engine.close()
    assert simulator.P.tolist() == whole.P.tolist()
    assert simulator.clock.tolist() == whole.clock.tolist()


@pytest.mark.parametrize("name", ["compiled", "direct", "envs"])
def test_no_engine_draws_with_numbers_that_were_drawn_with_before(name: str):
    played, used = learner(), make(CASES["uniform"], None)
    DirectEngine(played, used).advance(100)
    # Another curriculum for the same learner, and another learner for the same curriculum.
    for simulator, curriculum in ((played, make(CASES["uniform"], None)), (learner(), used)):
        engine = make_engine(name, simulator, curriculum)
        engine.advance(simulator.num_plays + 50)
        engine.close()
        assert curriculum.next_episode == 150


@pytest.mark.parametrize("name", ["compiled", "direct"])
def test_a_snapshot_continues_identically(name: str):
    whole, whole_curriculum = learner(), make(CASES["learning progress"], 6)
    make_engine(name, whole, whole_curriculum).advance(1500)
    first, first_curriculum = learner(), make(CASES["learning progress"], 6)
    make_engine(name, first, first_curriculum).advance(700)
    second, second_curriculum = learner(), make(CASES["learning progress"], 6)
    second.restore(first.snapshot())
    second_curriculum.restore(first_curriculum.snapshot())
    make_engine(name, second, second_curriculum).advance(1500)
    assert second.P.tolist() == whole.P.tolist()
    assert second.clock.tolist() == whole.clock.tolist()
    assert second_curriculum.probs().tolist() == whole_curriculum.probs().tolist()


def test_a_snapshot_of_envs_continues_identically():
    config = CASES["learning progress"]
    whole = learner(4)
    DirectEngine(whole, make(config, 6), 4).advance(1600)
    first = learner(4)
    engine = EnvsEngine(first, make(config, 6), 4)
    engine.advance(800)
    saved, channel = first.snapshot(), engine.envs.snapshot()
    engine.close()
    second = learner(4)
    engine = EnvsEngine(second, make(config, 6), 4)
    second.restore(saved)
    engine.envs.restore(channel)
    engine.advance(1600)
    engine.close()
    assert second.P.tolist() == whole.P.tolist()


def test_no_global_generator_is_read_or_written():
    ends = []
    for number in (1, 2):
        np.random.seed(number)  # noqa: NPY002, the generator nobody may touch
        held = np.random.get_state()[1].tolist()  # noqa: NPY002
        for name in ("compiled", "direct", "envs"):
            simulator = learner()
            engine = make_engine(name, simulator, make(CASES["frontier"], None))
            engine.advance(200)
            engine.close()
            ends.append(simulator.P.tolist())
        assert np.random.get_state()[1].tolist() == held  # noqa: NPY002
    assert all(end == ends[0] for end in ends)


# Who may look and play.


def test_compiled_code_refuses_a_listener_that_it_would_not_tell():
    curriculum = make(CASES["uniform"], None)
    curriculum.add_listener(lambda records: None)
    with pytest.raises(ConfigError, match=r"this curriculum has a listener.*engine='direct'"):
        CompiledEngine(learner(), curriculum)
    # Also beside a meter, which alone is told of sums.
    with pytest.raises(ConfigError, match="this curriculum has a listener"):
        CompiledEngine(learner(), curriculum, meter=CurriculumMeter(curriculum))


def test_an_unmetered_engine_counts_nothing_twice():
    curriculum = make(CASES["uniform"], None)
    meter = CurriculumMeter(curriculum)
    CompiledEngine(learner(), curriculum, meter=meter).advance(100)
    assert meter.total_completions == 100
    DirectEngine(learner(), curriculum, meter=meter).advance(100)
    assert meter.total_completions == 200


@pytest.mark.parametrize("name", ["compiled", "direct"])
def test_a_curriculum_that_envs_carry_is_not_played_elsewhere(name: str):
    curriculum = make(CASES["uniform"], None)
    carrier = EnvsEngine(learner(), curriculum)
    engine = make_engine(name, learner(), curriculum)
    with pytest.raises(ChannelError, match="already carried"):
        engine.advance(10)
    carrier.close()
    engine.advance(10)


@pytest.mark.parametrize("name", ["compiled", "direct", "envs"])
def test_tasks_that_are_none_of_the_simulator_are_refused(name: str):
    simulator = TaskDependencySimulator(3)
    backwards = ListSource([simulator.task(2), simulator.task(1), simulator.task(0)])
    with pytest.raises(
        ConfigError, match=r"task 0 of the curriculum stands for node 2.*source\(\)"
    ):
        make_engine(name, simulator, Uniform(backwards))
    with pytest.raises(ConfigError, match="task 0 of the curriculum is not a task of"):
        make_engine(name, simulator, Uniform([Task("walk"), Task("run")]))
    with pytest.raises(ConfigError, match="is not a task of the simulator"):
        make_engine(name, simulator, Uniform(NumberedSource(10**9), capacity=4))


class Positions(ListSource):
    """The ancestor's tasks: many, each at the position in the chain that is its id mod length."""

    def __init__(self, num_positions: int, num_tasks: int):
        super().__init__(
            Task(f"task{number}", f"taskclass{number % num_positions}")
            for number in range(num_tasks)
        )


@pytest.mark.parametrize("name", ["compiled", "direct", "envs"])
def test_many_tasks_may_stand_for_one_position(name: str):
    simulator = TaskDependencySimulator(4)
    curriculum = LearningProgressConfig(eviction_plays=5).make(Pool(Positions(4, 200), 20, 0))
    meter = CurriculumMeter(curriculum)
    engine = make_engine(name, simulator, curriculum, num_envs=2, meter=meter)
    engine.advance(2000)
    engine.close()
    labels = dict(zip(curriculum.pool.label_names, meter.by_label["num_samples"], strict=True))
    counts = simulator.get_summary()["sample_counts"]
    assert [labels[f"taskclass{node}"] for node in range(4)] == counts
    assert curriculum.num_evicted > 10


@pytest.mark.parametrize("name", ["compiled", "direct", "envs"])
def test_nothing_left_to_draw_is_said(name: str):
    graph = TaskGraph.chain(2)
    curriculum = Uniform(graph.source())
    for slot in (0, 1):
        curriculum.quarantine(slot, 0, "broken")
    engine = make_engine(name, TaskDependencySimulator(graph), curriculum)
    with pytest.raises(BuildError, match="no task is left to draw"):
        engine.advance(10)
    engine.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "fast"}, "there is no engine 'fast'; there are compiled, direct, envs"),
        ({"name": "direct", "num_workers": 1}, "engine 'direct' has no envs to put into workers"),
        ({"name": "compiled", "num_workers": 1}, "has no envs to put into workers"),
        ({"name": "direct", "num_envs": 0}, "num_envs must be an integer of at least 1; got 0"),
        ({"name": "envs", "num_envs": 1.5}, "num_envs must be an integer"),
    ],
)
def test_impossible_engines_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        make_engine(simulator=learner(), curriculum=make(CASES["uniform"], None), **arguments)


# Workers that fail.


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_killed_worker_is_said_and_not_waited_for():
    simulator, curriculum = learner(3), make(CASES["uniform"], None)
    children = {process.pid for process in multiprocessing.active_children()}
    engine = EnvsEngine(simulator, curriculum, 3, num_workers=2)
    engine.advance(30)
    vector = engine.envs.unwrapped
    assert isinstance(vector, WorkerVectorEnv)
    # This process steps env 0, the first worker env 1.
    os.kill(vector._coordinator._pool.handles[0].process.pid, signal.SIGKILL)
    with pytest.raises(WorkerDiedError, match="the worker of env 1 died"):
        engine.advance(3000)
    engine.close()
    # What was learned can still be read, and learned from, here.
    assert simulator.num_plays >= 30
    before = simulator.P[0]
    simulator.learn([0])
    assert simulator.P[0] > before
    assert {process.pid for process in multiprocessing.active_children()} == children


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_an_engine_that_cannot_be_made_leaves_no_worker_behind():
    simulator, curriculum = learner(2), make(CASES["uniform"], None)
    carrier = EnvsEngine(learner(2), curriculum, 2)
    before = {process.pid for process in multiprocessing.active_children()}
    with pytest.raises(ChannelError, match="already carried") as held:
        EnvsEngine(simulator, curriculum, 2, num_workers=1)
    # Ended at once, and not only when the last trace of the attempt is forgotten.
    assert held.tb is not None
    assert {process.pid for process in multiprocessing.active_children()} == before
    carrier.close()
    # The skills are back in memory of the learner's own.
    assert simulator.state.clock.base is None or simulator.state.clock.base.flags.owndata
    simulator.learn([0])


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_skills_come_home_when_the_workers_are_gone():
    simulator, curriculum = learner(2), make(CASES["uniform"], None)
    engine = EnvsEngine(simulator, curriculum, 2, num_workers=1)
    engine.advance(50)
    during = simulator.P.tolist()
    engine.close()
    engine.close()
    assert simulator.P.tolist() == during
    simulator.learn([0] * 10)
    assert simulator.num_plays == 60
