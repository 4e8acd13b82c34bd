"""The learner against its equations: by hand for a few plays, and plainly written for thousands."""

import math
import re

import numpy as np
import pytest
import scipy

from simulator.plain_learner import PlainEpochwise, PlainPrerequisite
from stepladder.curricula import Snapshot
from stepladder.errors import ConfigError, SnapshotError
from stepladder.simulator import (
    Epochwise,
    Noise,
    Prerequisite,
    TaskDependencySimulator,
    TaskGraph,
    recipe,
)
from stepladder.stats.metrics import find

# Prerequisite, by hand.


def test_a_play_without_prerequisites_by_hand():
    simulator = TaskDependencySimulator(
        1, Prerequisite(eta=0.5, gamma=0.0, lambda_forget=0.1, start=0.2)
    )
    simulator.learn([0])
    # 0.2 + 0.5·1·(1 - 0.2) = 0.6; then all is kept but a tenth.
    assert simulator.P.tolist() == pytest.approx([0.54])
    simulator.learn([0])
    # 0.54 + 0.5·0.46 = 0.77; 0.77·0.9 = 0.693.
    assert simulator.P.tolist() == pytest.approx([0.693])


def test_plays_of_a_two_task_chain_by_hand():
    simulator = TaskDependencySimulator(
        2, Prerequisite(eta=0.5, gamma=0.1, lambda_forget=0.0, start=0.2)
    )
    simulator.learn([1])
    # Task 1: gate 0.2² = 0.04; 0.2 + 0.5·0.04·0.8 = 0.216.
    # Task 0, its parent: by its own expression, 0.2 + 0.1·0.5·1·0.8 = 0.24.
    assert simulator.P.tolist() == pytest.approx([0.24, 0.216])
    simulator.learn([0])
    # Task 0: 0.24 + 0.5·0.76 = 0.62. A play teaches nothing to children.
    assert simulator.P.tolist() == pytest.approx([0.62, 0.216])
    simulator.learn([1])
    # Task 1: gate 0.62² = 0.3844; 0.216 + 0.5·0.3844·0.784 = 0.3666848.
    # Task 0: 0.62 + 0.05·0.38 = 0.639.
    assert simulator.P.tolist() == pytest.approx([0.639, 0.3666848])


def test_what_a_parent_gains_is_gated_by_its_own_prerequisites():
    simulator = TaskDependencySimulator(
        3, Prerequisite(eta=0.5, gamma=0.2, lambda_forget=0.0, start=0.5)
    )
    simulator.learn([2])
    # Task 2: 0.5 + 0.5·0.25·0.5 = 0.5625. Task 1: gate 0.25; 0.5 + 0.2·0.5·0.25·0.5 = 0.5125.
    # Task 0 is the parent of a parent and gains nothing.
    assert simulator.P.tolist() == pytest.approx([0.5, 0.5125, 0.5625])


def test_two_parents_multiply():
    simulator = TaskDependencySimulator(
        TaskGraph(((), (), (0, 1))),
        Prerequisite(eta=1.0, gamma=0.0, lambda_forget=0.0),
        start={0: 0.9, 1: 0.8, 2: 0.0},
    )
    assert simulator.gates().tolist() == pytest.approx([1.0, 1.0, 0.81 * 0.64])
    simulator.learn([2])
    assert simulator.P[2] == pytest.approx(0.81 * 0.64)


def test_the_gate_looks_at_prerequisites_and_not_at_what_they_unlock():
    # Defect 1 of the ancestor: there the last task of a chain was the only one without a gate.
    simulator = TaskDependencySimulator(5)
    assert simulator.gates().tolist() == pytest.approx([1.0] + [1e-4] * 4)
    simulator.learn([4] * 500)
    assert simulator.P[4] < 0.02
    simulator.reset()
    simulator.learn([0] * 100)
    assert simulator.P[0] > 0.9


def test_every_play_forgets_a_little_of_everything():
    simulator = TaskDependencySimulator(3, Prerequisite(gamma=0.0, lambda_forget=0.5, start=0.8))
    simulator.learn([0])
    assert simulator.P[1:].tolist() == pytest.approx([0.4, 0.4])
    simulator.learn([2])
    assert simulator.P[1] == pytest.approx(0.2)


def test_forgetting_does_not_depend_on_the_number_of_envs():
    # Defect 2 of the ancestor: more envs meant less forgetting.
    plays = np.random.default_rng(0).integers(0, 4, size=1600)
    ends = []
    for num_envs in (1, 32):
        simulator = TaskDependencySimulator(4, Prerequisite(lambda_forget=1e-3), num_envs=num_envs)
        for round_of_plays in plays.reshape(-1, num_envs):
            simulator.learn(round_of_plays)
        ends.append(simulator.P.tolist())
    assert ends[0] == ends[1]
    # And it is felt: without it the same plays lead clearly higher.
    without = TaskDependencySimulator(4, Prerequisite(lambda_forget=0.0))
    without.learn(plays)
    assert without.P[0] - ends[0][0] > 0.05


def test_skill_changes_within_an_epoch():
    # Defect 5 of the ancestor: skills moved at the end of an epoch only.
    simulator = TaskDependencySimulator(3)
    before = simulator.P[0]
    simulator.learn([0])
    assert simulator.P[0] > before


def test_the_order_in_which_a_graph_lists_parents_does_not_matter():
    # 0 → 1, and both are parents of 2: what 1 gains must not see what 0 has just gained.
    ends = []
    for parents in ((0, 1), (1, 0)):
        simulator = TaskDependencySimulator(
            TaskGraph(((), (0,), parents)), Prerequisite(eta=0.5, gamma=0.5, start=0.5)
        )
        simulator.learn([2, 2, 1, 2])
        ends.append(simulator.P.tolist())
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("lambda_forget", "num_rescalings"),
    # 0.74 to the power of 1,530 is below 1e-200, where the common scale begins anew.
    [(2e-5, 0), (0.26, 3), (0.0, 0)],
)
def test_thousands_of_plays_on_a_dag_equal_the_plain_equations(lambda_forget, num_rescalings):
    graph = TaskGraph.random_dag(20, seed=2, max_parents=3)
    dynamics = Prerequisite(lambda_forget=lambda_forget, start=0.3)
    simulator = TaskDependencySimulator(graph, dynamics)
    plain = PlainPrerequisite(graph, dynamics)
    scales = []
    for node in np.random.default_rng(7).integers(0, 20, size=5000).tolist():
        plain.play(node)
        simulator.learn([node])
        np.testing.assert_allclose(simulator.P, plain.skills, atol=1e-9, rtol=0)
        scales.append(simulator.state.clock["scale"][0])
    assert np.sum(np.diff(scales) > 0) == num_rescalings
    assert max(plain.skills) > 1e-3


# Epochwise.


def test_an_epoch_of_a_three_task_chain_by_hand():
    simulator = TaskDependencySimulator(
        3,
        Epochwise(gamma=0.5, lambda_forget=0.2, dt=1.0, start=0.5, samples_per_epoch=10),
    )
    simulator.learn([0] * 2 + [1] * 4 + [2] * 3)
    assert simulator.P.tolist() == [0.5, 0.5, 0.5]
    simulator.learn([2])
    # Counts 2, 4, 4. Stimulus: 2; 4 + 0.5·2 = 5; 4 + 0.5·4 = 6. Gates: P of the child, so 0.5,
    # 0.5, 1. dP = stimulus·gate·0.5 - 0.2·0.5 = 0.4, 1.15, 2.9; divided by 10 plays.
    assert simulator.P.tolist() == pytest.approx([0.54, 0.615, 0.79])
    simulator.learn([1] * 10)
    # Stimulus 0, 10, 5. Gates 0.615, 0.79, 1.
    # dP0 = 0 - 0.2·0.54 = -0.108;  dP1 = 10·0.79·0.385 - 0.123 = 2.9185;
    # dP2 = 5·0.21 - 0.158 = 0.892.
    assert simulator.P.tolist() == pytest.approx([0.5292, 0.90685, 0.8792])
    assert simulator.current_epoch == 2


def test_skills_of_the_epochwise_learner_are_cut_to_the_unit_range():
    settings = {"dt": 100.0, "start": 0.5, "samples_per_epoch": 1}
    up = TaskDependencySimulator(1, Epochwise(lambda_forget=0.0, **settings))
    up.learn([0])
    assert up.P.tolist() == [1.0]
    down = TaskDependencySimulator(1, Epochwise(lambda_forget=10.0, **settings))
    down.learn([0])
    assert down.P.tolist() == [0.0]


def test_epochs_on_a_dag_equal_the_plain_equations():
    graph = TaskGraph.random_dag(15, seed=4, max_parents=3)
    dynamics = Epochwise(gamma=0.4, lambda_forget=2.0, dt=0.9, start=0.6, samples_per_epoch=6)
    simulator = TaskDependencySimulator(graph, dynamics, num_envs=5)
    plain = PlainEpochwise(graph, dynamics, num_envs=5)
    rng = np.random.default_rng(1)
    for _ in range(200):
        plays = rng.integers(0, 15, size=30)
        simulator.learn(plays)
        plain.complete_epoch(np.bincount(plays, minlength=15).tolist())
        np.testing.assert_allclose(simulator.P, plain.skills, atol=1e-12, rtol=0)
    assert simulator.current_epoch == 200
    assert max(plain.skills) - min(plain.skills) > 0.3


def test_ending_an_epoch_by_hand_ends_nothing_twice():
    dynamics = Epochwise(start=0.5, dt=1.0, samples_per_epoch=4)
    by_itself, by_hand = TaskDependencySimulator(2, dynamics), TaskDependencySimulator(2, dynamics)
    for _ in range(3):
        by_itself.learn([0, 1, 1, 1])
        by_hand.learn([0, 1, 1, 1])
        by_hand.complete_epoch()
    assert by_hand.P.tolist() == by_itself.P.tolist()
    assert by_hand.current_epoch == by_itself.current_epoch == 3


def test_a_short_epoch_is_followed_by_a_whole_one():
    dynamics = Epochwise(start=0.5, dt=1.0, samples_per_epoch=4)
    simulator = TaskDependencySimulator(2, dynamics)
    plain = PlainEpochwise(simulator.graph, dynamics)
    simulator.learn([1])
    simulator.complete_epoch()
    plain.complete_epoch([0, 1])
    assert simulator.P.tolist() == pytest.approx(plain.skills)
    simulator.learn([0, 1, 1])
    assert simulator.P.tolist() == pytest.approx(plain.skills)
    simulator.learn([1])
    plain.complete_epoch([1, 3])
    assert simulator.P.tolist() == pytest.approx(plain.skills)


def test_an_epoch_without_plays_only_forgets():
    dynamics = Epochwise(start=0.5, lambda_forget=0.4, dt=1.0, samples_per_epoch=4)
    simulator = TaskDependencySimulator(1, dynamics)
    simulator.complete_epoch()
    # 0.5 - 0.4·0.5 / 4.
    assert simulator.P.tolist() == pytest.approx([0.45])


def ancestor_train(choose) -> float:
    """Play the ancestor's train recipe with a choice by skills; return the mean skill."""
    train = recipe("train")
    simulator = TaskDependencySimulator(
        train.num_tasks, train.dynamics, train.noise, num_envs=train.num_envs
    )
    plays = train.dynamics.samples_per_epoch * train.num_envs
    assert plays == 320
    for _ in range(train.num_epochs):
        # Skills stand still within an epoch, so a choice by skill does too.
        simulator.learn(choose(simulator.P, plays))
    assert simulator.current_epoch == train.num_epochs
    return float(simulator.P.mean())


def test_the_ancestors_train_recipe_ends_where_its_equations_lead():
    rng = np.random.default_rng(0)

    def uniform(skills, plays):
        return rng.integers(0, 10, size=plays)

    def first_unmastered(order):
        def choose(skills, plays):
            below = [node for node in order if skills[node] < 0.85]
            return np.full(plays, below[0]) if below else uniform(skills, plays)

        return choose

    assert ancestor_train(first_unmastered(range(10))) == pytest.approx(0.15, abs=0.01)
    assert ancestor_train(first_unmastered(range(9, -1, -1))) == pytest.approx(0.996, abs=0.002)
    assert ancestor_train(uniform) == pytest.approx(0.951, abs=0.003)


# Noise.


def test_success_comes_as_often_as_the_skill_says():
    for skill in (0.03, 0.4, 0.97):
        simulator = TaskDependencySimulator(1, start={0: skill})
        wins = sum(simulator.play(0, seed).success for seed in range(20_000))
        # Four standard deviations either way.
        assert wins / 20_000 == pytest.approx(
            skill, abs=4 * math.sqrt(skill * (1 - skill) / 20_000)
        )


def test_neighbouring_seeds_give_unrelated_outcomes():
    simulator = TaskDependencySimulator(1, start={0: 0.5})
    wins = np.array([simulator.play(0, seed).success for seed in range(20_000)])
    for lag in (1, 2, 64):
        assert abs(np.corrcoef(wins[:-lag], wins[lag:])[0, 1]) < 4 / math.sqrt(20_000)


def test_a_play_shows_but_does_not_teach():
    simulator = TaskDependencySimulator(2)
    for seed in range(50):
        simulator.play(0, seed)
    assert simulator.P.tolist() == [0.01, 0.01]
    assert simulator.num_plays == 0


def test_the_same_seed_gives_the_same_play():
    simulator = TaskDependencySimulator(2, noise=Noise(reward="skill", sample_noise_std=0.1))
    assert simulator.play(1, 11) == simulator.play(1, 11)
    assert simulator.play(1, 11) != simulator.play(1, 12)


def test_the_reward_rises_as_long_as_the_skill_does():
    # Defect 4 of the ancestor: 0.5 and the skill, cut off at 1, hid all learning above 0.5.
    noise = Noise(reward="skill", reward_base=0.5)
    shown = [
        TaskDependencySimulator(1, noise=noise, start={0: skill}).play(0, 1).reward
        for skill in (0.2, 0.5, 0.7, 0.9)
    ]
    assert shown == pytest.approx([0.7, 1.0, 1.2, 1.4])


def test_the_ancestors_reward_saturates_when_asked_to():
    noise = Noise(reward="skill", reward_base=0.5, saturate=True)
    shown = [
        TaskDependencySimulator(1, noise=noise, start={0: skill}).play(0, 1).reward
        for skill in (0.2, 0.5, 0.9)
    ]
    assert shown == pytest.approx([0.7, 1.0, 1.0])


def test_the_error_of_a_play_is_normal_around_the_skill():
    simulator = TaskDependencySimulator(
        1, noise=Noise(reward="skill", sample_noise_std=0.2), start={0: 0.95}
    )
    rewards = np.array([simulator.play(0, seed).reward for seed in range(5000)])
    assert scipy.stats.kstest((rewards - 0.95) / 0.2, "norm").pvalue > 1e-3
    # Nothing is cut off at 1.
    assert rewards.max() > 1.3


def test_the_error_of_a_task_is_fixed_by_the_seed():
    noise = Noise(reward="skill", task_noise_std=0.3)

    def errors(seed):
        simulator = TaskDependencySimulator(200, noise=noise, seed=seed)
        return np.array([simulator.play(node, 1).reward - 0.01 for node in range(200)])

    assert np.array_equal(errors(5), errors(5))
    assert not np.array_equal(errors(5), errors(6))
    assert scipy.stats.kstest(errors(5) / 0.3, "norm").pvalue > 1e-3
    simulator = TaskDependencySimulator(200, noise=noise, seed=5)
    simulator.learn([3] * 10)
    simulator.reset()
    assert simulator.play(3, 1).reward - 0.01 == pytest.approx(errors(5)[3])


def test_seed_0_is_a_seed():
    # Defect 5 of the ancestor: 0 was taken for "no seed" and replaced by a random one.
    noise = Noise(reward="skill", task_noise_std=0.3, sample_noise_std=0.1)
    shown = [
        [TaskDependencySimulator(3, noise=noise, seed=seed).sample_task(node) for node in (0, 1, 2)]
        for seed in (0, 0, 1)
    ]
    assert shown[0] == shown[1] != shown[2]


def test_plays_without_a_seed_follow_the_simulators_own():
    def course(seed):
        simulator = TaskDependencySimulator(3, seed=seed, start={0: 0.5, 1: 0.5})
        return [simulator.sample_task(node) for node in (0, 1, 2, 0, 1) * 8]

    assert course(3) == course(3) != course(4)


def test_no_global_generator_is_read_or_written():
    ends = []
    for number in (1, 2):
        np.random.seed(number)  # noqa: NPY002, the generator nobody may touch
        held = np.random.get_state()[1].tolist()  # noqa: NPY002
        simulator = TaskDependencySimulator(
            4, noise=Noise(reward="skill", task_noise_std=0.2, sample_noise_std=0.2), seed=1
        )
        ends.append([simulator.sample_task(node % 4) for node in range(40)])
        assert np.random.get_state()[1].tolist() == held  # noqa: NPY002
    assert ends[0] == ends[1]


# Kinds of tasks.


def test_an_impossible_task_never_succeeds_and_never_learns():
    simulator = TaskDependencySimulator(2, impossible=[1], start={0: 0.95, 1: 0.8})
    simulator.learn([1] * 100)
    assert simulator.P[1] == 0.0
    assert not any(simulator.play(1, seed).success for seed in range(2000))


def test_a_noisy_task_is_a_fair_coin_whatever_is_practised():
    simulator = TaskDependencySimulator(2, noisy=[1])
    simulator.learn([1] * 300 + [0] * 100)
    assert simulator.P[1] == 0.5
    wins = sum(simulator.play(1, seed).success for seed in range(20_000))
    assert wins / 20_000 == pytest.approx(0.5, abs=4 * math.sqrt(0.25 / 20_000))


def test_playing_a_noisy_task_teaches_its_prerequisites_nothing():
    simulator = TaskDependencySimulator(2, Prerequisite(gamma=1.0, lambda_forget=0.0), noisy=[1])
    simulator.learn([1] * 100)
    assert simulator.P[0] == 0.01


def test_tasks_start_where_they_are_told():
    simulator = TaskDependencySimulator(4, start={1: 0.95, 3: 0.0})
    assert simulator.P.tolist() == [0.01, 0.95, 0.01, 0.0]
    simulator.learn([0] * 30)
    simulator.reset()
    assert simulator.P.tolist() == [0.01, 0.95, 0.01, 0.0]


def test_what_lies_behind_an_impossible_task_cannot_be_learned():
    # 0 → 1 → 2 and 0 → 3; 1 is impossible, so 2 stays closed and 3 does not.
    graph = TaskGraph(((), (0,), (1,), (0,)))
    simulator = TaskDependencySimulator(graph, impossible=[1])
    assert simulator.state.nodes["is_learnable"].tolist() == [1, 0, 0, 1]
    assert simulator.num_learnable == 2
    simulator.learn([0] * 100 + [2] * 500 + [3] * 100)
    assert simulator.P[2] < 0.02
    assert simulator.P[3] > 0.9
    assert simulator.done_at is not None


def test_what_lies_behind_a_coin_toss_can_be_learned_slowly():
    simulator = TaskDependencySimulator(2, Prerequisite(lambda_forget=0.0), noisy=[0])
    assert simulator.state.nodes["is_learnable"].tolist() == [0, 1]
    assert simulator.gates().tolist() == [1.0, 0.25]
    simulator.learn([1] * 400)
    # Each play leaves 1 - 0.05·0.25 of what is missing: 0.99·0.9875^n is below 0.1 from n = 183 on.
    assert simulator.done_at == 183


def test_the_epochwise_gate_makes_an_impossible_child_close_its_parents():
    dynamics = Epochwise(dt=1.0, samples_per_epoch=5, lambda_forget=0.0)
    simulator = TaskDependencySimulator(3, dynamics, impossible=[1])
    assert simulator.state.nodes["is_learnable"].tolist() == [0, 0, 1]
    simulator.learn([0] * 500 + [2] * 500)
    # The gate of task 0 is the skill of task 1, which is 0 and not where it started.
    assert simulator.P.tolist() == pytest.approx([0.01, 0.0, 1.0])


def test_the_epochwise_gate_sees_a_coin_toss_as_half_open():
    dynamics = Epochwise(dt=1.0, samples_per_epoch=4, lambda_forget=0.0, start=0.2)
    simulator = TaskDependencySimulator(2, dynamics, noisy=[1])
    simulator.learn([0] * 4)
    # 0.2 + 4·0.5·0.8 / 4.
    assert simulator.P.tolist() == pytest.approx([0.6, 0.5])


# Counting.


def test_every_play_is_counted_once():
    simulator = TaskDependencySimulator(3)
    plays = [0, 0, 2, 1, 0]
    simulator.learn(plays[:2])
    simulator.learn(np.array(plays[2:]))
    assert simulator.num_plays == 5
    assert simulator.get_summary()["sample_counts"] == [3, 1, 1]
    simulator.sample_task(1)
    assert simulator.num_plays == 6


def test_the_moment_when_all_are_mastered_is_noted_once():
    dynamics = Prerequisite(eta=0.5, gamma=0.0, lambda_forget=0.1, start=0.0, mastery=0.6)
    simulator = TaskDependencySimulator(1, dynamics)
    simulator.learn([0])  # 0.5·0.9 = 0.45
    assert (simulator.done_at, simulator.num_mastered) == (None, 0)
    simulator.learn([0])  # (0.45 + 0.275)·0.9 = 0.6525
    assert (simulator.done_at, simulator.num_mastered) == (2, 1)
    simulator.learn([0] * 5)
    assert simulator.done_at == 2


def test_mastered_means_after_forgetting():
    # 0 + 0.5 reaches the line, but a tenth is forgotten in the same play: 0.45.
    dynamics = Prerequisite(eta=0.5, gamma=0.0, lambda_forget=0.1, start=0.0, mastery=0.5)
    simulator = TaskDependencySimulator(1, dynamics)
    simulator.learn([0])
    assert simulator.done_at is None
    simulator.learn([0])
    assert simulator.done_at == 2


def test_what_is_forgotten_is_no_longer_mastered():
    simulator = TaskDependencySimulator(2, Prerequisite(lambda_forget=0.01), start={0: 0.95})
    assert simulator.num_mastered == 1
    simulator.learn([1] * 20)
    assert simulator.num_mastered == 0


def test_the_area_adds_up_the_mastered_tasks_of_every_play():
    # Task 0 is mastered from the start, task 1 from play 2 on: 1 + 1 before, then 2 each.
    dynamics = Prerequisite(eta=0.7, gamma=0.0, lambda_forget=0.0, mastery=0.9)
    simulator = TaskDependencySimulator(TaskGraph.independent(2), dynamics, start={0: 1.0, 1: 0.0})
    simulator.learn([1])  # 0.7
    assert simulator.area_so_far == 1
    simulator.learn([1])  # 0.91
    assert simulator.area_so_far == 2
    simulator.learn([0, 0, 0])
    assert simulator.area_so_far == 8


def test_plays_are_sorted_by_what_they_were_spent_on():
    # Task 0 is mastered, 1 is open (gate 0.9025), 2 is locked (gate 1e-4), 3 is impossible.
    graph = TaskGraph(((), (0,), (1,), ()))
    simulator = TaskDependencySimulator(graph, start={0: 0.95}, impossible=[3])
    simulator.learn([0] * 1 + [1] * 2 + [2] * 3 + [3] * 4)
    assert simulator.shares() == pytest.approx((0.1, 0.3, 0.4))


def test_shares_are_those_up_to_the_moment_when_all_were_mastered():
    dynamics = Prerequisite(eta=0.95, gamma=0.0, lambda_forget=0.0)
    simulator = TaskDependencySimulator(2, dynamics)
    simulator.learn([1, 0, 0, 1])  # locked, open, mastered, open: done.
    assert simulator.done_at == 4
    assert simulator.shares() == pytest.approx((0.25, 0.25, 0.0))
    simulator.learn([0] * 100)
    assert simulator.shares() == pytest.approx((0.25, 0.25, 0.0))


def test_where_nothing_can_be_learned_all_plays_are_hopeless():
    simulator = TaskDependencySimulator(2, impossible=[0])
    simulator.learn([0, 1, 1])
    assert simulator.num_learnable == 0
    assert simulator.shares() == (0.0, 0.0, 1.0)


# Metrics and words.


def test_the_metrics_by_hand():
    simulator = TaskDependencySimulator(
        TaskGraph.independent(4), start={0: 0.95, 1: 0.25}, noisy=[2], impossible=[3]
    )
    # P = 0.95, 0.25, 0.5, 0. Mean 0.425; squared distances 0.275625, 0.030625, 0.005625, 0.180625.
    metrics = simulator.metrics()
    assert metrics == pytest.approx(
        {
            "overview/mean_performance": 0.425,
            "overview/max_performance": 0.95,
            "overview/tasks_above_threshold": 1.0,
            "overview/mastered_fraction": 0.5,
            "env_task_dependency/mean_performance": 0.425,
            "env_task_dependency/max_performance": 0.95,
            "env_task_dependency/min_performance": 0.0,
            "env_task_dependency/performance_std": math.sqrt(0.4925 / 3),
            "env_task_dependency/tasks_above_threshold": 1.0,
            "env_task_dependency/num_learnable": 2.0,
            "env_task_dependency/total_samples": 0.0,
        }
    )
    assert all(find(name) is not None for name in metrics)


def test_a_single_task_has_no_spread():
    assert TaskDependencySimulator(1).metrics()["env_task_dependency/performance_std"] == 0.0


def test_the_summary_is_the_ancestors():
    simulator = TaskDependencySimulator(2)
    simulator.learn([0, 0, 0, 1])
    simulator.complete_epoch()
    summary = simulator.get_summary()
    assert summary["final_performances"] == simulator.P.tolist()
    assert summary["total_samples"] == 4
    assert summary["num_epochs_completed"] == 1
    # 3 and 1: 2·(1·1 + 2·3) / (2·4) - 3/2 = 0.25.
    assert summary["sampling_gini"] == pytest.approx(0.25)


def test_labels_are_task_classes():
    simulator = TaskDependencySimulator(3)
    assert [simulator.task(node).label for node in range(3)] == [
        "taskclass0",
        "taskclass1",
        "taskclass2",
    ]
    assert simulator.source().labels() == ["taskclass0", "taskclass1", "taskclass2"]


# Saving.


@pytest.mark.parametrize(
    "dynamics", [Prerequisite(lambda_forget=0.3), Epochwise(samples_per_epoch=7)], ids=type
)
def test_a_restored_learner_continues_identically(tmp_path, dynamics):
    graph = TaskGraph.random_dag(8, seed=1)
    noise = Noise(reward="skill", task_noise_std=0.1, sample_noise_std=0.1)
    plays = np.random.default_rng(3).integers(0, 8, size=2000)

    def fresh():
        return TaskDependencySimulator(graph, dynamics, noise, seed=4, impossible=[7])

    whole, first = fresh(), fresh()
    whole.learn(plays)
    first.learn(plays[:1003])
    second = fresh()
    second.restore(Snapshot.load(first.snapshot().save(tmp_path / "learner.npz")))
    second.learn(plays[1003:])
    assert second.P.tolist() == whole.P.tolist()
    assert second.clock.tolist() == whole.clock.tolist()
    assert second.get_summary() == whole.get_summary()
    assert [second.play(node) for node in range(8)] == [whole.play(node) for node in range(8)]


def test_a_snapshot_is_a_copy():
    simulator = TaskDependencySimulator(3)
    saved = simulator.snapshot()
    simulator.learn([0] * 50)
    simulator.restore(saved)
    assert simulator.P.tolist() == [0.01] * 3
    assert simulator.num_plays == 0


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: TaskDependencySimulator(4), "graph.features.position had 4 entries and now has 3"),
        (lambda: TaskDependencySimulator(3, seed=1), "seed was 1 and is now 0"),
        (
            lambda: TaskDependencySimulator(3, Prerequisite(eta=0.1)),
            "dynamics.eta was 0.1 and is now 0.05",
        ),
        (lambda: TaskDependencySimulator(3, impossible=[2]), "impossible had 1 entries"),
    ],
)
def test_the_snapshot_of_another_learner_is_refused_with_the_difference(other, message):
    with pytest.raises(SnapshotError, match=re.escape(message)):
        TaskDependencySimulator(3).restore(other().snapshot())


def test_a_damaged_snapshot_changes_nothing():
    simulator = TaskDependencySimulator(3)
    simulator.learn([0, 1, 2])
    before = simulator.P.tolist()
    saved = TaskDependencySimulator(3).snapshot()
    del saved.arrays["clock"]
    with pytest.raises(SnapshotError, match="'clock' of the snapshot: is missing"):
        simulator.restore(saved)
    assert simulator.P.tolist() == before
    assert simulator.num_plays == 3
    with pytest.raises(SnapshotError, match="expected a Snapshot"):
        simulator.restore({})  # type: ignore[arg-type]


# What is refused.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TaskDependencySimulator(0), "at least 1; got 0"),
        (lambda: TaskDependencySimulator(3, seed=-1), "seed of a simulator"),
        (lambda: TaskDependencySimulator(3, seed=None), "seed of a simulator"),
        (lambda: TaskDependencySimulator(3, num_envs=0), "num_envs"),
        (lambda: TaskDependencySimulator(3, start={3: 0.5}), "A node in start"),
        (lambda: TaskDependencySimulator(3, start={0: 1.5}), "start of node 0 must lie in [0, 1]"),
        (lambda: TaskDependencySimulator(3, start={0: "x"}), "start of node 0 must lie in [0, 1]"),
        (lambda: TaskDependencySimulator(3, impossible=[-1]), "A node in impossible"),
        (lambda: TaskDependencySimulator(3, noisy=[9]), "A node in noisy"),
        (lambda: TaskDependencySimulator(3).play(3), "A node in play"),
        (lambda: TaskDependencySimulator(3).task(-1), "A node in task"),
        (lambda: TaskDependencySimulator(3).learn([3]), "from 0 to 2"),
        (lambda: TaskDependencySimulator(3).learn([-1]), "from 0 to 2"),
        (lambda: TaskDependencySimulator(3).learn([0.5]), "nodes [0.5] must be integers"),
    ],
)
def test_impossible_input_is_refused(make, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        make()


def test_refused_plays_teach_nothing():
    simulator = TaskDependencySimulator(3)
    with pytest.raises(ConfigError):
        simulator.learn([0, 1, 7])
    assert simulator.num_plays == 0
    assert simulator.P.tolist() == [0.01] * 3


def test_no_plays_are_no_plays():
    simulator = TaskDependencySimulator(3)
    simulator.learn([])
    assert simulator.num_plays == 0
