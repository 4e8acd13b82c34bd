"""Plain values: what is accepted, what it becomes, and how a refusal names the place."""

import enum
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepladder.configs.documents import DOCUMENT, MAX_FOUND, to_plain
from stepladder.errors import ConfigError, TaskError, shown

plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@pytest.mark.slow
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
        ({"a": {"b": [1, float("nan")]}}, r"value\.a\.b\[1\] is nan"),
        ({"a": np.float64("inf")}, "value.a is inf"),
        ({"a": {1: 2}}, "value.a has the key 1 of type int"),
        ({"a": np.zeros(2)}, "value.a has type ndarray"),
        ([{"x": {1, 2}}], r"value\[0\]\.x has type set"),
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


def problems_in(document: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    to_plain(document, "", bounds=DOCUMENT, found=found)
    return found


def test_everything_is_found_with_its_path():
    document = {
        "a": [1, {"b": math.nan}],
        "c": 2**63,
        "d": "x" * (DOCUMENT.text + 1),
        "e": {1: 2},
        "f": b"bytes",
        "g": "\ud800",
        "h": [True, None, "text", -(2**63), 1e300, np.float32(1.0)],
        "i": {"x" * (DOCUMENT.text + 1): 1},
    }
    assert [path for path, _ in problems_in(document)] == ["a[1].b", "c", "d", "e", "f", "g", "i"]
    with pytest.raises(ConfigError, match=r"^the file\.a\[1\]\.b is nan; numbers must be finite"):
        to_plain(document, "the file", error=ConfigError, bounds=DOCUMENT)
    assert len(problems_in([[math.nan]] * 1_000)) == MAX_FOUND


def test_depth_has_an_end():
    deep: Any = 0
    for _ in range(DOCUMENT.depth):
        deep = [deep]
    assert problems_in(deep) == []
    ((path, text),) = problems_in([deep])
    assert path.startswith("[0][0]")
    assert "nested deeper" in text
    itself: dict[str, Any] = {}
    itself["a"] = itself
    assert len(problems_in(itself)) == 1


def test_values_are_shown_short_and_on_one_line():
    class Mute:
        def __repr__(self) -> str:
            raise ValueError("no")

    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(10**400) == "an integer of 1329 bits"
    assert shown("a\nb") == r"'a\nb'"
    assert shown(np.zeros((2, 2))) == "array([[0., 0.], [0., 0.]])"
    assert len(shown("x" * 1_000)) == 60
    assert shown(Mute()) == "a Mute that cannot be shown (ValueError)"
    assert shown(deep) == "a list that cannot be shown (RecursionError)"
    while deep:
        # One level after the other: freeing all of it at once needs a deep stack as well.
        deep = deep.pop()
