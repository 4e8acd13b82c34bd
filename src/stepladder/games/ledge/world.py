"""A level in arrays of fixed size, as kernels read it.

Between `level` (text and Python) and the kernels (`physics`, `views`, `planner`). Arrays of a level
have a margin of wall on each side, so that no kernel has to check whether a tile exists.

One unit of length is one tile, x to the right and y downwards from the map's upper left corner;
speeds are tiles per step.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Bytes
from stepladder.compiled import compiled
from stepladder.games.ledge.level import MAX_HEIGHT, MAX_LEVEL_STEPS, MAX_WIDTH, Level, TilePlace
from stepladder.games.ledge.tiles import DOOR, MINE, WALL
from stepladder.records import Fields, Limits, Records
from stepladder.saving.saved_array import Part, SavedArray

MARGIN = 6
"""Tiles of wall on each side of a packed level: more than a patch reaches."""

PACKED_HEIGHT = MAX_HEIGHT + 2 * MARGIN
PACKED_WIDTH = MAX_WIDTH + 2 * MARGIN

UNREACHABLE = 65535
"""Distance of a tile from which there is no way."""

Distances = npt.NDArray[np.uint16]

Size: TypeAlias = Annotated[float, Limits(0.0, MAX_WIDTH)]


class LevelRecord(Fields):
    """What kernels need of a level beside its tiles."""

    height: Annotated[int, Limits(0, MAX_HEIGHT)]
    width: Annotated[int, Limits(0, MAX_WIDTH)]
    time_limit: Annotated[int, Limits(0, MAX_LEVEL_STEPS)]
    start_x: Size  # centres of tiles
    start_y: Size
    switch_x: Size
    switch_y: Size
    door_x: Size
    door_y: Size
    switch_to_door: Annotated[float, Limits(0.0, UNREACHABLE)]  # tiles of way; 0 if there is none
    way: Annotated[float, Limits(1.0, 2.0 * UNREACHABLE)]  # tiles: start, switch, door; at least 1


class PreparedLevels(NamedTuple):
    """Levels as kernels read them; one row per env, or per slot of a curriculum."""

    records: Records[LevelRecord]
    tiles: Bytes
    to_switch: Distances
    """Without shaping or a route this and the next have one element per row."""
    to_door: Distances

    @staticmethod
    def zeros(num_rows: int, has_distances: bool) -> PreparedLevels:
        """Return room for so many levels, all wall."""
        shape = (num_rows, PACKED_HEIGHT, PACKED_WIDTH)
        records = LevelRecord.zeros(num_rows)
        records["way"][:] = 1.0
        distances = np.zeros((2, *(shape if has_distances else (num_rows, 1, 1))), dtype=np.uint16)
        return PreparedLevels(records, np.full(shape, WALL, dtype=np.uint8), *distances)

    def saved_arrays(self, place: str) -> list[SavedArray]:
        """Describe levels that kernels can read: no way leads out of their margin of wall."""
        margins = (
            np.s_[:, :MARGIN],
            np.s_[:, -MARGIN:],
            np.s_[:, :, :MARGIN],
            np.s_[:, :, -MARGIN:],
        )
        tiles = (
            Part.count("tile", high=DOOR),
            *(Part("tile of the margin", margin, WALL, WALL) for margin in margins),
        )
        return [
            SavedArray(f"{place}/records", np.asarray(self.records), LevelRecord.parts()),
            SavedArray(f"{place}/tiles", self.tiles, tiles),
            SavedArray(f"{place}/to_switch", self.to_switch),
            SavedArray(f"{place}/to_door", self.to_door),
        ]


class PackedLevel(NamedTuple):
    """A level in the form that kernels read; each array has the packed shape."""

    tiles: Bytes
    """Codes, shape ``(PACKED_HEIGHT, PACKED_WIDTH)``; tile (row, column) is at + `MARGIN`."""

    record: LevelRecord

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
    record: Any = LevelRecord.zeros()[0]
    record["height"], record["width"] = level.height, level.width
    record["time_limit"] = level.time_limit
    for name, place in (("start", level.start), ("switch", level.switch), ("door", level.door)):
        record[f"{name}_x"], record[f"{name}_y"] = place[1] + 0.5, place[0] + 0.5
    record["switch_to_door"] = _known(to_door, level.switch)
    record["way"] = max(1.0, _known(to_switch, level.start) + _known(to_door, level.switch))
    return PackedLevel(tiles, record, to_switch, to_door)


def _known(distances: Distances, place: TilePlace) -> float:
    distance = int(distances[MARGIN + place[0], MARGIN + place[1]])
    return 0.0 if distance == UNREACHABLE else float(distance)


@compiled
def fill_distances(tiles: Bytes, row: int, column: int, distances: Distances) -> None:
    """Write the distance in tiles from each tile of a packed level to the goal at row and column.

    A breadth-first search over all tiles that are neither wall nor mine; gravity plays no part.
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
