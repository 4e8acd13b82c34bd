"""Who touches whom: the contacts of one moment, found from positions alone.

Third part of a step (`physics`), and part of every sub-step (`impacts`). Fills the world's room for
contacts, which `solver` works on. Convex polygons with a thin skin meet the puck and each other;
the face of least penetration decides, also where the puck is already deep inside a racket: rackets
do not stop the puck in flight, they find it inside and push it out by the nearest way.
"""

import numpy as np

from stepladder.compiled import bare
from stepladder.games.hockey.polygons import meet_polygon
from stepladder.games.hockey.rink import (
    BOTTOM,
    BOUNCE,
    CENTRES,
    CORNER_X,
    CORNER_Y,
    GOAL_X,
    GOAL_Y,
    LEFT_GOAL,
    LEFT_LOWER,
    LEFT_UPPER,
    NORMAL_X,
    NORMAL_Y,
    NUM_CORNERS,
    NUM_RINK_POLYGONS,
    PUCK,
    PUCK_GAP,
    PUCK_RADIUS,
    PUCK_WALL_FRICTION,
    RACKET,
    RACKET_FRICTION,
    RIGHT_GOAL,
    RIGHT_LOWER,
    RIGHT_UPPER,
    TOP,
    WALL_X,
    WALL_Y,
    WALLS,
)
from stepladder.games.hockey.world import MAX_CONTACTS, World

INSIDE = 1e-7
"""A centre no farther than this from the outermost face counts as inside a polygon."""


@bare
def nearest_feature(
    shape: int, x: float, y: float, limit: float
) -> tuple[float, float, float, float, float]:
    """Find what of a polygon is nearest to a point in the polygon's frame.

    Returns:
        The distance, negative inside and infinite where it exceeds `limit`; the direction away from
        the polygon; and a point of the polygon's surface at that distance.
    """
    best, depth = 0, -np.inf
    for face in range(NUM_CORNERS[shape]):
        distance = NORMAL_X[shape, face] * (x - CORNER_X[shape, face])
        distance += NORMAL_Y[shape, face] * (y - CORNER_Y[shape, face])
        if distance > limit:
            return np.inf, 0.0, 0.0, 0.0, 0.0
        if distance > depth:
            best, depth = face, distance
    corner_x, corner_y = CORNER_X[shape, best], CORNER_Y[shape, best]
    if depth > INSIDE:
        next_x, next_y = CORNER_X[shape, best + 1], CORNER_Y[shape, best + 1]
        along_x, along_y = next_x - corner_x, next_y - corner_y
        before = (x - corner_x) * along_x + (y - corner_y) * along_y <= 0.0
        behind = (x - next_x) * along_x + (y - next_y) * along_y >= 0.0
        if before or behind:
            if behind:
                corner_x, corner_y = next_x, next_y
            dx, dy = x - corner_x, y - corner_y
            distance = np.sqrt(dx * dx + dy * dy)
            if distance > limit:
                return np.inf, 0.0, 0.0, 0.0, 0.0
            return distance, dx / distance, dy / distance, corner_x, corner_y
    return depth, NORMAL_X[shape, best], NORMAL_Y[shape, best], corner_x, corner_y


@bare
def meet_puck(world: World, owner: int, shape: int) -> bool:
    """Add the contact of the puck with a polygon, if they touch; return whether they do.

    Args:
        world: Its bodies' centres of mass and facings are read.
        owner: Body that the polygon belongs to.
        shape: The polygon.
    """
    puck, body = world.bodies[PUCK], world.bodies[owner]
    dx, dy = puck.centre_x - body.centre_x, puck.centre_y - body.centre_y
    x = dx * body.facing_x + dy * body.facing_y + CENTRES[owner]
    y = dy * body.facing_x - dx * body.facing_y
    distance, normal_x, normal_y, plane_x, plane_y = nearest_feature(shape, x, y, PUCK_GAP)
    if distance > PUCK_GAP or world.num_contacts == MAX_CONTACTS:
        return False
    contact = world.contacts[world.num_contacts]
    world.num_contacts += 1
    contact.face, contact.point = owner, PUCK
    contact.local_normal_x, contact.local_normal_y = normal_x, normal_y
    contact.plane_x, contact.plane_y = plane_x - CENTRES[owner], plane_y
    contact.point_x = contact.point_y = 0.0
    contact.gap, contact.point_gap = PUCK_GAP, PUCK_RADIUS
    contact.friction = PUCK_WALL_FRICTION if owner == WALLS else RACKET_FRICTION
    contact.bounce = BOUNCE
    return True


@bare
def nearby(min_x: float, max_x: float, min_y: float, max_y: float, with_goals: bool) -> int:
    """Return which of the rink's polygons a box may touch, as bits."""
    found = 0
    if max_y > WALL_Y:
        found |= 1 << TOP
    if min_y < -WALL_Y:
        found |= 1 << BOTTOM
    if min_x < -WALL_X:
        found |= (max_y > GOAL_Y) << LEFT_UPPER
        found |= (min_y < -GOAL_Y) << LEFT_LOWER
        if with_goals and min_x < -GOAL_X and max_y > -GOAL_Y and min_y < GOAL_Y:
            found |= 1 << LEFT_GOAL
    if max_x > WALL_X:
        found |= (max_y > GOAL_Y) << RIGHT_UPPER
        found |= (min_y < -GOAL_Y) << RIGHT_LOWER
        if with_goals and max_x > GOAL_X and max_y > -GOAL_Y and min_y < GOAL_Y:
            found |= 1 << RIGHT_GOAL
    return found


@bare
def meet_rink(world: World, index: int, polygons: int) -> None:
    """Add the contacts of a body with those of the rink's polygons whose bits are set."""
    for shape in range(NUM_RINK_POLYGONS):
        if polygons >> shape & 1:
            if index == PUCK:
                meet_puck(world, WALLS, shape)
            else:
                meet_polygon(world, WALLS, shape, index, RACKET)
