"""Two polygons: how far apart they are, and where they touch.

Used by `contacts` for rackets against the rink and each other, and by `impacts` for the moment at
which a racket reaches a wall.
"""

import numpy as np

from stepladder.compiled import bare, inlined
from stepladder.games.hockey.rink import (
    CENTRES,
    CORNER_X,
    CORNER_Y,
    NORMAL_X,
    NORMAL_Y,
    NUM_CORNERS,
    POLYGON_GAP,
    RACKET_FRICTION,
    RACKET_RACKET_FRICTION,
    SKIN,
    WALLS,
)
from stepladder.games.hockey.world import MAX_CONTACTS, World

PREFER_FIRST_BY, PREFER_FIRST_FACTOR = 0.001, 0.98
"""The second polygon's face is taken only where it is clearly the farther one."""


@inlined
def relative_frame(world: World, here: int, there: int) -> tuple[float, float, float, float]:
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
    world: World, owner: int, shape: int, other_owner: int, other: int
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
def _touch(world: World, owner: int, shape: int, face: int, other_owner: int, other: int) -> None:
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
            contact.gap, contact.point_gap = POLYGON_GAP, SKIN
            contact.friction = RACKET_RACKET_FRICTION
            if owner == WALLS or other_owner == WALLS:
                contact.friction = RACKET_FRICTION
            contact.bounce = 0.0


@bare
def meet_polygon(world: World, owner: int, shape: int, other_owner: int, other: int) -> None:
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
