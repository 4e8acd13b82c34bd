"""Limits of single values: what each accepts, and how a refusal names the value."""

import math

import numpy as np
import pytest

from stepladder.configs.checks import (
    OneOf,
    Within,
    each_once,
    is_finite,
    is_number,
    require,
    require_integer,
    require_positive,
    require_share,
)
from stepladder.errors import ConfigError


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
            require("x", value, Within(0.0, 10.0))
    with pytest.raises(ConfigError, match="x must be at most 5; got 6"):
        require_integer("x", 6, 0, 5)


def test_shares_positives_and_whole_numbers():
    for value in (0.0, 0.5, 1.0, 1):
        require_share("x", value)
    for value in (-1e-9, 1 + 1e-9, np.nan):
        with pytest.raises(ConfigError, match="x must lie in"):
            require_share("x", value)
    require_positive("x", 1e-9)
    for value in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ConfigError, match="x must be finite and above 0"):
            require_positive("x", value)
    for whole in (3, 100, np.int64(3)):
        require_integer("x", whole, 3)
    for value in (2, 3.0, 3.5, True, np.nan, "3", None):
        with pytest.raises(ConfigError, match="x must be an integer of at least 3; got"):
            require_integer("x", value, 3)


def test_bounds_can_be_left_out():
    for limit, inside, outside in (
        (Within(0.0, 1.0, above=True), (1e-9, 1.0), (0.0, 1.1)),
        (Within(0.0, 1.0, below=True), (0.0, 0.9), (1.0, -0.1)),
        (Within(0.0), (0.0, 1e300), (-1e-9, math.inf)),
        (Within(), (-5, 5), (math.nan, math.inf, "1")),
    ):
        assert [limit(value) for value in inside] == [None, None]
        for value in outside:
            assert f"; got {value!r}. " in str(limit(value))
    assert Within(0.0, 1.0, above=True, fix="Why.")(0) == "must lie in (0, 1]; got 0. Why."
    assert Within(2.0)(1) == "must be finite and at least 2; got 1. Give such a number."


def test_a_choice_names_the_nearest_one():
    colour = OneOf(("red", "green"))
    assert colour("red") is None
    assert colour("geen") == "must be one of red, green; got 'geen'. Did you mean 'green'?"
    assert colour(["red"]) == "must be one of red, green; got ['red']."


def test_lists_name_things_once():
    assert each_once(("a", "b")) is None
    assert each_once(("a", "b", "a")) == "has 'a' twice. Name it once."


def test_a_refusal_says_which_setting_it_is():
    with pytest.raises(ConfigError) as caught:
        require_share("x", 2.0)
    assert caught.value.problems == (
        ("x", "must lie in [0, 1]; got 2.0. Give a number in that range."),
    )
