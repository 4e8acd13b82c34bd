"""UnionSource: concatenated when finite, dealt out by odds when not."""

import pickle

import numpy as np
import pytest

from stepladder.errors import TaskError
from stepladder.tasks import (
    FloatRange,
    ListSource,
    NumberedSource,
    ParameterSource,
    Source,
    Task,
    UnionSource,
)

EASY = NumberedSource(4, label="easy", prefix="easy")
HARD = NumberedSource(2, label="hard", prefix="hard")
ENDLESS = ParameterSource({"x": FloatRange(0, 1)}, label="endless")


def ids(*task_ids):
    return np.array(task_ids, dtype=np.int64)


class SlopedSource(Source):
    """Two tasks that weigh 1 and 3."""

    num_tasks = 2

    def get(self, task_id):
        return Task(f"sloped{self.check_id(task_id)}")

    def weight(self, task_id):
        return 1.0 + 2.0 * task_id

    def labels(self):
        return ["default"]

    def describe(self):
        return {"kind": "sloped"}


def test_ids_of_finite_children_follow_one_another():
    union = UnionSource([EASY, HARD])
    assert union.num_tasks == 6
    names = ["easy0", "easy1", "easy2", "easy3", "hard0", "hard1"]
    assert [union.get(i).name for i in range(6)] == names
    assert [union.name(i) for i in range(6)] == names
    assert [union.label(i) for i in (0, 5)] == ["easy", "hard"]
    assert union.label_indices(ids(5, 0, 4)).tolist() == [1, 0, 1]
    assert union.labels() == ["easy", "hard"]


def test_weights_give_each_child_its_share_and_average_to_one():
    # Shares 1/4 and 3/4 of a total of 6: 1.5 over 4 tasks and 4.5 over 2 tasks.
    union = UnionSource([(EASY, 1), (HARD, 3.0)])
    assert [union.weight(i) for i in range(6)] == pytest.approx([0.375] * 4 + [2.25] * 2)
    assert union.weights(ids(4, 0)) == pytest.approx([2.25, 0.375])
    assert union.mean_weight() == 1.0


def test_children_without_weights_share_alike():
    union = UnionSource([EASY, (HARD, 1.0)])
    assert union.weights(np.arange(6)).tolist() == pytest.approx([0.75] * 4 + [1.5] * 2)


def test_a_childs_own_weights_do_not_change_its_share():
    # Each child has half of 4: 2 over weights 1 and 3 is 0.5 and 1.5; 2 over 2 tasks is 1 and 1.
    union = UnionSource([SlopedSource(), HARD])
    assert union.weights(np.arange(4)).tolist() == pytest.approx([0.5, 1.5, 1.0, 1.0])


def test_nested_finite_unions_multiply_their_shares():
    # Half of 8 to the inner union: 4 in the ratio 1 to 3 is 1 over 4 tasks and 3 over 2.
    more = NumberedSource(2, prefix="more")
    union = UnionSource([UnionSource([(EASY, 1), (HARD, 3)]), more])
    expected = [0.25] * 4 + [1.5] * 2 + [2.0] * 2
    assert union.weights(np.arange(8)).tolist() == pytest.approx(expected)
    assert [union.weight(i) for i in range(8)] == pytest.approx(expected)
    assert union.name(7) == "more1"
    assert union.labels() == ["easy", "hard", "default"]


def test_very_large_weights_do_not_overflow():
    union = UnionSource([(EASY, 1e308), (HARD, 1e308)])
    assert union.weights(np.arange(6)).tolist() == pytest.approx([0.75] * 4 + [1.5] * 2)


def test_one_endless_child_makes_the_union_endless():
    union = UnionSource([(EASY, 1), (ENDLESS, 3)])
    assert union.num_tasks is None
    tasks = [union.get(task_id) for task_id in range(4000)]
    num_easy = sum(task.label == "easy" for task in tasks)
    assert 890 < num_easy < 1110  # expected 1000, standard deviation 27
    for task_id, task in enumerate(tasks):
        if task.label == "easy":
            assert task.name == f"easy{task_id % 4}"
        else:
            assert task == ENDLESS.get(task_id)
    assert union.weight(2**62) == 1.0
    assert union.weights(ids(0, 2**62)).tolist() == [1.0, 1.0]


def test_the_child_of_an_id_never_changes():
    # Snapshots keep only ids, so these may never move to another child.
    union = UnionSource([EASY, ENDLESS])
    assert [i for i in range(12) if union.label(i) == "easy"] == [1, 2, 4, 6, 7, 8]


def test_bulk_labels_of_an_endless_union_equal_those_one_by_one():
    union = UnionSource([(EASY, 2), (ENDLESS, 1), (HARD, 1)])
    task_ids = np.arange(300, dtype=np.int64) * 2**54 // 3
    indices = union.label_indices(task_ids)
    labels = [union.labels()[i] for i in indices]
    assert labels == [union.label(task_id) for task_id in task_ids.tolist()]
    assert labels == [union.get(task_id).label for task_id in task_ids.tolist()]


def test_an_inner_union_does_not_repeat_the_choice_of_the_outer_one():
    # With one and the same hash, ids that reach the inner union would all fall to one child.
    inner = UnionSource([(HARD, 1), (ENDLESS, 1)])
    union = UnionSource([(EASY, 1), (inner, 1)])
    indices = union.label_indices(np.arange(4000))
    counts = np.bincount(indices, minlength=3)
    assert counts.sum() == 4000
    assert np.abs(counts - [2000, 1000, 1000]).max() < 130


def test_labels_shared_by_children_are_listed_once():
    one = ListSource([Task("a", "x"), Task("b", "y")])
    other = ListSource([Task("c", "z"), Task("d", "x")])
    union = UnionSource([one, other])
    assert union.labels() == ["x", "y", "z"]
    assert union.label_indices(np.arange(4)).tolist() == [0, 1, 2, 0]


def test_the_fingerprint_follows_weights_order_and_children():
    unions = [
        UnionSource([EASY, HARD]),
        UnionSource([HARD, EASY]),
        UnionSource([(EASY, 2), (HARD, 1)]),
        UnionSource([EASY, NumberedSource(3, label="hard", prefix="hard")]),
    ]
    assert len({union.fingerprint() for union in unions}) == 4


def test_a_union_survives_pickling():
    union = UnionSource([(EASY, 1), (UnionSource([HARD, ENDLESS]), 3)])
    twin = pickle.loads(pickle.dumps(union))
    assert [twin.get(i) for i in range(50)] == [union.get(i) for i in range(50)]
    assert twin.fingerprint() == union.fingerprint()


def test_large_unions_are_made_without_a_look_at_every_name():
    big = NumberedSource(2**40)
    union = UnionSource([big, big])
    assert union.num_tasks == 2**41
    assert union.name(2**40) == "task0"


class WeightlessSource(SlopedSource):
    def weight(self, task_id):
        return 0.0


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([], "at least one source; got none"),
        ([EASY, NumberedSource(9, prefix="easy")], "'easy0' comes from source 0 and from source 1"),
        ([(EASY, 0)], "weight of source 0 must be a positive number; got 0"),
        ([EASY, (HARD, -1.0)], "weight of source 1 must be a positive number; got -1.0"),
        ([(EASY, float("nan"))], "weight of source 0 is nan"),
        ([(EASY, float("inf"))], "weight of source 0 is inf"),
        ([(EASY, "1")], "weight of source 0 must be a positive number; got '1'"),
        ([(EASY, True)], "weight of source 0 must be a positive number; got True"),
        ([EASY, "HARD"], "Entry 1 of a union must be a Source or a pair"),
        ([(EASY, 1, 2)], "Entry 0 of a union must be a Source or a pair"),
        ([WeightlessSource()], "weights of source 0 average 0.0"),
        ([NumberedSource(2**63), EASY], "at most 9223372036854775808 fit"),
    ],
)
def test_malformed_unions_are_refused(sources, message):
    with pytest.raises(TaskError, match=message):
        UnionSource(sources)


@pytest.mark.parametrize(
    ("union", "task_id"),
    [(UnionSource([EASY]), 4), (UnionSource([ENDLESS]), 2**63), (UnionSource([EASY, HARD]), -1)],
)
def test_unknown_ids_are_refused(union, task_id):
    for method in (union.get, union.name, union.label, union.weight):
        with pytest.raises(TaskError, match="A task id of UnionSource must lie between 0"):
            method(task_id)
