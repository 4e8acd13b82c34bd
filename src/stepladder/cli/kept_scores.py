"""Evaluations that a run has kept as JSON, as they were.

Between `runs` and `scoreboard`: the way back of `Evaluation.to_json`.
"""

from collections.abc import Mapping
from typing import Any

from stepladder.errors import SnapshotError
from stepladder.training.evaluation.scores import Evaluation, Interval, Score

NAN = float("nan")

COUNTS = ("num_games", "num_trials", "num_steps", "mean_length")
"""What every score says in numbers."""


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
    for name in COUNTS:
        require_number(name, data[name])
    if data["num_games"] < 1 or type(data["name"]) is not str:
        raise ValueError(f"{data['name']!r} has {data['num_games']} games")
    for name in ("num_draws", "num_losses"):
        if data[name] is not None:
            require_number(name, data[name])
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
    return Interval(
        *(NAN if end is None else require_number("end", end) for end in (value, low, high))
    )


def require_number(name: str, value: Any) -> float:
    """Return a number, or raise TypeError."""
    if type(value) not in (int, float):
        raise TypeError(f"{name} is {repr(value)[:80]}")
    return value
