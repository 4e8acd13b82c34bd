"""One step of the game: controls, contacts, motion, walls.

The vector env calls `step_world` once per env and step; `rules` then judges what has become of it.
Called from here, in this order: `rackets`, `contacts`, `solver`, `impacts`.

What happens is what the original's engine does: contacts are found where the step begins, forces
and impulses change velocities, bodies move, overlaps are reduced, and walls stop what would pass.
"""

import math

import numpy as np
import numpy.typing as npt

from stepladder.compiled import bare, inlined
from stepladder.games.hockey.contacts import meet_polygon, meet_puck, meet_rink, nearby
from stepladder.games.hockey.impacts import advance, set_off, stop_at_walls
from stepladder.games.hockey.rackets import carry, steer, twist
from stepladder.games.hockey.rink import (
    CENTRES,
    FACING,
    GOAL_DEPTH,
    GOAL_X,
    GOAL_Y,
    PLAYER_ONE,
    PLAYER_TWO,
    POLYGON_GAP,
    PUCK,
    PUCK_GAP,
    RACKET,
    RACKET_CENTRE,
    RACKET_REACH,
    STEP_S,
)
from stepladder.games.hockey.solver import SLOP, solve_positions, solve_velocities
from stepladder.games.hockey.world import CAUGHT, HockeyWorld

MAX_PUCK_SPEED = 25.0
KEEP_PUCK = 1.0 - 0.05 * STEP_S
KEEP_FAST_PUCK = 1.0 - 10.0 * STEP_S
CATCH_SPEED = 0.1
"""A racket catches a puck that flies from it no faster than this, in m/s."""

MEETING_REACH_SQUARED = (RACKET_REACH + PUCK_GAP) ** 2
CENTRE_REACH = math.hypot(0.1 - RACKET_CENTRE, 0.4)
"""Distance of a racket's farthest corner from its centre of mass."""

REACHES = (PUCK_GAP, CENTRE_REACH + POLYGON_GAP, CENTRE_REACH + POLYGON_GAP)
RACKETS_REACH_SQUARED = (2.0 * RACKET_REACH + POLYGON_GAP) ** 2
RATE, ENOUGH, MAX_ROUNDS = 0.2, 3.0 * SLOP, 60


@bare
def _find_goal(world: HockeyWorld) -> None:
    """See whether the puck has reached a goal."""
    puck = world.bodies[PUCK]
    into = abs(puck.x) - GOAL_X
    if into <= -PUCK_GAP:
        return
    beside = max(abs(puck.y) - GOAL_Y, 0.0)
    short = min(into, 0.0)
    # A shot may pass the goal's box within a step; only through its mouth does one get behind it.
    if into > GOAL_DEPTH or short * short + beside * beside < PUCK_GAP * PUCK_GAP:
        world.winner = 1 if puck.x > 0.0 else -1


@bare
def _meet_racket(world: HockeyWorld, index: int) -> None:
    """Find a racket's contact with the puck; the racket may catch it."""
    puck, racket = world.bodies[PUCK], world.bodies[index]
    dx, dy = puck.x - racket.x, puck.y - racket.y
    if dx * dx + dy * dy > MEETING_REACH_SQUARED:
        racket.touching = 0
        return
    touching = meet_puck(world, index, RACKET)
    may_catch = world.keep_mode and racket.hold == 0 and FACING[index] * puck.vx < CATCH_SPEED
    if touching and not racket.touching and may_catch:
        racket.hold = CAUGHT
    racket.touching = touching


@bare
def _find_contacts(world: HockeyWorld) -> None:
    """Find all contacts at the beginning of a step."""
    world.num_contacts = 0
    for index in range(1, 3):
        _meet_racket(world, index)
    for index in range(3):
        body, reach = world.bodies[index], REACHES[index]
        polygons = nearby(
            body.centre_x - reach,
            body.centre_x + reach,
            body.centre_y - reach,
            body.centre_y + reach,
            index != PUCK,
        )
        if polygons:
            meet_rink(world, index, polygons)
    one, two = world.bodies[PLAYER_ONE], world.bodies[PLAYER_TWO]
    dx, dy = one.x - two.x, one.y - two.y
    if dx * dx + dy * dy < RACKETS_REACH_SQUARED:
        meet_polygon(world, PLAYER_ONE, RACKET, PLAYER_TWO, RACKET)


@bare
def _name_islands(world: HockeyWorld) -> None:
    """Write the island of each contact: the smallest of its bodies' numbers."""
    one, two = PLAYER_ONE, PLAYER_TWO
    for _ in range(2):
        for index in range(world.num_contacts):
            contact = world.contacts[index]
            low, high = min(contact.face, contact.point), max(contact.face, contact.point)
            if low == PUCK and high == PLAYER_ONE:
                one = PUCK
            elif low == PUCK and high == PLAYER_TWO:
                two = PUCK
            elif low == PLAYER_ONE and high == PLAYER_TWO:
                one = two = min(one, two)
    for index in range(world.num_contacts):
        contact = world.contacts[index]
        low = min(contact.face, contact.point)
        contact.island = one if low == PLAYER_ONE else two if low == PLAYER_TWO else PUCK


@bare
def _apply_forces(world: HockeyWorld) -> None:
    """Change velocities by forces and damping."""
    for index in range(3):
        body = world.bodies[index]
        body.vx = (body.vx + body.push_x) * body.keep
        body.vy = (body.vy + body.push_y) * body.keep
        body.spin = (body.spin + body.push_spin) * body.keep_spin


@bare
def _advance(world: HockeyWorld) -> None:
    """Move all bodies by one step's time."""
    for index in range(3):
        set_off(world.bodies[index])
        advance(world, index, STEP_S)


@inlined
def _find_centres(world: HockeyWorld) -> None:
    """Work out the centres of mass from the reported positions."""
    for index in range(3):
        body = world.bodies[index]
        body.centre_x = body.x + CENTRES[index] * body.facing_x
        body.centre_y = body.y + CENTRES[index] * body.facing_y


@inlined
def _report_positions(world: HockeyWorld) -> None:
    """Work out the reported positions from the centres of mass."""
    for index in range(3):
        body = world.bodies[index]
        body.x = body.centre_x - CENTRES[index] * body.facing_x
        body.y = body.centre_y - CENTRES[index] * body.facing_y


@bare
def _obey(world: HockeyWorld, controls: npt.NDArray[np.float64]) -> None:
    """Let the players' controls act: forces, damping, the puck's holding and launch."""
    puck, one, two = world.bodies[PUCK], world.bodies[PLAYER_ONE], world.bodies[PLAYER_TWO]
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


@bare
def step_world(world: HockeyWorld, controls: npt.NDArray[np.float64]) -> None:
    """Play one step.

    Args:
        world: Changed in place; `winner` is set when the puck is found in a goal.
        controls: Eight numbers in [-1, 1]: x, y, rotation and shot of player one, then of two.
    """
    _obey(world, controls)
    _find_centres(world)
    _find_goal(world)
    _find_contacts(world)
    _apply_forces(world)
    touching = world.num_contacts > 0
    if touching:
        _name_islands(world)
        for island in range(3):
            solve_velocities(world, island)
    _advance(world)
    if touching:
        for island in range(3):
            solve_positions(world, island, RATE, ENOUGH, MAX_ROUNDS)
    for index in range(3):
        stop_at_walls(world, index, REACHES[index])
    _report_positions(world)
    world.steps += 1
