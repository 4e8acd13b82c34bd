"""Numbers are found in infos of every shape; everything else is passed over."""

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from stepladder.errors import ConfigError
from stepladder.stats.flatten import as_number, numbers_in


def found(info, is_vector=False):
    return [(key, number) for key, numbers in numbers_in(info, is_vector) for number in numbers]


class FakeTensor:
    """What a tensor of another library looks like from outside."""

    def __init__(self, *values):
        self.values = values
        self.shape = (len(values),)

    def numel(self):
        return len(self.values)

    def item(self):
        (value,) = self.values
        return value

    def __getitem__(self, index):
        return FakeTensor(self.values[int(index)])

    def __iter__(self):
        return (FakeTensor(value) for value in self.values)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3.0),
        (True, 1.0),
        (Fraction(1, 4), 0.25),
        (np.float32(0.5), 0.5),
        (np.bool_(False), 0.0),
        (np.int64(7), 7.0),
        (np.longdouble(0.25), 0.25),
        (np.array(2.5), 2.5),
        (np.array([[True]]), 1.0),
        (FakeTensor(4.0), 4.0),
        ("3", None),
        (None, None),
        (np.array([1.0, 2.0]), None),
        (np.array(["a"]), None),
        (np.array([{"a": 1}]), None),
        (np.array([]), None),
        (np.clongdouble(1), None),
        (1j, None),
        (10**400, None),
        ([1.0], None),
        (FakeTensor(1.0, 2.0), None),
        (spaces.Discrete(3), None),
    ],
)
def test_what_counts_as_a_number(value, number):
    assert as_number(value) == number


def test_a_real_tensor_counts():
    torch = pytest.importorskip("torch")
    assert as_number(torch.tensor([0.5], requires_grad=True)) == 0.5
    assert as_number(torch.zeros(2)) is None
    info = {"x": torch.tensor([1.0, 2.0]), "_x": np.array([False, True])}
    assert found(info) == [("x", 2.0)]
    assert found({"x": torch.tensor([1.0, 2.0])}, is_vector=True) == [("x", 1.0), ("x", 2.0)]


def test_levels_are_joined_and_everything_else_is_passed_over():
    info = {
        "hockey": {"goals": 2, "by": {"me": True}, "name": "left"},
        "position": np.array([1.0, 2.0, 3.0]),
        "label": "easy",
        "nothing": None,
        "space": spaces.Box(-1, 1, (2,)),
        "list": [1, 2],
        "missing": math.nan,
        5: 1.5,
    }
    assert found(info) == [("hockey/goals", 2.0), ("hockey/by/me", 1.0), ("5", 1.5)]


def test_infinity_stays_where_it_can_be_seen():
    assert found({"x": -math.inf}) == [("x", -math.inf)]


def test_identities_and_observations_are_no_metrics():
    info = {
        "curriculum_slot": 3,
        "curriculum_generation": 1,
        "curriculum_plan_version": 10,
        "curriculum_plan_version_end": 11,
        "curriculum_success": 1.0,
        "final_obs": np.array([0.0]),
        "terminal_observation": np.array([0.0]),
    }
    assert found(info) == [("curriculum_success", 1.0)]


def test_masks_say_which_envs_have_a_value():
    info = {
        "score": np.array([1.0, 0.0, 3.0]),
        "_score": np.array([True, False, True]),
        "name": np.array(["a", None, None], dtype=object),
        "_name": np.array([True, False, False]),
        "row": np.array([[4.0], [5.0], [6.0]]),
        "_row": np.array([False, True, False]),
        "wide": np.ones((3, 2)),
        "_wide": np.ones(3, dtype=bool),
    }
    for is_vector in (False, True):
        assert found(info, is_vector) == [("score", 1.0), ("score", 3.0), ("row", 5.0)]


def test_one_env_alone_is_masked_too():
    info = {"score": np.array([9.0]), "_score": np.array([False])}
    assert found(info) == []


def test_a_group_that_is_masked_as_a_whole_masks_its_members():
    # As gymnasium.wrappers.vector.RecordEpisodeStatistics has it.
    info = {
        "episode": {"r": np.array([5.0, 0.0]), "l": np.array([7, 0])},
        "_episode": np.array([True, False]),
    }
    assert found(info, is_vector=True) == [("episode/r", 5.0), ("episode/l", 7.0)]


def test_the_mask_of_a_member_comes_before_that_of_its_group():
    info = {
        "episode": {"r": np.array([5.0, 6.0]), "_r": np.array([False, True])},
        "_episode": np.array([True, True]),
    }
    assert found(info, is_vector=True) == [("episode/r", 6.0)]


def test_a_vector_env_may_do_without_masks_and_a_single_env_may_not():
    info = {"score": np.array([1.0, 2.0]), "image": np.zeros((2, 3))}
    assert found(info, is_vector=True) == [("score", 1.0), ("score", 2.0)]
    assert found(info) == []


def test_final_infos_count_as_infos_in_either_form():
    ended = np.array([False, True])
    new = {"final_info": {"score": np.array([0.0, 2.0]), "_score": ended}, "_final_info": ended}
    old = {"final_info": np.array([None, {"score": 2.0}], dtype=object), "_final_info": ended}
    assert found(new, is_vector=True) == found(old, is_vector=True) == [("score", 2.0)]


def test_an_underscore_alone_makes_no_mask():
    assert found({"_x": True, "x": 2, "_y": 3}) == [("_x", 1.0), ("x", 2.0), ("_y", 3.0)]


def test_a_mask_of_another_length_keeps_or_drops_the_whole():
    info = {"x": 2.0, "_x": np.array([False, True]), "y": 1.0, "_y": np.array([False, False])}
    assert found(info) == [("x", 2.0)]


def test_strange_objects_do_no_harm():
    odd = SimpleNamespace(shape=None, size="large", numel=3)
    assert found({"odd": odd, "x": 1}, is_vector=True) == [("x", 1.0)]


def test_an_info_that_contains_itself_is_refused_in_one_line():
    for key in ("a", "final_info"):
        info: dict[str, Any] = {"reward": 1.0}
        info[key] = info
        with pytest.raises(ConfigError, match="does it contain itself") as caught:
            list(numbers_in(info, False))
        assert "\n" not in str(caught.value)


def test_an_info_may_be_nested_as_deep_as_anybody_would():
    info: Any = 1.0
    for _ in range(50):
        info = {"a": info}
    ((name, numbers),) = numbers_in(info, False)
    assert (name.count("/"), numbers) == (49, [1.0])
