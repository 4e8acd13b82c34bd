"""What each player sees: 18 numbers, from its own side of the rink.

Called by the vector env after a step or reset. Player two sees the point mirror of the world:
positions and linear velocities change sign, angles and spins stay, the players change places.

Own x, y, angle, vx, vy, spin; the same of the other; the puck's x, y, vx, vy; own hold, the other's.
"""

import numpy as np
import numpy.typing as npt

from stepladder.compiled import compiled, inlined
from stepladder.games.hockey.world import ONE, PUCK, TWO, Body, World

VIEW_SIZE = 18


@inlined
def _write_racket(racket: Body, side: float, row: npt.NDArray[np.float32], offset: int) -> None:
    """Write the six numbers of one racket."""
    row[offset] = side * racket.x
    row[offset + 1] = side * racket.y
    row[offset + 2] = racket.angle
    row[offset + 3] = side * racket.vx
    row[offset + 4] = side * racket.vy
    row[offset + 5] = racket.spin


@inlined
def _write_view(
    world: World, own: int, other: int, side: float, row: npt.NDArray[np.float32]
) -> None:
    """Write one player's view."""
    puck = world.bodies[PUCK]
    _write_racket(world.bodies[own], side, row, 0)
    _write_racket(world.bodies[other], side, row, 6)
    row[12] = side * puck.x
    row[13] = side * puck.y
    row[14] = side * puck.vx
    row[15] = side * puck.vy
    row[16] = world.bodies[own].hold
    row[17] = world.bodies[other].hold


@compiled
def write_view_one(world: World, row: npt.NDArray[np.float32]) -> None:
    """Write player one's view into a row of 18 numbers."""
    _write_view(world, ONE, TWO, 1.0, row)


@compiled
def write_view_two(world: World, row: npt.NDArray[np.float32]) -> None:
    """Write player two's view into a row of 18 numbers."""
    _write_view(world, TWO, ONE, -1.0, row)
