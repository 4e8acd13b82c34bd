"""Which bodies touch: the contacts of one moment, found from positions alone.

Second part of a step (`physics`), and part of every sub-step (`impacts`). Fills the room for
contacts, which `solver` works on. Convex polygons with a thin skin meet the puck and each other;
the face of least penetration decides, also where the puck is already deep inside a racket: rackets
do not stop the puck in flight, they find it inside and push it out by the nearest way.
"""

import numpy as np

from stepladder.compiled import bare, inlined
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
    POLYGON_GAP,
    POLYGON_SKIN,
    PUCK,
    PUCK_GAP,
    PUCK_RADIUS,
    PUCK_WALL_FRICTION,
    RACKET,
    RACKET_FRICTION,
    RACKET_RACKET_FRICTION,
    RIGHT_GOAL,
    RIGHT_LOWER,
    RIGHT_UPPER,
    TOP,
    WALL_X,
    WALL_Y,
    WALLS,
)
from stepladder.games.hockey.world import MAX_CONTACTS, HockeyWorld

INSIDE = 1e-7
"""A centre no farther than this from the outermost face counts as inside a polygon."""

PREFER_FIRST_BY, PREFER_FIRST_FACTOR = 0.001, 0.98
"""The second polygon's face is taken only where it is clearly the farther one."""


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
def meet_puck(world: HockeyWorld, owner: int, shape: int) -> bool:
    """Add the contact of the puck with a polygon of a body, if they touch; return whether."""
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


@inlined
def relative_frame(world: HockeyWorld, here: int, there: int) -> tuple[float, float, float, float]:
    """Return a body's shape in another's frame: cosine and sine of its turn, its origin."""
    body, other = world.bodies[here], world.bodies[there]
    cos = body.facing_x * other.facing_x + body.facing_y * other.facing_y
    sin = body.facing_x * other.facing_y - body.facing_y * other.facing_x
    shift = CENTRES[there]
    dx = other.centre_x - shift * other.facing_x - body.centre_x
    dy = other.centre_y - shift * other.facing_y - body.centre_y
    x = dx * body.facing_x + dy * body.facing_y + CENTRES[here]
    y = dy * body.facing_x - dx * body.facing_y
    return cos, sin, x, y


@bare
def widest_gap(
    world: HockeyWorld, owner: int, shape: int, other_owner: int, other: int
) -> tuple[int, float]:
    """Find the face of a polygon that keeps another one farthest away, and how far that is."""
    cos, sin, x, y = relative_frame(world, owner, other_owner)
    best, widest = 0, -np.inf
    for face in range(NUM_CORNERS[shape]):
        normal_x, normal_y = NORMAL_X[shape, face], NORMAL_Y[shape, face]
        there_x, there_y = normal_x * cos + normal_y * sin, normal_y * cos - normal_x * sin
        lowest = np.inf
        for place in range(NUM_CORNERS[other]):
            height = there_x * CORNER_X[other, place] + there_y * CORNER_Y[other, place]
            lowest = min(lowest, height)
        lowest += normal_x * (x - CORNER_X[shape, face]) + normal_y * (y - CORNER_Y[shape, face])
        if lowest > widest:
            best, widest = face, lowest
    return best, widest


@bare
def _touch(
    world: HockeyWorld, owner: int, shape: int, face: int, other_owner: int, other: int
) -> None:
    """Add the one or two points where another polygon touches a face."""
    cos, sin, x, y = relative_frame(world, owner, other_owner)
    normal_x, normal_y = NORMAL_X[shape, face], NORMAL_Y[shape, face]
    there_x, there_y = normal_x * cos + normal_y * sin, normal_y * cos - normal_x * sin
    edge, lowest = 0, np.inf
    for place in range(NUM_CORNERS[other]):
        facing = there_x * NORMAL_X[other, place] + there_y * NORMAL_Y[other, place]
        if facing < lowest:
            edge, lowest = place, facing
    corner_x, corner_y = CORNER_X[shape, face], CORNER_Y[shape, face]
    length = np.hypot(CORNER_X[shape, face + 1] - corner_x, CORNER_Y[shape, face + 1] - corner_y)
    start_x, start_y = CORNER_X[other, edge], CORNER_Y[other, edge]
    edge_x, edge_y = CORNER_X[other, edge + 1] - start_x, CORNER_Y[other, edge + 1] - start_y
    # Along the face, whose direction is the normal turned by a quarter, and away from it.
    from_x = cos * start_x - sin * start_y + x - corner_x
    from_y = sin * start_x + cos * start_y + y - corner_y
    along = from_y * normal_x - from_x * normal_y
    height = from_x * normal_x + from_y * normal_y
    edge_along = edge_x * -there_y + edge_y * there_x
    edge_height = edge_x * there_x + edge_y * there_y
    # The edge runs against the face's direction: its first point is cut at the far end.
    first, last = 0.0, 1.0
    if edge_along != 0.0:
        first = max(0.0, (length + POLYGON_GAP - along) / edge_along)
        last = min(1.0, (-POLYGON_GAP - along) / edge_along)
    if first > 1.0 or last < 0.0:
        return
    for share in (first, last):
        if height + share * edge_height <= POLYGON_GAP and world.num_contacts < MAX_CONTACTS:
            contact = world.contacts[world.num_contacts]
            world.num_contacts += 1
            contact.face, contact.point = owner, other_owner
            contact.local_normal_x, contact.local_normal_y = normal_x, normal_y
            contact.plane_x, contact.plane_y = corner_x - CENTRES[owner], corner_y
            contact.point_x = start_x + share * edge_x - CENTRES[other_owner]
            contact.point_y = start_y + share * edge_y
            contact.gap, contact.point_gap = POLYGON_GAP, POLYGON_SKIN
            contact.friction = RACKET_RACKET_FRICTION
            if owner == WALLS or other_owner == WALLS:
                contact.friction = RACKET_FRICTION
            contact.bounce = 0.0


@bare
def meet_polygon(world: HockeyWorld, owner: int, shape: int, other_owner: int, other: int) -> None:
    """Add the contact points of two polygons, if they touch."""
    face, gap = widest_gap(world, owner, shape, other_owner, other)
    if gap > POLYGON_GAP:
        return
    other_face, other_gap = widest_gap(world, other_owner, other, owner, shape)
    if other_gap > POLYGON_GAP:
        return
    if other_gap > PREFER_FIRST_FACTOR * gap + PREFER_FIRST_BY:
        _touch(world, other_owner, other, other_face, owner, shape)
    else:
        _touch(world, owner, shape, face, other_owner, other)


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
def meet_rink(world: HockeyWorld, index: int, polygons: int) -> None:
    """Add the contacts of a body with those of the rink's polygons whose bits are set."""
    for shape in range(NUM_RINK_POLYGONS):
        if polygons >> shape & 1:
            if index == PUCK:
                meet_puck(world, WALLS, shape)
            else:
                meet_polygon(world, WALLS, shape, index, RACKET)
