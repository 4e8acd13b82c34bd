"""A level in the making, which generators draw on.

A generator fills tiles and places start, switch and door; `Sketch.level` returns the finished
level. A generator that cannot finish an attempt raises `Unfit`, and `generate` makes another.
"""

from __future__ import annotations

import numpy as np

from stepladder.games.ledge.generators.chance import Chance
from stepladder.games.ledge.level import MAX_HEIGHT, MAX_WIDTH, Level, TilePlace, default_time_limit
from stepladder.games.ledge.tiles import AIR, DOOR, MINE, PLATFORM, SWITCH, WALL
from stepladder.games.ledge.world import (
    MARGIN,
    PACKED_HEIGHT,
    PACKED_WIDTH,
    UNREACHABLE,
    fill_distances,
)


class Unfit(Exception):
    """This attempt cannot become a level."""


class Sketch:
    """Tiles in the making."""

    def __init__(self, height: int, width: int, code: int = WALL) -> None:
        """Begin with tiles of one code and a border of wall.

        Raises:
            Unfit: If it is larger than a level can be.
        """
        if height > MAX_HEIGHT or width > MAX_WIDTH:
            raise Unfit
        self.tiles = np.full((height, width), WALL, dtype=np.uint8)
        self.tiles[1:-1, 1:-1] = code
        self.start: TilePlace | None = None
        self.switch: TilePlace | None = None
        self.door: TilePlace | None = None

    @property
    def height(self) -> int:
        """Number of rows, the border included."""
        return self.tiles.shape[0]

    @property
    def width(self) -> int:
        """Number of columns, the border included."""
        return self.tiles.shape[1]

    def paint(self, code: int, top: int, left: int, height: int = 1, width: int = 1) -> None:
        """Give all tiles of a rectangle a code; the border stays wall."""
        bottom, right = min(top + height, self.height - 1), min(left + width, self.width - 1)
        self.tiles[max(top, 1) : bottom, max(left, 1) : right] = code

    def place(self, start: TilePlace, switch: TilePlace, door: TilePlace) -> None:
        """Place the start of the runner and what it has to reach.

        Raises:
            Unfit: If two of them are the same, or one is not in the air.
        """
        places = (start, switch, door)
        if len(set(places)) < len(places) or any(self.tiles[at] != AIR for at in places):
            raise Unfit
        self.start, self.switch, self.door = places

    def standing_places(self) -> list[TilePlace]:
        """Return the tiles of air with something to stand on below, row by row."""
        below = self.tiles[1:]
        stands = (self.tiles[:-1] == AIR) & ((below == WALL) | (below == PLATFORM))
        return [(int(row), int(column)) for row, column in np.argwhere(stands)]

    def distances(self, place: TilePlace) -> np.ndarray:
        """Return the tiles of way from each tile to a place, as `world.fill_distances` does."""
        packed = np.full((PACKED_HEIGHT, PACKED_WIDTH), WALL, dtype=np.uint8)
        inner = (slice(MARGIN, MARGIN + self.height), slice(MARGIN, MARGIN + self.width))
        packed[inner] = self.tiles
        distances = np.empty(packed.shape, dtype=np.uint16)
        fill_distances(packed, MARGIN + place[0], MARGIN + place[1], distances)
        return distances[inner]

    def place_far_apart(self, chance: Chance, places: list[TilePlace] | None = None) -> None:
        """Choose start, switch and door so that the ways between them are long.

        Raises:
            Unfit: If there are too few places to choose from.
        """
        places = self.standing_places() if places is None else places
        if len(places) < 3:
            raise Unfit
        start = chance.pick(places)
        switch = self._pick_far(chance, places, self.distances(start))
        door = self._pick_far(chance, places, self.distances(switch))
        self.place(start, switch, door)

    def _pick_far(
        self, chance: Chance, places: list[TilePlace], distances: np.ndarray
    ) -> TilePlace:
        reached = [at for at in places if distances[at] != UNREACHABLE]
        reached.sort(key=lambda at: (int(distances[at]), at))
        farthest = reached[-max(1, len(reached) // 4) :]
        if not farthest:
            raise Unfit
        return chance.pick(farthest)

    def scatter_mines(self, chance: Chance, num_mines: int, spacing: int = 3) -> None:
        """Lay mines on floors and under ceilings, apart from each other and from the places.

        Lays fewer where there is no room.
        """
        above = self.tiles[:-1]
        hangs = np.zeros_like(self.tiles, dtype=bool)
        hangs[1:] = (self.tiles[1:] == AIR) & (above == WALL)
        candidates = self.standing_places() + [(int(i), int(j)) for i, j in np.argwhere(hangs)]
        chance.shuffle(candidates)
        taken = [at for at in (self.start, self.switch, self.door) if at is not None]
        laid = 0
        for row, column in candidates:
            if laid == num_mines:
                return
            if all(abs(row - i) + abs(column - j) >= spacing for i, j in taken):
                self.tiles[row, column] = MINE
                taken.append((row, column))
                laid += 1

    def level(self, name: str, notes: tuple[tuple[str, str], ...], mirrored: bool) -> Level:
        """Return the finished level, with left and right exchanged if `mirrored`.

        Rows and columns of solid wall beyond one at each edge are left out.

        Raises:
            Unfit: If start, switch and door have not been placed.
        """
        if self.start is None or self.switch is None or self.door is None:
            raise Unfit
        tiles = self.tiles.copy()
        tiles[self.switch], tiles[self.door] = SWITCH, DOOR
        top, bottom = _inner_bounds((tiles != WALL).any(axis=1))
        left, right = _inner_bounds((tiles != WALL).any(axis=0))
        tiles = tiles[top : bottom + 1, left : right + 1]
        places = [
            (row - top, column - left) for row, column in (self.start, self.switch, self.door)
        ]
        if mirrored:
            tiles = tiles[:, ::-1]
            places = [(row, right - left - column) for row, column in places]
        tiles = np.ascontiguousarray(tiles)
        tiles.flags.writeable = False
        return Level(
            name=name,
            tiles=tiles,
            start=places[0],
            switch=places[1],
            door=places[2],
            time_limit=default_time_limit(*tiles.shape),
            notes=notes,
        )


def _inner_bounds(is_used: np.ndarray) -> tuple[int, int]:
    """Return the first and last index to keep: one more on each side than is used."""
    used = np.flatnonzero(is_used)
    return int(used[0]) - 1, int(used[-1]) + 1
