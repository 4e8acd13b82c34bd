"""The arithmetic of the learner that generalises, worked out by hand."""

import math

import numpy as np
import pytest

from simulator.generalising.small_learner import learner
from stepladder.simulator.base import PlayResult
from stepladder.simulator.generalising import state as kernels


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def shown(level: float, length: int = 3) -> PlayResult:
    return PlayResult(level, 1.0, 1.0, length)


def test_at_the_start_only_difficulty_counts():
    simulator = learner()
    assert simulator.P.tolist() == pytest.approx([0.5] * 2 + [sigmoid(-2.0)] * 3)
    assert simulator.held_out().tolist() == pytest.approx([0.5, sigmoid(-2.0)])
    assert simulator.progress == pytest.approx((0.5 + sigmoid(-2.0)) / 2)


def test_two_plays_by_hand():
    # eta 0.1, eta_memory 0.2, half of the skill goes to the neighbour, an update every 10 steps.
    simulator = learner()
    # A play of 3 steps at p = 0.5 teaches 4 * 0.5 * 0.5 = 1; nothing is learned before the update.
    simulator.learn_play(0, shown(0.5))
    assert (simulator.num_samples, simulator.num_plays) == (4, 1)
    assert simulator.state.skills["skill"].tolist() == [0.0, 0.0]
    # One of 5 steps at p = 0.12 of group 1 teaches 4 * 0.12 * 0.88 = 0.4224. Steps 4 + 6 = 10.
    simulator.learn_play(2, shown(0.12, 5))
    easy, hard = 0.1 * (1.0 + 0.5 * 0.4224), 0.1 * (0.5 * 1.0 + 0.4224)
    assert simulator.state.skills["skill"].tolist() == pytest.approx([easy, hard])
    assert simulator.memories.tolist() == pytest.approx([0.2, 0.0, 0.2 * 0.4224, 0.0, 0.0])
    assert simulator.P[0] == pytest.approx(sigmoid(easy + 0.2))
    assert simulator.P[1] == pytest.approx(sigmoid(easy))
    assert simulator.P[2] == pytest.approx(sigmoid(hard + 0.08448 - 2.0))
    # Held-out tasks have no memory.
    assert simulator.held_out()[1] == pytest.approx(sigmoid(hard - 2.0))


def test_forgetting_comes_with_every_update_and_before_what_is_new():
    simulator = learner(lambda_forget=0.1, lambda_memory=0.5)
    simulator.learn_play(0, shown(0.5, 9))
    assert simulator.clock["num_updates"] == 1
    simulator.learn_play(0, shown(0.5, 9))
    # Skill 0.1, then 0.9 * 0.1 + 0.1; memory 0.2, then 0.5 * 0.2 + 0.2.
    assert simulator.state.skills["skill"][0] == pytest.approx(0.19)
    assert simulator.memories[0] == pytest.approx(0.3)


def test_the_scale_of_memories_is_renewed_before_it_vanishes():
    simulator = learner(lambda_memory=0.5)
    simulator.learn_play(0, shown(0.5, 9))
    simulator.clock["scale"] = kernels.SMALLEST_SCALE
    simulator.state.memories["memory"][0] = 4.0 / kernels.SMALLEST_SCALE
    simulator.learn_play(1, shown(0.5, 9))
    assert simulator.clock["scale"] == 1.0
    assert simulator.memories[:2].tolist() == pytest.approx([2.0, 0.2])


def test_groups_can_hinder_each_other():
    simulator = learner(coupling=((1.0, 0.0), (-0.5, 1.0)))
    simulator.learn_play(0, shown(0.5, 9))
    assert simulator.state.skills["skill"].tolist() == pytest.approx([0.1, -0.05])


def test_held_out_success_is_the_mean_over_the_difficulties():
    simulator = learner(spread=(1.5, 3.0), difficulty=(0.7, 2.0))
    for group, (mean, spread) in enumerate(((0.7, 1.5), (2.0, 3.0))):
        evenly = mean + spread * (2.0 * (np.arange(20_000) + 0.5) / 20_000 - 1.0)
        found = np.mean(1.0 / (1.0 + np.exp(evenly)))
        assert simulator.held_out()[group] == pytest.approx(found, abs=1e-6)


def test_lengths_depend_on_the_outcome_and_are_spread():
    simulator = learner(length_spread=0.5, success_steps=(10, 10), failure_steps=(100, 100))
    seen = [PlayResult(*simulator.state.show(0, seed)) for seed in range(2000)]
    wins = [one.length for one in seen if one.success]
    losses = [one.length for one in seen if not one.success]
    assert len(wins) / 2000 == pytest.approx(0.5, abs=0.05)
    assert (min(wins), max(wins), min(losses), max(losses)) == (5, 15, 50, 150)
    assert np.mean(losses) == pytest.approx(100, rel=0.05)


def test_a_play_without_spread_has_the_length_of_its_group():
    simulator = learner()
    lengths = {PlayResult(*simulator.state.show(3, seed)).length for seed in range(200)}
    assert lengths == {4, 6}


def test_a_certain_play_teaches_nothing():
    simulator = learner()
    for _ in range(20):
        simulator.learn_play(0, shown(1.0, 9))
    assert simulator.state.skills["skill"].tolist() == [0.0, 0.0]
    assert simulator.clock["num_pending"] == 0
