"""Edits of tasks: their ids, names and labels, how they are made again, and what is refused."""

import pickle
from typing import Any

import numpy as np
import pytest

from stepladder.errors import ConfigError, SnapshotError, TaskError
from stepladder.tasks import (
    Choice,
    EditableSource,
    EditedSource,
    FloatRange,
    IntRange,
    ListSource,
    NumberedSource,
    ParameterSource,
    Pool,
    Task,
)
from stepladder.tasks.editing import FIRST_EDIT, MOST_OWN_TASKS, NUM_VARIANTS


class Words(EditableSource):
    """Tasks whose only parameter is a text; an edit adds a letter to it."""

    def __init__(self, count: int | None = 8):
        self.count = count

    @property
    def num_tasks(self) -> int | None:
        return self.count

    def get(self, task_id: int) -> Task:
        task_id = self.check_id(task_id)
        return Task(f"word{task_id}", self.labels()[task_id % 2], {"text": "-"}, seed=task_id)

    def labels(self) -> list[str]:
        return ["even", "odd"]

    def weight(self, task_id: int) -> float:
        return 1.0 + self.check_id(task_id)

    def describe(self) -> dict[str, Any]:
        return {"kind": "words", "num_tasks": self.count}

    def edit(self, task: Task, seed: int) -> Task:
        text = task.params["text"] + "abcdefgh"[seed % 8]
        return Task("anything", "even", {"text": text}, task.seed)


def way(source: EditedSource, root: int, *variants: int) -> int:
    task_id = root
    for variant in variants:
        task_id = source.child(task_id, variant)
    return task_id


# Ids.


def test_an_id_holds_the_task_and_a_digit_for_each_edit():
    source = EditedSource(Words(8))
    # Three bits for eight tasks; digits of five bits above them, the newest lowest.
    assert source.child(5, 3) == FIRST_EDIT + (3 << 3) + 5
    assert way(source, 5, 3, 15) == FIRST_EDIT + (((3 << 5) + 15) << 3) + 5
    assert source.parent(way(source, 5, 3, 15)) == source.child(5, 3)
    assert source.parent(source.child(5, 3)) == 5
    assert source.parent(5) == 5
    assert source.root(way(source, 5, 3, 15)) == 5
    assert [source.depth(task_id) for task_id in (5, way(source, 5, 3), way(source, 5, 3, 15))] == [
        0,
        1,
        2,
    ]


@pytest.mark.parametrize(
    ("num_tasks", "depth"), [(1, 12), (8, 11), (1000, 10), (2**20, 8), (2**55, 1), (None, 7)]
)
def test_the_more_tasks_the_fewer_edits_can_follow_each_other(num_tasks: int | None, depth: int):
    source = EditedSource(Words(num_tasks))
    assert source.num_tasks == (num_tasks or MOST_OWN_TASKS)
    assert source.max_depth == depth
    last = source.num_tasks - 1
    deepest = way(source, last, *[NUM_VARIANTS] * depth)
    assert deepest < source.id_limit <= 2**61
    assert source.root(deepest) == last
    with pytest.raises(TaskError, match=f"{depth} edits deep"):
        source.child(deepest, 1)


def test_too_many_tasks_leave_no_room():
    with pytest.raises(ConfigError, match="leaves no room for edits"):
        EditedSource(Words(2**55 + 1))


def test_ids_that_no_edit_has_are_refused():
    source = EditedSource(Words(6))
    good = way(source, 5, 3, 15)
    bad = {
        "no digit": FIRST_EDIT + 5,
        "a digit of 0 in the middle": FIRST_EDIT + (3 << 8) + 5,
        "no such task": good + 1,
        "between tasks and edits": 6,
        "too deep": FIRST_EDIT + 2**59 + (1 << 3),
        "too large": 2**61,
        "negative": -1,
    }
    source.check_ids(np.array([0, 5, good]))
    for what, task_id in bad.items():
        for ask in (source.get, source.name, source.label, source.weight, source.depth):
            with pytest.raises(TaskError):
                assert ask(task_id) is None, what
        with pytest.raises(TaskError):
            source.label_indices(np.array([good, task_id]))
    for variant in (0, NUM_VARIANTS + 1):
        with pytest.raises(TaskError, match="variant"):
            source.child(0, variant)


# Tasks.


def test_an_edit_has_the_label_weight_and_seed_of_its_task_and_its_own_name():
    source = EditedSource(Words(8), num_changes=2)
    edit = way(source, 5, 3, 15)
    task = source.get(edit)
    assert task.name == source.name(edit) == "word5~3f"
    assert (task.label, source.label(edit)) == ("odd", "odd")
    assert task.seed == 5
    assert source.weights(np.array([5, edit])).tolist() == [6.0, 6.0]
    assert source.weight(edit) == 6.0
    assert source.label_indices(np.array([edit, 0])).tolist() == [1, 0]
    assert source.mean_weight() == 4.5


def test_each_edit_makes_its_changes_on_top_of_those_before():
    source = EditedSource(Words(8), num_changes=3)
    texts = [source.get(way(source, 5, *[3, 15, 7][:depth])).params["text"] for depth in range(4)]
    assert [len(text) for text in texts] == [1, 4, 7, 10]
    assert texts[3].startswith(texts[2])
    assert texts[2].startswith(texts[1])
    others = {source.get(source.child(5, variant)).params["text"] for variant in range(1, 32)}
    assert len(others) > 20


def test_any_process_makes_the_same_edit_from_its_id_alone():
    source = EditedSource(Words(8), cache_size=2)
    edits = [way(source, root, 3, variant) for root in range(8) for variant in (1, 15, 31)]
    made = [source.get(edit) for edit in edits]
    elsewhere = pickle.loads(pickle.dumps(source))
    assert [elsewhere.get(edit) for edit in reversed(edits)] == made[::-1]
    assert EditedSource(Words(8)).fingerprint() == source.fingerprint()
    assert EditedSource(Words(8), 4).fingerprint() != source.fingerprint()


def test_where_a_task_comes_from_is_told():
    source = EditedSource(Words(8))
    assert source.origin(5) == ""
    assert source.origin(way(source, 5, 3)) == "an edit of 'word5'"
    told = "an edit of 'word5~3f', 3 edits away from 'word5'"
    assert source.origin(way(source, 5, 3, 15, 31)) == told


@pytest.mark.parametrize("source", [NumberedSource(5), ListSource([Task("one")]), [Task("one")]])
def test_a_source_that_cannot_edit_is_refused_with_the_fix(source: Any):
    with pytest.raises(ConfigError, match=r"cannot be edited.* Set editing to 0, or use a source"):
        EditedSource(source)


# Parameters.

RANGES: dict[str, Any] = {
    "kind": ["a", "b"],
    "gap": FloatRange(0.5, 3.0),
    "mass": FloatRange(0.01, 100.0, log=True),
    "map.size": IntRange(1, 100),
    "colour": Choice(["red", "green", "blue"]),
    "constant": 7,
}


def test_an_edit_moves_one_parameter_a_small_step_within_its_range():
    source = ParameterSource(RANGES, label_from="kind")
    moved = {"gap": 0, "mass": 0, "size": 0, "colour": 0}
    for task_id in range(20):
        before = task = source.get(task_id)
        for seed in range(20 * task_id, 20 * task_id + 20):
            task = source.edit(before, seed)
            old, new = ({**one.params, **one.params["map"]} for one in (before, task))
            changed = [name for name in new if new[name] != old[name] and name != "map"]
            assert len(changed) == 1
            moved[changed[0]] += 1
            assert abs(new["gap"] - old["gap"]) <= 0.25
            assert 0.5 <= new["gap"] <= 3.0
            # A tenth of four powers of ten.
            assert abs(np.log10(new["mass"] / old["mass"])) <= 0.4 + 1e-12
            assert 0.01 <= new["mass"] <= 100.0
            assert abs(new["size"] - old["size"]) <= 9
            assert 1 <= new["size"] <= 100
            assert (task.label, task.seed, new["kind"]) == (before.label, before.seed, old["kind"])
            assert source.edit(before, seed) == task
            before = task
    assert min(moved.values()) > 50


def test_where_nothing_can_move_an_edit_is_a_copy():
    for ranges, label_from in (({"n": [4]}, None), ({"n": ["x", "y"]}, "n"), ({}, None)):
        source = ParameterSource(ranges, label_from=label_from)
        assert source.edit(source.get(3), 5) == source.get(3)


def test_a_step_from_the_end_of_a_range_goes_back_inside():
    for seed in range(50):
        raw = iter(np.random.default_rng(seed).integers(0, 2**64, 99, np.uint64).tolist()).__next__
        assert 9.0 <= FloatRange(0.0, 10.0).step(10.0, raw) < 10.0
        assert FloatRange(-1e308, 1e308).step(1e308, raw) < 1e308
        assert 9 <= IntRange(0, 10).step(10, raw) < 10
        assert IntRange(0, 1).step(0, raw) == 1
        assert Choice(["a", "b"]).step("a", raw) == "b"


# The pool.


def filled(seed: int = 0, capacity: int | None = None) -> Pool:
    """Make a pool in which two edits have come in."""
    pool = Pool(EditedSource(Words(8)), capacity, seed)
    source: Any = pool.source
    pool.replace(0, source.child(int(pool.task_ids[0]), 4))
    pool.replace(1, source.child(int(pool.task_ids[0]), 9))
    return pool


@pytest.mark.parametrize("capacity", [3, 6, None])
def test_tasks_that_made_room_for_edits_come_back_and_edits_do_not_wait(capacity: int | None):
    pool = filled(capacity=capacity)
    assert pool.can_replace
    assert (pool.task_ids >= FIRST_EDIT).sum() == 2
    seen = {int(pool.task_ids[2])}
    for _ in range(20):
        pool.replace(2)
        seen.add(int(pool.task_ids[2]))
        assert len(set(pool.task_ids.tolist())) == pool.num_slots
    assert max(seen) < 8
    # All that are in no other slot.
    assert len(seen) == 8 - (pool.num_slots - 3)
    first = pool.task_ids[0].item()
    pool.replace(0)
    assert not pool.contains(first)


@pytest.mark.parametrize("capacity", [3, 6, None])
def test_a_restored_pool_with_edits_has_the_same_future(capacity: int | None):
    original, restored = filled(7, capacity), Pool(EditedSource(Words(8)), capacity)
    restored.restore(*original.snapshot())
    for _ in range(30):
        assert original.prepare(2) == restored.prepare(2)
        original.replace(2)
        restored.replace(2)
    assert original.task_ids.tolist() == restored.task_ids.tolist()


@pytest.mark.parametrize("capacity", [3, 6, None])
@pytest.mark.parametrize("damage", [8, FIRST_EDIT + 5, FIRST_EDIT + (3 << 8), 2**61, 2**62, -1])
def test_a_damaged_edit_is_refused_and_nothing_has_changed(damage: int, capacity: int | None):
    pool = filled(capacity=capacity)
    state, arrays = pool.snapshot()
    arrays["task_ids"][1] = damage
    before = pool.task_ids.copy()
    with pytest.raises(SnapshotError):
        pool.restore(state, arrays)
    assert np.array_equal(pool.task_ids, before)


def test_an_edit_never_waits_in_a_snapshot():
    pool = filled()
    state, arrays = pool.snapshot()
    assert sorted(arrays["waiting"].tolist()) == [0, 1]
    arrays["waiting"][0] = pool.source.child(3, 3)  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(SnapshotError, match="waiting"):
        pool.restore(state, arrays)
    arrays["waiting"] = arrays["waiting"][1:]
    with pytest.raises(SnapshotError, match="waiting"):
        pool.restore(state, arrays)


def test_a_snapshot_with_other_changes_per_edit_is_refused():
    pool = Pool(EditedSource(Words(8), 4))
    with pytest.raises(SnapshotError, match="num_changes"):
        pool.restore(*filled().snapshot())


class Broken(Words):
    """Words whose edits fail, or return what is no task."""

    def edit(self, task: Task, seed: int) -> Task:
        if self.labels()[(task.seed or 0) % 2] == "odd":
            raise KeyError("letter")
        return "no task"  # pyright: ignore[reportReturnType]


def test_a_broken_edit_is_reported_with_its_task_and_the_fix():
    source = EditedSource(Broken())
    with pytest.raises(TaskError, match=r"of Broken fails for 'word5~3' .*KeyError.*Correct edit"):
        source.get(source.child(5, 3))
    with pytest.raises(TaskError, match=r"returned 'no task' for 'word4~3'; .* Correct edit\(\)"):
        source.get(source.child(4, 3))
    assert source.get(5).name == "word5"
