"""Pictures of Ledge, seen from the side.

Takes a level's tiles and its runner and returns a picture, which the env shows in a window or
returns, and `film` writes to a file. All pictures of a painter have the same size, whatever the
size of the level, so that one film can show many levels.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.configs.checks import require_integer
from stepladder.games.drawing import Picture
from stepladder.games.drawing.canvas import Canvas, Point
from stepladder.games.drawing.palette import (
    DANGER,
    GOAL,
    GROUND,
    LEARNER_COLOUR,
    MARKING,
    NIGHT,
    OPEN,
    QUIET,
    SOLID,
    SOLID_DARK,
    SOLID_LIGHT,
    WHITE,
    Colour,
    mixed,
)
from stepladder.games.ledge.physics import HALF_HEIGHT, HALF_WIDTH
from stepladder.games.ledge.tiles import DOOR, MINE, PLATFORM, SWITCH, WALL

LEAST_WIDTH = 64
SHAPE = 0.625
"""Height of a picture per width: that of the largest level, and a line below it."""

CAPTION_SHARE = 0.04
"""Height of that line per width of the picture."""

MOST_ZOOM = 0.1
"""A tile is never wider than this share of the picture."""

BEVEL = 0.1
NUM_SPIKES = 8
STRETCH = 0.35
"""Share by which a runner is taller and thinner at a speed of one tile per step."""

STRIDES, STANDING = 5.0, 0.02
"""How far feet turn per tile; the speed below which they stand."""

HURRY = 0.2
"""Share of the time limit below which the bar is red."""


class LedgePainter:
    """Paints scenes of any level in one size.

    Args:
        width: Of the pictures, in pixels.
    """

    def __init__(self, width: int = 640):
        require_integer("width", width, LEAST_WIDTH)
        # Even numbers, which most video formats need.
        self._size = (2 * round(width / 2), 2 * round(width * SHAPE / 2))
        self._canvas: Canvas | None = None
        self._level = b""
        self._corner = (0.0, 0.0)
        self._tile_px = 1.0

    def paint(
        self,
        tiles: npt.NDArray[np.uint8],
        runner: Any,
        *,
        is_dead: bool = False,
        has_won: bool = False,
        time_limit: int = 0,
        name: str = "",
    ) -> Picture:
        """Return a picture of shape ``(height, width, 3)``; equal arguments give equal pictures.

        Args:
            tiles: Codes of the level's tiles, shape ``(height, width)``.
            runner: A record of `physics.Runner`.
            is_dead: Whether a mine has been touched.
            has_won: Whether the open door has been reached.
            time_limit: Steps of the episode; 0 shows no time.
            name: Name of the level, for the caption.
        """
        level = bytes(str(tiles.shape), "ascii") + tiles.tobytes()
        if self._canvas is None or level != self._level:
            self._canvas = self._backdrop(tiles)
            self._level = level
        canvas = self._canvas
        for row, column in np.argwhere((tiles == SWITCH) | (tiles == DOOR)).tolist():
            paint = _paint_switch if tiles[row, column] == SWITCH else _paint_door
            paint(canvas, (column + 0.5, row + 0.5), bool(runner["switch_touched"]))
        _paint_runner(canvas, runner, DANGER if is_dead else OPEN if has_won else LEARNER_COLOUR)
        share = max(0.0, 1.0 - runner["steps"] / time_limit) if time_limit > 0 else None
        self._write_caption(canvas, name, share)
        return canvas.picture()

    def _backdrop(self, tiles: npt.NDArray[np.uint8]) -> Canvas:
        """Return a canvas on which a level fits, with all that never changes."""
        height, width = tiles.shape
        width_px, height_px = self._size
        map_px = height_px - CAPTION_SHARE * width_px
        self._tile_px = min(width_px / width, map_px / height, MOST_ZOOM * width_px)
        left = (width - width_px / self._tile_px) / 2
        top = (height - map_px / self._tile_px) / 2
        self._corner = (left, top)
        canvas = Canvas(self._size, self._tile_px, self._corner, is_y_up=False)
        # What lies outside the map is wall as well.
        right, bottom = width - left, height - top
        canvas.box(self._corner, (right, bottom), mixed(NIGHT, SOLID_DARK, 0.4))
        canvas.box((0, 0), (width, height), GROUND)
        walls = np.pad(tiles == WALL, 1, constant_values=True)
        for row in range(height):
            for column in range(width):
                code = tiles[row, column]
                if code == WALL:
                    _paint_wall(canvas, row, column, walls[row : row + 3, column : column + 3])
                elif code == PLATFORM:
                    _paint_platform(canvas, row, column)
                elif code == MINE:
                    _paint_mine(canvas, (column + 0.5, row + 0.5))
        canvas.keep_backdrop()
        return canvas

    def _write_caption(self, canvas: Canvas, name: str, time_left: float | None) -> None:
        width_px, height_px = self._size
        line = CAPTION_SHARE * width_px / self._tile_px
        left, right = self._corner[0], self._corner[0] + width_px / self._tile_px
        bottom = self._corner[1] + height_px / self._tile_px
        canvas.box((left, bottom - line), (right, bottom), NIGHT)
        middle = bottom - 0.45 * line
        if name:
            canvas.text(name, (left + 0.4 * line, middle), 0.65 * line, QUIET)
        if time_left is None:
            return
        end, half = right - 0.4 * line, 0.14 * line
        start = end - (right - left) / 4
        canvas.box((start, middle - half), (end, middle + half), MARKING, half)
        if time_left > 0.0:
            colour = DANGER if time_left < HURRY else OPEN
            reach = start + max(2 * half, time_left * (end - start))
            canvas.box((start, middle - half), (reach, middle + half), colour, half)


def _paint_wall(canvas: Canvas, row: int, column: int, around: npt.NDArray[np.bool_]) -> None:
    """Fill a tile of wall; where air begins, its edge catches light or lies in the shade."""
    left, top, right, bottom = column, row, column + 1, row + 1
    canvas.box((left, top), (right, bottom), mixed(SOLID, SOLID_DARK, 0.16 * ((row + column) % 2)))
    if not around[2, 1]:
        canvas.box((left, bottom - BEVEL), (right, bottom), SOLID_DARK)
    if not around[1, 0]:
        canvas.box((left, top), (left + BEVEL, bottom), mixed(SOLID, SOLID_LIGHT, 0.5))
    if not around[1, 2]:
        canvas.box((right - BEVEL, top), (right, bottom), SOLID_DARK)
    if not around[0, 1]:
        canvas.box((left, top), (right, top + BEVEL), SOLID_LIGHT)


def _paint_platform(canvas: Canvas, row: int, column: int) -> None:
    canvas.box((column, row), (column + 1, row + 0.2), SOLID)
    canvas.box((column, row), (column + 1, row + 0.08), SOLID_LIGHT)


def _paint_mine(canvas: Canvas, centre: Point) -> None:
    x, y = centre
    turns = [math.tau * number / (2 * NUM_SPIKES) for number in range(2 * NUM_SPIKES)]
    star = [
        (x + reach * math.sin(turn), y + reach * math.cos(turn))
        for turn, reach in zip(turns, (0.34, 0.2) * NUM_SPIKES, strict=True)
    ]
    canvas.polygon(star, mixed(DANGER, NIGHT, 0.25))
    canvas.circle(centre, 0.22, DANGER)
    canvas.circle((x - 0.06, y - 0.06), 0.07, mixed(DANGER, WHITE, 0.6))


def _paint_switch(canvas: Canvas, centre: Point, is_touched: bool) -> None:
    x, y = centre
    colour = OPEN if is_touched else GOAL
    canvas.box((x - 0.3, y + 0.36), (x + 0.3, y + 0.5), SOLID_LIGHT, 0.04)
    # A switch that was touched is pressed down.
    top = 0.22 if is_touched else -0.02
    canvas.box((x - 0.21, y + top), (x + 0.21, y + 0.38), colour, 0.08)
    canvas.box((x - 0.21, y + top), (x + 0.21, y + top + 0.1), mixed(colour, WHITE, 0.5), 0.05)


def _paint_door(canvas: Canvas, centre: Point, is_open: bool) -> None:
    x, y = centre
    canvas.box((x - 0.42, y - 0.48), (x + 0.42, y + 0.5), SOLID_LIGHT, 0.12)
    inside = mixed(NIGHT, OPEN, 0.75) if is_open else NIGHT
    canvas.box((x - 0.3, y - 0.36), (x + 0.3, y + 0.5), inside, 0.06)
    if is_open:
        canvas.box((x - 0.15, y - 0.2), (x + 0.15, y + 0.5), mixed(OPEN, WHITE, 0.6), 0.06)
        return
    for share in (-0.15, 0.0, 0.15):
        canvas.line((x + share, y - 0.36), (x + share, y + 0.5), SOLID, 0.05)
    canvas.circle((x, y + 0.05), 0.1, GOAL)


def _paint_runner(canvas: Canvas, runner: Any, colour: Colour) -> None:
    x, y, facing = float(runner["x"]), float(runner["y"]), int(runner["facing"])
    stretch = 0.0 if runner["on_ground"] else min(0.2, STRETCH * abs(float(runner["vy"])))
    half_width, half_height = HALF_WIDTH * (1 - stretch), HALF_HEIGHT * (1 + stretch)
    if colour == DANGER:
        canvas.circle((x, y), 0.62, mixed(DANGER, GROUND, 0.35), 0.08)
    elif colour == OPEN:
        canvas.circle((x, y), 0.62, OPEN, 0.08)
    if runner["wall"]:
        # Pressed against the wall, hands on it.
        hand = x + int(runner["wall"]) * HALF_WIDTH
        canvas.box((hand - 0.06, y - 0.1), (hand + 0.06, y + 0.16), mixed(colour, NIGHT, 0.3), 0.04)
    low, high = (x - half_width, y - half_height), (x + half_width, y + half_height)
    canvas.box(low, high, mixed(colour, NIGHT, 0.35), 0.16)
    edge = 0.05
    canvas.box((low[0] + edge, low[1] + edge), (high[0] - edge, high[1] - edge), colour, 0.12)
    # Feet that change places as the ground goes by.
    stride = 0.12 * math.cos(STRIDES * x) if abs(runner["vx"]) > STANDING else 0.12
    for foot in (x - stride, x + stride):
        sole = (foot + 0.09, high[1])
        canvas.box((foot - 0.09, high[1] - 0.11), sole, mixed(colour, NIGHT, 0.55), 0.04)
    eye = x + facing * 0.4 * half_width
    canvas.circle((eye, y - 0.1), 0.1, WHITE)
    canvas.circle((eye + facing * 0.04, y - 0.1), 0.05, NIGHT)
