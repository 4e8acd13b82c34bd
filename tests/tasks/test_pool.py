"""Pool: filling, replacing, generations, shared storage."""

from collections import Counter

import numpy as np
import pytest

from stepladder.errors import ConfigError, TaskError
from stepladder.tasks import (
    FloatRange,
    IntRange,
    ListSource,
    NumberedSource,
    ParameterSource,
    Pool,
    Source,
    Task,
    UnionSource,
)

ENDLESS = ParameterSource({"x": IntRange(0, 2)}, label_from="x")
TEN = ListSource([Task(f"t{i}", "even" if i % 2 == 0 else "odd") for i in range(10)])


def assert_consistent(pool):
    """Check that every array agrees with the source about the ids in the pool."""
    assert len(set(pool.task_ids.tolist())) == pool.num_slots
    for slot, task_id in enumerate(pool.task_ids.tolist()):
        assert pool.contains(task_id)
        assert pool.task(slot) == pool.source.get(task_id)
        assert pool.label_names[pool.label_indices[slot]] == pool.source.label(task_id)
        assert pool.base_weights[slot] == pool.source.weight(task_id)


def test_all_tasks_of_a_finite_source_are_in_order():
    pool = Pool(TEN)
    assert pool.num_slots == 10
    assert pool.task_ids.tolist() == list(range(10))
    assert pool.generations.tolist() == [0] * 10
    assert pool.label_names == ["even", "odd"]
    assert pool.label_indices.tolist() == [0, 1] * 5
    assert pool.base_weights.tolist() == [1.0] * 10
    assert {pool.task_ids.dtype, pool.generations.dtype, pool.label_indices.dtype} == {
        np.dtype(np.int64)
    }
    assert not pool.can_replace
    assert_consistent(pool)


def test_more_capacity_than_tasks_gives_a_slot_per_task():
    assert Pool(TEN, capacity=500).task_ids.tolist() == list(range(10))


def test_a_smaller_capacity_takes_tasks_by_seed():
    pools = [Pool(TEN, capacity=4, seed=seed) for seed in range(20)]
    assert all(len(set(pool.task_ids.tolist())) == 4 for pool in pools)
    assert pools[3].task_ids.tolist() == Pool(TEN, capacity=4, seed=3).task_ids.tolist()
    assert len({tuple(pool.task_ids.tolist()) for pool in pools}) > 15
    assert {task_id for pool in pools for task_id in pool.task_ids.tolist()} == set(range(10))
    assert pools[0].can_replace
    assert_consistent(pools[0])


def test_an_endless_source_gives_distinct_ids_below_2_53():
    pool = Pool(ENDLESS, capacity=500, seed=1)
    assert len(set(pool.task_ids.tolist())) == 500
    assert pool.task_ids.min() >= 0
    assert pool.task_ids.max() < 2**53
    assert pool.can_replace
    assert pool.task_ids.tolist() != Pool(ENDLESS, capacity=500, seed=2).task_ids.tolist()
    assert_consistent(pool)


def test_base_weights_come_from_the_source():
    union = UnionSource([(NumberedSource(4, prefix="a"), 1), (NumberedSource(2, prefix="b"), 3)])
    pool = Pool(union)
    assert pool.base_weights.tolist() == pytest.approx([0.375] * 4 + [2.25] * 2)


@pytest.mark.slow
def test_a_pool_of_a_million_slots_is_built_and_changed():
    pool = Pool(ListSource.numbered(1_000_000))
    assert pool.num_slots == 1_000_000
    assert pool.task(999_999) == Task("task999999")
    crowded = Pool(ListSource.numbered(1_000_001), capacity=1_000_000)
    # Only one task is outside at any time, so it must be the one that left last.
    (outside,) = set(range(1_000_001)) - set(crowded.task_ids.tolist())
    for slot in range(100):
        leaving = int(crowded.task_ids[slot])
        crowded.replace(slot)
        assert crowded.task_ids[slot] == outside
        outside = leaving


def test_replacing_raises_the_generation_of_that_slot_only():
    pool = Pool(ENDLESS, capacity=3)
    before = pool.task_ids.tolist()
    assert pool.replace(1) == 1
    assert pool.replace(1) == 2
    assert pool.generations.tolist() == [0, 2, 0]
    assert pool.task_ids[1] not in before
    assert [pool.task_ids[0], pool.task_ids[2]] == [before[0], before[2]]
    assert not pool.contains(before[1])
    assert_consistent(pool)


@pytest.mark.parametrize("capacity", [3, 8])
def test_a_given_task_is_put_in(capacity):
    pool = Pool(TEN, capacity=capacity)
    outside = next(task_id for task_id in range(10) if not pool.contains(task_id))
    assert pool.replace(0, task_id=np.int64(outside), label=TEN.label(outside)) == 1
    assert pool.task_ids[0] == outside
    assert_consistent(pool)


def test_a_given_task_does_not_use_up_the_next_one():
    pool, twin = Pool(ENDLESS, capacity=3), Pool(ENDLESS, capacity=3)
    pool.replace(0, task_id=2**60)
    assert pool.contains(2**60)
    pool.replace(0)
    twin.replace(0)
    assert pool.task_ids[0] == twin.task_ids[0]


@pytest.mark.parametrize("capacity", [1, 3, 5, 6, 9])
def test_every_waiting_task_comes_in_before_one_comes_again(capacity):
    pool = Pool(TEN, capacity=capacity, seed=4)
    seen = pool.task_ids.tolist()
    for i in range(10 - capacity):
        pool.replace(i % capacity)
        seen.append(int(pool.task_ids[i % capacity]))
    assert sorted(seen) == list(range(10))


@pytest.mark.parametrize("capacity", [1, 3, 5, 6, 9])
def test_over_many_rounds_all_tasks_come_in_alike_and_none_twice_at_once(capacity):
    pool = Pool(TEN, capacity=capacity, seed=4)
    came_in = Counter[int]()
    for i in range(200):
        pool.replace(i % capacity)
        came_in[int(pool.task_ids[i % capacity])] += 1
    assert set(came_in.values()) == {20}
    assert_consistent(pool)
    assert pool.generations.sum() == 200


def test_tasks_passed_over_for_their_label_wait_behind_the_others():
    pool = Pool(TEN, capacity=6, seed=0)
    waiting = pool.snapshot()[1]["waiting"].tolist()
    assert [TEN.label(task_id) for task_id in waiting] == ["even", "even", "odd", "even"]
    leaving = int(pool.task_ids[0])
    pool.replace(0, label="odd")
    assert pool.task_ids[0] == waiting[2]
    assert pool.snapshot()[1]["waiting"].tolist() == [waiting[3], waiting[0], waiting[1], leaving]


def test_replacing_brings_the_weight_of_the_new_task():
    union = UnionSource([(NumberedSource(4, prefix="a"), 1), (NumberedSource(2, prefix="b"), 3)])
    pool = Pool(union, capacity=5)
    for slot in range(5):
        pool.replace(slot)
    assert set(pool.base_weights.tolist()) == {0.375, 2.25}
    assert_consistent(pool)


def test_same_seed_same_replacements():
    for source in (ENDLESS, TEN):
        pools = [Pool(source, capacity=4, seed=9) for _ in range(2)]
        for pool in pools:
            for i in range(30):
                pool.replace(i % 4)
        assert pools[0].task_ids.tolist() == pools[1].task_ids.tolist()


@pytest.mark.parametrize("source", [ENDLESS, TEN])
@pytest.mark.parametrize("capacity", [4, 7])
def test_a_wanted_label_is_walked_to(source, capacity):
    pool = Pool(source, capacity=capacity, seed=1)
    for i in range(12):
        label = source.labels()[i % 2]
        if pool.slots_of_label(label).size == 5:
            continue
        pool.replace(i % capacity, label=label)
        assert pool.task(i % capacity).label == label
    assert_consistent(pool)


def test_a_label_with_no_task_outside_is_refused_and_nothing_changes():
    source = ListSource([Task("rare", "rare"), *(Task(f"t{i}") for i in range(20))])
    pool = Pool(source, capacity=15)
    if not pool.contains(0):
        pool.replace(0, task_id=0)
    slot = int(pool.slots_of_label("rare")[0])
    before = pool.snapshot()
    with pytest.raises(TaskError, match="No task with the label 'rare' was found outside the pool"):
        pool.replace((slot + 1) % 15, label="rare")
    after = pool.snapshot()
    assert after[0] == before[0]
    assert all(np.array_equal(after[1][name], before[1][name]) for name in after[1])


def test_the_search_for_a_label_is_bounded():
    class Lonely(NumberedSource):
        num_asked = 0

        def labels(self):
            return ["default", "never"]

        def label(self, task_id):
            self.num_asked += 1
            return super().label(task_id)

    source = Lonely(2**40)
    pool = Pool(source, capacity=2)
    with pytest.raises(TaskError, match="looked at 10000, at most 10000 are tried"):
        pool.replace(0, label="never")
    assert source.num_asked == 10_000


def test_slots_of_label_follow_replacements():
    pool = Pool(TEN, capacity=9)
    label = pool.task(0).label
    assert 0 in pool.slots_of_label(label)
    assert pool.slots_of_label("even").size + pool.slots_of_label("odd").size == 9
    (outside,) = [task_id for task_id in range(10) if not pool.contains(task_id)]
    pool.replace(0, task_id=outside)
    assert (0 in pool.slots_of_label(TEN.label(outside))) is True
    assert pool.slots_of_label("even").dtype == np.int64


def test_rebinding_moves_the_storage_and_keeps_the_values():
    pool = Pool(ENDLESS, capacity=3)
    pool.replace(2)
    before = pool.task_ids.tolist()
    task_ids, generations = np.full(3, -1), np.full(3, -1)
    pool.rebind(task_ids, generations)
    assert pool.task_ids is task_ids
    assert task_ids.tolist() == before
    assert generations.tolist() == [0, 0, 1]
    pool.replace(0)
    assert generations.tolist() == [1, 0, 1]
    assert task_ids[0] == pool.task_ids[0] != before[0]
    assert_consistent(pool)


def read_only(size):
    array = np.zeros(size, dtype=np.int64)
    array.flags.writeable = False
    return array


SHARED = np.zeros(3, dtype=np.int64)


@pytest.mark.parametrize(
    ("task_ids", "generations", "message"),
    [
        (np.zeros(2, dtype=np.int64), np.zeros(3, dtype=np.int64), r"task_ids must be int64 of"),
        (np.zeros(3, dtype=np.int64), np.zeros(3), r"generations must be int64 .* got float64"),
        (np.zeros(3, dtype=np.int64), read_only(3), "generations must be writable"),
        (SHARED, SHARED, "overlap in memory"),
    ],
)
def test_arrays_that_cannot_be_storage_are_refused(task_ids, generations, message):
    pool = Pool(ENDLESS, capacity=3)
    with pytest.raises(ConfigError, match=message):
        pool.rebind(task_ids, generations)
    assert pool.task_ids is not task_ids


@pytest.mark.parametrize(
    ("source", "arguments", "message"),
    [
        (ENDLESS, {}, "no end of tasks.* got no capacity"),
        (NumberedSource(1_000_001), {}, "1000001 tasks.* got no capacity"),
        (TEN, {"capacity": 0}, "capacity of a pool must lie between 1 and 1000000; got 0"),
        (TEN, {"capacity": 1_000_001}, "must lie between 1 and 1000000; got 1000001"),
        (TEN, {"capacity": 2.0}, "capacity of a pool must be an integer"),
        (TEN, {"seed": -1}, "seed of a pool must lie between 0"),
    ],
)
def test_malformed_settings_are_refused(source, arguments, message):
    with pytest.raises(ConfigError, match=message):
        Pool(source, **arguments)


def test_unknown_slots_ids_and_labels_are_refused():
    pool = Pool(TEN, capacity=4)
    inside = int(pool.task_ids[2])
    outside = next(task_id for task_id in range(10) if not pool.contains(task_id))
    wrong = "odd" if TEN.label(outside) == "even" else "even"
    calls = [
        (lambda: pool.task(4), "A slot of this pool must lie between 0 and 3; got 4"),
        (lambda: pool.task(-1), "got -1"),
        (lambda: pool.replace(True), "must be an integer"),
        (lambda: pool.replace(4), "got 4"),
        (lambda: pool.replace(0, task_id=10), "A task id of ListSource must lie between 0 and 9"),
        (lambda: pool.replace(0, task_id=inside), f"Task {inside} is already in slot 2"),
        (lambda: pool.replace(2, task_id=inside), f"Task {inside} is already in slot 2"),
        (lambda: pool.replace(0, task_id=outside, label=wrong), f"'{wrong}' was requested"),
        (lambda: pool.replace(0, label="none"), r"no label 'none'; it has \['even', 'odd'\]"),
        (lambda: pool.slots_of_label("none"), "no label 'none'"),
        (lambda: pool.contains(-1), "must lie between 0 and 9; got -1"),
        (lambda: Pool(TEN).replace(0), "All 10 tasks of the source are in the pool"),
    ]
    for call, message in calls:
        with pytest.raises(TaskError, match=message):
            call()
    assert pool.generations.tolist() == [0] * 4


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_malformed_base_weights_are_refused(weight):
    class Crooked(NumberedSource):
        def weight(self, task_id):
            return weight if task_id == 2 else 1.0

    with pytest.raises(TaskError, match="Task 2 has the base weight"):
        Pool(Crooked(3))


def test_a_failing_source_leaves_the_pool_unchanged():
    class Moody(Source):
        num_tasks = None

        def get(self, task_id):
            if task_id == 5:
                raise TaskError("cannot make 5")
            return Task(f"t{task_id}")

        def labels(self):
            return ["default"]

        def describe(self):
            return {}

    pool = Pool(Moody(), capacity=2)
    before = pool.task_ids.tolist()
    with pytest.raises(TaskError, match="cannot make 5"):
        pool.replace(0, task_id=5)
    assert pool.task_ids.tolist() == before
    assert not pool.contains(5)
    assert pool.generations.tolist() == [0, 0]


def test_a_pool_of_a_union_with_an_endless_child_is_consistent():
    union = UnionSource([(TEN, 1), (ParameterSource({"x": FloatRange(0, 1)}), 1)])
    pool = Pool(union, capacity=50)
    for slot in range(50):
        pool.replace(slot, label="even" if slot % 2 else None)
    assert_consistent(pool)
    assert pool.slots_of_label("even").size >= 25
