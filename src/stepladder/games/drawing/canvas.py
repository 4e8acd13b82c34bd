"""A drawing board in world coordinates whose pictures have smooth edges.

Under both painters. Everything is drawn `FACTOR` times too large and scaled down at the end, which
smooths all edges alike. What never moves is drawn once and kept as the backdrop.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from stepladder.games.drawing import Picture
from stepladder.games.drawing.packages import required
from stepladder.games.drawing.palette import NIGHT, Colour

if TYPE_CHECKING:
    import pygame
else:
    pygame = required("pygame", "pygame-ce", "drawing")

Point = tuple[float, float]

FACTOR = 3
"""Pixels of the board per pixel of the picture, each way."""

OPAQUE = 255

KEPT_TEXTS = 64
"""Texts that are kept as they were drawn: most are in every picture, and drawing them is slow."""


class Canvas:
    """A board to draw on.

    Args:
        size_px: Width and height of the picture.
        scale: Pixels of the picture per unit of the world.
        corner: The world's point in the upper left corner.
        is_y_up: Whether y grows upwards in the world.
    """

    def __init__(self, size_px: tuple[int, int], scale: float, corner: Point, *, is_y_up: bool):
        self.size_px = size_px
        """Width and height of the picture."""
        self._pixels = scale * FACTOR
        self._left, self._top = corner
        self._down = -1.0 if is_y_up else 1.0
        width, height = size_px
        # 32 bits whatever the screen has: scaling is smooth with 24 or 32 only.
        self._board = pygame.Surface((width * FACTOR, height * FACTOR), 0, 32)
        self._scaled = pygame.Surface(size_px, 0, 32)
        self._board.fill(NIGHT)
        self._backdrop = self._board.copy()

    def keep_backdrop(self) -> None:
        """Begin every further picture with what has been drawn so far."""
        self._backdrop.blit(self._board, (0, 0))

    def picture(self) -> Picture:
        """Return what has been drawn, and go back to the backdrop."""
        pygame.transform.smoothscale(self._board, self.size_px, self._scaled)
        self._board.blit(self._backdrop, (0, 0))
        return _pixels_of(self._scaled)

    def polygon(self, points: Sequence[Point], colour: Colour, alpha: int = OPAQUE) -> None:
        """Fill a polygon."""
        board_points = [self._at(point) for point in points]
        if alpha == OPAQUE:
            pygame.draw.polygon(self._board, colour, board_points)
            return
        left = math.floor(min(x for x, _ in board_points))
        top = math.floor(min(y for _, y in board_points))
        right = math.ceil(max(x for x, _ in board_points))
        bottom = math.ceil(max(y for _, y in board_points))
        glass = pygame.Surface((right - left + 1, bottom - top + 1), pygame.SRCALPHA)
        moved = [(x - left, y - top) for x, y in board_points]
        pygame.draw.polygon(glass, (*colour, alpha), moved)
        self._board.blit(glass, (left, top))

    def box(self, corner: Point, opposite: Point, colour: Colour, rounding: float = 0.0) -> None:
        """Fill an upright rectangle; `rounding` is the radius of its corners."""
        (left, top), (right, bottom) = self._at(corner), self._at(opposite)
        left, right = sorted((round(left), round(right)))
        top, bottom = sorted((round(top), round(bottom)))
        rect = pygame.Rect(left, top, right - left, bottom - top)
        pygame.draw.rect(
            self._board, colour, rect, border_radius=round(rounding * self._pixels) or -1
        )

    def circle(self, centre: Point, radius: float, colour: Colour, thickness: float = 0.0) -> None:
        """Fill a circle, or draw its line inwards from the radius if that has a thickness."""
        width = max(1, round(thickness * self._pixels)) if thickness else 0
        pygame.draw.circle(self._board, colour, self._at(centre), radius * self._pixels, width)

    def line(self, start: Point, end: Point, colour: Colour, thickness: float) -> None:
        """Draw a straight line."""
        dx, dy = end[0] - start[0], end[1] - start[1]
        length = math.hypot(dx, dy) or 1.0
        x, y = -dy / length * thickness / 2, dx / length * thickness / 2
        corners = [
            (start[0] + x, start[1] + y),
            (end[0] + x, end[1] + y),
            (end[0] - x, end[1] - y),
            (start[0] - x, start[1] - y),
        ]
        self.polygon(corners, colour)

    def arc(
        self, centre: Point, radius: float, share: float, colour: Colour, thickness: float
    ) -> None:
        """Draw a share of a circle's line, clockwise from its top."""
        count = max(2, round(48 * share) + 1)
        # pygame's own arcs have holes when they are thick.
        turns = [math.tau * share * number / (count - 1) for number in range(count)]
        rays = [(math.sin(turn), -self._down * math.cos(turn)) for turn in turns]
        inner = radius - thickness
        self.polygon(
            [(centre[0] + radius * x, centre[1] + radius * y) for x, y in rays]
            + [(centre[0] + inner * x, centre[1] + inner * y) for x, y in reversed(rays)],
            colour,
        )

    def text(
        self,
        text: str,
        place: Point,
        height: float,
        colour: Colour,
        align: float = 0.0,
    ) -> None:
        """Write a line of text.

        Args:
            text: What to write.
            place: Where its middle line begins, in the world.
            height: Of the line, in the world's units.
            colour: Of the letters.
            align: 0 puts the beginning at the place, 0.5 the middle, 1 the end.
        """
        letters = _letters(text, max(1, round(height * self._pixels)), colour)
        x, y = self._at(place)
        width, line = letters.get_size()
        self._board.blit(letters, (round(x - align * width), round(y - line / 2)))

    def _at(self, point: Point) -> Point:
        """Return a point of the world on the board."""
        x, y = point
        return (x - self._left) * self._pixels, (y - self._top) * self._down * self._pixels


@lru_cache(KEPT_TEXTS)
def _letters(text: str, height_px: int, colour: Colour) -> "pygame.Surface":
    pygame.font.init()
    return pygame.font.Font(None, height_px).render(text, True, colour)


def resized(picture: Picture, scale: float) -> Picture:
    """Return a picture that is smoothly enlarged, or made smaller where `scale` is below 1."""
    if scale == 1.0:
        return picture
    height, width, _ = picture.shape
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    surface = pygame.image.frombuffer(picture.tobytes(), (width, height), "RGB")
    return _pixels_of(pygame.transform.smoothscale(surface, size))


def _pixels_of(surface: "pygame.Surface") -> Picture:
    width, height = surface.get_size()
    # A bytearray, so that the picture is writable.
    pixels = bytearray(pygame.image.tobytes(surface, "RGB"))
    return np.frombuffer(pixels, dtype=np.uint8).reshape(height, width, 3)
