"""The parameters of a hockey task: who plays, how the game starts, what counts as success.

Between tasks and kernels: params are checked here and become one record per env or slot.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np

from stepladder.configs.checks import is_number
from stepladder.errors import TaskError
from stepladder.games.game import CALLED
from stepladder.games.hockey.opponents import STRONG_GAIN, WEAK_GAIN
from stepladder.games.hockey.world import (
    MAX_TIME_LIMIT,
    NORMAL,
    TRAIN_DEFENSE,
    TRAIN_SHOOTING,
    Flag,
)
from stepladder.records import Fields, Limits, Records
from stepladder.saving.saved_array import SavedArray
from stepladder.tasks.plain import checked_integer

MODES = {"NORMAL": NORMAL, "TRAIN_SHOOTING": TRAIN_SHOOTING, "TRAIN_DEFENSE": TRAIN_DEFENSE}

NONE, SCRIPTED, CALLER = 0, 1, 2
"""Who plays the second player: none, the batch itself, or the caller of `step`."""

OPPONENTS = {
    "none": (NONE, 0.0),
    "weak": (SCRIPTED, WEAK_GAIN),
    "strong": (SCRIPTED, STRONG_GAIN),
    "basic_weak": (SCRIPTED, WEAK_GAIN),
    "basic_strong": (SCRIPTED, STRONG_GAIN),
    "caller": (CALLER, 0.0),
}
"""Kind and gain by name."""

STARTS = {"one": -1, "balanced": 0, "two": 1}
SUCCESSES = {"win": 0, "no_loss": 1}

DEFENSE_SPEED = 60.0
"""Speed of the original's shot in TRAIN_DEFENSE."""

MAX_SPEED = 60.0
"""Launches are no faster than the original's; a puck much faster could cross a racket unseen."""

MAX_GAIN = 100.0
MAX_WEIGHT = 1e6
Weight: TypeAlias = Annotated[float, Limits(-MAX_WEIGHT, MAX_WEIGHT)]

DEFAULTS: dict[str, Any] = {
    "mode": "NORMAL",
    "opponent": "weak",
    "opponent_gain": None,
    "keep_mode": True,
    "puck_speed": None,
    "starts": "balanced",
    "original_starts": False,
    "success": None,
    "time_limit": None,
    "closeness_weight": 0.0,
    "touch_weight": 0.0,
    "direction_weight": 0.0,
}
"""All parameters of a task with their defaults."""


class TaskRecord(Fields):
    """A task as kernels read it, with the values that `write_task` can write."""

    mode: Annotated[int, Limits(0, TRAIN_DEFENSE)]
    opponent: Annotated[int, Limits(0, CALLER)]
    gain: Annotated[float, Limits(0.0, MAX_GAIN)]
    keep_mode: Flag
    puck_speed: Annotated[float, Limits(0.0, MAX_SPEED)]
    starts: Annotated[int, Limits(-1, 1)]
    original_starts: Flag
    no_loss_suffices: Flag
    time_limit: Annotated[int, Limits(0, MAX_TIME_LIMIT)]
    closeness_weight: Weight
    touch_weight: Weight
    direction_weight: Weight
    has_seed: Flag
    seed: np.uint64


class TaskShelf(NamedTuple):
    """Tasks as kernels read them; one row per env, or per slot of a curriculum."""

    records: Records[TaskRecord]

    def saved_arrays(self, place: str) -> list[SavedArray]:
        """Describe tasks that `write_task` can have written."""
        return [SavedArray(f"{place}/records", np.asarray(self.records), TaskRecord.parts())]


def write_task(record: Any, params: Mapping[str, Any], seed: int | None, name: str) -> None:
    """Fill one record.

    Args:
        record: A `TaskRecord`.
        params: By the keys of `DEFAULTS`; others are ignored.
        seed: Seeds every episode of the task alike; None leaves that to the env.
        name: The task's name, for messages.

    Raises:
        TaskError: A value is not allowed.
    """
    params = {**DEFAULTS, **params}
    record["mode"] = mode = _mode(params["mode"], name)
    record["opponent"], record["gain"] = _opponent(params, name)
    if params["opponent_gain"] is not None:
        # Also where the opponent is not scripted: a phase may draw another one per episode.
        record["gain"] = _number("opponent_gain", params, 0.0, MAX_GAIN, name)
    record["keep_mode"] = _truth("keep_mode", params, name)
    if params["puck_speed"] is None:
        record["puck_speed"] = DEFENSE_SPEED if mode == TRAIN_DEFENSE else 0.0
    else:
        record["puck_speed"] = _number("puck_speed", params, 0.0, MAX_SPEED, name)
    record["starts"] = _choice(STARTS, "starts", params, name)
    record["original_starts"] = _truth("original_starts", params, name)
    if params["success"] is None:
        params["success"] = "no_loss" if mode == TRAIN_DEFENSE else "win"
    record["no_loss_suffices"] = _choice(SUCCESSES, "success", params, name)
    limit = MAX_TIME_LIMIT if params["time_limit"] is None else params["time_limit"]
    what = f"time_limit of task {name!r}"
    record["time_limit"] = checked_integer(limit, what, 1, MAX_TIME_LIMIT)
    for key in ("closeness_weight", "touch_weight", "direction_weight"):
        record[key] = _number(key, params, -MAX_WEIGHT, MAX_WEIGHT, name)
    record["has_seed"], record["seed"] = seed is not None, seed or 0


def _mode(value: Any, name: str) -> int:
    if isinstance(value, str) and value.upper() in MODES:
        return MODES[value.upper()]
    if is_number(value) and value in MODES.values():
        return int(value)
    raise TaskError(f"mode of task {name!r} must be one of {list(MODES)}; got {value!r}.")


def _opponent(params: dict[str, Any], name: str) -> tuple[int, float]:
    value = params["opponent"]
    if isinstance(value, str) and value.startswith(CALLED) and len(value) > len(CALLED):
        return OPPONENTS["caller"]
    if not isinstance(value, str) or value not in OPPONENTS:
        raise TaskError(
            f"opponent of task {name!r} must be one of {list(OPPONENTS)}, or {CALLED!r} with a "
            f"name behind it; got {value!r}."
        )
    return OPPONENTS[value]


def _choice(choices: dict[str, Any], key: str, params: dict[str, Any], name: str) -> Any:
    value = params[key]
    if not isinstance(value, str) or value not in choices:
        raise TaskError(f"{key} of task {name!r} must be one of {list(choices)}; got {value!r}.")
    return choices[value]


def _number(key: str, params: dict[str, Any], lowest: float, highest: float, name: str) -> float:
    value = params[key]
    if not is_number(value) or not lowest <= value <= highest:
        raise TaskError(
            f"{key} of task {name!r} must be a number from {lowest:g} to {highest:g}; got "
            f"{value!r}."
        )
    return float(value)


def _truth(key: str, params: dict[str, Any], name: str) -> bool:
    if not isinstance(params[key], bool | np.bool_):
        raise TaskError(f"{key} of task {name!r} must be true or false; got {params[key]!r}.")
    return bool(params[key])
