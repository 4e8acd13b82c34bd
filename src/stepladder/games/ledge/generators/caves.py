"""Caves: large, irregular, with more than one way.

Drawn by letting random rock settle: a tile becomes what most of its neighbours are. Only the
largest cave is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepladder.games.ledge.generators.canvas import Canvas, Unfit
from stepladder.games.ledge.generators.chance import Bounds, Chance
from stepladder.games.ledge.tiles import AIR, PLATFORM, WALL
from stepladder.games.ledge.world import UNREACHABLE


@dataclass(frozen=True, kw_only=True)
class Caves:
    """What a cave is like."""

    height: Bounds
    width: Bounds
    rock_percent: Bounds = (40, 44)
    num_platforms: Bounds = (6, 12)
    num_mines: Bounds = (0, 0)


def draw_cave(chance: Chance, settings: Caves) -> Canvas:
    """Draw a cave; start, switch and door lie far apart in it."""
    canvas = Canvas(chance.within(settings.height), chance.within(settings.width))
    percent = chance.within(settings.rock_percent)
    rock = [[chance.happens(percent) for _ in range(canvas.width)] for _ in range(canvas.height)]
    inner = np.array(rock)[1:-1, 1:-1]
    for _ in range(4):
        inner = _settled(inner)
    canvas.tiles[1:-1, 1:-1] = np.where(inner, WALL, AIR)
    _keep_largest(canvas)
    _add_platforms(chance, canvas, chance.within(settings.num_platforms))
    canvas.place_far_apart(chance)
    canvas.scatter_mines(chance, chance.within(settings.num_mines))
    return canvas


def _settled(rock: np.ndarray) -> np.ndarray:
    """Return the rock after each tile has become what most of the nine around it are."""
    padded = np.pad(rock.astype(np.int64), 1, constant_values=1)
    height, width = rock.shape
    around = sum(padded[i : i + height, j : j + width] for i in range(3) for j in range(3))
    return np.asarray(around >= 5)


def _keep_largest(canvas: Canvas) -> None:
    """Fill all caves but the largest; raise Unfit if it is small."""
    left = canvas.tiles == AIR
    largest = np.zeros_like(left)
    while left.any():
        row, column = np.argwhere(left)[0]
        cave = canvas.distances((int(row), int(column))) != UNREACHABLE
        left &= ~cave
        if cave.sum() > largest.sum():
            largest = cave
    if largest.sum() < canvas.tiles.size // 3:
        raise Unfit
    canvas.tiles[:] = np.where(largest, AIR, WALL)


def _add_platforms(chance: Chance, canvas: Canvas, num_platforms: int) -> None:
    """Hang platforms into high places, three tiles above the ground below them."""
    places = [
        (row - 3, column)
        for row, column in canvas.standing_places()
        if row >= 6 and (canvas.tiles[row - 5 : row, column] == AIR).all()
    ]
    chance.shuffle(places)
    for row, column in places[:num_platforms]:
        strip = canvas.tiles[row + 1, column : column + chance.whole(2, 3)]
        strip[strip == AIR] = PLATFORM
