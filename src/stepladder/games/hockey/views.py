"""What each player sees, from its own side of the rink: the numbers of `HockeyView`, in this order.

Called by the vector env after a step or reset; `recall_view` is the inverse. Player two sees
the point mirror of the world: positions and linear velocities change sign, angles and spins stay,
the players change places.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.compiled import bare, inlined
from stepladder.games.hockey.rink import PLAYER_ONE, PLAYER_TWO, PUCK
from stepladder.games.hockey.world import Body, HockeyWorld, clear_world, turn_to
from stepladder.records import Fields, Records


class RacketView(Fields):
    """A racket as a player sees it."""

    x: float
    y: float
    angle: float
    vx: float
    vy: float
    spin: float


class PuckView(Fields):
    """The puck as a player sees it."""

    x: float
    y: float
    vx: float
    vy: float


class HockeyView(Fields):
    """All that a player sees."""

    own: RacketView
    other: RacketView
    puck: PuckView
    own_hold: float
    """Steps for which the player holds the puck."""
    other_hold: float


VIEW_SIZE = HockeyView.num_words


def as_views(rows: npt.NDArray[Any]) -> Records[HockeyView]:
    """See rows of `VIEW_SIZE` numbers, in one memory, as views; numbers may be of any type."""
    return rows.view(_with_numbers(HockeyView.dtype, rows.dtype))[..., 0]


def _with_numbers(record: np.dtype[Any], number: np.dtype[Any]) -> np.dtype[Any]:
    if record.names is None:
        return number
    return np.dtype([(name, _with_numbers(record[name], number)) for name in record.names])


@inlined
def _write_racket(racket: Body, side: float, seen: RacketView) -> None:
    seen.x, seen.y = side * racket.x, side * racket.y
    seen.angle = racket.angle
    seen.vx, seen.vy = side * racket.vx, side * racket.vy
    seen.spin = racket.spin


@bare
def write_view(world: HockeyWorld, player: int, view: HockeyView) -> None:
    """Write what one player sees."""
    side, other = (1.0, PLAYER_TWO) if player == PLAYER_ONE else (-1.0, PLAYER_ONE)
    puck, seen = world.bodies[PUCK], view.puck
    _write_racket(world.bodies[player], side, view.own)
    _write_racket(world.bodies[other], side, view.other)
    seen.x, seen.y = side * puck.x, side * puck.y
    seen.vx, seen.vy = side * puck.vx, side * puck.vy
    view.own_hold = world.bodies[player].hold
    view.other_hold = world.bodies[other].hold


@bare
def _recall_racket(racket: Body, side: float, seen: RacketView) -> None:
    """Put one racket where it was seen."""
    racket.x, racket.y = seen.x, seen.y
    turn_to(racket, side, seen.angle)
    racket.vx, racket.vy = seen.vx, seen.vy
    racket.spin = seen.spin


@bare
def recall_view(world: HockeyWorld, view: HockeyView) -> None:
    """Begin a world again in a state that player one saw.

    What it did not see is as after a reset: no spin of the puck, nothing touches, no launch is
    pending, mode `NORMAL`, step 0.
    """
    clear_world(world)
    puck, seen = world.bodies[PUCK], view.puck
    _recall_racket(world.bodies[PLAYER_ONE], 1.0, view.own)
    _recall_racket(world.bodies[PLAYER_TWO], -1.0, view.other)
    puck.x, puck.y, puck.vx, puck.vy = seen.x, seen.y, seen.vx, seen.vy
    world.bodies[PLAYER_ONE].hold = int(view.own_hold)
    world.bodies[PLAYER_TWO].hold = int(view.other_hold)
