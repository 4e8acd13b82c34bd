"""Snapshots of a pool: an exact future, and every damage found before anything changes."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepladder.errors import SnapshotError
from stepladder.tasks import (
    FloatRange,
    ListSource,
    NumberedSource,
    ParameterSource,
    Pool,
    Task,
    UnionSource,
)
from stepladder.tasks.pool_state import name_difference

ENDLESS = ParameterSource({"x": ["a", "b"]}, label_from="x")
TEN = ListSource([Task(f"t{i}", "even" if i % 2 == 0 else "odd") for i in range(10)])
POOLS = [(TEN, 10), (TEN, 8), (TEN, 5), (TEN, 2), (ENDLESS, 6), (UnionSource([TEN, ENDLESS]), 6)]


def through_a_file(state):
    return json.loads(json.dumps(state, allow_nan=False))


def contents(pool):
    names = ("task_ids", "generations", "label_indices", "base_weights")
    return [getattr(pool, name).tolist() for name in names]


def play(pool, slots):
    for slot in slots:
        if pool.can_replace:
            pool.replace(slot % pool.num_slots)


@given(
    st.sampled_from(POOLS),
    st.lists(st.integers(0, 9), max_size=25),
    st.lists(st.integers(0, 9), min_size=1, max_size=25),
)
@settings(derandomize=True, max_examples=60, deadline=None)
def test_a_restored_pool_goes_on_as_if_it_had_never_stopped(source_and_size, before, after):
    source, capacity = source_and_size
    pool = Pool(source, capacity, seed=5)
    play(pool, before)
    state, arrays = pool.snapshot()

    other = Pool(source, capacity, seed=77)
    play(other, [3, 1])
    other.restore(through_a_file(state), arrays)
    assert contents(other) == contents(pool)

    for twin in (pool, other):
        play(twin, after)
    assert contents(other) == contents(pool)
    assert other.snapshot()[0] == pool.snapshot()[0]


def test_replacements_by_label_go_on_identically_too():
    pool = Pool(TEN, 7, seed=5)
    pool.replace(0, label="odd")
    twin = Pool(TEN, 7)
    twin.restore(*pool.snapshot())
    for one in (pool, twin):
        one.replace(1, label="even")
        one.replace(2)
    assert contents(pool) == contents(twin)


def test_a_snapshot_does_not_follow_later_replacements():
    pool = Pool(TEN, 4)
    state, arrays = pool.snapshot()
    before = {name: array.tolist() for name, array in arrays.items()}
    pool.replace(0)
    assert {name: array.tolist() for name, array in arrays.items()} == before
    assert through_a_file(state) == state
    pool.restore(state, arrays)
    pool.replace(0)
    assert {name: array.tolist() for name, array in arrays.items()} == before


def test_restoring_writes_into_rebound_arrays():
    pool = Pool(TEN, 4)
    snapshot = pool.snapshot()
    task_ids, generations = np.empty(4, dtype=np.int64), np.empty(4, dtype=np.int64)
    pool.rebind(task_ids, generations)
    pool.replace(1)
    pool.restore(*snapshot)
    assert pool.task_ids is task_ids
    assert task_ids.tolist() == snapshot[1]["task_ids"].tolist()
    assert generations.tolist() == [0] * 4


@pytest.mark.parametrize(
    ("saved", "current", "message"),
    [
        (
            ListSource.from_names(["a", "b"]),
            ListSource.from_names(["a", "b", "c"]),
            "number of tasks: 2 in the snapshot, 3 here; label 'default': 2 tasks",
        ),
        (
            ListSource([Task("a", "easy"), Task("b", "hard")]),
            ListSource([Task("a", "easy"), Task("b", "easy")]),
            "label 'easy': 1 tasks in the snapshot, 2 here",
        ),
        (
            ListSource.from_names(["a", "b"]),
            ListSource.from_names(["a", "c"]),
            "names, parameters or seeds of tasks have changed",
        ),
        (
            ParameterSource({"x": FloatRange(0, 1)}, num_tasks=2),
            ParameterSource({"x": FloatRange(0, 3)}, num_tasks=2),
            "ranges.x.high was 1.0 and is now 3.0",
        ),
    ],
)
def test_a_snapshot_of_other_tasks_is_refused_with_the_difference(saved, current, message):
    pool = Pool(current, 2)
    with pytest.raises(SnapshotError, match=rf"belongs to another task set \({message}"):
        pool.restore(*Pool(saved, 2).snapshot())


def test_another_number_of_slots_is_refused():
    with pytest.raises(SnapshotError, match=r"4 slots and this pool 5\. Make .* capacity=4"):
        Pool(TEN, 5).restore(*Pool(TEN, 4).snapshot())


INT = np.int64


@pytest.mark.parametrize(
    ("part", "name", "value", "message"),
    [
        ("state", "version", 2, "has version 2; this Stepladder reads 1"),
        ("state", "seed", -1, "snapshot's seed must lie between 0"),
        ("state", "seed", "1", "snapshot's seed must be an integer"),
        ("state", "cursor", 11, "snapshot's cursor must lie between 0 and 10; got 11"),
        ("state", "source", [], "not described by an object"),
        ("state", "source", {"kind": "list"}, "does not match its fingerprint"),
        ("state", "source", {"kind": float("nan")}, "description.kind is nan"),
        ("state", "fingerprint", "0", "does not match its fingerprint"),
        ("arrays", "task_ids", np.arange(7, dtype=INT), r"is int64\[7\]; expected int64\[8\]"),
        ("arrays", "task_ids", np.arange(8.0), r"is float64\[8\]; expected int64"),
        ("arrays", "task_ids", list(range(8)), "is a list; expected int64"),
        ("arrays", "task_ids", np.zeros((8, 1), dtype=INT), r"is int64\[8, 1\]"),
        (
            "arrays",
            "task_ids",
            np.arange(3, 11, dtype=INT),
            r"task\[7\] is 10; expected an integer from 0 to 9",
        ),
        ("arrays", "task_ids", np.arange(-1, 7, dtype=INT), r"task\[0\] is -1"),
        ("arrays", "task_ids", np.zeros(8, dtype=INT), "task 0 appears more than once"),
        ("arrays", "generations", np.full(8, -1, dtype=INT), r"generation\[0\] is -1"),
        ("arrays", "generations", np.zeros(9, dtype=INT), r"expected int64\[8\]"),
        ("arrays", "waiting", np.zeros(0, dtype=INT), r"is int64\[0\]; expected int64\[2\]"),
    ],
)
def test_damage_is_found_before_anything_changes(part, name, value, message):
    pool = Pool(TEN, 8)
    state, arrays = pool.snapshot()
    pool.replace(0)
    before = contents(pool)
    ({"state": state, "arrays": arrays}[part])[name] = value
    with pytest.raises(SnapshotError, match=message):
        pool.restore(state, arrays)
    assert contents(pool) == before


@pytest.mark.parametrize(
    "name", ["version", "seed", "cursor", "num_slots", "source", "fingerprint"]
)
def test_a_missing_field_is_named(name):
    state, arrays = Pool(TEN, 8).snapshot()
    del state[name]
    with pytest.raises(SnapshotError, match=f"its state lacks '{name}'"):
        Pool(TEN, 8).restore(state, arrays)


@pytest.mark.parametrize("name", ["task_ids", "generations", "waiting"])
def test_a_missing_array_is_named(name):
    state, arrays = Pool(TEN, 8).snapshot()
    del arrays[name]
    with pytest.raises(SnapshotError, match=f"its arrays lacks '{name}'"):
        Pool(TEN, 8).restore(state, arrays)


def test_what_is_no_snapshot_at_all_is_refused():
    with pytest.raises(SnapshotError, match="its state is a list, expected a mapping"):
        Pool(TEN).restore([], {})  # pyright: ignore


def test_a_queue_that_names_a_task_of_the_pool_is_refused():
    state, arrays = Pool(TEN, 8).snapshot()
    arrays["waiting"] = arrays["task_ids"][:2].copy()
    with pytest.raises(SnapshotError, match="appears more than once"):
        Pool(TEN, 8).restore(state, arrays)


def test_ids_of_an_endless_source_may_be_any_that_fit():
    pool = Pool(NumberedSource(2**63), 2)
    pool.replace(0, task_id=2**63 - 1)
    twin = Pool(NumberedSource(2**63), 2)
    twin.restore(*pool.snapshot())
    assert twin.contains(2**63 - 1)


def difference(saved, current):
    return name_difference(saved.describe(), current.describe())


def test_other_numbers_of_tasks_and_labels_are_named():
    saved = ListSource([Task("a", "easy"), Task("b", "hard")])
    current = ListSource([Task("a", "easy"), Task("b", "easy"), Task("c", "new")])
    assert difference(saved, current) == (
        "number of tasks: 2 in the snapshot, 3 here; "
        "label 'easy': 1 tasks in the snapshot, 2 here; "
        "label 'hard': 1 tasks in the snapshot, 0 here; "
        "label 'new': 0 tasks in the snapshot, 1 here"
    )


def test_only_the_first_labels_are_named():
    saved = ListSource([Task(str(i), f"l{i}") for i in range(9)])
    current = ListSource([Task(str(i), f"m{i}") for i in range(9)])
    assert difference(saved, current).endswith("; 13 more labels differ")


def test_the_same_counts_with_other_content_are_said_to_have_changed():
    words = difference(ListSource.from_names(["a"]), ListSource.from_names(["b"]))
    assert words == "names, parameters or seeds of tasks have changed"


def test_an_endless_source_is_called_so():
    words = difference(ParameterSource({}), NumberedSource(3))
    assert words.startswith("number of tasks: no end in the snapshot, 3 here")


def test_the_first_differing_field_is_named_by_its_path():
    one = ParameterSource({"puck.speed": FloatRange(0, 1)})
    other = ParameterSource({"puck.speed": FloatRange(0, 2)})
    assert difference(one, other) == "ranges.puck.speed.high was 1.0 and is now 2.0"


def test_differences_inside_a_union_are_named_too():
    one = UnionSource([NumberedSource(2, prefix="a"), ParameterSource({}, seed=1)])
    other = UnionSource([NumberedSource(2, prefix="a"), ParameterSource({}, seed=2)])
    assert difference(one, other) == "children[1].source.seed was 1 and is now 2"


def test_fields_on_one_side_only_are_named_and_long_values_cut():
    assert name_difference({"a": 1}, {"a": 1, "b": "x" * 200}).startswith(
        "b was 'absent' and is now 'xxx"
    )
    assert len(name_difference({}, {"b": "x" * 200})) < 130
