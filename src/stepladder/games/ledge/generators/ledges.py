"""Ledges and islands: ground in pieces, reached by jumping.

Ledges go up through a room; a runner that falls lands on the floor. Islands go across a floor of
mines.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.games.ledge.generators.chance import Chance, IntegerBounds
from stepladder.games.ledge.generators.sketch import Sketch, Unfit
from stepladder.games.ledge.level import MAX_WIDTH, TilePlace
from stepladder.games.ledge.tiles import AIR, MINE, PLATFORM, WALL


@dataclass(frozen=True, kw_only=True)
class Ledges:
    """A room to climb up in."""

    num_ledges: IntegerBounds
    width: IntegerBounds
    rise: IntegerBounds = (1, 2)
    """Tiles from one ledge up to the next."""

    num_mines: IntegerBounds = (0, 0)

    def draw(self, chance: Chance) -> Sketch:
        """Draw a room: the switch on the highest ledge and the door on the floor, or reversed."""
        num_ledges = chance.within(self.num_ledges)
        rises = [chance.within(self.rise) for _ in range(num_ledges)]
        sketch = Sketch(sum(rises) + 5, chance.within(self.width) + 2, AIR)
        row = floor = sketch.height - 2
        left = chance.whole(3, max(3, sketch.width // 2))
        tops: list[TilePlace] = []
        for rise in rises:
            row -= rise
            length = chance.whole(2, 4)
            left = max(1, min(left, sketch.width - 1 - length))
            sketch.paint(chance.pick((PLATFORM, WALL)), row + 1, left, 1, length)
            tops.append((row, left + chance.whole(0, length - 1)))
            left += chance.pick((-1, 1)) * chance.whole(3, 5)
        far = sketch.width - 2 - chance.whole(0, 2)
        high, low = tops[-1], (floor, far)
        switch, door = (high, low) if chance.happens(60) else (low, high)
        sketch.place((floor, 1), switch, door)
        sketch.scatter_mines(chance, chance.within(self.num_mines), spacing=4)
        return sketch


@dataclass(frozen=True, kw_only=True)
class Islands:
    """Islands over mined ground."""

    num_islands: IntegerBounds
    length: IntegerBounds
    """Tiles that an island is long."""

    gap: IntegerBounds
    """Tiles between two islands."""

    climb: int
    """Most tiles that the next island lies higher or lower."""

    is_return: bool = False
    """Whether the door is back at the start."""

    num_mines: IntegerBounds = (0, 0)
    """Mines beside those on the ground."""

    def draw(self, chance: Chance) -> Sketch:
        """Draw islands from left to right above a floor of mines."""
        num_islands = chance.within(self.num_islands)
        rows = [chance.whole(4, 4 + self.climb)]
        for _ in range(num_islands - 1):
            step = chance.whole(-self.climb, self.climb)
            rows.append(min(max(rows[-1] + step, 4), 11))
        lengths = [chance.within(self.length) for _ in rows]
        gaps = [chance.within(self.gap) for _ in rows[1:]] + [0]
        width = sum(lengths) + sum(gaps) + 2
        if width > MAX_WIDTH:
            raise Unfit
        sketch = Sketch(max(rows) + 4, width, AIR)
        sketch.paint(MINE, sketch.height - 2, 1, 1, width)
        left = 1
        tops: list[list[TilePlace]] = []
        for row, length, gap in zip(rows, lengths, gaps, strict=True):
            sketch.paint(WALL, row + 1, left, 1, length)
            tops.append([(row, left + i) for i in range(length)])
            left += length + gap
        if self.is_return:
            sketch.place(tops[0][-1], tops[-1][-1], tops[0][0])
        else:
            sketch.place(tops[0][0], chance.pick(chance.pick(tops[1:-1])), tops[-1][-1])
        sketch.scatter_mines(chance, chance.within(self.num_mines))
        return sketch
