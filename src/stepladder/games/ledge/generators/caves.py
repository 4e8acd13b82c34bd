"""Caves: large, irregular, with more than one way.

Drawn by letting random rock settle: a tile becomes what most of its neighbours are. Only the
largest cave is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepladder.games.ledge.generators.chance import Chance, IntegerBounds
from stepladder.games.ledge.generators.sketch import Sketch, Unfit
from stepladder.games.ledge.tiles import AIR, PLATFORM, WALL
from stepladder.games.ledge.world import UNREACHABLE


@dataclass(frozen=True, kw_only=True)
class Caves:
    """What a cave is like."""

    height: IntegerBounds
    width: IntegerBounds
    rock_percent: IntegerBounds = (40, 44)
    num_platforms: IntegerBounds = (6, 12)
    num_mines: IntegerBounds = (0, 0)

    def draw(self, chance: Chance) -> Sketch:
        """Draw a cave; start, switch and door lie far apart in it."""
        sketch = Sketch(chance.within(self.height), chance.within(self.width))
        percent = chance.within(self.rock_percent)
        rock = [
            [chance.happens(percent) for _ in range(sketch.width)] for _ in range(sketch.height)
        ]
        inner = np.array(rock)[1:-1, 1:-1]
        for _ in range(4):
            inner = _settled(inner)
        sketch.tiles[1:-1, 1:-1] = np.where(inner, WALL, AIR)
        _keep_largest(sketch)
        _add_platforms(chance, sketch, chance.within(self.num_platforms))
        sketch.place_far_apart(chance)
        sketch.scatter_mines(chance, chance.within(self.num_mines))
        return sketch


def _settled(rock: np.ndarray) -> np.ndarray:
    """Return the rock after each tile has become what most of the nine around it are."""
    padded = np.pad(rock.astype(np.int64), 1, constant_values=1)
    height, width = rock.shape
    around = sum(padded[i : i + height, j : j + width] for i in range(3) for j in range(3))
    return np.asarray(around >= 5)


def _keep_largest(sketch: Sketch) -> None:
    """Fill all caves but the largest; raise Unfit if it is small."""
    left = sketch.tiles == AIR
    largest = np.zeros_like(left)
    while left.any():
        row, column = np.argwhere(left)[0]
        cave = sketch.distances((int(row), int(column))) != UNREACHABLE
        left &= ~cave
        if cave.sum() > largest.sum():
            largest = cave
    if largest.sum() < sketch.tiles.size // 3:
        raise Unfit
    sketch.tiles[:] = np.where(largest, AIR, WALL)


def _add_platforms(chance: Chance, sketch: Sketch, num_platforms: int) -> None:
    """Hang platforms into high places, three tiles above the ground below them."""
    places = [
        (row - 3, column)
        for row, column in sketch.standing_places()
        if row >= 6 and (sketch.tiles[row - 5 : row, column] == AIR).all()
    ]
    chance.shuffle(places)
    for row, column in places[:num_platforms]:
        strip = sketch.tiles[row + 1, column : column + chance.whole(2, 3)]
        strip[strip == AIR] = PLATFORM
