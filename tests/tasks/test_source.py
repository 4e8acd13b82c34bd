"""The contract of a source, lists, and numbered tasks."""

import pickle

import numpy as np
import pytest

from stepladder.errors import ConfigError, TaskError
from stepladder.tasks import ListSource, NumberedSource, Source, Task
from stepladder.tasks.source import TaskCache


class HandWrittenSource(Source):
    """As little as a user has to write."""

    num_tasks = 4

    def get(self, task_id):
        task_id = self.check_id(task_id)
        return Task(f"level {task_id}", "odd" if task_id % 2 else "even")

    def labels(self):
        return ["odd", "even"]

    def describe(self):
        return {"kind": "hand-written", "sizes": (1, 2)}


def ids(*task_ids):
    return np.array(task_ids, dtype=np.int64)


def test_a_hand_written_source_gets_the_rest_for_free():
    source = HandWrittenSource()
    assert source.name(1) == "level 1"
    assert source.label(1) == "odd"
    assert source.label_indices(ids(0, 1, 3)).tolist() == [1, 0, 0]
    assert source.weight(2) == 1.0
    assert source.weights(ids(0, 2)).tolist() == [1.0, 1.0]
    assert source.mean_weight() == 1.0
    assert len(source.fingerprint()) == 32


def test_own_weights_are_used_in_bulk_and_in_the_mean():
    class Weighted(HandWrittenSource):
        def weight(self, task_id):
            return float(self.check_id(task_id))

    assert Weighted().weights(ids(3, 1)).tolist() == [3.0, 1.0]
    assert Weighted().mean_weight() == 1.5  # (0 + 1 + 2 + 3) / 4


def test_a_label_that_was_not_declared_is_refused():
    class Forgetful(HandWrittenSource):
        def labels(self):
            return ["odd"]

    with pytest.raises(TaskError, match=r"Task 2 has the label 'even'.*Forgetful\.labels"):
        Forgetful().label_indices(ids(1, 2))


def test_a_source_without_its_four_methods_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        Source()


def test_list_gives_tasks_in_order_and_labels_as_first_seen():
    tasks = [Task("a", "hard"), Task("b", "easy"), Task("c", "hard")]
    source = ListSource(iter(tasks))
    assert source.num_tasks == 3
    assert [source.get(i) for i in range(3)] == tasks
    assert source.get(np.int32(1)) == tasks[1]
    assert source.labels() == ["hard", "easy"]
    assert source.label_indices(ids(2, 1, 0)).tolist() == [0, 1, 0]
    assert [source.label(i) for i in range(3)] == ["hard", "easy", "hard"]


def test_list_describes_counts_and_content():
    source = ListSource([Task("a", "hard"), Task("b", "easy"), Task("c", "hard")])
    described = source.describe()
    assert described["num_tasks"] == 3
    assert described["label_counts"] == {"hard": 2, "easy": 1}
    assert len(described["digest"]) == 32


@pytest.mark.parametrize(
    "tasks",
    [
        [Task("b"), Task("a")],
        [Task("a"), Task("b", params={"x": 1})],
        [Task("a"), Task("b", "other")],
        [Task("a")],
    ],
)
def test_fingerprints_differ_for_other_tasks_or_another_order(tasks):
    one = ListSource([Task("a"), Task("b")])
    assert one.fingerprint() == ListSource.from_names(["a", "b"]).fingerprint()
    assert one.fingerprint() != ListSource(tasks).fingerprint()


def test_from_names_gives_all_one_label():
    source = ListSource.from_names(["x", "y"], label="easy")
    assert source.get(1) == Task("y", "easy")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ListSource([]), "at least one task; got an empty list"),
        (
            lambda: ListSource.from_names(["a", "b", "c", "b", "a"]),
            "Two tasks are named 'b', at positions 1 and 3",
        ),
        (lambda: ListSource([Task("a"), "b"]), "position 1 holds a str"),  # pyright: ignore
        (lambda: ListSource.from_names("abc"), "got the string 'abc'"),
        (lambda: ListSource.from_names(["a", ""]), "name must be a string that is not empty"),
        (lambda: NumberedSource(0), "count of a NumberedSource must lie between 1"),
        (lambda: NumberedSource(3, label=""), "label must be a string"),
    ],
)
def test_malformed_lists_are_refused(make, message):
    with pytest.raises(TaskError, match=message):
        make()


@pytest.mark.parametrize(
    "source", [ListSource.from_names("ab" for _ in "1"), ListSource.numbered(1), NumberedSource(1)]
)
@pytest.mark.parametrize("task_id", [-1, 1, True, 0.0, None])
def test_unknown_ids_are_refused_everywhere(source, task_id):
    for method in (source.get, source.name, source.label, source.weight):
        with pytest.raises(TaskError, match="A task id of"):
            method(task_id)


@pytest.mark.parametrize("source", [ListSource.from_names(["a"]), NumberedSource(1)])
@pytest.mark.parametrize("task_id", [-1, 1])
def test_unknown_ids_in_bulk_are_refused(source, task_id):
    for method in (source.label_indices, source.weights):
        with pytest.raises(TaskError, match="must lie between 0 and 0"):
            method(ids(0, task_id))


def test_numbered_tasks_are_made_when_asked_for():
    source = ListSource.numbered(2**40, label="easy", prefix="maze")
    assert source.num_tasks == 2**40
    assert source.get(2**40 - 1) == Task("maze1099511627775", "easy")
    assert source.name(7) == "maze7"
    assert source.label(7) == "easy"
    assert source.labels() == ["easy"]
    assert source.label_indices(ids(5, 6)).tolist() == [0, 0]
    assert source.mean_weight() == 1.0


def test_numbered_sources_differ_in_their_fingerprint_by_every_argument():
    sources = [
        NumberedSource(5),
        NumberedSource(6),
        NumberedSource(5, label="easy"),
        NumberedSource(5, prefix="maze"),
    ]
    assert len({source.fingerprint() for source in sources}) == 4


@pytest.mark.parametrize("source", [ListSource.from_names(["a", "b"]), NumberedSource(2)])
def test_sources_survive_pickling(source):
    twin = pickle.loads(pickle.dumps(source))
    assert twin.get(1) == source.get(1)
    assert twin.fingerprint() == source.fingerprint()


def test_empty_arrays_of_ids_are_fine():
    source = ListSource.from_names(["a"])
    assert source.label_indices(ids()).shape == (0,)
    assert source.weights(ids()).shape == (0,)


def test_the_task_unused_for_longest_leaves_the_cache_first():
    made = []

    def make(task_id):
        made.append(task_id)
        return Task(str(task_id))

    cache = TaskCache(2)
    for task_id in (0, 1, 0, 2, 0, 1):
        assert cache.get(task_id, make) == Task(str(task_id))
    assert made == [0, 1, 2, 1]
    assert len(cache) == 2


def test_a_cache_of_size_zero_keeps_nothing():
    cache = TaskCache(0)
    assert cache.get(0, lambda task_id: Task("a")) == Task("a")
    assert len(cache) == 0


def test_a_pickled_cache_is_empty_and_of_the_same_size():
    cache = TaskCache(1)
    cache.get(0, lambda task_id: Task("a"))
    twin = pickle.loads(pickle.dumps(cache))
    assert len(twin) == 0
    for task_id in range(2):
        twin.get(task_id, lambda task_id: Task("a"))
    assert len(twin) == 1


@pytest.mark.parametrize("cache_size", [-1, 1.5, None, True])
def test_a_cache_size_that_is_not_a_count_is_refused(cache_size):
    with pytest.raises(ConfigError, match="cache_size must"):
        TaskCache(cache_size)
