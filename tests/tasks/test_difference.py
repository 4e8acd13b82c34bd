"""Differences of task sets, in words."""

from stepladder.tasks import (
    FloatRange,
    ListSource,
    NumberedSource,
    ParameterSource,
    Task,
    UnionSource,
)
from stepladder.tasks.difference import name_difference


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


def test_the_same_counts_with_other_content_differ_in_the_digest():
    words = difference(ListSource.from_names(["a"]), ListSource.from_names(["b"]))
    assert words.startswith("digest: '")


def test_an_endless_source_is_called_so():
    words = difference(ParameterSource({}), NumberedSource(3))
    assert words.startswith("number of tasks: no end in the snapshot, 3 here")


def test_the_first_differing_field_is_named_by_its_path():
    one = ParameterSource({"puck.speed": FloatRange(0, 1)})
    other = ParameterSource({"puck.speed": FloatRange(0, 2)})
    assert difference(one, other) == "ranges.puck.speed.high: 1.0 in the snapshot, 2.0 here"


def test_differences_inside_a_union_are_named_too():
    one = UnionSource([NumberedSource(2, prefix="a"), ParameterSource({}, seed=1)])
    other = UnionSource([NumberedSource(2, prefix="a"), ParameterSource({}, seed=2)])
    assert difference(one, other) == "children.1.source.seed: 1 in the snapshot, 2 here"


def test_fields_on_one_side_only_are_named_and_long_values_cut():
    assert name_difference({"a": 1}, {"a": 1, "b": "x" * 200}).startswith(
        "b: 'nothing' in the snapshot, 'xxx"
    )
    assert len(name_difference({}, {"b": "x" * 200})) < 130
