"""What each player sees: 18 numbers, from its own side of the rink.

Called by the vector env after a step or reset; `recall_view` is the inverse. Player two sees
the point mirror of the world: positions and linear velocities change sign, angles and spins stay,
the players change places.

Own x, y, angle, vx, vy, spin; the same of the other; the puck's x, y, vx, vy; own hold count, the
other's.
"""

import numpy as np
import numpy.typing as npt

from stepladder.compiled import bare, inlined
from stepladder.games.hockey.rink import PLAYER_ONE, PLAYER_TWO, PUCK
from stepladder.games.hockey.world import Body, HockeyWorld, clear_world, turn_to

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


@bare
def write_view(world: HockeyWorld, player: int, row: npt.NDArray[np.float32]) -> None:
    """Write one player's view into a row of 18 numbers."""
    side, other = (1.0, PLAYER_TWO) if player == PLAYER_ONE else (-1.0, PLAYER_ONE)
    puck = world.bodies[PUCK]
    _write_racket(world.bodies[player], side, row, 0)
    _write_racket(world.bodies[other], side, row, 6)
    row[12] = side * puck.x
    row[13] = side * puck.y
    row[14] = side * puck.vx
    row[15] = side * puck.vy
    row[16] = world.bodies[player].hold
    row[17] = world.bodies[other].hold


@bare
def _recall_racket(racket: Body, side: float, row: npt.NDArray[np.float64], offset: int) -> None:
    """Put one racket where six numbers say it was."""
    racket.x, racket.y = row[offset], row[offset + 1]
    turn_to(racket, side, row[offset + 2])
    racket.vx, racket.vy = row[offset + 3], row[offset + 4]
    racket.spin = row[offset + 5]


@bare
def recall_view(world: HockeyWorld, row: npt.NDArray[np.float64]) -> None:
    """Begin a world again in a state that player one saw.

    What it did not see is as after a reset: no spin of the puck, nothing touches, no launch is
    pending, mode `NORMAL`, step 0.
    """
    clear_world(world)
    puck = world.bodies[PUCK]
    _recall_racket(world.bodies[PLAYER_ONE], 1.0, row, 0)
    _recall_racket(world.bodies[PLAYER_TWO], -1.0, row, 6)
    puck.x, puck.y, puck.vx, puck.vy = row[12], row[13], row[14], row[15]
    world.bodies[PLAYER_ONE].hold, world.bodies[PLAYER_TWO].hold = int(row[16]), int(row[17])
