"""How controls move rackets, and how a racket holds the puck and shoots it.

First part of a step (`physics`), before contacts are found: reads four controls per player, changes
velocities at once at the limits of the field, and leaves forces and damping for the physics to
apply. Damping is linear, not exponential: it leaves ``1 - damping * dt`` of a velocity.

A racket that catches the puck gets a count of `CAUGHT`; from the next step on it carries the puck,
and shoots it when the player says so or the count has run down.
"""

import math

from stepladder.compiled import bare
from stepladder.games.hockey.rink import PUCK, RACKET_INERTIA, RACKET_MASS, STEP_S
from stepladder.games.hockey.world import Body, HockeyWorld

PUSH = 6000.0 / RACKET_MASS * STEP_S
"""Change of speed that a full control brings within a step, before damping."""

TWIST = 400.0 / RACKET_INERTIA * STEP_S
RETURN_TWIST = 0.1 * (RACKET_MASS / STEP_S) / RACKET_INERTIA * STEP_S
"""Change of spin per radian, and per radian a second, of a racket that is turned too far."""

MAX_ANGLE = math.pi / 3
MAX_SPEED = 10.0
ZONE_X = -0.5
MIN_X, MAX_X = -3.5, 0.0
MAX_Y = 2.8

KEEP_USUALLY = 1.0 - 5.0 * STEP_S
KEEP_BRAKED = 1.0 - 20.0 * STEP_S
KEEP_SPIN = 1.0 - 2.0 * STEP_S
KEEP_SPIN_BRAKED = 1.0 - 10.0 * STEP_S

LAUNCH_SPEED = 60.0
SHOOT_ABOVE = 0.5


@bare
def steer(racket: Body, side: float, control_x: float, control_y: float) -> None:
    """Set a racket's push and damping; stop it where it pushes against a limit of the field.

    Args:
        racket: Changed in place.
        side: 1 for player one, -1 for player two. The rules are those of player one in either's
            own frame, in which the player looks along x.
        control_x: Forward, in [-1, 1].
        control_y: To the left, in [-1, 1].
    """
    x, y = side * racket.x, side * racket.y
    vx, vy = side * racket.vx, side * racket.vy
    push_x, push_y = PUSH * control_x, PUSH * control_y
    racket.keep = KEEP_USUALLY
    if x > ZONE_X:
        push_x = -x * vx - (2.0 * vx if vx > 0.0 else 0.0)
        racket.keep = KEEP_BRAKED
    else:
        speed_squared = vx * vx + vy * vy
        if speed_squared >= MAX_SPEED * MAX_SPEED:
            racket.keep = KEEP_BRAKED
            if (vx + push_x) ** 2 + (vy + push_y) ** 2 >= speed_squared:
                racket.push_x = racket.push_y = 0.0
                return
    if (x < MIN_X and push_x < 0.0) or (x > MAX_X and push_x > 0.0):
        racket.vx = push_x = 0.0
    if (y > MAX_Y and push_y > 0.0) or (y < -MAX_Y and push_y < 0.0):
        racket.vy = push_y = 0.0
    racket.push_x = side * push_x
    racket.push_y = side * push_y


@bare
def twist(racket: Body, control: float) -> None:
    """Set a racket's torque and angular damping. Both players turn counter-clockwise alike."""
    if abs(racket.angle) <= MAX_ANGLE:
        racket.push_spin = TWIST * control
        racket.keep_spin = KEEP_SPIN
        return
    racket.push_spin = -RETURN_TWIST * racket.angle
    if racket.angle * racket.spin > 0.0:
        racket.push_spin -= RETURN_TWIST * racket.spin
    racket.keep_spin = KEEP_SPIN_BRAKED


@bare
def carry(world: HockeyWorld, racket: Body, shoot: float) -> None:
    """Put a held puck into its racket; launch it if the player shoots or the time is over."""
    puck = world.bodies[PUCK]
    puck.x, puck.y = racket.x, racket.y
    puck.vx, puck.vy = racket.vx, racket.vy
    racket.hold -= 1
    if racket.hold == 1 or shoot > SHOOT_ABOVE:
        world.launch_x += LAUNCH_SPEED * racket.facing_x
        world.launch_y += LAUNCH_SPEED * racket.facing_y
        racket.hold = 0
