"""Scrambling: known values, a true shuffle, and no memory needed for a huge one."""

import numpy as np
import pytest

from stepladder.tasks.scramble import Permutation, mix64, stream_key


def test_mix64_gives_the_published_outputs_of_splitmix64():
    # First outputs of splitmix64 seeded with 1234567 (Vigna's reference code): the state grows by
    # the golden gamma before each one.
    gamma = 0x9E3779B97F4A7C15
    assert [mix64((1234567 + i * gamma) % 2**64) for i in (1, 2, 3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_mix64_of_an_array_equals_that_of_each_int():
    values = [0, 1, 2**32, 2**63, 2**64 - 1]
    mixed = mix64(np.array(values, dtype=np.uint64))
    assert mixed.dtype == np.uint64
    assert mixed.tolist() == [mix64(value) for value in values]


def test_streams_of_neighbouring_seeds_do_not_meet():
    keys = {stream_key(seed, stream) for seed in range(100) for stream in range(100)}
    assert len(keys) == 10_000


@pytest.mark.parametrize("num_items", [1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097])
def test_every_item_appears_once(num_items):
    items = Permutation(num_items, seed=3).items(0, num_items)
    assert items.dtype == np.int64
    assert sorted(items.tolist()) == list(range(num_items))


@pytest.mark.parametrize("num_items", [7, 1000, 2**53, 2**63])
def test_one_item_equals_that_of_the_whole_array(num_items):
    order = Permutation(num_items, seed=8)
    items = order.items(0, 7).tolist()
    assert items == [order.item(position) for position in range(7)]
    assert all(0 <= item < num_items for item in items)


def test_a_seed_gives_the_same_order_for_ever():
    # Snapshots keep only a position in this order, so it may never change.
    assert Permutation(10, seed=0).items(0, 10).tolist() == [7, 5, 1, 8, 6, 3, 4, 0, 9, 2]
    first_two = Permutation(2**53, seed=1).items(0, 2).tolist()
    assert first_two == [8292709809506070, 555662244100270]


def test_each_item_comes_first_about_equally_often_over_seeds():
    firsts = [Permutation(5, seed).item(0) for seed in range(2000)]
    counts = np.bincount(firsts, minlength=5)
    # Expected 400 each, standard deviation 18.
    assert counts.min() > 310
    assert counts.max() < 490


def test_neighbouring_positions_lie_far_apart():
    items = Permutation(2**53, seed=2).items(0, 2000)
    # The mean distance of two uniform numbers is a third of the range.
    distance = np.abs(np.diff(items)).mean() / 2**53
    assert 0.3 < distance < 0.37
