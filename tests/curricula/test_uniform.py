"""Uniform: every task alike, whatever happens."""

import math

import numpy as np
import pytest

from curricula.fake_learner import live, record_for
from stepladder.curricula import Uniform
from stepladder.tasks import NumberedSource, UnionSource

TEN = NumberedSource(10)


def test_every_task_is_alike():
    assert Uniform(TEN).probs().tolist() == pytest.approx([0.1] * 10)


def test_tasks_of_a_weighted_union_keep_its_shares():
    # Shares 1 to 3 over 4 and 2 tasks: each of the first gets 1/16, each of the second 3/8.
    union = UnionSource([(NumberedSource(4, prefix="a"), 1.0), (NumberedSource(2, prefix="b"), 3)])
    assert Uniform(union).probs().tolist() == pytest.approx([1 / 16] * 4 + [3 / 8] * 2)


def test_exploration_ignores_the_shares_of_a_union():
    union = UnionSource([(NumberedSource(4, prefix="a"), 1.0), (NumberedSource(2, prefix="b"), 3)])
    probs = Uniform(union, exploration=0.6).probs()
    assert probs.tolist() == pytest.approx([0.1 + 0.4 / 16] * 4 + [0.1 + 0.4 * 3 / 8] * 2)


def test_results_change_nothing_not_even_the_version_of_the_plan():
    curriculum = Uniform(TEN)
    version = curriculum.plan.version
    life = live(curriculum, 100)
    assert {tuple(probs) for probs in life.probs} == {(0.1,) * 10}
    assert curriculum.plan.version == version


def test_plays_are_counted_per_task_until_it_is_replaced():
    curriculum = Uniform(NumberedSource(50), capacity=3)
    curriculum.observe([record_for(curriculum, slot, math.nan) for slot in (0, 2, 2)])
    assert curriculum.plays.tolist() == [1, 0, 2]
    late = record_for(curriculum, 2, 1.0)
    curriculum.replace(2)
    curriculum.observe(late)
    assert curriculum.plays.tolist() == [1, 0, 0]
    assert (curriculum.num_observed, curriculum.num_orphaned) == (4, 1)


def test_the_reason_is_always_the_same():
    curriculum = Uniform(TEN)
    curriculum.observe(record_for(curriculum, 4, 1.0))
    told = curriculum.explain(4)
    assert told.reason == "every task is drawn equally often"
    assert told.numbers == {"episodes": 1.0}


def test_a_million_tasks_are_drawn_evenly():
    curriculum = Uniform(NumberedSource(1_000_000))
    slots = curriculum.draw_batch(200_000)["slot"]
    counts = np.bincount(slots // 10_000, minlength=100)
    # 2000 per hundredth, standard deviation 44.
    assert np.all(np.abs(counts - 2000) < 4.5 * 44.5)
