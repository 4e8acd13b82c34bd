"""Checks that saved runners and levels fit together, so that kernels can continue with them.

Used by the vector env when games are restored in mid-flight, after `saving.saved_array` has checked
each value by itself. Kernels look up tiles without a bounds check. They rely on the margin of wall
around a level, on a runner that overlaps no wall, and on speeds below one tile per step: together
these keep the runner inside its level.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Flags
from stepladder.errors import SnapshotError
from stepladder.games.ledge import physics
from stepladder.games.ledge.level import MAX_HEIGHT, MAX_LEVEL_STEPS, MAX_WIDTH, Level
from stepladder.games.ledge.tiles import AIR, CODE_NAMES, DOOR, SWITCH, WALL
from stepladder.games.ledge.world import MARGIN, LevelRecord, pack
from stepladder.saving.saved_array import Part, require_parts

Arrays = Mapping[str, npt.NDArray[Any]]


def check_levels(prepared: str, arrays: Arrays, is_used: Flags, place: str) -> None:
    """Raise `SnapshotError` unless rows of prepared levels are what `world.pack` makes of a level.

    Args:
        prepared: The first part of the names of its arrays.
        arrays: Saved arrays by name; each value is possible by itself.
        is_used: Which rows kernels may read. The others need not hold a level.
        place: Where they were saved.
    """
    names = [f"{prepared}/{name}" for name in ("records", "tiles", "to_switch", "to_door")]
    expected = {name: arrays[name].copy() for name in names}
    for row in np.flatnonzero(is_used).tolist():
        record, tiles = arrays[names[0]][row], arrays[names[1]][row]
        packed = pack(_read_level(names[0], row, record, tiles, place))
        expected[names[0]][row], expected[names[1]][row] = packed.record, packed.tiles
        # Without shaping or a route, there is no room for distances.
        if expected[names[2]][row].shape == packed.to_switch.shape:
            expected[names[2]][row], expected[names[3]][row] = packed.to_switch, packed.to_door
    for field in LevelRecord.dtype.names or ():
        values = expected[names[0]][field]
        _refuse(names[0], place, Part(field, field, values, values).problem(arrays[names[0]]))
    for name in names[1:]:
        values = expected[name]
        _refuse(name, place, Part("value", ..., values, values).problem(arrays[name]))


def _read_level(
    name: str, row: int, record: Any, tiles: npt.NDArray[np.uint8], place: str
) -> Level:
    """Return the level that a record and its tiles describe."""
    for field in ("height", "width", "time_limit"):
        if record[field] < 1:
            _refuse(name, place, f"{field}[{row}] is {record[field]}; expected at least 1")
    height, width = int(record["height"]), int(record["width"])
    inner = tiles[MARGIN : MARGIN + height, MARGIN : MARGIN + width]
    places: dict[str, tuple[int, int]] = {}
    for kind, code in (("start", AIR), ("switch", SWITCH), ("door", DOOR)):
        x, y = float(record[f"{kind}_x"]), float(record[f"{kind}_y"])
        places[kind] = (int(y), int(x))
        is_inside = y < height and x < width
        is_unique = code == AIR or np.count_nonzero(inner == code) == 1
        if not is_inside or inner[places[kind]] != code or not is_unique:
            _refuse(
                name,
                place,
                f"the {kind} of row {row} is at x {x:g}, y {y:g} of a level of {width} x {height} "
                f"tiles; expected {'a' if code == AIR else 'the only'} tile of {CODE_NAMES[code]}",
            )
    start, switch, door = places["start"], places["switch"], places["door"]
    return Level(name, inner, start, switch, door, int(record["time_limit"]))


def check_runners(arrays: Arrays, has_begun: Flags, is_playing: Flags, place: str) -> None:
    """Raise `SnapshotError` unless runners are inside their levels, in no wall and in time.

    Args:
        arrays: Saved arrays by name; the levels of `has_begun` have been checked.
        has_begun: Which rows have a runner in a level.
        is_playing: Which of them the next step moves.
        place: Where the arrays come from, for messages.
    """
    runners, levels = arrays["game/runners"], arrays["playing/records"]
    # An episode ends with the step that reaches the limit.
    limits = levels["time_limit"] - is_playing
    require_parts(
        "game/runners",
        place,
        x=(runners["x"], np.where(has_begun, levels["width"], MAX_WIDTH)),
        y=(runners["y"], np.where(has_begun, levels["height"], MAX_HEIGHT)),
        steps=(runners["steps"], np.where(has_begun, limits, MAX_LEVEL_STEPS)),
    )
    tiles, envs = arrays["playing/tiles"], np.arange(len(runners))
    reach_x, reach_y = (
        physics.HALF_WIDTH - physics.EDGE_MARGIN,
        physics.HALF_HEIGHT - physics.EDGE_MARGIN,
    )
    for side_x, side_y in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        columns = (runners["x"] + side_x * reach_x + MARGIN).astype(np.int64)
        rows = (runners["y"] + side_y * reach_y + MARGIN).astype(np.int64)
        in_wall = np.flatnonzero(has_begun & (tiles[envs, rows, columns] == WALL))
        if len(in_wall):
            env = int(in_wall[0])
            x, y = runners["x"][env], runners["y"][env]
            _refuse(
                "game/runners",
                place,
                f"runner {env} is at x {x:g}, y {y:g} and overlaps a wall; expected free tiles",
            )


def _refuse(array_name: str, place: str, problem: str | None) -> None:
    if problem is not None:
        raise SnapshotError(
            f"array {array_name!r} of {place}: {problem}. It is damaged; use an older one."
        )
