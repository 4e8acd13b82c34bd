"""What happens between two steps: walls stop the puck and the rackets in flight.

Last part of a step (`physics`): nothing that moves passes through a wall, however fast. A body
whose straight way through the step comes too near to a wall is stopped where it does, bounces
there, and goes on for the rest of the time. Rackets and puck do not stop each other like that; they
meet only at the beginning of a step.
"""

import math
from typing import NamedTuple

import numpy as np

from stepladder.compiled import bare, inlined
from stepladder.games.hockey.contacts import (
    meet_rink,
    nearby,
    nearest_feature,
    relative_frame,
    widest_gap,
)
from stepladder.games.hockey.rink import (
    CORNER_X,
    CORNER_Y,
    NORMAL_X,
    NORMAL_Y,
    NUM_CORNERS,
    NUM_RINK_POLYGONS,
    POLYGON_GAP,
    PUCK,
    PUCK_GAP,
    RACKET,
    STEP_S,
    WALLS,
)
from stepladder.games.hockey.solver import SLOP, solve_positions, solve_velocities
from stepladder.games.hockey.world import Body, HockeyWorld, turn

TOLERANCE = 0.25 * SLOP
PUCK_STOP = PUCK_GAP - 3.0 * SLOP
"""Distance of the puck's centre from a wall at which it is stopped."""

RACKET_STOP = POLYGON_GAP - 3.0 * SLOP
RATE = 0.75
ENOUGH = 1.5 * SLOP + 1e-9
"""A puck stopped at `PUCK_STOP` overlaps by 1.5 slops after a round: rounding must not decide."""

MAX_ROUNDS = 20
MAX_IMPACTS = 16
MAX_TRAVEL, MAX_TURN = 2.0, 0.5 * math.pi
NO_IMPACT = 2.0
ALMOST_ONE = 1.0 - 1e-6
"""Impacts later than this wait for the next step."""


@bare
def puck_impact(world: HockeyWorld, shape: int) -> float:
    """Return the share of its way after which the puck meets a polygon, or `NO_IMPACT`."""
    puck = world.bodies[PUCK]
    way_x, way_y = puck.centre_x - puck.from_x, puck.centre_y - puck.from_y
    share = 0.0
    for _ in range(MAX_ROUNDS):
        x, y = puck.from_x + share * way_x, puck.from_y + share * way_y
        distance, normal_x, normal_y, _, _ = nearest_feature(shape, x, y, np.inf)
        if distance <= 0.0:
            return NO_IMPACT
        if distance < PUCK_STOP + TOLERANCE:
            return share
        end = distance + (1.0 - share) * (way_x * normal_x + way_y * normal_y)
        if end > PUCK_STOP + TOLERANCE:
            return NO_IMPACT
        if end > PUCK_STOP - TOLERANCE:
            share = 1.0
        elif abs(0.5 * (distance + end) - PUCK_STOP) < TOLERANCE:
            share = 0.5 * (share + 1.0)
        else:
            share += (distance - PUCK_STOP) / (distance - end) * (1.0 - share)
    return share


@bare
def _pose(body: Body, share: float, end: tuple[float, float, float]) -> None:
    """Put a body where it is after a share of its way."""
    body.centre_x = body.from_x + share * (end[0] - body.from_x)
    body.centre_y = body.from_y + share * (end[1] - body.from_y)
    body.angle = body.from_angle
    body.facing_x, body.facing_y = body.from_facing_x, body.from_facing_y
    if end[2] != body.from_angle:
        turn(body, share * (end[2] - body.from_angle))


class Facing(NamedTuple):
    """A face of one polygon, and another polygon above it: a racket and a wall."""

    owner: int
    """Whose face it is: `WALLS`, or the index of a racket."""
    polygon: int
    face: int
    other_owner: int
    other_polygon: int


@bare
def _height(world: HockeyWorld, facing: Facing, corner: int) -> float:
    """Return how far a corner of the other polygon is above the face."""
    mine, face, other = facing.polygon, facing.face, facing.other_polygon
    cos, sin, x, y = relative_frame(world, facing.owner, facing.other_owner)
    x += cos * CORNER_X[other, corner] - sin * CORNER_Y[other, corner] - CORNER_X[mine, face]
    y += sin * CORNER_X[other, corner] + cos * CORNER_Y[other, corner] - CORNER_Y[mine, face]
    return NORMAL_X[mine, face] * x + NORMAL_Y[mine, face] * y


@bare
def _lowest(world: HockeyWorld, facing: Facing) -> tuple[float, int]:
    """Return the corner of the other polygon that is least above the face, and its height."""
    lowest, nearest = np.inf, 0
    for corner in range(NUM_CORNERS[facing.other_polygon]):
        height = _height(world, facing, corner)
        if height < lowest:
            lowest, nearest = height, corner
    return lowest, nearest


@bare
def _meeting(
    world: HockeyWorld, body: Body, share: float, end: tuple[float, float, float], facing: Facing
) -> float:
    """Return when a racket, whose pose is changed, comes too near to what it faces.

    Args:
        world: The racket's.
        body: The racket.
        share: Of its way to `end`; before, it is still far enough.
        end: Where it would be without an impact.
        facing: Of the racket and a wall.

    Returns:
        A share of its way, or `NO_IMPACT`.
    """
    late = 1.0
    for _ in range(8):
        _pose(body, late, end)
        low, corner = _lowest(world, facing)
        if low > RACKET_STOP + TOLERANCE:
            return NO_IMPACT
        if low > RACKET_STOP - TOLERANCE:
            return late
        _pose(body, share, end)
        high = _height(world, facing, corner)
        if high <= RACKET_STOP + TOLERANCE:
            return share if high >= RACKET_STOP - TOLERANCE else NO_IMPACT
        early = share
        for attempt in range(50):
            if attempt % 2 == 1:
                middle = early + (RACKET_STOP - high) * (late - early) / (low - high)
            else:
                middle = 0.5 * (early + late)
            _pose(body, middle, end)
            height = _height(world, facing, corner)
            if abs(height - RACKET_STOP) < TOLERANCE:
                late = middle
                break
            if height > RACKET_STOP:
                early, high = middle, height
            else:
                late, low = middle, height
    return late


@bare
def racket_impact(world: HockeyWorld, index: int, shape: int) -> float:
    """Return the share of its way after which a racket meets a polygon, or `NO_IMPACT`."""
    body = world.bodies[index]
    end = (body.centre_x, body.centre_y, body.angle)
    share = 0.0
    for _ in range(MAX_ROUNDS):
        _pose(body, share, end)
        face, gap = widest_gap(world, WALLS, shape, index, RACKET)
        own_face, own_gap = widest_gap(world, index, RACKET, WALLS, shape)
        if gap >= own_gap:
            facing = Facing(WALLS, shape, face, index, RACKET)
        else:
            facing = Facing(index, RACKET, own_face, WALLS, shape)
        gap = max(gap, own_gap)
        if gap <= 0.0:
            share = NO_IMPACT
        if gap < RACKET_STOP + TOLERANCE:
            break
        share = _meeting(world, body, share, end, facing)
        if share > ALMOST_ONE:
            break
    _pose(body, 1.0, end)
    return share


@inlined
def set_off(body: Body) -> None:
    """Note where a body's way begins."""
    body.from_x, body.from_y, body.from_angle = body.centre_x, body.centre_y, body.angle
    body.from_facing_x, body.from_facing_y = body.facing_x, body.facing_y


@bare
def advance(world: HockeyWorld, index: int, time_s: float) -> None:
    """Move a body on for some time; travel and rotation have an upper limit per step."""
    body = world.bodies[index]
    travel_squared = (body.vx * body.vx + body.vy * body.vy) * time_s * time_s
    if travel_squared > MAX_TRAVEL * MAX_TRAVEL:
        slower = MAX_TRAVEL / np.sqrt(travel_squared)
        body.vx *= slower
        body.vy *= slower
    if abs(body.spin) * time_s > MAX_TURN:
        body.spin = np.copysign(MAX_TURN / time_s, body.spin)
    body.centre_x += time_s * body.vx
    body.centre_y += time_s * body.vy
    if index != PUCK and body.spin != 0.0:
        turn(body, time_s * body.spin)


@bare
def _first_impact(world: HockeyWorld, index: int, polygons: int) -> float:
    """Return the share of its way after which a body first meets the rink, or `NO_IMPACT`."""
    first = NO_IMPACT
    for shape in range(NUM_RINK_POLYGONS):
        if polygons >> shape & 1:
            if index == PUCK:
                first = min(first, puck_impact(world, shape))
            else:
                first = min(first, racket_impact(world, index, shape))
    return first


@bare
def stop_at_walls(world: HockeyWorld, index: int, reach: float) -> None:
    """Let a body that has moved through the step be stopped and turned back by walls.

    Args:
        world: The body's way goes from its ``from`` fields to its centre and angle.
        index: The puck or a racket.
        reach: Distance from its centre of mass within which it can meet something.
    """
    body = world.bodies[index]
    left_s = STEP_S
    for _ in range(MAX_IMPACTS):
        polygons = nearby(
            min(body.from_x, body.centre_x) - reach,
            max(body.from_x, body.centre_x) + reach,
            min(body.from_y, body.centre_y) - reach,
            max(body.from_y, body.centre_y) + reach,
            index != PUCK,
        )
        if polygons == 0:
            return
        share = _first_impact(world, index, polygons)
        if share > ALMOST_ONE:
            return
        end = (body.centre_x, body.centre_y, body.angle)
        _pose(body, share, end)
        world.num_contacts = 0
        meet_rink(world, index, polygons)
        if world.num_contacts == 0:
            _pose(body, 1.0, end)
            return
        left_s *= 1.0 - share
        for place in range(world.num_contacts):
            world.contacts[place].island = index
        solve_positions(world, index, RATE, ENOUGH, MAX_ROUNDS)
        set_off(body)
        solve_velocities(world, index)
        advance(world, index, left_s)
    # Still between walls: what is left of its way is given up.
    _pose(body, 0.0, (body.centre_x, body.centre_y, body.angle))
