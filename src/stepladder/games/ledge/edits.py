"""Small changes of a level that leave it solvable, for curricula that edit what they replay.

Called by `source.LedgeLevels.edit`. A change is drawn, tried on a copy and kept only if the planner
finds a way through the new level; otherwise another one is drawn. The outermost tiles never change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from stepladder.arrays import Bytes
from stepladder.games.ledge.generators.chance import Chance
from stepladder.games.ledge.held_out import fingerprint, held_out_fingerprints
from stepladder.games.ledge.level import Level, TilePlace
from stepladder.games.ledge.planner import solve
from stepladder.games.ledge.tiles import AIR, DOOR, MINE, PLATFORM, SWITCH, WALL

MAX_TRIES = 20
"""Changes drawn before a level is left as it is; one or two are usual."""

MAX_MOVE = 3
"""Tiles by which a mine, the start, the switch or the door moves at most, in each direction."""

LONGEST_LEDGE = 12
"""Tiles of the longest ledge that is shifted as a whole."""

_EDIT_STREAM = 2


def edit_level(level: Level, seed: int) -> Level:
    """Return a copy of a level with one small change, which the planner has solved.

    Args:
        level: The level; one that can be solved.
        seed: From 0 to 2**63 - 1. The same level and seed give the same change on every machine.

    Returns:
        The new level under the old name; the level itself if no change was found.
    """
    chance = Chance(seed, _EDIT_STREAM)
    for _ in range(MAX_TRIES):
        edited = chance.pick(_CHANGES)(level, chance)
        if edited is None or fingerprint(edited) in held_out_fingerprints():
            continue
        if edited.rows != level.rows and solve(edited) is not None:
            return edited
    return level


def _add_tile(level: Level, chance: Chance) -> Level | None:
    """Put a wall, a platform or a mine where there is air."""
    free = _places(level, AIR)
    if not free:
        return None
    return _with_tiles(level, {chance.pick(free): chance.pick((WALL, PLATFORM, MINE))})


def _remove_tile(level: Level, chance: Chance) -> Level | None:
    """Put air in place of a wall, a platform or a mine."""
    codes = [code for code in (WALL, PLATFORM, MINE) if _places(level, code)]
    if not codes:
        return None
    return _with_tiles(level, {chance.pick(_places(level, chance.pick(codes))): AIR})


def _move_mine(level: Level, chance: Chance) -> Level | None:
    """Move a mine to air nearby."""
    mines = _places(level, MINE)
    if not mines:
        return None
    mine = chance.pick(mines)
    free = _near(mine, _places(level, AIR))
    return _with_tiles(level, {mine: AIR, chance.pick(free): MINE}) if free else None


def _move_start(level: Level, chance: Chance) -> Level | None:
    """Move the start to air nearby that has ground under it."""
    free = _near(level.start, _standing(level))
    return replace(level, start=chance.pick(free)) if free else None


def _move_switch(level: Level, chance: Chance) -> Level | None:
    """Move the switch to air nearby."""
    free = _near(level.switch, _places(level, AIR))
    if not free:
        return None
    place = chance.pick(free)
    return replace(_with_tiles(level, {level.switch: AIR, place: SWITCH}), switch=place)


def _move_door(level: Level, chance: Chance) -> Level | None:
    """Move the door to air nearby that has ground under it."""
    free = _near(level.door, _standing(level))
    if not free:
        return None
    place = chance.pick(free)
    return replace(_with_tiles(level, {level.door: AIR, place: DOOR}), door=place)


def _shift_ledge(level: Level, chance: Chance) -> Level | None:
    """Move a row of walls or platforms by one tile, where only air is in the way."""
    ledges = _ledges(level)
    if not ledges:
        return None
    ledge = chance.pick(ledges)
    down, right = chance.pick(((-1, 0), (1, 0), (0, -1), (0, 1)))
    code = int(level.tiles[ledge[0]])
    moved = [(row + down, column + right) for row, column in ledge]
    free = {*_places(level, AIR), *ledge}
    if not free.issuperset(moved):
        return None
    return _with_tiles(level, dict.fromkeys(ledge, AIR) | dict.fromkeys(moved, code))


_CHANGES: tuple[Callable[[Level, Chance], Level | None], ...] = (
    _add_tile,
    _remove_tile,
    _move_mine,
    _move_start,
    _move_switch,
    _move_door,
    _shift_ledge,
)


def _with_tiles(level: Level, changes: dict[TilePlace, int]) -> Level:
    tiles = level.tiles.copy()
    for place, code in changes.items():
        tiles[place] = code
    tiles.flags.writeable = False
    return replace(level, tiles=tiles)


def _places(level: Level, code: int) -> list[TilePlace]:
    """Return the tiles of one kind, without the outermost ones and the start."""
    inner: Bytes = level.tiles[1:-1, 1:-1]
    found = [(row + 1, column + 1) for row, column in np.argwhere(inner == code).tolist()]
    return [place for place in found if place != level.start]


def _standing(level: Level) -> list[TilePlace]:
    """Return the tiles of air with ground under them."""
    ground = (WALL, PLATFORM)
    return [
        (row, column)
        for row, column in _places(level, AIR)
        if int(level.tiles[row + 1, column]) in ground
    ]


def _near(place: TilePlace, places: list[TilePlace]) -> list[TilePlace]:
    return [
        (row, column)
        for row, column in places
        if abs(row - place[0]) <= MAX_MOVE and abs(column - place[1]) <= MAX_MOVE
    ]


def _ledges(level: Level) -> list[list[TilePlace]]:
    """Return the rows of equal walls or platforms that are short enough to be shifted."""
    ledges: list[list[TilePlace]] = []
    for code in (WALL, PLATFORM):
        ledge: list[TilePlace] = []
        for row, column in _places(level, code):
            if ledge and ledge[-1] != (row, column - 1):
                ledges.append(ledge)
                ledge = []
            ledge.append((row, column))
        ledges += [ledge] if ledge else []
    return [ledge for ledge in ledges if len(ledge) <= LONGEST_LEDGE]
