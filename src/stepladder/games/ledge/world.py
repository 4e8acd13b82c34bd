"""What the kernels read and write: a runner's record, and a level in arrays of fixed size.

Between `level` (text and Python) and the kernels (`physics`, `views`, `rewards`, `planner`). Arrays
of a level carry a margin of wall on each side, so that no kernel ever asks whether a tile exists.

One unit of length is one tile, x to the right and y downwards from the map's upper left corner;
speeds are tiles per step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stepladder.compiled import compiled
from stepladder.games.ledge.level import MAX_HEIGHT, MAX_WIDTH, Level, Place
from stepladder.games.ledge.tiles import MINE, WALL

MARGIN = 6
"""Tiles of wall on each side of a packed level: more than a patch reaches."""

PACKED_HEIGHT = MAX_HEIGHT + 2 * MARGIN
PACKED_WIDTH = MAX_WIDTH + 2 * MARGIN

UNREACHABLE = 65535
"""Distance of a tile from which there is no way."""

# A record's element type is its own: NumPy's stubs cannot name fields.
Runner = Any
LevelRecord = Any
Tiles = npt.NDArray[np.uint8]
Distances = npt.NDArray[np.uint16]

RUNNER_DTYPE = np.dtype(
    [
        ("x", np.float64),
        ("y", np.float64),
        ("vx", np.float64),
        ("vy", np.float64),
        ("on_ground", np.int64),
        ("wall", np.int64),  # -1 or 1: pushes against a wall on its left or right; else 0
        ("facing", np.int64),  # -1 or 1: where it last meant to go
        ("rising", np.int64),  # 1 while a held jump still carries it up
        ("jump_held", np.int64),  # 1 if the last action was a jump
        ("jump_buffer", np.int64),  # steps for which a press is still remembered
        ("ground_grace", np.int64),  # steps for which it may still jump off the ground it left
        ("wall_grace", np.int64),  # steps for which it may still jump off the wall it left
        ("grace_wall", np.int64),  # which side that wall is on
        ("switch_touched", np.int64),
        ("steps", np.int64),
    ],
    align=True,
)
"""Everything about one runner in one episode."""

LEVEL_DTYPE = np.dtype(
    [
        ("height", np.int64),
        ("width", np.int64),
        ("time_limit", np.int64),
        ("start_x", np.float64),  # centres of tiles
        ("start_y", np.float64),
        ("switch_x", np.float64),
        ("switch_y", np.float64),
        ("door_x", np.float64),
        ("door_y", np.float64),
        ("switch_to_door", np.float64),  # tiles of way; 0 where there is none
        ("way", np.float64),  # tiles of way from the start over the switch to the door; at least 1
    ],
    align=True,
)
"""What kernels need to know of a level beside its tiles."""


class PackedLevel(NamedTuple):
    """A level in the form that kernels read; each array has the packed shape."""

    tiles: Tiles
    """Codes, shape ``(PACKED_HEIGHT, PACKED_WIDTH)``; tile (row, column) is at + `MARGIN`."""

    record: LevelRecord
    """One element of `LEVEL_DTYPE`."""

    to_switch: Distances
    """Tiles of way to the switch around walls and mines; `UNREACHABLE` where there is none."""

    to_door: Distances
    """Tiles of way to the door."""


def pack(level: Level) -> PackedLevel:
    """Bring a level into arrays of fixed size."""
    tiles = np.full((PACKED_HEIGHT, PACKED_WIDTH), WALL, dtype=np.uint8)
    tiles[MARGIN : MARGIN + level.height, MARGIN : MARGIN + level.width] = level.tiles
    to_switch = np.empty(tiles.shape, dtype=np.uint16)
    to_door = np.empty(tiles.shape, dtype=np.uint16)
    fill_distances(tiles, MARGIN + level.switch[0], MARGIN + level.switch[1], to_switch)
    fill_distances(tiles, MARGIN + level.door[0], MARGIN + level.door[1], to_door)
    record = np.zeros(1, dtype=LEVEL_DTYPE)[0]
    record["height"], record["width"] = level.height, level.width
    record["time_limit"] = level.time_limit
    for name, place in (("start", level.start), ("switch", level.switch), ("door", level.door)):
        record[f"{name}_x"], record[f"{name}_y"] = place[1] + 0.5, place[0] + 0.5
    record["switch_to_door"] = _known(to_door, level.switch)
    record["way"] = max(1.0, _known(to_switch, level.start) + _known(to_door, level.switch))
    return PackedLevel(tiles, record, to_switch, to_door)


def _known(distances: Distances, place: Place) -> float:
    distance = int(distances[MARGIN + place[0], MARGIN + place[1]])
    return 0.0 if distance == UNREACHABLE else float(distance)


@compiled
def fill_distances(tiles: Tiles, row: int, column: int, distances: Distances) -> None:
    """Write the number of steps between neighbouring tiles from each tile to a goal.

    A breadth-first walk over all tiles that are neither wall nor mine; gravity plays no part.

    Args:
        tiles: A packed level.
        row: Row of the goal in it.
        column: Column of the goal in it.
        distances: Filled in place, of the same shape.
    """
    distances[:] = UNREACHABLE
    queue = np.empty((tiles.size, 2), dtype=np.int64)
    queue[0, 0], queue[0, 1] = row, column
    distances[row, column] = 0
    first, last = 0, 1
    while first < last:
        i, j = queue[first, 0], queue[first, 1]
        first += 1
        for step_down, step_right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            below, beside = i + step_down, j + step_right
            code = tiles[below, beside]
            if code in (WALL, MINE) or distances[below, beside] != UNREACHABLE:
                continue
            distances[below, beside] = distances[i, j] + 1
            queue[last, 0], queue[last, 1] = below, beside
            last += 1
