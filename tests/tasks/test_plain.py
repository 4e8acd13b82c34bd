"""The one JSON text of a value, its digest, and integers that are checked."""

import numpy as np
import pytest

from stepladder.errors import ConfigError, TaskError
from stepladder.tasks.plain import canonical_json, checked_integer, digest


def test_canonical_json_does_not_depend_on_the_order_of_keys():
    assert canonical_json({"b": 1, "a": "é"}) == '{"a":"\\u00e9","b":1}'


def test_digest_is_blake2b_of_sixteen_bytes():
    # Checked with: printf abc | b2sum -l 128
    assert digest("abc") == "cf4ab791c62b8d2b2109c90275287816"


def test_whole_numbers_of_python_and_numpy_are_taken_at_both_bounds():
    assert checked_integer(np.int32(1), "count", 1, 5) == 1
    assert type(checked_integer(np.uint64(5), "count", 1, 5)) is int


@pytest.mark.parametrize("value", [True, np.bool_(True), 1.0, "1", None])
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(ConfigError, match="count must be an integer from 0 to 5; got"):
        checked_integer(value, "count", 0, 5, ConfigError)


@pytest.mark.parametrize("value", [-1, 6])
def test_numbers_outside_the_bounds_are_refused(value):
    with pytest.raises(TaskError, match=f"count must lie between 0 and 5; got {value}"):
        checked_integer(value, "count", 0, 5)
