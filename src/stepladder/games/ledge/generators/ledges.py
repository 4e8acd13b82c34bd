"""Ledges and islands: ground in pieces, reached by jumping.

Ledges go up through a room, and who falls lands on the floor. Islands go across, and what lies
below them is mined.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.games.ledge.generators.canvas import Canvas, Unfit
from stepladder.games.ledge.generators.chance import Bounds, Chance
from stepladder.games.ledge.level import MAX_WIDTH, Place
from stepladder.games.ledge.tiles import AIR, MINE, PLATFORM, WALL


@dataclass(frozen=True, kw_only=True)
class Ledges:
    """A room to climb up in."""

    num_ledges: Bounds
    width: Bounds
    rise: Bounds = (1, 2)
    """Tiles from one ledge up to the next."""

    num_mines: Bounds = (0, 0)


@dataclass(frozen=True, kw_only=True)
class Islands:
    """Islands over mined ground."""

    num_islands: Bounds
    length: Bounds
    """Tiles that an island is long."""

    gap: Bounds
    """Tiles between two islands."""

    climb: int
    """Most tiles that the next island lies higher or lower."""

    is_return: bool = False
    """Whether the door is back at the start."""

    num_mines: Bounds = (0, 0)
    """Mines beside those on the ground."""


def draw_ledges(chance: Chance, settings: Ledges) -> Canvas:
    """Draw a room with ledges, the switch on the highest and the door on the floor, or reversed."""
    num_ledges = chance.within(settings.num_ledges)
    rises = [chance.within(settings.rise) for _ in range(num_ledges)]
    canvas = Canvas(sum(rises) + 5, chance.within(settings.width) + 2, AIR)
    row = floor = canvas.height - 2
    left = chance.whole(3, max(3, canvas.width // 2))
    tops: list[Place] = []
    for rise in rises:
        row -= rise
        length = chance.whole(2, 4)
        left = max(1, min(left, canvas.width - 1 - length))
        canvas.paint(chance.pick((PLATFORM, WALL)), row + 1, left, 1, length)
        tops.append((row, left + chance.whole(0, length - 1)))
        left += chance.pick((-1, 1)) * chance.whole(3, 5)
    far = canvas.width - 2 - chance.whole(0, 2)
    high, low = tops[-1], (floor, far)
    switch, door = (high, low) if chance.happens(60) else (low, high)
    canvas.place((floor, 1), switch, door)
    canvas.scatter_mines(chance, chance.within(settings.num_mines), spacing=4)
    return canvas


def draw_islands(chance: Chance, settings: Islands) -> Canvas:
    """Draw islands from left to right above a floor of mines."""
    num_islands = chance.within(settings.num_islands)
    rows = [chance.whole(4, 4 + settings.climb)]
    for _ in range(num_islands - 1):
        step = chance.whole(-settings.climb, settings.climb)
        rows.append(min(max(rows[-1] + step, 4), 11))
    lengths = [chance.within(settings.length) for _ in rows]
    gaps = [chance.within(settings.gap) for _ in rows[1:]] + [0]
    width = sum(lengths) + sum(gaps) + 2
    if width > MAX_WIDTH:
        raise Unfit
    canvas = Canvas(max(rows) + 4, width, AIR)
    canvas.paint(MINE, canvas.height - 2, 1, 1, width)
    left = 1
    tops: list[list[Place]] = []
    for row, length, gap in zip(rows, lengths, gaps, strict=True):
        canvas.paint(WALL, row + 1, left, 1, length)
        tops.append([(row, left + i) for i in range(length)])
        left += length + gap
    if settings.is_return:
        canvas.place(tops[0][-1], tops[-1][-1], tops[0][0])
    else:
        canvas.place(tops[0][0], chance.pick(chance.pick(tops[1:-1])), tops[-1][-1])
    canvas.scatter_mines(chance, chance.within(settings.num_mines))
    return canvas
