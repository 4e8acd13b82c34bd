"""What each player sees: 18 numbers, from its own side of the rink.

Called by the vector env after a step or reset; `recall_view` goes the other way. Player two sees
the point mirror of the world: positions and linear velocities change sign, angles and spins stay,
the players change places.

Own x, y, angle, vx, vy, spin; the same of the other; the puck's x, y, vx, vy; own hold count, the
other's.
"""

import numpy as np
import numpy.typing as npt

from stepladder.compiled import bare, inlined
from stepladder.games.hockey.world import ONE, PUCK, TWO, Body, World, clear_world, turn_to

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


@bare
def write_view_one(world: World, row: npt.NDArray[np.float32]) -> None:
    """Write player one's view into a row of 18 numbers."""
    _write_view(world, ONE, TWO, 1.0, row)


@bare
def write_view_two(world: World, row: npt.NDArray[np.float32]) -> None:
    """Write player two's view into a row of 18 numbers."""
    _write_view(world, TWO, ONE, -1.0, row)


@bare
def _recall_racket(racket: Body, side: float, row: npt.NDArray[np.float64], offset: int) -> None:
    """Put one racket where six numbers say it was."""
    racket.x, racket.y = row[offset], row[offset + 1]
    turn_to(racket, side, row[offset + 2])
    racket.vx, racket.vy = row[offset + 3], row[offset + 4]
    racket.spin = row[offset + 5]


@bare
def recall_view(world: World, row: npt.NDArray[np.float64]) -> None:
    """Begin a world anew in a state that player one saw.

    What it did not see is as after a reset: no spin of the puck, nothing touches, no launch is
    pending, mode `NORMAL`, step 0.
    """
    clear_world(world)
    puck = world.bodies[PUCK]
    _recall_racket(world.bodies[ONE], 1.0, row, 0)
    _recall_racket(world.bodies[TWO], -1.0, row, 6)
    puck.x, puck.y, puck.vx, puck.vy = row[12], row[13], row[14], row[15]
    world.bodies[ONE].hold, world.bodies[TWO].hold = int(row[16]), int(row[17])
