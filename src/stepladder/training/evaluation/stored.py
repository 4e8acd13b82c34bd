"""Evaluations read back from JSON: from checkpoints, events of runs and results of trainings.

The way back of `Evaluation.to_json`; `scores` has the way there.
"""

from collections.abc import Mapping
from typing import Any, cast

from stepladder.errors import SnapshotError
from stepladder.runs.evaluation_events import way_of
from stepladder.training.evaluation.scores import Evaluation, Interval, Score, Way

COUNTS = ("num_games", "num_trials", "num_steps", "mean_length")
"""Numbers that every score has."""


def evaluation_from_json(data: Mapping[str, Any]) -> Evaluation:
    """Return the evaluation that `Evaluation.to_json` wrote; other entries are ignored.

    Raises:
        SnapshotError: It is damaged.
    """
    try:
        return Evaluation(
            env=data["env"],
            seed=data["seed"],
            way=_way(data),
            levels=data.get("levels"),
            total=_score(data["total"]),
            beside=tuple(map(evaluation_from_json, data.get("beside", ()))),
        )
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise SnapshotError(
            f"an evaluation is damaged ({error}); make it again with: stepladder eval"
        ) from error


def _way(data: Mapping[str, Any]) -> Way:
    way = way_of(data)
    if not way:
        raise ValueError(f"its way of acting is {repr(data.get('way'))[:80]}")
    return cast("Way", way)


def _score(data: Mapping[str, Any]) -> Score:
    for name in COUNTS:
        _number(name, data[name])
    for name in ("num_draws", "num_losses"):
        if data[name] is not None:
            _number(name, data[name])
    if data["num_games"] < 1 or type(data["name"]) is not str:
        raise ValueError(f"{data['name']!r} has {data['num_games']} games")
    changed = {
        "rate": None if data["rate"] is None else _interval(data["rate"]),
        "mean_return": _interval(data["mean_return"]),
        "parts": tuple(map(_score, data["parts"])),
    }
    return Score(**{**data, **changed})


def _interval(data: Mapping[str, float | None]) -> Interval:
    ends = (data[name] for name in Interval._fields)
    return Interval(*(float("nan") if end is None else _number("end", end) for end in ends))


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"{name} is {repr(value)[:80]}")
    return value
