"""The parameters of a hockey task: who plays, how the game starts, what counts as success.

Between tasks and kernels: params are checked here and become one record per env or slot.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np

from stepladder.configs.checks import Integer, Limit, OneOf, Within, is_number
from stepladder.errors import TaskError
from stepladder.games.game import CALLED
from stepladder.games.hockey.opponents import STRONG_GAIN, WEAK_GAIN
from stepladder.games.hockey.world import (
    MAX_HOCKEY_STEPS,
    NORMAL,
    TRAIN_DEFENSE,
    TRAIN_SHOOTING,
)
from stepladder.records import Fields, Flag, Limits, Records
from stepladder.saving.saved_array import SavedArray

MODES = {"NORMAL": NORMAL, "TRAIN_SHOOTING": TRAIN_SHOOTING, "TRAIN_DEFENSE": TRAIN_DEFENSE}

NO_OPPONENT_PLAYS, SCRIPTED_OPPONENT, CALLER_OPPONENT = 0, 1, 2
"""Who plays the second player: none, the batch itself, or the caller of `step`."""

OPPONENTS = {
    "none": (NO_OPPONENT_PLAYS, 0.0),
    "weak": (SCRIPTED_OPPONENT, WEAK_GAIN),
    "strong": (SCRIPTED_OPPONENT, STRONG_GAIN),
    "basic_weak": (SCRIPTED_OPPONENT, WEAK_GAIN),
    "basic_strong": (SCRIPTED_OPPONENT, STRONG_GAIN),
    "caller": (CALLER_OPPONENT, 0.0),
}
"""Kind and gain by name."""

STARTS = {"one": -1, "balanced": 0, "two": 1}
REWARD_WEIGHTS = ("closeness_weight", "touch_weight", "direction_weight")

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


def _mode_problem(value: Any) -> str | None:
    is_known = isinstance(value, str) and value.upper() in MODES
    if is_known or (is_number(value) and value in MODES.values()):
        return None
    return f"must be one of {list(MODES)}; got {value!r}."


def _opponent_problem(value: Any) -> str | None:
    is_text = isinstance(value, str)
    if is_text and (value in OPPONENTS or (value.startswith(CALLED) and value != CALLED)):
        return None
    return f"must be one of {list(OPPONENTS)}, or {CALLED!r} and a name; got {value!r}."


def _bool_problem(value: Any) -> str | None:
    return None if isinstance(value, bool | np.bool_) else f"must be true or false; got {value!r}."


LIMITS: dict[str, Limit] = {
    "mode": _mode_problem,
    "opponent": _opponent_problem,
    "opponent_gain": Within(0.0, MAX_GAIN),
    "keep_mode": _bool_problem,
    "puck_speed": Within(0.0, MAX_SPEED),
    "starts": OneOf(tuple(STARTS)),
    "original_starts": _bool_problem,
    "success": OneOf(("win", "no_loss")),
    "time_limit": Integer(1, MAX_HOCKEY_STEPS),
    **dict.fromkeys(REWARD_WEIGHTS, Within(-MAX_WEIGHT, MAX_WEIGHT)),
}
"""What each parameter may be; None is allowed where it is the default."""


class TaskRecord(Fields):
    """A task as kernels read it, with the values that `write_task` can write."""

    mode: Annotated[int, Limits(0, TRAIN_DEFENSE)]
    opponent: Annotated[int, Limits(0, CALLER_OPPONENT)]
    gain: Annotated[float, Limits(0.0, MAX_GAIN)]
    keep_mode: Flag
    puck_speed: Annotated[float, Limits(0.0, MAX_SPEED)]
    starts: Annotated[int, Limits(-1, 1)]
    original_starts: Flag
    no_loss_suffices: Flag
    time_limit: Annotated[int, Limits(0, MAX_HOCKEY_STEPS)]
    closeness_weight: Weight
    touch_weight: Weight
    direction_weight: Weight
    has_seed: Flag
    seed: np.uint64


class PreparedTasks(NamedTuple):
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
    for key, limit in LIMITS.items():
        value = params[key]
        problem = None if value is None and DEFAULTS[key] is None else limit(value)
        if problem is not None:
            raise TaskError(f"{key} of task {name!r} {problem}")
    mode, speed, success = params["mode"], params["puck_speed"], params["success"]
    record["mode"] = mode = MODES[mode.upper()] if isinstance(mode, str) else mode
    record["opponent"], record["gain"] = OPPONENTS[params["opponent"].partition(":")[0]]
    if params["opponent_gain"] is not None:
        # Also where the opponent is not scripted: a phase may draw another one per episode.
        record["gain"] = params["opponent_gain"]
    if speed is None:
        speed = DEFENSE_SPEED if mode == TRAIN_DEFENSE else 0.0
    record["puck_speed"] = speed
    record["starts"] = STARTS[params["starts"]]
    record["no_loss_suffices"] = mode == TRAIN_DEFENSE if success is None else success == "no_loss"
    record["time_limit"] = params["time_limit"] or MAX_HOCKEY_STEPS
    for key in ("keep_mode", "original_starts", *REWARD_WEIGHTS):
        record[key] = params[key]
    record["has_seed"], record["seed"] = seed is not None, seed or 0
