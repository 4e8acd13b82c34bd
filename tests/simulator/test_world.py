"""The kernels below the learner: how a world is laid out, and where its chance comes from."""

import math

import numpy as np
import pytest
from scipy import stats

from stepladder.compiled import compiled
from stepladder.envs.curriculum_env import MAX_ENV_SEED
from stepladder.simulator import TaskDependencySimulator, TaskGraph
from stepladder.simulator import world as kernels


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
    assert stats.kstest(found, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 4 / math.sqrt(20_000)


def test_the_numbers_of_one_seed_are_unrelated():
    first, second = chances(0, 20_000, 0), chances(0, 20_000, 1)
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / math.sqrt(20_000)


def test_a_world_is_laid_out_as_its_views_say():
    graph = TaskGraph(((), (0,), (0, 1)))
    simulator = TaskDependencySimulator(graph, start={1: 0.4}, noisy=[2], impossible=[0])
    world = simulator.world
    assert world.num_nodes == 3
    assert world.kinds.tolist() == [kernels.IMPOSSIBLE, kernels.LEARNABLE, kernels.NOISE]
    assert world.learnable.tolist() == [0, 0, 0]
    assert world.skills.tolist() == [0.01, 0.4, 0.01, 1.0]
    assert len(world.biases) == 3
    assert world.counts.tolist() == world.epoch_counts.tolist() == [0, 0, 0]
    assert len(world.clock) == kernels.NUM_CLOCK


def test_nothing_that_is_counted_overlaps():
    simulator = TaskDependencySimulator(5)
    views = ("clock", "kinds", "learnable", "counts", "epoch_counts")
    for name in views:
        getattr(simulator.world, name)[:] = 77
        others = [getattr(simulator.world, other) for other in views if other != name]
        assert not any((other == 77).any() for other in others)
        getattr(simulator.world, name)[:] = 0
    assert simulator.world.num_nodes == 5
