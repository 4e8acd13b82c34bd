"""Spaces as plain JSON and back."""

import json
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple

from stepladder.agents.spaces import space_from_json, space_to_json
from stepladder.errors import ConfigError, SnapshotError

SPACES: list[Space[Any]] = [
    Discrete(4),
    Discrete(4, start=-2),
    MultiDiscrete([2, 3]),
    MultiDiscrete([[2, 3], [4, 5]]),
    MultiDiscrete([2, 3], start=[1, -1]),
    MultiBinary(3),
    MultiBinary((2, 4)),
    Box(-1.0, 1.0, (2, 3), np.float32),
    Box(np.array([-1.0, -np.inf]), np.array([np.inf, 2.5]), dtype=np.float64),
    Box(0, 255, (2, 2), np.uint8),
    Box(-(2**63), 2**63 - 1, (2,), np.int64),
    Box(-np.inf, np.inf, (18,), np.float32),
    Box(0.1, 0.7, (), np.float64),
    Dict({"b": Discrete(2), "a": Dict({"c": Box(-1.0, 1.0, (1,), np.float32)})}),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_a_space_comes_back_as_it_was(space: Space[Any]):
    text = json.dumps(space_to_json(space), allow_nan=False)
    again = space_from_json(json.loads(text))
    assert again == space
    if isinstance(space, Dict) and isinstance(again, Dict):
        assert list(again.spaces) == list(space.spaces)


def test_other_spaces_are_refused():
    with pytest.raises(ConfigError, match="Wrap the env"):
        space_to_json(Tuple([Discrete(2)]))


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"space": "ring"},
        {"space": "discrete"},
        {"space": "discrete", "n": "x", "start": 0},
        {"space": "box", "low": {}, "high": 1, "shape": [1], "dtype": "float32"},
        {"space": "box", "low": 0, "high": 1, "shape": [1], "dtype": "nonsense"},
        {"space": "box", "low": [0, 1], "high": 1, "shape": [3], "dtype": "float32"},
        {"space": "dict", "parts": [1]},
    ],
)
def test_what_describes_no_space_is_refused(data: Any):
    with pytest.raises(SnapshotError, match="Use another file"):
        space_from_json(data)
