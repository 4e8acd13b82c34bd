"""What a hockey task says: who plays, how the game starts, what counts as success.

Between tasks and kernels: params are checked here and become one record per env or slot.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stepladder.errors import TaskError
from stepladder.games.game import CALLED
from stepladder.games.hockey.rules import NORMAL, TRAIN_DEFENSE, TRAIN_SHOOTING
from stepladder.saving.saved_array import Part, SavedArray
from stepladder.tasks.plain import whole_number

MODES = {"NORMAL": NORMAL, "TRAIN_SHOOTING": TRAIN_SHOOTING, "TRAIN_DEFENSE": TRAIN_DEFENSE}

NOBODY, SCRIPTED, CALLER = 0, 1, 2
"""Who plays the second player: nobody, the batch itself, or whoever calls `step`."""

WEAK_GAIN, STRONG_GAIN = 0.5, 10.0
OPPONENTS = {
    "none": (NOBODY, 0.0),
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
MAX_SPEED = 60.0
"""Launches are no faster than the original's; a puck much faster could cross a racket unseen."""

MAX_GAIN = 100.0
MAX_WEIGHT = 1e6

MAX_TIME_LIMIT = 1_000_000
"""Beyond every mode's own limit, which no task can lengthen: rewards are expressed in it."""

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
"""Everything a task may say, and what holds if it does not."""

TASK_DTYPE = np.dtype(
    [
        ("mode", "i8"),
        ("opponent", "i8"),
        ("gain", "f8"),
        ("keep_mode", "i8"),
        ("puck_speed", "f8"),
        ("starts", "i8"),
        ("original_starts", "i8"),
        ("no_loss_suffices", "i8"),
        ("time_limit", "i8"),
        ("closeness_weight", "f8"),
        ("touch_weight", "f8"),
        ("direction_weight", "f8"),
        ("has_seed", "i8"),
        ("seed", "u8"),
    ]
)


class TaskShelf(NamedTuple):
    """Tasks as kernels read them; one row per env, or per slot of a curriculum."""

    records: npt.NDArray[Any]
    """Of dtype `TASK_DTYPE`."""

    def saved_arrays(self, place: str) -> list[SavedArray]:
        """Describe tasks that `write_task` can have written."""
        weights = ("closeness_weight", "touch_weight", "direction_weight")
        parts = (
            Part.count("mode", "mode", max(MODES.values())),
            Part.count("opponent", "opponent", CALLER),
            Part("gain", "gain", 0.0, MAX_GAIN),
            Part("puck_speed", "puck_speed", 0.0, MAX_SPEED),
            Part("starts", "starts", -1, 1),
            *(
                Part.count(flag, flag, 1)
                for flag in ("keep_mode", "original_starts", "no_loss_suffices", "has_seed")
            ),
            Part.count("time_limit", "time_limit", MAX_TIME_LIMIT),
            *(Part(weight, weight, -MAX_WEIGHT, MAX_WEIGHT) for weight in weights),
        )
        return [SavedArray(f"{place}/records", self.records, parts)]


def write_task(record: Any, params: Mapping[str, Any], seed: int | None, name: str) -> None:
    """Fill one record.

    Args:
        record: One element of `TASK_DTYPE`.
        params: By the keys of `DEFAULTS`; others are ignored.
        seed: Seeds every episode of the task alike; None leaves that to the env.
        name: What to call the task in messages.

    Raises:
        TaskError: A value makes no sense.
    """
    said = {**DEFAULTS, **params}
    record["mode"] = mode = _mode(said["mode"], name)
    record["opponent"], record["gain"] = _opponent(said, name)
    if said["opponent_gain"] is not None:
        # Also where the opponent is not scripted: a phase may draw another one per episode.
        record["gain"] = _number("opponent_gain", said, 0.0, MAX_GAIN, name)
    record["keep_mode"] = _truth("keep_mode", said, name)
    if said["puck_speed"] is None:
        record["puck_speed"] = DEFENSE_SPEED if mode == TRAIN_DEFENSE else 0.0
    else:
        record["puck_speed"] = _number("puck_speed", said, 0.0, MAX_SPEED, name)
    record["starts"] = _choice(STARTS, "starts", said, name)
    record["original_starts"] = _truth("original_starts", said, name)
    if said["success"] is None:
        said["success"] = "no_loss" if mode == TRAIN_DEFENSE else "win"
    record["no_loss_suffices"] = _choice(SUCCESSES, "success", said, name)
    limit = MAX_TIME_LIMIT if said["time_limit"] is None else said["time_limit"]
    what = f"time_limit of task {name!r}"
    record["time_limit"] = whole_number(limit, what, 1, MAX_TIME_LIMIT)
    for key in ("closeness_weight", "touch_weight", "direction_weight"):
        record[key] = _number(key, said, -MAX_WEIGHT, MAX_WEIGHT, name)
    record["has_seed"], record["seed"] = seed is not None, seed or 0


def _mode(value: Any, name: str) -> int:
    if isinstance(value, str) and value.upper() in MODES:
        return MODES[value.upper()]
    if _is_number(value) and value in MODES.values():
        return int(value)
    raise TaskError(f"mode of task {name!r} must be one of {list(MODES)}; got {value!r}.")


def _opponent(said: dict[str, Any], name: str) -> tuple[int, float]:
    value = said["opponent"]
    if isinstance(value, str) and value.startswith(CALLED) and len(value) > len(CALLED):
        return OPPONENTS["caller"]
    if not isinstance(value, str) or value not in OPPONENTS:
        raise TaskError(
            f"opponent of task {name!r} must be one of {list(OPPONENTS)}, or {CALLED!r} with a "
            f"name behind it; got {value!r}."
        )
    return OPPONENTS[value]


def _choice(choices: dict[str, Any], key: str, said: dict[str, Any], name: str) -> Any:
    value = said[key]
    if not isinstance(value, str) or value not in choices:
        raise TaskError(f"{key} of task {name!r} must be one of {list(choices)}; got {value!r}.")
    return choices[value]


def _number(key: str, said: dict[str, Any], lowest: float, highest: float, name: str) -> float:
    value = said[key]
    if not _is_number(value) or not lowest <= value <= highest:
        raise TaskError(
            f"{key} of task {name!r} must be a number from {lowest:g} to {highest:g}; got "
            f"{value!r}."
        )
    return float(value)


def _truth(key: str, said: dict[str, Any], name: str) -> bool:
    if not isinstance(said[key], bool | np.bool_):
        raise TaskError(f"{key} of task {name!r} must be true or false; got {said[key]!r}.")
    return bool(said[key])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
