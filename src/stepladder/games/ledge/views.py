"""What the agent sees: a vector of numbers and the tiles around the runner.

Called after each step by the vector env, one runner at a time, and written into the rows of its
observation arrays. Thanks to the margin of a packed level, the patch needs no check of the map's
edge.
"""

from typing import NamedTuple

import numpy as np

from stepladder.arrays import Bytes, Floats32
from stepladder.compiled import bare, inlined, record_at
from stepladder.games.ledge.physics import FALL_SPEED, GROUND_GRACE, RUN_SPEED, WALL_GRACE, Runner
from stepladder.games.ledge.tiles import DOOR_OPEN, SWITCH_TOUCHED
from stepladder.games.ledge.world import (
    MARGIN,
    UNREACHABLE,
    Distances,
    LevelRecord,
)


class RunnerView(NamedTuple):
    """The numbers that show the runner, its level and its time, in the order of a row."""

    x: float  # -1 at the left edge of the map, 1 at the right one
    y: float  # -1 at the upper edge, 1 at the lower one
    x_in_tile: float  # -1 at the left edge of the tile, 1 at the right one
    y_in_tile: float
    speed_x: float  # 1 is the running speed
    speed_y: float  # 1 is the fastest fall; a fresh jump is almost -1
    on_ground: float
    left_wall: float
    right_wall: float
    ground_grace: float  # 1 on the ground, falling to 0: a jump off the ground is possible above 0
    wall_grace: float  # sign: side of the wall that can be jumped off; size as above
    rising: float  # 1 while holding jump still carries up
    jump_held: float  # 1 if jump has to be let go before it can be pressed again
    switch_x: float  # offsets, squashed: distance / (distance + 5)
    switch_y: float
    door_x: float
    door_y: float
    switch_touched: float
    time_left: float  # from 1 down to 0


class RouteView(NamedTuple):
    """The numbers that follow `RunnerView` in envs that show the route."""

    near_x: float  # offset to a tile 4 tiles along the route, in 4 tiles
    near_y: float
    far_x: float  # offset to a tile 12 tiles along the route, in 12 tiles
    far_y: float
    left: float  # to the switch, or once it is touched to the door: distance / (distance + 20)


NUM_VECTOR = len(RunnerView._fields)
NUM_ROUTE = len(RouteView._fields)

RUNNER_VIEW = np.dtype([(name, np.float32) for name in RunnerView._fields])
ROUTE_VIEW = np.dtype([(name, np.float32) for name in RouteView._fields])
"""Both as they lie in a row of the observation."""

NEAR_TILES, FAR_TILES = 4, 12
ROUTE_SCALE = 20.0

OFFSET_SCALE = 5.0
"""Offsets of this many tiles are seen as one half."""

PATCH_HEIGHT = 9
PATCH_WIDTH = 11
_ABOVE = PATCH_HEIGHT // 2
_BESIDE = PATCH_WIDTH // 2


@inlined
def _squashed(offset: float) -> float:
    """Return a number in (-1, 1) that resolves near offsets finely and far ones coarsely."""
    return offset / (abs(offset) + OFFSET_SCALE)


@bare
def write_vector(runner: Runner, level: LevelRecord, row: Floats32) -> None:
    """Write a `RunnerView` into the first numbers of a row."""
    x, y = runner.x, runner.y
    view = record_at(row, 0, RUNNER_VIEW)
    view.x = 2.0 * x / level.width - 1.0
    view.y = 2.0 * y / level.height - 1.0
    view.x_in_tile = 2.0 * (x - int(x)) - 1.0
    view.y_in_tile = 2.0 * (y - int(y)) - 1.0
    view.speed_x = runner.vx * (1.0 / RUN_SPEED)
    view.speed_y = runner.vy * (1.0 / FALL_SPEED)
    view.on_ground = runner.on_ground
    view.left_wall = max(-runner.wall, 0)
    view.right_wall = max(runner.wall, 0)
    view.ground_grace = runner.ground_grace * (1.0 / GROUND_GRACE)
    view.wall_grace = runner.grace_wall * runner.wall_grace * (1.0 / WALL_GRACE)
    view.rising = runner.rising
    view.jump_held = runner.jump_held
    view.switch_x = _squashed(level.switch_x - x)
    view.switch_y = _squashed(level.switch_y - y)
    view.door_x = _squashed(level.door_x - x)
    view.door_y = _squashed(level.door_y - y)
    view.switch_touched = runner.switch_touched
    view.time_left = 1.0 - runner.steps / level.time_limit


@inlined
def _nearer(distances: Distances, i: int, j: int, down: int, right: int) -> tuple[int, int]:
    """Return in which direction the next tile is nearer to the goal: straight on if it is there."""
    nearer = distances[i, j] - 1
    if distances[i + down, j + right] == nearer:
        return down, right
    for to_down, to_right in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        if distances[i + to_down, j + to_right] == nearer:
            return to_down, to_right
    return 0, 0


@bare
def write_route(runner: Runner, distances: Distances, row: Floats32) -> None:
    """Write a `RouteView` into a row, behind the `RunnerView`.

    The route is a shortest one around walls and mines; gravity plays no part in it. It goes
    straight on where it can.

    Args:
        runner: Whose route it is.
        distances: From every tile to the runner's next goal.
        row: Room for both.
    """
    view = record_at(row, NUM_VECTOR, ROUTE_VIEW)
    i, j = int(runner.y) + MARGIN, int(runner.x) + MARGIN
    left = distances[i, j]
    view.near_x = view.near_y = view.far_x = view.far_y = 0.0
    if left == UNREACHABLE:
        view.left = 1.0
        return
    view.left = left / (left + ROUTE_SCALE)
    down, right = 0, 0
    for step in range(1, FAR_TILES + 1):
        if left > 0:
            down, right = _nearer(distances, i, j, down, right)
            i, j, left = i + down, j + right, left - 1
        if step == NEAR_TILES:
            view.near_x = (j - MARGIN + 0.5 - runner.x) * (1.0 / NEAR_TILES)
            view.near_y = (i - MARGIN + 0.5 - runner.y) * (1.0 / NEAR_TILES)
    view.far_x = (j - MARGIN + 0.5 - runner.x) * (1.0 / FAR_TILES)
    view.far_y = (i - MARGIN + 0.5 - runner.y) * (1.0 / FAR_TILES)


@inlined
def _put(patch: Bytes, row: int, column: int, code: int) -> None:
    if 0 <= row < PATCH_HEIGHT and 0 <= column < PATCH_WIDTH:
        patch[row, column] = code


@bare
def write_patch(runner: Runner, tiles: Bytes, level: LevelRecord, patch: Bytes) -> None:
    """Write the codes of the tiles around the one that holds the runner's centre.

    The patch has the shape ``(PATCH_HEIGHT, PATCH_WIDTH)``; everything outside the map is wall.
    """
    # Never below zero anyway, but this lets the compiler omit a check per tile.
    top = max(int(runner.y) + MARGIN - _ABOVE, 0)
    left = max(int(runner.x) + MARGIN - _BESIDE, 0)
    for i in range(PATCH_HEIGHT):
        for j in range(PATCH_WIDTH):
            patch[i, j] = tiles[top + i, left + j]
    if runner.switch_touched != 0:
        switch_row, switch_column = int(level.switch_y) + MARGIN, int(level.switch_x) + MARGIN
        door_row, door_column = int(level.door_y) + MARGIN, int(level.door_x) + MARGIN
        _put(patch, switch_row - top, switch_column - left, SWITCH_TOUCHED)
        _put(patch, door_row - top, door_column - left, DOOR_OPEN)
