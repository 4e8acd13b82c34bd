"""What one game of hockey is made of: a record with four bodies, counters and room for contacts.

A batch is one array of these records; kernels get one record, by reference. `rules` writes all of
it at a reset, `rackets` and `physics` change it, `views` and `rules` read it.
"""

from typing import Annotated, TypeAlias

import numpy as np

from stepladder.compiled import bare
from stepladder.games.hockey.rink import PLAYER_TWO
from stepladder.records import Fields, Flag, Limits, Records, Shape

NORMAL, TRAIN_SHOOTING, TRAIN_DEFENSE = 0, 1, 2
"""Modes."""

CAUGHT = 15
"""The hold count of a racket that has just caught the puck."""

MAX_HOCKEY_STEPS = 1_000_000
"""Above every mode's own limit, which no task can lengthen: rewards are expressed in it."""

MAX_CONTACTS = 20
"""Puck: both rackets, three walls. Rackets: two points on each of three walls and on each other."""

SMALL_ANGLE = 0.05
"""Below it, a few terms of a series give cos and sin to the last bit or two, and faster."""

# What saved worlds may hold, so that kernels can continue with them. The corners of the rink are
# 6.4 m from its centre, and a launch has 60 m/s.
Coordinate: TypeAlias = Annotated[float, Limits(-100.0, 100.0)]
Pace: TypeAlias = Annotated[float, Limits(-1e4, 1e4)]
Unit: TypeAlias = Annotated[float, Limits(-1.001, 1.001)]


class Body(Fields):
    """The puck, a racket or the walls."""

    x: Coordinate  # reported position: the puck's centre, the origin of a racket's shape
    y: Coordinate
    angle: Pace  # of a racket; that of the puck means nothing and stays 0
    vx: Pace  # velocity of the centre of mass
    vy: Pace
    spin: Pace  # angular velocity; that of the puck is not observed
    hold: Annotated[int, Limits(0, CAUGHT)]  # of a racket that holds the puck: counts down; else 0
    touching: Flag  # of a racket: whether it touched the puck when contacts were found
    facing_x: Unit  # unit vector from a racket's back to its front
    facing_y: Unit
    # What follows is only used within a step.
    push_x: float  # change of velocity by this step's forces, before damping
    push_y: float
    push_spin: float
    keep: float  # share of the velocity that damping leaves
    keep_spin: float
    centre_x: float  # centre of mass
    centre_y: float
    from_x: float  # where it and the angle were when the step, or sub-step, began
    from_y: float
    from_angle: float
    from_facing_x: float
    from_facing_y: float


class Contact(Fields):
    """A face of one body meets a point of the other; the normal points from face to point."""

    face: int
    point: int
    island: int
    # In the frame of the face's body, from its centre of mass.
    local_normal_x: float
    local_normal_y: float
    plane_x: float
    plane_y: float
    # In the frame of the point's body, from its centre of mass.
    point_x: float
    point_y: float
    gap: float  # distance at which they touch: both bodies' rounding
    point_gap: float  # the point's share of it
    friction: float
    bounce: float
    # Written by the solver.
    normal_x: float
    normal_y: float
    face_arm_x: float
    face_arm_y: float
    point_arm_x: float
    point_arm_y: float
    normal_mass: float
    tangent_mass: float
    coupling: float  # normal speed that a tangential impulse brings, and vice versa
    target: float  # normal speed to leave with
    normal_impulse: float
    tangent_impulse: float


class HockeyWorld(Fields):
    """All of one game."""

    bodies: Annotated[Records[Body], Shape(4)]  # by `PUCK`, `PLAYER_ONE`, `PLAYER_TWO`, `WALLS`
    launch_x: Pace  # change of the puck's velocity that the next step brings
    launch_y: Pace
    phase_one: Pace  # of the scripted players
    phase_two: Pace
    mode: Annotated[int, Limits(0, TRAIN_DEFENSE)]
    keep_mode: Flag
    steps: Annotated[int, Limits(0, MAX_HOCKEY_STEPS)]  # steps played
    winner: Annotated[int, Limits(-1, 1)]  # 1 player one, -1 player two, 0 none yet
    # What follows is only used within a step.
    num_contacts: Annotated[int, Limits(0, MAX_CONTACTS)]
    contacts: Annotated[Records[Contact], Shape(MAX_CONTACTS)]


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
def clear_world(world: HockeyWorld) -> None:
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
    turn_to(world.bodies[PLAYER_TWO], -1.0, 0.0)
    world.num_contacts = 0
    world.launch_x = world.launch_y = 0.0
    world.phase_one = world.phase_two = 0.0
    world.mode = world.steps = world.winner = 0
    world.keep_mode = 1
