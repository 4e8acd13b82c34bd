"""One step of the game: controls, holding, contacts, motion, walls.

The vector env calls `step_world` once per env and step; `rules` then judges what has become of it.
Everything else is called from here, in the order of the imports' names: `rackets`, `holding`,
`contacts`, `solver`, `impacts`.
"""

import math

import numpy as np
import numpy.typing as npt

from stepladder.compiled import compiled, inlined
from stepladder.games.hockey.contacts import meet_puck, meet_rink, nearby
from stepladder.games.hockey.holding import CAUGHT, carry
from stepladder.games.hockey.impacts import advance, stop_at_walls
from stepladder.games.hockey.polygons import meet_polygon
from stepladder.games.hockey.rackets import steer, twist
from stepladder.games.hockey.rink import (
    GOAL_X,
    GOAL_Y,
    POLYGON_GAP,
    PUCK_GAP,
    RACKET,
    RACKET_CENTRE,
    RACKET_RACKET_FRICTION,
    RACKET_REACH,
    SIDES,
    STEP_S,
)
from stepladder.games.hockey.solver import solve_positions, solve_velocities, SLOP
from stepladder.games.hockey.world import ONE, PUCK, TWO, World

MAX_PUCK_SPEED = 25.0
KEEP_PUCK = 1.0 - 0.05 * STEP_S
KEEP_FAST_PUCK = 1.0 - 10.0 * STEP_S
CATCH_SPEED = 0.1
"""A racket catches a puck that flies from it no faster than this, in m/s."""

MEETING_REACH_SQUARED = (RACKET_REACH + PUCK_GAP) ** 2
CENTRE_REACH = math.hypot(0.1 - RACKET_CENTRE, 0.4)
"""Distance of a racket's farthest corner from its centre of mass."""

RATE, ENOUGH, MAX_ROUNDS = 0.2, 3.0 * SLOP, 60


@compiled
def _find_goal(world: World) -> None:
    """See whether the puck has reached a goal."""
    puck = world.bodies[PUCK]
    into = abs(puck.x) - GOAL_X
    if into <= -PUCK_GAP:
        return
    beside = max(abs(puck.y) - GOAL_Y, 0.0)
    into = min(into, 0.0)
    if into * into + beside * beside < PUCK_GAP * PUCK_GAP:
        world.winner = 1 if puck.x > 0.0 else -1


@compiled
def _meet_racket(world: World, count: int, index: int, side: float) -> int:
    """Find a racket's contact with the puck; the racket may catch it."""
    puck, racket = world.bodies[PUCK], world.bodies[index]
    dx, dy = puck.x - racket.x, puck.y - racket.y
    if dx * dx + dy * dy > MEETING_REACH_SQUARED:
        racket.touching = 0
        return count
    new_count = meet_puck(world, count, index, RACKET)
    touching = new_count > count
    if touching and not racket.touching and world.keep_mode and racket.hold == 0:
        if side * puck.vx < CATCH_SPEED:
            racket.hold = CAUGHT
    racket.touching = touching
    return new_count


@compiled
def _find_contacts(world: World) -> int:
    """Find all contacts at the beginning of a step; return how many there are."""
    puck, one, two = world.bodies[PUCK], world.bodies[ONE], world.bodies[TWO]
    count = _meet_racket(world, 0, ONE, 1.0)
    count = _meet_racket(world, count, TWO, -1.0)
    for index in range(3):
        body = world.bodies[index]
        reach = PUCK_GAP if index == PUCK else CENTRE_REACH + POLYGON_GAP
        polygons = nearby(
            body.centre_x - reach,
            body.centre_x + reach,
            body.centre_y - reach,
            body.centre_y + reach,
            index != PUCK,
        )
        if polygons:
            count = meet_rink(world, count, index, polygons)
    dx, dy = one.x - two.x, one.y - two.y
    if dx * dx + dy * dy < (2.0 * RACKET_REACH + POLYGON_GAP) ** 2:
        count = meet_polygon(world, count, ONE, RACKET, TWO, RACKET, RACKET_RACKET_FRICTION)
    return count


@compiled
def _name_islands(world: World, count: int) -> None:
    """Tell each contact which island it belongs to: the smallest of its bodies' numbers."""
    one, two = ONE, TWO
    for _ in range(2):
        for index in range(count):
            contact = world.contacts[index]
            low, high = min(contact.face, contact.point), max(contact.face, contact.point)
            if low == PUCK and high == ONE:
                one = PUCK
            elif low == PUCK and high == TWO:
                two = PUCK
            elif low == ONE and high == TWO:
                one = two = min(one, two)
    for index in range(count):
        contact = world.contacts[index]
        low = min(contact.face, contact.point)
        contact.island = one if low == ONE else two if low == TWO else PUCK


@compiled
def _apply_forces(world: World) -> None:
    """Change velocities by forces and damping."""
    for index in range(3):
        body = world.bodies[index]
        body.vx = (body.vx + body.push_x) * body.keep
        body.vy = (body.vy + body.push_y) * body.keep
        body.spin = (body.spin + body.push_spin) * body.keep_spin


@compiled
def _advance(world: World) -> None:
    """Move all bodies by one step's time."""
    for index in range(3):
        body = world.bodies[index]
        body.from_x, body.from_y, body.from_angle = body.centre_x, body.centre_y, body.angle
        advance(body, SIDES[index], STEP_S)


@inlined
def _find_centres(world: World) -> None:
    """Work out the centres of mass from the reported positions."""
    for index in range(3):
        body = world.bodies[index]
        shift = 0.0 if index == PUCK else RACKET_CENTRE
        body.centre_x = body.x + shift * body.facing_x
        body.centre_y = body.y + shift * body.facing_y


@inlined
def _report_positions(world: World) -> None:
    """Work out the reported positions from the centres of mass."""
    for index in range(3):
        body = world.bodies[index]
        shift = 0.0 if index == PUCK else RACKET_CENTRE
        body.x = body.centre_x - shift * body.facing_x
        body.y = body.centre_y - shift * body.facing_y


@compiled
def _obey(world: World, controls: npt.NDArray[np.float64]) -> None:
    """Let the players' controls act: forces, damping, the puck's holding and launch."""
    puck, one, two = world.bodies[PUCK], world.bodies[ONE], world.bodies[TWO]
    steer(one, 1.0, controls[0], controls[1])
    twist(one, controls[2])
    steer(two, -1.0, controls[4], controls[5])
    twist(two, controls[6])
    fast = puck.vx * puck.vx + puck.vy * puck.vy > MAX_PUCK_SPEED * MAX_PUCK_SPEED
    puck.keep = KEEP_FAST_PUCK if fast else KEEP_PUCK
    if one.hold > 1:
        carry(world, one, controls[3])
    if two.hold > 1:
        carry(world, two, controls[7])
    puck.push_x, puck.push_y = world.launch_x, world.launch_y
    world.launch_x = world.launch_y = 0.0


@compiled
def step_world(world: World, controls: npt.NDArray[np.float64]) -> None:
    """Play one step.

    Args:
        world: Changed in place; `winner` is set when the puck is found in a goal.
        controls: Eight numbers in [-1, 1]: x, y, rotation and shot of player one, then of two.
    """
    _obey(world, controls)
    _find_centres(world)
    _find_goal(world)
    count = _find_contacts(world)
    _apply_forces(world)
    if count > 0:
        _name_islands(world, count)
        for island in range(3):
            solve_velocities(world, count, island)
    _advance(world)
    if count > 0:
        for island in range(3):
            solve_positions(world, count, island, RATE, ENOUGH, MAX_ROUNDS)
    stop_at_walls(world, PUCK, PUCK_GAP)
    stop_at_walls(world, ONE, CENTRE_REACH + POLYGON_GAP)
    stop_at_walls(world, TWO, CENTRE_REACH + POLYGON_GAP)
    _report_positions(world)
    world.steps += 1
