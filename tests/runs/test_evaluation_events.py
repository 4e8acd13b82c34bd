"""What the events of evaluations say, whatever version or accident has written them."""

from typing import Any

import pytest

from stepladder.runs.evaluation_events import by_way, way_of


@pytest.mark.parametrize(
    ("evaluation", "way"),
    [
        ({"way": "drawn"}, "drawn"),
        ({"way": "random", "is_deterministic": False}, "random"),
        ({"is_deterministic": True}, "best"),
        ({"is_deterministic": False}, "drawn"),
        ({"way": "by luck"}, ""),
        ({"way": ["best"]}, ""),
        ({"is_deterministic": []}, ""),
        ({}, ""),
    ],
)
def test_an_evaluation_says_how_actions_were_chosen(evaluation: dict[str, Any], way: str) -> None:
    assert way_of(evaluation) == way


def test_the_policys_own_way_comes_first_and_damage_is_left_out() -> None:
    random, drawn = {"way": "random"}, {"way": "drawn"}
    own = {"way": "best", "beside": [random, None, {"way": 3}, drawn]}
    assert list(by_way(own).items()) == [("best", own), ("random", random), ("drawn", drawn)]
    assert by_way({"way": "best", "beside": 7}) == {"best": {"way": "best", "beside": 7}}
    assert by_way({"beside": [drawn]}) == {"drawn": drawn}
