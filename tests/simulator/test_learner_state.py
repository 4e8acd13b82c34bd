"""The kernels below the learner: how a learner is laid out, and where its chance comes from."""

import math

import numpy as np
import pytest
import scipy

from curricula.fake_learner import differences
from stepladder.compiled import compiled
from stepladder.envs.curriculum_env import MAX_ENV_SEED
from stepladder.simulator import TaskDependencySimulator, TaskGraph
from stepladder.simulator import learner_state as kernels


@compiled
def chances(first_seed: int, count: int, number: int) -> np.ndarray:
    found = np.empty(count)
    for index in range(count):
        found[index] = kernels.uniform(first_seed + index, number)
    return found


def test_envs_are_seeded_with_the_bits_that_the_kernels_use():
    assert kernels.SEED_MASK == MAX_ENV_SEED


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_numbers_of_neighbouring_seeds_are_even_and_unrelated(number: int):
    found = chances(12345, 20_000, number)
    assert found.min() >= 0.0
    assert found.max() < 1.0
    assert scipy.stats.kstest(found, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 4 / math.sqrt(20_000)


def test_the_numbers_of_one_seed_are_unrelated():
    first, second = chances(0, 20_000, 0), chances(0, 20_000, 1)
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / math.sqrt(20_000)


def test_a_world_is_laid_out_as_its_views_say():
    graph = TaskGraph(((), (0,), (0, 1)))
    simulator = TaskDependencySimulator(graph, start={1: 0.4}, noisy=[2], impossible=[0])
    learner = simulator.state
    nodes = learner.nodes
    assert nodes["kind"].tolist() == [kernels.IMPOSSIBLE, kernels.LEARNABLE, kernels.NOISE]
    assert nodes["is_learnable"].tolist() == [0, 0, 0]
    assert nodes["skill"].tolist() == [0.01, 0.4, 0.01]
    assert nodes["num_plays"].tolist() == nodes["num_epoch_plays"].tolist() == [0, 0, 0]
    assert learner.clock["scale"].tolist() == [1.0]
    links = [learner.links[node["parents_at"] : node["parents_end"]].tolist() for node in nodes]
    assert links == [[], [0], [1, 0]]
    links = [learner.links[node["children_at"] : node["children_end"]].tolist() for node in nodes]
    assert links == [[1, 2], [2], []]


def test_a_world_in_other_memory_is_the_same_world():
    simulator = TaskDependencySimulator(5)
    simulator.learn([0, 1, 0])
    before = simulator.snapshot()
    words = np.zeros(simulator.state.shared_words, dtype=np.int64)
    simulator.move_to(words)
    assert differences(before, simulator.snapshot()) == []
    simulator.learn([2])
    seen = simulator.state.in_words(words)
    assert seen.clock["num_plays"][0] == 4
    assert seen.nodes["num_plays"].tolist() == [2, 1, 1, 0, 0]
