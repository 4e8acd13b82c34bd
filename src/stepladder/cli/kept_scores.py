"""Evaluations that a run has kept as JSON, as they were.

Between `runs` and `scoreboard`: the way back of `Evaluation.to_json`.
"""

from collections.abc import Mapping
from typing import Any

from stepladder.errors import SnapshotError
from stepladder.training.scores import Evaluation, Interval, Score

NAN = float("nan")


def evaluation_from_json(data: Mapping[str, Any]) -> Evaluation:
    """Return the evaluation whose `to_json` gave this; other entries are passed over.

    Raises:
        SnapshotError: It is damaged.
    """
    try:
        return Evaluation(
            env=data["env"],
            seed=data["seed"],
            is_deterministic=data["is_deterministic"],
            total=_score(data["total"]),
        )
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise SnapshotError(
            f"an evaluation that the run has kept is damaged ({error}). Evaluate it again with: "
            "stepladder eval"
        ) from error


def _score(data: Mapping[str, Any]) -> Score:
    rate = data["rate"]
    return Score(
        **{
            **data,
            "rate": None if rate is None else _interval(rate),
            "mean_return": _interval(data["mean_return"]),
            "parts": tuple(map(_score, data["parts"])),
        }
    )


def _interval(data: Mapping[str, float | None]) -> Interval:
    value, low, high = (data[end] for end in Interval._fields)
    return Interval(*(NAN if end is None else end for end in (value, low, high)))
