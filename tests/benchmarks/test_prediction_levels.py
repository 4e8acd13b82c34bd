"""MiniGrid's levels as tasks: what is seen is what MiniGrid shows, and a seed makes the level."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")

constants: Any = pytest.importorskip("minigrid.core.constants")


def benchmark(name: str) -> Any:
    """Import a benchmark; its folder does not stay, because one is named as a folder of tests."""
    sys.path.append(BENCHMARKS)
    try:
        return import_module(name)
    finally:
        sys.path.remove(BENCHMARKS)
        # The fuzzers have a module of the same name.
        sys.modules.pop("harness", None)


prediction_levels, levels = benchmark("prediction_levels"), benchmark("prediction_worlds").levels
THINGS, VIEW = prediction_levels.THINGS, prediction_levels.VIEW
GridLevels = prediction_levels.GridLevels

STATES = {number: name for name, number in constants.STATE_TO_IDX.items()}


def things_in_view(level: Any) -> np.ndarray:
    """Return MiniGrid's own view through walls, in our numbers; rows go ahead from the agent."""
    level.see_through_walls = True
    image = prediction_levels.MiniGridEnv.gen_obs(level)["image"]
    found = np.zeros((VIEW, VIEW), dtype=int)
    for ahead in range(VIEW):
        for aside in range(VIEW):
            kind, _, state = image[aside, VIEW - 1 - ahead].tolist()
            name = constants.IDX_TO_OBJECT[kind]
            name = f"{STATES[state]} door" if name == "door" else name
            found[ahead, aside] = THINGS.index(name) + 1 if name in THINGS else 0
    return found


def in_numbers(seen: np.ndarray) -> np.ndarray:
    cells = seen[: VIEW * VIEW * len(THINGS)].reshape(VIEW, VIEW, len(THINGS))
    return np.where(cells.any(axis=2), cells.argmax(axis=2) + 1, 0)


@pytest.mark.parametrize("name", ["DoorKey-5x5", "KeyCorridorS3R2", "MultiRoom-N2-S4"])
def test_what_is_seen_is_minigrids_own_view_through_walls(name: str):
    env, rng = GridLevels(), np.random.default_rng(0)
    for task in levels((name,), range(3)):
        env.set_task(task)
        seen, _ = env.reset(seed=0)
        for _ in range(60):
            expected, found = things_in_view(env._level), in_numbers(seen)
            # MiniGrid shows what is carried where the agent stands; we show the cell.
            expected[0, VIEW // 2] = found[0, VIEW // 2]
            # Beyond the grid MiniGrid shows walls, as we do.
            np.testing.assert_array_equal(found, expected)
            seen, _, terminated, truncated, _ = env.step(int(rng.integers(6)))
            if terminated or truncated:
                break


def test_a_task_is_the_same_level_whatever_the_seed_of_the_episode():
    env = GridLevels()
    first, second = levels(("DoorKey-6x6",), range(2))
    env.set_task(first)
    seen = [env.reset(seed=seed)[0].tolist() for seed in (0, 1)]
    env.set_task(second)
    other = env.reset(seed=0)[0].tolist()
    assert seen[0] == seen[1] != other


def test_success_is_to_reach_the_goal():
    """Two cells on, turn right, two more: from the corner of the empty room to the other one."""
    env = GridLevels()
    (task,) = levels(("Empty-5x5",), range(1))
    env.set_task(task)
    env.reset(seed=0)
    infos = [env.step(action)[-1]["is_success"] for action in (2, 2, 1, 2, 2)]
    assert infos == [False, False, False, False, True]
