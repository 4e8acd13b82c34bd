"""ParameterSource: deterministic in the seed, written by path, labelled by value."""

import pickle
from collections import Counter

import numpy as np
import pytest

from stepladder.errors import ConfigError, TaskError
from stepladder.tasks import Choice, FloatRange, IntRange, ParameterSource

RANGES = {
    "puck.speed": FloatRange(1, 10, log=True),
    "goal.width": IntRange(3, 5),
    "opponent": ["weak", "strong"],
    "rules": "standard",
}


def ids(*task_ids):
    return np.array(task_ids, dtype=np.int64)


def test_a_task_has_name_label_seed_and_all_params():
    task = ParameterSource(RANGES, base={"puck": {"mass": 2}}, label="hockey").get(3)
    assert task.name == "task3"
    assert task.label == "hockey"
    assert task.seed is not None
    params = task.params
    assert 1 <= params["puck"].pop("speed") <= 10
    assert params["goal"].pop("width") in (3, 4, 5)
    assert params.pop("opponent") in ("weak", "strong")
    assert params == {"puck": {"mass": 2}, "goal": {}, "rules": "standard"}


def test_a_seed_gives_the_same_tasks_for_ever():
    # Worked out from the first raw number of Philox with key (seed, 1) and counter (id, 0, 0, 0),
    # halved; then from those with key (task seed, 2), in order of path.
    source = ParameterSource({"b": IntRange(0, 99), "a": FloatRange(0, 1)}, seed=5)
    raw = int(np.random.Philox(key=[5, 1], counter=[7, 0, 0, 0]).random_raw())
    task = source.get(7)
    assert task.seed == raw // 2
    first, second = np.random.Philox(key=[raw // 2, 2]).random_raw(2).tolist()
    assert task.params == {"a": (first // 2**11) / 2**53, "b": second * 100 // 2**64}


def test_the_order_of_ranges_does_not_matter():
    backwards = dict(reversed(RANGES.items()))
    one, other = ParameterSource(RANGES), ParameterSource(backwards)
    assert [one.get(i) for i in range(20)] == [other.get(i) for i in range(20)]
    assert one.fingerprint() == other.fingerprint()


def test_tasks_do_not_depend_on_what_was_asked_before_or_on_the_cache():
    forwards = ParameterSource(RANGES, cache_size=0)
    backwards = ParameterSource(RANGES, cache_size=2)
    late = [backwards.get(i) for i in reversed(range(10))]
    assert [forwards.get(i) for i in range(10)] == late[::-1]


def test_params_depend_on_the_tasks_seed_alone():
    task = ParameterSource(RANGES, seed=1).get(9)
    assert task.seed is not None
    assert ParameterSource(RANGES, seed=2).params_from(task.seed) == task.params


def test_ids_and_source_seeds_give_different_tasks():
    seeds = {ParameterSource(RANGES, seed=s).get(i).seed for s in range(30) for i in range(30)}
    assert len(seeds) == 900


def test_nobody_can_change_the_base_or_a_choice_through_what_was_drawn():
    base = {"puck": {"mass": 2}}
    source = ParameterSource({"start": Choice([[0, 0]])}, base=base)
    drawn = source.params_from(1)
    drawn["start"].append(1)
    drawn["puck"]["mass"] = 3
    base["puck"]["mass"] = 4
    assert source.params_from(1) == {"puck": {"mass": 2}, "start": [0, 0]}


def test_choices_come_up_about_as_often_as_their_weights_say():
    source = ParameterSource({"x": Choice(["a", "b"], weights=[3, 1])})
    counts = Counter(source.get(i).params["x"] for i in range(2000))
    assert 1420 < counts["a"] < 1580  # expected 1500, standard deviation 19


def test_nested_ranges_are_drawn_again():
    source = ParameterSource({"x": [0, FloatRange(1, 2), Choice([IntRange(5, 6)])]})
    values = [source.get(i).params["x"] for i in range(200)]
    assert {value for value in values if isinstance(value, int)} == {0, 5, 6}
    assert all(1 <= value <= 2 for value in values if isinstance(value, float))
    assert any(isinstance(value, float) for value in values)


def test_there_is_no_end_unless_a_number_is_given():
    endless, finite = ParameterSource(RANGES), ParameterSource(RANGES, num_tasks=3, name="puck ")
    assert endless.num_tasks is None
    assert endless.get(2**63 - 1).name == f"task{2**63 - 1}"
    assert finite.num_tasks == 3
    assert [finite.name(i) for i in range(3)] == ["puck 0", "puck 1", "puck 2"]
    for source, task_id in ((endless, 2**63), (endless, -1), (finite, 3)):
        for method in (source.get, source.name, source.label):
            with pytest.raises(TaskError, match=f"must lie between 0 and .*; got {task_id}"):
                method(task_id)


def test_the_label_is_fixed_by_default():
    source = ParameterSource(RANGES, label="hockey")
    assert source.labels() == ["hockey"]
    assert source.label(4) == "hockey"
    assert source.label_indices(ids(1, 2**60)).tolist() == [0, 0]
    assert source.weights(ids(1, 2**60)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("path", "labels"),
    [("opponent", ["weak", "strong"]), ("goal.width", ["3", "4", "5"]), ("rules", ["standard"])],
)
def test_the_label_may_follow_a_parameter(path, labels):
    source = ParameterSource(RANGES, label_from=path)
    assert source.labels() == labels
    for task_id in range(20):
        value = source.get(task_id).params
        for name in path.split("."):
            value = value[name]
        assert source.label(task_id) == source.get(task_id).label == str(value)
        assert labels[source.label_indices(ids(task_id))[0]] == str(value)


def test_without_ranges_tasks_differ_only_in_their_seed():
    source = ParameterSource({}, base={"x": 1})
    assert source.get(0).params == source.get(1).params == {"x": 1}
    assert source.get(0).seed != source.get(1).seed


def test_every_argument_shows_in_the_fingerprint():
    sources = [
        ParameterSource(RANGES),
        ParameterSource({**RANGES, "goal.width": IntRange(3, 6)}),
        ParameterSource(RANGES, base={"x": 1}),
        ParameterSource(RANGES, label="other"),
        ParameterSource(RANGES, num_tasks=5),
        ParameterSource(RANGES, name="other"),
        ParameterSource(RANGES, seed=1),
        ParameterSource(RANGES, label_from="rules"),
    ]
    assert len({source.fingerprint() for source in sources}) == len(sources)


def test_a_pickled_source_makes_the_same_tasks():
    source = ParameterSource(RANGES, label_from="opponent")
    twin = pickle.loads(pickle.dumps(source))
    assert [twin.get(i) for i in range(5)] == [source.get(i) for i in range(5)]
    assert twin.fingerprint() == source.fingerprint()


def test_the_global_generator_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - it is what must not change
    ParameterSource(RANGES).get(1)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ranges": {"a.b.c": 1}, "base": {"a": {"b": 2}}}, r"'a\.b\.c' cannot be .*'b'.*a int"),
        ({"ranges": {"a": 1, "a.b": 2}}, r"both 'a' and 'a\.b'"),
        ({"ranges": {"a..b": 1}}, r"the path 'a\.\.b'"),
        ({"ranges": {"": 1}}, "the path ''"),
        ({"ranges": {3: 1}}, "the path 3"),
        ({"ranges": [1]}, "ranges must map dotted paths to ranges; got list"),
        ({"ranges": {"a.b": []}}, r"ranges\['a\.b'\]: Choice.values is empty"),
        ({"ranges": {"a": float("nan")}}, "is nan"),
        ({"ranges": {}, "base": {"x": float("nan")}}, r"base\.x is nan"),
        ({"ranges": {}, "num_tasks": 0}, "num_tasks must lie between 1"),
        ({"ranges": {}, "seed": -1}, "seed of a ParameterSource must lie between 0"),
        ({"ranges": {}, "label": ""}, "label must be a string"),
        ({"ranges": {"a": 1}, "label_from": "b"}, r"one of the paths in ranges, \['a'\]; got 'b'"),
        ({"ranges": {"a": FloatRange(0, 1)}, "label_from": "a"}, "cannot be listed"),
        ({"ranges": {"a": IntRange(0, 5000)}, "label_from": "a"}, "or more than 1000"),
        ({"ranges": {"a": [1, FloatRange(0, 1)]}, "label_from": "a"}, "cannot be listed"),
        ({"ranges": {"a": ["", "x"]}, "label_from": "a"}, "empty string"),
    ],
)
def test_malformed_arguments_are_refused(arguments, message):
    with pytest.raises(TaskError, match=message):
        ParameterSource(**arguments)


def test_a_malformed_cache_size_is_refused():
    with pytest.raises(ConfigError, match="cache_size"):
        ParameterSource({}, cache_size=-1)
