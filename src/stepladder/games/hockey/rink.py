"""The rink's geometry, masses and constants, as measured in the original game.

Below every other module of the game: numbers only. Metres, seconds and kilograms; the origin is the
centre of the rink, x points right, y up, angles turn counter-clockwise. Player one defends the left
goal, player two the right one.

A racket's shape is given in its own frame, whose x axis is the way it faces, so that one polygon
serves both players.
"""

import math
from typing import cast

import numpy as np

STEP_S = 0.02


def _numbered(count: int) -> list[int]:
    """Return 0, 1, 2 and so on as NumPy's integers.

    For every plain integer that a kernel is called with, numba would compile that kernel again.
    """
    return cast("list[int]", list(np.arange(count)))


# Bodies, by their place in a world.
PUCK, PLAYER_ONE, PLAYER_TWO, WALLS = _numbered(4)

FACING = (0.0, 1.0, -1.0, 0.0)
"""Which way each body looks along x, as a factor; the puck and the rink look nowhere."""

PUCK_RADIUS = 13 / 60
PUCK_MASS = 7.0 * math.pi * PUCK_RADIUS**2
PUCK_INERTIA = 0.5 * PUCK_MASS * PUCK_RADIUS**2

RACKET_MASS = 58.0
RACKET_INERTIA = 3.709496
"""About the centre of mass, as the original rounds it."""

RACKET_CENTRE = -0.12237547892720306
"""Where a racket's centre of mass lies, along its facing, from the position that is reported."""

CENTRES = (0.0, RACKET_CENTRE, RACKET_CENTRE, 0.0)
"""The same of every body."""

RACKET_REACH = math.hypot(0.2, 0.4)
"""Distance of a racket's farthest corner from its reported position."""

POLYGON_SKIN = 0.01
"""Thickness of the collision skin around every polygon."""

PUCK_GAP = PUCK_RADIUS + POLYGON_SKIN
"""Puck and polygon touch when the puck's centre is nearer than this."""

POLYGON_GAP = 2 * POLYGON_SKIN

INVERSE_MASS = (1.0 / PUCK_MASS, 1.0 / RACKET_MASS, 1.0 / RACKET_MASS, 0.0)
INVERSE_INERTIA = (1.0 / PUCK_INERTIA, 1.0 / RACKET_INERTIA, 1.0 / RACKET_INERTIA, 0.0)

# Pairs: friction is the geometric mean of both bodies', restitution the larger one.
BOUNCE = 0.95
BOUNCE_THRESHOLD = 1.0
"""Approach speed in m/s up to which nothing bounces."""

PUCK_WALL_FRICTION = 0.1
RACKET_FRICTION = math.sqrt(0.1)
"""Of a racket on a wall, and of a racket on the puck."""

RACKET_RACKET_FRICTION = 1.0

# Inner faces.
WALL_Y = 10 / 3
WALL_X = 47 / 12
GOAL_X = 49 / 12
GOAL_Y = 1.25
GOAL_DEPTH = 1 / 3
POST_Y = 41 / 30
"""Half the width of the goal's mouth at the walls' inner face; it narrows to `GOAL_Y`."""

# Polygons, counter-clockwise. Those of the rink come in pairs that the point mirror swaps.
TOP, BOTTOM, LEFT_UPPER, RIGHT_LOWER, LEFT_LOWER, RIGHT_UPPER, LEFT_GOAL, RIGHT_GOAL, RACKET = (
    _numbered(9)
)

_OUTER_X, _OUTER_Y, _SIDE_Y = 4.25, 11 / 3, 43 / 12
_PLANK = [(25 / 6, WALL_Y), (25 / 6, _OUTER_Y), (-25 / 6, _OUTER_Y), (-25 / 6, WALL_Y)]
_LEFT_UPPER = [(-WALL_X, POST_Y), (-WALL_X, _SIDE_Y), (-_OUTER_X, _SIDE_Y), (-_OUTER_X, GOAL_Y)]
_LEFT_GOAL = [
    (-GOAL_X, -GOAL_Y),
    (-GOAL_X, GOAL_Y),
    (-GOAL_X - GOAL_DEPTH, GOAL_Y),
    (-GOAL_X - GOAL_DEPTH, -GOAL_Y),
]
_RACKET = [(0.1, -0.4), (0.1, 0.4), (-0.2, 0.4), (-0.36, 0.2), (-0.42, 0.0), (-0.36, -0.2)]
_RACKET += [(-0.2, -0.4)]


def _turned(corners: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the point mirror of a polygon."""
    return [(-x, -y) for x, y in corners]


def _upside_down(corners: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the mirror image of a polygon in the x axis, counter-clockwise again."""
    return [(x, -y) for x, y in reversed(corners)]


_LEFT_LOWER = _upside_down(_LEFT_UPPER)
_POLYGONS = [
    *(_PLANK, _turned(_PLANK)),
    *(_LEFT_UPPER, _turned(_LEFT_UPPER)),
    *(_LEFT_LOWER, _turned(_LEFT_LOWER)),
    *(_LEFT_GOAL, _turned(_LEFT_GOAL)),
    _RACKET,
]

NUM_RINK_POLYGONS = 8
NUM_CORNERS = np.array([len(corners) for corners in _POLYGONS])
CORNER_X = np.zeros((9, 8))
CORNER_Y = np.zeros((9, 8))
NORMAL_X = np.zeros((9, 7))
NORMAL_Y = np.zeros((9, 7))
"""Outward normal of the face from each corner to the next; the first corner is repeated."""

for _index, _corners in enumerate(_POLYGONS):
    for _place in range(8):
        CORNER_X[_index, _place], CORNER_Y[_index, _place] = _corners[_place % len(_corners)]
    for _place in range(len(_corners)):
        _dx = CORNER_X[_index, _place + 1] - CORNER_X[_index, _place]
        _dy = CORNER_Y[_index, _place + 1] - CORNER_Y[_index, _place]
        NORMAL_X[_index, _place] = _dy / math.hypot(_dx, _dy)
        NORMAL_Y[_index, _place] = -_dx / math.hypot(_dx, _dy)
