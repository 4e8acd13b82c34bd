"""MiniGrid's levels as one env with tasks, for the world of that name in `prediction_worlds`.

MiniGrid makes and plays the levels; this wrapper chooses which one, shows what lies before the
agent as numbers, and says whether it succeeded. A task names a registered env of MiniGrid and the
seed that makes the level, so that the same task is the same level every time.

What is seen are MiniGrid's 7 x 7 cells before the agent, but through walls, one number per cell and
thing; then what is carried, and the direction. MiniGrid makes its view from objects at every
step, which takes most of its time. Here the things are kept in an array, in which only the cell
before the agent can change.
"""

from functools import cache
from typing import Any

import gymnasium as gym
import minigrid  # noqa: F401, registers its envs
import numpy as np
import numpy.typing as npt
from minigrid.core.actions import Actions
from minigrid.minigrid_env import MiniGridEnv

from stepladder import Task

VIEW = 7
"""Cells on each side of what is seen, as in MiniGrid."""

THINGS = ("wall", "goal", "key", "ball", "box", "lava", "locked door", "closed door", "open door")
CARRIED = ("key", "ball", "box")
ACTIONS = tuple(action for action in Actions if action is not Actions.done)
"""Without the one that does nothing."""

WAYS = (((1, 0), (0, 1)), ((0, 1), (-1, 0)), ((-1, 0), (0, -1)), ((0, -1), (1, 0)))
"""Which way lies ahead, and which to the right, by direction."""

NUM_MORE = len(CARRIED) + len(WAYS)
"""Numbers that are seen beside the cells."""

NUM_SEEN = VIEW * VIEW * len(THINGS) + NUM_MORE

Codes = npt.NDArray[np.int64]
Seen = npt.NDArray[np.float32]


@cache
def _looks(stride: int) -> Codes:
    """Return where the cells of the view lie in a flat array, from the agent, by direction."""
    ahead, aside = np.meshgrid(np.arange(VIEW), np.arange(VIEW) - VIEW // 2, indexing="ij")
    places = [
        [ahead * forward[axis] + aside * right[axis] for axis in (0, 1)] for forward, right in WAYS
    ]
    return np.array([(x * stride + y).ravel() for x, y in places])


def _code(cell: Any) -> int:
    """Return the number that stands for what is in a cell; 0 is nothing that matters."""
    if cell is None or cell.type == "floor":
        return 0
    if cell.type != "door":
        return THINGS.index(cell.type) + 1
    state = "locked" if cell.is_locked else "open" if cell.is_open else "closed"
    return THINGS.index(f"{state} door") + 1


class GridLevels(gym.Env[Seen, Any]):
    """Plays the level that the task names; any reward is a success."""

    action_space = gym.spaces.Discrete(len(ACTIONS))
    observation_space = gym.spaces.Box(0, 1, (NUM_SEEN,), np.float32)

    def __init__(self) -> None:
        self._made: dict[str, MiniGridEnv] = {}
        self._table = np.eye(len(THINGS) + 1, dtype=np.float32)[:, 1:].copy()

    def set_task(self, task: Task) -> None:
        """Choose the level of the next episode."""
        name = task.params["env"]
        if name not in self._made:
            made: Any = gym.make(name, disable_env_checker=True).unwrapped
            # Its own view is not looked at.
            made.gen_obs = dict
            self._made[name] = made
        self._level, self._seed = self._made[name], task.seed

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        """Make the level again: the same every time, whatever the seed of the episode."""
        super().reset(seed=seed)
        level = self._level
        level.reset(seed=self._seed)
        grid = level.grid
        self._stride = grid.height + 2 * VIEW
        cells = np.full((grid.width + 2 * VIEW, self._stride), THINGS.index("wall") + 1)
        codes = np.array([_code(cell) for cell in grid.grid])
        cells[VIEW:-VIEW, VIEW:-VIEW] = codes.reshape(grid.height, grid.width).T
        self._cells, self._looks = cells.ravel(), _looks(self._stride)
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Play one step in MiniGrid."""
        level, chosen = self._level, ACTIONS[action]
        _, reward, terminated, truncated, _ = level.step(chosen)
        if chosen > Actions.forward:
            x, y = level.front_pos
            self._cells[self._place(x, y)] = _code(level.grid.get(x, y))
        is_success = float(reward) > 0.0
        return self._seen(), float(reward), terminated, truncated, {"is_success": is_success}

    def _place(self, x: Any, y: Any) -> int:
        return (int(x) + VIEW) * self._stride + int(y) + VIEW

    def _seen(self) -> Seen:
        level = self._level
        seen = np.zeros(NUM_SEEN, dtype=np.float32)
        around = self._looks[level.agent_dir] + self._place(*level.agent_pos)
        seen[:-NUM_MORE] = self._table[self._cells[around]].ravel()
        if level.carrying is not None:
            seen[-NUM_MORE + CARRIED.index(level.carrying.type)] = 1.0
        seen[-len(WAYS) + level.agent_dir] = 1.0
        return seen
