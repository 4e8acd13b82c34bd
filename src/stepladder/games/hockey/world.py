"""What one game of hockey is made of: a record with four bodies, counters and room for contacts.

A batch is one array of these records. Kernels get one record, by reference; `resets` writes all of
it, `rackets`, `holding` and `physics` change it, `views` and `rules` read it.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from stepladder.compiled import bare
from stepladder.games.hockey.rink import ONE, PUCK, TWO, WALLS

World: TypeAlias = Any
"""One record of `WORLD_DTYPE`: numba's records have no Python type."""

Body: TypeAlias = Any
"""One record of `BODY_DTYPE`."""

Contact: TypeAlias = Any
"""One record of `CONTACT_DTYPE`."""

WorldArray: TypeAlias = npt.NDArray[np.void]
"""One record per env."""

MAX_CONTACTS = 20
"""Puck: both rackets, three walls. Rackets: two points on each of three walls and on each other."""

SMALL_ANGLE = 0.05
"""Below it, a few terms of a series give cos and sin to the last bit or two, and faster."""

BODY_DTYPE = np.dtype(
    [
        ("x", np.float64),  # reported position: the puck's centre, the origin of a racket's shape
        ("y", np.float64),
        ("angle", np.float64),  # of a racket; that of the puck means nothing and stays 0
        ("vx", np.float64),  # velocity of the centre of mass
        ("vy", np.float64),
        ("spin", np.float64),  # angular velocity; that of the puck is not observed
        ("hold", np.int64),  # of a racket that holds the puck: counts down from 15; else 0
        ("touching", np.int64),  # of a racket: whether it touched the puck when contacts were found
        ("facing_x", np.float64),  # unit vector from a racket's back to its front
        ("facing_y", np.float64),
        # What follows is only used within a step.
        ("push_x", np.float64),  # change of velocity by this step's forces, before damping
        ("push_y", np.float64),
        ("push_spin", np.float64),
        ("keep", np.float64),  # share of the velocity that damping leaves
        ("keep_spin", np.float64),
        ("centre_x", np.float64),  # centre of mass
        ("centre_y", np.float64),
        ("from_x", np.float64),  # where it and the angle were when the step, or sub-step, began
        ("from_y", np.float64),
        ("from_angle", np.float64),
        ("from_facing_x", np.float64),
        ("from_facing_y", np.float64),
    ]
)

CONTACT_DTYPE = np.dtype(
    [
        # A face of one body meets a point of the other; the normal points from face to point.
        ("face", np.int64),
        ("point", np.int64),
        ("island", np.int64),
        # In the frame of the face's body, from its centre of mass.
        ("local_normal_x", np.float64),
        ("local_normal_y", np.float64),
        ("plane_x", np.float64),
        ("plane_y", np.float64),
        # In the frame of the point's body, from its centre of mass.
        ("point_x", np.float64),
        ("point_y", np.float64),
        ("gap", np.float64),  # distance at which they touch: both bodies' rounding
        ("point_gap", np.float64),  # the point's share of it
        ("friction", np.float64),
        ("bounce", np.float64),
        # Written by the solver.
        ("normal_x", np.float64),
        ("normal_y", np.float64),
        ("face_arm_x", np.float64),
        ("face_arm_y", np.float64),
        ("point_arm_x", np.float64),
        ("point_arm_y", np.float64),
        ("normal_mass", np.float64),
        ("tangent_mass", np.float64),
        ("coupling", np.float64),  # normal speed that a tangential impulse brings, and vice versa
        ("target", np.float64),  # normal speed to leave with
        ("normal_impulse", np.float64),
        ("tangent_impulse", np.float64),
    ]
)

WORLD_DTYPE = np.dtype(
    [
        ("bodies", BODY_DTYPE, (4,)),  # by `PUCK`, `ONE`, `TWO`, `WALLS`
        ("launch_x", np.float64),  # change of the puck's velocity that the next step brings
        ("launch_y", np.float64),
        ("phase_one", np.float64),  # of the scripted players
        ("phase_two", np.float64),
        ("mode", np.int64),
        ("keep_mode", np.int64),
        ("steps", np.int64),  # steps played
        ("winner", np.int64),  # 1 player one, -1 player two, 0 nobody yet
        # What follows is only used within a step.
        ("num_contacts", np.int64),
        ("contacts", CONTACT_DTYPE, (MAX_CONTACTS,)),
    ]
)


@bare
def turn_to(racket: Body, side: float, angle: float) -> None:
    """Turn a racket about its reported position; `side` is 1 for player one, -1 for player two."""
    racket.angle = angle
    racket.facing_x = side * np.cos(angle)
    racket.facing_y = side * np.sin(angle)


@bare
def turn(body: Body, angle: float) -> None:
    """Turn a body about its centre of mass."""
    body.angle += angle
    if abs(angle) < SMALL_ANGLE:
        square = angle * angle
        sin = angle * (1.0 - square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0)))
        cos = 1.0 - square / 2.0 * (1.0 - square / 12.0 * (1.0 - square / 30.0))
    else:
        sin, cos = np.sin(angle), np.cos(angle)
    x, y = body.facing_x, body.facing_y
    body.facing_x, body.facing_y = cos * x - sin * y, sin * x + cos * y


@bare
def clear_world(world: World) -> None:
    """Write every field that outlives a step: bodies at the rink's centre, at rest."""
    for index in range(4):
        body = world.bodies[index]
        body.x = body.y = body.angle = 0.0
        body.vx = body.vy = body.spin = 0.0
        body.centre_x = body.centre_y = 0.0
        body.push_x = body.push_y = body.push_spin = 0.0
        body.keep = body.keep_spin = 1.0
        body.hold = body.touching = 0
        body.facing_x, body.facing_y = 1.0, 0.0
    turn_to(world.bodies[TWO], -1.0, 0.0)
    world.num_contacts = 0
    world.launch_x = world.launch_y = 0.0
    world.phase_one = world.phase_two = 0.0
    world.mode = world.steps = world.winner = 0
    world.keep_mode = 1


__all__ = [
    "BODY_DTYPE",
    "CONTACT_DTYPE",
    "MAX_CONTACTS",
    "ONE",
    "PUCK",
    "TWO",
    "WALLS",
    "WORLD_DTYPE",
    "Body",
    "Contact",
    "World",
    "WorldArray",
    "clear_world",
    "turn",
    "turn_to",
]
