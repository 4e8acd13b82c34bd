"""Rooms: chambers and mazes, cells in a grid joined by a random tree.

Chambers are cells with furniture; a maze has many cells that are just large enough. Start, switch
and door lie far apart, so that the way has to be found.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.games.ledge.generators.chance import Chance, IntegerBounds
from stepladder.games.ledge.generators.sketch import Sketch
from stepladder.games.ledge.tiles import AIR, PLATFORM, WALL

Cell = tuple[int, int]
Passage = tuple[Cell, Cell]


@dataclass(frozen=True, kw_only=True)
class Rooms:
    """A grid of rooms."""

    num_rows: IntegerBounds
    num_columns: IntegerBounds
    height: IntegerBounds
    """Tiles of air in a room, from floor to ceiling."""

    width: IntegerBounds
    num_loops: IntegerBounds = (0, 1)
    """Passages beside those of the tree."""

    furniture_percent: int = 0
    """How likely a room has a ledge in it."""

    num_mines: IntegerBounds = (0, 0)

    def draw(self, chance: Chance) -> Sketch:
        """Draw rooms and the passages between them."""
        num_rows, num_columns = chance.within(self.num_rows), chance.within(self.num_columns)
        height, width = chance.within(self.height), chance.within(self.width)
        sketch = Sketch(num_rows * (height + 1) + 1, num_columns * (width + 1) + 1)
        cells = [(i, j) for i in range(num_rows) for j in range(num_columns)]
        for i, j in cells:
            sketch.paint(AIR, 1 + i * (height + 1), 1 + j * (width + 1), height, width)
            if chance.happens(self.furniture_percent):
                _furnish(chance, sketch, (i, j), height, width)
        for passage in _draw_passages(chance, cells, chance.within(self.num_loops)):
            _open(chance, sketch, passage, height, width)
        floors = [
            (row, column)
            for row, column in sketch.standing_places()
            if row % (height + 1) == height and column % (width + 1) != 0
        ]
        sketch.place_far_apart(chance, floors)
        sketch.scatter_mines(chance, chance.within(self.num_mines))
        return sketch


def _draw_passages(chance: Chance, cells: list[Cell], num_loops: int) -> list[Passage]:
    """Return pairs of neighbouring cells: a random tree over all cells, and some loops."""
    tree: list[Passage] = []
    joined = {chance.pick(cells)}
    path = list(joined)
    members = set(cells)
    while path:
        i, j = path[-1]
        around = [(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)]
        fresh = [cell for cell in around if cell in members and cell not in joined]
        if not fresh:
            path.pop()
            continue
        cell = chance.pick(fresh)
        tree.append(((i, j), cell))
        joined.add(cell)
        path.append(cell)
    used = {frozenset(passage) for passage in tree}
    spare = [
        ((i, j), cell)
        for i, j in cells
        for cell in ((i + 1, j), (i, j + 1))
        if cell in members and frozenset(((i, j), cell)) not in used
    ]
    chance.shuffle(spare)
    return tree + spare[:num_loops]


def _open(chance: Chance, sketch: Sketch, passage: Passage, height: int, width: int) -> None:
    """Open the wall between two rooms, with steps where the way leads up."""
    (i, j), other = sorted(passage)
    top, left = 1 + i * (height + 1), 1 + j * (width + 1)
    if other[0] == i:
        opening = min(height, chance.whole(2, 3))
        sketch.paint(AIR, top + height - opening, left + width, opening)
        return
    hole = min(2, width)
    at = left + chance.whole(0, width - hole)
    sketch.paint(AIR, top + height, at, 1, hole)
    # A jump rises three tiles: platforms below the hole, every third one from the upper floor.
    floor = top + height
    for row in range(floor + 3, floor + height, 3):
        sketch.paint(PLATFORM, row, at, 1, hole)


def _furnish(chance: Chance, sketch: Sketch, cell: Cell, height: int, width: int) -> None:
    """Put a ledge or a block into a room."""
    floor, left = cell[0] * (height + 1) + height, 1 + cell[1] * (width + 1)
    length = chance.whole(1, max(1, width // 2))
    at = left + chance.whole(0, width - length)
    if chance.happens(50) and height >= 4:
        sketch.paint(WALL, floor - chance.whole(1, 2), at, 1, length)
    else:
        sketch.paint(WALL, floor, at, 1, length)
