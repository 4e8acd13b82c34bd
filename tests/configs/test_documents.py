"""What no setting can be is found before a document is read, with its path."""

import math
from typing import Any

import numpy as np
import pytest

from stepladder.configs.checks import (
    is_finite,
    is_number,
    require_range,
    require_whole,
)
from stepladder.configs.documents import MAX_DEPTH, MAX_TEXT, require_readable, unreadable
from stepladder.errors import ConfigError, shown


def test_everything_is_found_with_its_path():
    document = {
        "a": [1, {"b": math.nan}],
        "c": 2**63,
        "d": "x" * (MAX_TEXT + 1),
        "e": {1: 2},
        "f": b"bytes",
        "g": "\ud800",
        "h": [True, None, "text", -(2**63), 1e300, np.float32(1.0)],
    }
    assert [path for path, _ in unreadable(document)] == ["a[1].b", "c", "d", "e", "f", "g"]
    with pytest.raises(ConfigError, match=r"^the file\.a\[1\]\.b must be finite; got nan\."):
        require_readable(document, "the file")


def test_depth_has_an_end():
    deep: Any = 0
    for _ in range(MAX_DEPTH):
        deep = [deep]
    assert list(unreadable(deep)) == []
    ((path, text),) = unreadable([deep])
    assert path.startswith("[0][0]")
    assert "nested deeper" in text
    itself: dict[str, Any] = {}
    itself["a"] = itself
    assert len(list(unreadable(itself))) == 1


def test_numbers_are_those_that_a_float_can_hold():
    for value in (1, 1.5, 10**300, np.float32(1), np.int8(1), math.nan, math.inf):
        assert is_number(value)
    for wrong in (True, None, "1", 10**400, 1j, np.complex64(1), np.bool_(True)):
        assert not is_number(wrong)
    assert not is_finite(math.inf)
    assert is_finite(10**300)


def test_ranges_name_the_value_whatever_it_is():
    for value in (-1, 11, math.nan, "a", 10**400, 10**5000, None):
        with pytest.raises(ConfigError, match=r"x must lie in \[0, 10\]; got "):
            require_range("x", value, 0.0, 10.0)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="x must be at most 5; got 6"):
        require_whole("x", 6, 0, 5)


def test_values_are_shown_short_and_on_one_line():
    class Mute:
        def __repr__(self) -> str:
            raise ValueError("no")

    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(10**400) == "a whole number of 1329 bits"
    assert shown("a\nb") == r"'a\nb'"
    assert shown(np.zeros((2, 2))) == "array([[0., 0.], [0., 0.]])"
    assert len(shown("x" * 1_000)) == 60
    assert shown(Mute()) == "a Mute that cannot be shown (ValueError)"
    assert shown(deep) == "a list that cannot be shown (RecursionError)"
    while deep:
        # One level after the other: freeing all of it at once needs a deep stack as well.
        deep = deep.pop()
