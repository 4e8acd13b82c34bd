"""Both games in several settings, and what tests of them need: makers, comparisons, random play."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from stepladder.games import HockeyEnv, HockeyVectorEnv, LedgeEnv, LedgeVectorEnv
from stepladder.games.batch import GameVectorEnv
from stepladder.games.single import GameEnv
from stepladder.tasks import Task

HOCKEY, LEDGE = "stepladder/Hockey-v0", "stepladder/Ledge-v0"
IDS = {"hockey": HOCKEY, "ledge": LEDGE}
VECTOR_ENVS: dict[str, Any] = {"hockey": HockeyVectorEnv, "ledge": LedgeVectorEnv}
SINGLE_ENVS: dict[str, Any] = {"hockey": HockeyEnv, "ledge": LedgeEnv}
MODES = list(AutoresetMode)
NEXT_STEP, SAME_STEP, DISABLED = (
    AutoresetMode.NEXT_STEP,
    AutoresetMode.SAME_STEP,
    AutoresetMode.DISABLED,
)

DEADLY = """
##########
#........#
#........#
#........#
#@...*.SD#
##########
"""
"""Running to the right kills; jumping over the mine wins."""

EASY = """
######
#@.SD#
######
"""
"""Running to the right wins."""

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "hockey": ("hockey", {}),
    "hockey shooting": ("hockey", {"mode": "TRAIN_SHOOTING", "puck_speed": 20.0}),
    "hockey defence": ("hockey", {"mode": "TRAIN_DEFENSE", "opponent": "strong"}),
    "hockey alone": ("hockey", {"mode": 1, "opponent": "none", "keep_mode": False}),
    "hockey joint": ("hockey", {"mode": "TRAIN_SHOOTING", "players": "joint"}),
    "hockey both": ("hockey", {"mode": "TRAIN_DEFENSE", "players": "both"}),
    "hockey discrete": ("hockey", {"mode": "TRAIN_DEFENSE", "actions": "discrete"}),
    "hockey fine": (
        "hockey",
        {"mode": "TRAIN_SHOOTING", "actions": "discrete", "fineness": 3, "players": "both"},
    ),
    "hockey joint discrete": (
        "hockey",
        {"mode": "TRAIN_DEFENSE", "actions": "discrete", "players": "joint", "opponent": "weak"},
    ),
    "hockey shaped": (
        "hockey",
        {"closeness_weight": 0.5, "touch_weight": 2.0, "direction_weight": -1.0, "starts": "two"},
    ),
    "ledge": ("ledge", {}),
    "ledge shaped": ("ledge", {"shaping": True, "gamma": 0.9, "stage": "complex"}),
    "ledge route": ("ledge", {"show_route": True, "stage": "exploration"}),
    "ledge mines": ("ledge", {"stage": "mine_heavy"}),
    "ledge deadly": ("ledge", {"level": DEADLY, "shaping": True}),
    "ledge easy": ("ledge", {"level": EASY}),
}

SHORT: dict[str, dict[str, Any]] = {
    "ledge": {"time_limit": 25},
    "ledge shaped": {"time_limit": 40},
    "ledge route": {"time_limit": 30},
    "ledge mines": {"time_limit": 60},
    "ledge deadly": {"time_limit": 50},
}
"""What makes the episodes of some cases short; those of the others are."""


def game_of(case: str) -> str:
    return CASES[case][0]


def settings_of(case: str) -> dict[str, Any]:
    return {**CASES[case][1], **SHORT.get(case, {})}


def make_batch(case: str, num_envs: int, **settings: Any) -> GameVectorEnv:
    """Make a vector env of a case, with short episodes."""
    return VECTOR_ENVS[game_of(case)](num_envs, **{**settings_of(case), **settings})


def single_functions(case: str, num_envs: int, **settings: Any) -> list[Callable[[], GameEnv]]:
    """Return functions that make single envs of a case."""
    kind = SINGLE_ENVS[game_of(case)]
    return [partial(kind, **{**settings_of(case), **settings})] * num_envs


def random_actions(vec: Any, rng: np.random.Generator) -> Any:
    """Draw actions for all envs of a vector env; much quicker than its action space does."""
    return _random_of(vec.action_space, rng)


def _random_of(space: Any, rng: np.random.Generator) -> Any:
    if hasattr(space, "spaces"):
        return {key: _random_of(part, rng) for key, part in space.spaces.items()}
    if hasattr(space, "nvec"):
        return rng.integers(space.nvec)
    if space.dtype.kind == "i":
        return rng.integers(space.low, space.high, endpoint=True)
    # To the limits now and then: they are allowed, too.
    return np.clip(rng.normal(size=space.shape), -1.0, 1.0).astype(space.dtype)


def assert_same(ours: Any, theirs: Any, where: str = "") -> None:
    """Compare two nested values: types, structure, and every element."""
    if isinstance(theirs, dict):
        # Infos of a batch are dicts of their own kind.
        assert isinstance(ours, dict), f"{where}: {type(ours)} and {type(theirs)}"
        assert ours.keys() == theirs.keys(), where
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{where}[{key!r}]")
        return
    assert type(ours) is type(theirs), f"{where}: {type(ours)} and {type(theirs)}"
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs), where
        for index, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(our, their, f"{where}[{index}]")
    elif isinstance(theirs, np.ndarray) and theirs.dtype == object:
        assert ours.dtype == object, where
        assert_same(list(ours), list(theirs), where)
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype, where
        if not np.array_equal(ours, theirs):
            # Slow, but it tells what differs.
            np.testing.assert_array_equal(ours, theirs, err_msg=where)
    else:
        assert ours == theirs, where


def rows_of(value: Any, rows: Any) -> Any:
    """Take some rows of everything that a step or reset returned, but of infos in dicts."""
    if isinstance(value, dict):
        return {key: rows_of(part, rows) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(rows_of(part, rows) for part in value)
    return value[rows]


def level_task(name: str, level: str = EASY, label: str = "default", **params: Any) -> Task:
    """Return a task for Ledge."""
    return Task(name, label, {"level": level, **params})
