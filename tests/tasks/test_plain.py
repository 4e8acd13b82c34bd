"""Plain values: what is accepted, what it becomes, and how a refusal names the place."""

import enum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepladder.errors import ConfigError, TaskError
from stepladder.tasks.plain import canonical_json, digest, to_plain, whole_number

plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(plain_values)
@settings(derandomize=True, max_examples=60)
def test_plain_values_come_back_equal(value):
    assert to_plain(value, "value") == value


def test_numpy_scalars_become_plain_and_tuples_become_lists():
    value = {"a": np.int64(3), "b": (np.float32(0.5), np.bool_(True)), "c": np.str_("x")}
    plain = to_plain(value, "value")
    assert plain == {"a": 3, "b": [0.5, True], "c": "x"}
    assert [type(item) for item in (plain["a"], *plain["b"], plain["c"])] == [int, float, bool, str]


def test_members_of_an_enum_are_taken_for_their_content():
    class Colour(str, enum.Enum):  # noqa: UP042 - its str() is what StrEnum avoids
        RED = "red"

    assert type(to_plain(Colour.RED, "value")) is str
    assert to_plain(Colour.RED, "value") == "red"


def test_the_copy_shares_nothing_with_the_original():
    original = {"a": [1, {"b": 2}]}
    plain = to_plain(original, "value")
    original["a"][1]["b"] = 3
    assert plain == {"a": [1, {"b": 2}]}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": {"b": [1, float("nan")]}}, "value.a.b.1 is nan"),
        ({"a": np.float64("inf")}, "value.a is inf"),
        ({"a": {1: 2}}, "value.a has the key 1 of type int"),
        ({"a": np.zeros(2)}, "value.a has type ndarray"),
        ([{"x": {1, 2}}], "value.0.x has type set"),
        (1 + 2j, "value has type complex"),
        ({"a": b"bytes"}, "value.a has type bytes"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_its_dotted_path(value, path):
    with pytest.raises(TaskError, match=path):
        to_plain(value, "value")


def test_a_value_that_contains_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(TaskError, match="deeper than 100 levels"):
        to_plain(loop, "value")


def test_canonical_json_does_not_depend_on_the_order_of_keys():
    assert canonical_json({"b": 1, "a": "é"}) == '{"a":"\\u00e9","b":1}'


def test_digest_is_blake2b_of_sixteen_bytes():
    # Checked with: printf abc | b2sum -l 128
    assert digest("abc") == "cf4ab791c62b8d2b2109c90275287816"


def test_whole_numbers_of_python_and_numpy_are_taken_at_both_bounds():
    assert whole_number(np.int32(1), "count", 1, 5) == 1
    assert type(whole_number(np.uint64(5), "count", 1, 5)) is int


@pytest.mark.parametrize("value", [True, np.bool_(True), 1.0, "1", None])
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(ConfigError, match="count must be an integer from 0 to 5; got"):
        whole_number(value, "count", 0, 5, ConfigError)


@pytest.mark.parametrize("value", [-1, 6])
def test_numbers_outside_the_bounds_are_refused(value):
    with pytest.raises(TaskError, match=f"count must lie between 0 and 5; got {value}"):
        whole_number(value, "count", 0, 5)
