"""The verdict: where the learner stands and what its plays were spent on, in words."""

import pytest

from stepladder.curricula import UniformConfig
from stepladder.simulator import (
    Epochwise,
    GraphScenario,
    Prerequisite,
    TaskDependencySimulator,
    TaskGraph,
    judge,
    scenario,
    simulate,
)
from stepladder.simulator.verdict import NOR_ORACLE, share_metrics
from stepladder.stats.metrics import find

# Learns in one play, and forgets nothing.
AT_ONCE = Prerequisite(eta=1.0, gamma=0.0, lambda_forget=0.0)


def test_a_learner_that_stalls():
    simulator = TaskDependencySimulator(5, AT_ONCE, start={0: 0.95, 1: 0.95})
    # One play on a mastered task, one on the locked fourth, eight on the locked fifth.
    simulator.learn([0, 3] + [4] * 8)
    verdict = judge(simulator)
    assert verdict.text == (
        "stalls at task 2 (skill 0.01): 2 of 5 tasks mastered in 10 plays; "
        "90% of samples went to tasks still locked"
    )
    assert str(verdict) == verdict.text
    assert (verdict.done_at, verdict.stalled_at) == (None, 2)
    assert (verdict.num_mastered, verdict.num_learnable) == (2, 5)
    assert (verdict.share_mastered, verdict.share_locked) == pytest.approx((0.1, 0.9))
    assert verdict.share_hopeless == 0.0


def test_plays_on_impossible_tasks_are_named():
    place = GraphScenario(
        name="mixed", graph=TaskGraph.chain(3).beside(TaskGraph.independent(2)), impossible=(3, 4)
    )
    result = simulate(
        place=place, curriculum=UniformConfig(), num_epochs=1, samples_per_epoch=10, num_envs=10
    )
    share = result.verdict.share_hopeless
    assert f"{share:.0%} of samples went to impossible tasks" in result.verdict.text
    counts = result.simulator.get_summary()["sample_counts"]
    assert share == (counts[3] + counts[4]) / 100


def test_the_worst_waste_is_named_first_and_small_ones_are_not():
    # Task 0 is mastered, 1 is impossible, 2 has nothing before it.
    graph = TaskGraph.independent(3)
    simulator = TaskDependencySimulator(graph, AT_ONCE, start={0: 0.95, 2: 0.0}, impossible=[1])
    simulator.learn([0] * 3 + [1] * 7)
    assert judge(simulator).text.endswith(
        "; 70% of samples went to impossible tasks; 30% of samples went to tasks already mastered"
    )
    simulator.reset()
    simulator.learn([0] + [1] * 9)
    assert judge(simulator).text.endswith("; 90% of samples went to impossible tasks")


def test_a_learner_that_has_mastered_everything():
    simulator = TaskDependencySimulator(2, AT_ONCE)
    simulator.learn([0, 1])
    verdict = judge(simulator)
    assert verdict.text == "mastered all 2 learnable tasks in 2 plays"
    assert (verdict.done_at, verdict.stalled_at) == (2, None)
    # What is played afterwards is not held against anybody.
    simulator.learn([0] * 100)
    assert judge(simulator).text == verdict.text


def test_only_what_can_be_learned_counts():
    simulator = TaskDependencySimulator(TaskGraph.independent(2), AT_ONCE, impossible=[1])
    simulator.learn([1, 0])
    assert judge(simulator).text == (
        "mastered the one learnable task in 2 plays; 50% of samples went to impossible tasks"
    )


def test_a_task_that_slipped_again_is_named():
    dynamics = Prerequisite(eta=1.0, gamma=0.0, lambda_forget=0.05)
    simulator = TaskDependencySimulator(TaskGraph.independent(2), dynamics, start={0: 1.0})
    simulator.learn([1])  # 0.95 and 0.95: all mastered.
    simulator.learn([1])  # Task 0 falls to 0.9025.
    simulator.learn([1])  # And to 0.857.
    assert judge(simulator).text.startswith(
        "mastered all 2 learnable tasks in 1 play, but has forgotten task 0 since"
    )


def test_where_nothing_can_be_learned_that_is_said():
    simulator = TaskDependencySimulator(2, impossible=[0])
    simulator.learn([0, 1, 1])
    verdict = judge(simulator)
    assert verdict.text == "nothing here can be learned; 100% of samples went to impossible tasks"
    assert verdict.stalled_at is None


def test_a_stall_follows_the_prerequisites_and_not_the_numbers():
    # 2 → 0 → 1.
    simulator = TaskDependencySimulator(TaskGraph(((2,), (0,), ())))
    assert judge(simulator).stalled_at == 2


def test_where_the_oracle_does_not_get_there_either_a_learner_is_not_said_to_stall():
    place = scenario("chain-3")
    needed = place.oracle(0, 1, place.budget).samples
    for samples, stalls in ((needed - 1, False), (needed, True)):
        result = simulate(
            place=place,
            curriculum=UniformConfig(),
            num_epochs=1,
            samples_per_epoch=samples,
            num_envs=1,
            engine="compiled",
        )
        assert result.verdict.text.startswith("stalls at task ") == stalls
        assert (NOR_ORACLE in result.verdict.text) == (not stalls)


def test_shares_since_a_moment_by_hand():
    graph = TaskGraph(((), (0,), ()))
    simulator = TaskDependencySimulator(graph, AT_ONCE, start={0: 0.0}, impossible=[2])
    simulator.learn([2, 2])
    before = simulator.spent()
    # Locked, open, mastered, hopeless, mastered.
    simulator.learn([1, 0, 0, 2, 0])
    found = share_metrics(simulator, before)
    assert found == {
        "env_task_dependency/share_mastered": pytest.approx(0.4),
        "env_task_dependency/share_locked": pytest.approx(0.2),
        "env_task_dependency/share_impossible": pytest.approx(0.2),
    }
    assert all(find(name) is not None for name in found)


def test_no_plays_are_no_shares():
    simulator = TaskDependencySimulator(2)
    assert set(share_metrics(simulator, simulator.spent()).values()) == {0.0}


def test_epochwise_learning_stalls_where_it_goes_on_which_is_from_the_end():
    learner = TaskDependencySimulator(4, Epochwise(samples_per_epoch=10))
    learner.state.nodes["skill"][:4] = [0.01, 0.01, 0.95, 0.95]
    learner.learn([0] * 3 + [1] * 7)
    verdict = judge(learner)
    assert verdict.stalled_at == 1
    # Task 0 waits for task 1, its child; task 1 has what it needs.
    assert verdict.share_locked == 0.3
